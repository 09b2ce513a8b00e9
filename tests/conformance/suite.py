"""Runs one folder of the ONNX backend suite through `npurt test` and says how much of it passes.

Usage: suite.py NPURT ARCHIVE WORK_DIR FOLDER KNOWN... [-- FLAG...]
       suite.py NPURT ARCHIVE WORK_DIR FOLDER --same-bits

What fails must stand in a KNOWN file with the property that holds instead (see npurt test --help), and what
stands there for this folder must fail without it. --same-bits compares the outputs of all instruction sets
under reproducibility=isa.
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


def check(npurt, folder, known_files, flags, work):
    here = {path.parent.name for path in folder.rglob("model.onnx")}
    lines = [line for file in known_files for line in file.read_text().splitlines()
             if line.split("\t")[0] in here]
    known = work / f"known-{folder.name}-{'-'.join(re.sub('[^a-z0-9]', '', flag) for flag in flags)}"
    known.write_text("".join(line + "\n" for line in lines))
    output = run(npurt, folder, ["--known", str(known), *flags])
    if output is None:
        return ["no total"]
    bad = [f"FAILED {entry.splitlines()[0]}" for entry in re.split(r"^FAILED ", output, flags=re.M)[1:]]
    bad += re.findall(r"^KNOWN .*: passes now, .*$", output, flags=re.M)
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
        bad = check(npurt, path, [pathlib.Path(f) for f in rest[:split]], list(rest[split + 1:]), work)
    print("\n".join(bad))
    return bool(bad)


sys.exit(main(*sys.argv[1:]))
