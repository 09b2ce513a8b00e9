"""A file has one idea and rarely more than 500 lines. Usage: budgets.py ROOT"""
import pathlib
import sys

BUDGET, LIMIT = 500, 800
UNLIMITED = {"include/npurt/npurt.h"}  # the specification; two halves would be harder to read
TOPS = ("src", "capi", "include", "bench", "examples", "tests", "cmake")
SUFFIXES = {".h", ".hpp", ".c", ".cc", ".inc", ".inl", ".def", ".py", ".sh", ".build"}


def main(root):
    reasons, bad = {}, []
    for line in (root / "tests/lint/budgets.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(":")
            reasons[name] = reason.strip()
    files = [p for top in TOPS for p in sorted((root / top).rglob("*")) if p.suffix in SUFFIXES]
    for path in files:
        name, lines = path.relative_to(root).as_posix(), path.read_text().count("\n")
        if lines > LIMIT and name not in UNLIMITED:
            bad.append(f"{name}: {lines} lines, {LIMIT} is the limit for any file: split it")
        elif lines > BUDGET and not reasons.get(name):
            bad.append(f"{name}: {lines} lines; over {BUDGET} it needs a reason in budgets.txt")
        elif lines <= BUDGET and name in reasons:
            bad.append(f"{name}: {lines} lines, no longer needs its line in budgets.txt")
    known = {p.relative_to(root).as_posix() for p in files}
    bad += [f"{name}: in budgets.txt, but there is no such file" for name in reasons if name not in known]
    print("\n".join(bad + [f"{len(files)} files, {len(bad)} over budget"]))
    return bool(bad) or not files


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
