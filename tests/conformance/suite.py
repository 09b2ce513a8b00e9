"""Runs the ONNX backend suite through `npurt test` and says how much of it passes.

Usage: suite.py NPURT ARCHIVE WORK_DIR KNOWN [FLAG...]

An operator that is not there yet (UNIMPLEMENTED when loading) counts as failed and is no error of this
test; everything else that fails must stand in KNOWN (name, tab, reason), and what stands there
must fail. Crashes and time-outs always are errors.
"""
import pathlib
import re
import subprocess
import sys

SUITES = ("node", "simple", "pytorch-converted", "pytorch-operator")


def main(npurt, archive, work, known_file, flags):
    if not archive.is_file():
        print(f"SKIPPED: {archive} is not there, the ONNX suite was not run")
        return 77
    if not (work / "onnx-backend-tests").is_dir():
        work.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(work)], check=True)
    known = {}
    for line in known_file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition("\t")
            known[name] = reason
    bad, failed_known = [], set()
    for suite in SUITES:
        run = subprocess.run([npurt, "test", str(work / "onnx-backend-tests" / suite), *flags],
                             capture_output=True, text=True, errors="replace", check=False)
        total = re.search(r"^\d+ passed, \d+ failed, \d+ skipped$", run.stdout, re.M)
        if not total:
            bad.append(f"{suite}: no total\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
            continue
        print(f"ONNX {suite}: {total[0]}")
        for entry in re.split(r"^FAILED ", run.stdout, flags=re.M)[1:]:
            name, _, why = entry.partition(": ")
            if why.startswith("load") and "UNIMPLEMENTED" in why:
                continue
            if name in known and "crashed" not in why:
                failed_known.add(name)
            else:
                bad.append(f"{suite}/{name}: {why.splitlines()[0]}")
    bad += [f"{name}: passes, or is gone; take it out of {known_file.name}"
            for name in sorted(set(known) - failed_known)]
    print("\n".join(bad))
    return bool(bad)


sys.exit(main(sys.argv[1], *map(pathlib.Path, sys.argv[2:5]), sys.argv[5:]))
