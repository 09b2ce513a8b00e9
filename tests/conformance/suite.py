"""Runs one folder of the ONNX backend suite through `npurt test` and says how much of it passes.

Usage: suite.py NPURT ARCHIVE WORK_DIR FOLDER KNOWN... [-- FLAG...]
       suite.py NPURT ARCHIVE WORK_DIR FOLDER --same-bits

An operator that is not there yet (UNIMPLEMENTED when loading) counts as failed and is no error of this
test; everything else that fails must stand in a KNOWN file (see npurt test --help), and what stands
there for this folder must fail. Crashes and time-outs always are errors. --same-bits compares the
outputs of all instruction sets under reproducibility=isa.
"""
import fcntl
import pathlib
import re
import subprocess
import sys


def unpack(archive, work):
    """Tests that run side by side share one copy."""
    work.mkdir(parents=True, exist_ok=True)
    with open(work / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = work / "unpacked"
        if not stamp.exists():
            subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", str(work)], check=True)
            stamp.touch()
    return work / "onnx-backend-tests"


def run(npurt, folder, flags):
    done = subprocess.run([npurt, "test", str(folder), *flags], capture_output=True, text=True,
                          errors="replace", check=False)
    total = re.search(r"^\d+ passed, \d+ failed, \d+ skipped$", done.stdout, re.M)
    print(f"ONNX {folder.name} {' '.join(flags)}: "
          f"{total[0] if total else done.stdout[-2000:] + done.stderr[-2000:]}")
    return done.stdout if total else None


def check(npurt, folder, known_files, flags):
    output = run(npurt, folder, flags)
    if output is None:
        return ["no total"]
    known = {line.split("\t")[0]: file.name for file in known_files
             for line in file.read_text().splitlines() if line and not line.startswith("#")}
    bad, failed_known = [], set()
    for entry in re.split(r"^FAILED ", output, flags=re.M)[1:]:
        name, _, why = entry.partition(": ")
        if why.startswith("load") and "UNIMPLEMENTED" in why:
            print(f"not there yet: {name}")
        elif name in known and "crashed" not in why:
            failed_known.add(name)
        else:
            bad.append(f"FAILED {name}: {why.splitlines()[0]}")
    here = {path.parent.name for path in folder.rglob("model.onnx")}
    bad += [f"{name}: passes; take it out of {known[name]}"
            for name in sorted((set(known) & here) - failed_known)]
    return bad


def same_bits(npurt, folder, work):
    digests = {}
    for isa in ("generic", "avx2", "avx512"):
        file = work / f"digests-{folder.name}-{isa}"
        if run(npurt, folder, ["--option", "reproducibility=isa", "--option", f"max_isa={isa}",
                               "--digests", str(file)]) is None:
            return ["no total"]
        for line in file.read_text().splitlines():
            path, _, digest = line.partition("\t")
            digests.setdefault(path, {})[isa] = digest
    return [f"{pathlib.Path(path).name}: other bits on another instruction set: {of_isa}"
            for path, of_isa in digests.items() if len(set(of_isa.values())) > 1]


def main(npurt, archive, work, folder, *rest):
    archive, work = pathlib.Path(archive), pathlib.Path(work)
    if not archive.is_file():
        print(f"SKIPPED: {archive} is not there, the ONNX suite was not run")
        return 77
    path = unpack(archive, work) / folder
    if rest == ("--same-bits",):
        bad = same_bits(npurt, path, work)
    else:
        split = rest.index("--") if "--" in rest else len(rest)
        bad = check(npurt, path, [pathlib.Path(f) for f in rest[:split]], list(rest[split + 1:]))
    print("\n".join(bad))
    return bool(bad)


sys.exit(main(*sys.argv[1:]))
