"""Includes point only where src/layers.txt lets them. Usage: layers.py ROOT"""
import pathlib
import re
import sys

SUFFIXES = {".h", ".hpp", ".c", ".cc", ".inc", ".inl", ".def"}
STANDARD = re.compile(r"[a-z_0-9]+(\.h)?$|(sys|linux|arpa|netinet|bits)/")
WHERE = ["", "src/", "include/", "tests/"]  # what an include may be written from


def read_rules(path):
    rules, section = {"folders": {}, "outside": {}}, None
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line.startswith("["):
            section = rules[line.strip("[]")]
        elif line:
            name, _, allowed = line.partition(":")
            section[name.strip()] = allowed.split()
    return rules["folders"], rules["outside"]


def holds(folders, path):
    return any(f == "*" or path == f or path.startswith(f + "/") for f in folders)


def allowed_for(rules, path):
    """The folders that `path` may include, or None if no line is about it."""
    home = max((f for f in rules if holds([f], path)), key=len, default=None)
    if home != "tests":
        return home and rules[home] + [home]
    folder = "/".join(path.split("/")[:2])
    mirrored = folder.replace("tests/", "src/")
    return rules.get(mirrored, [f for f in rules if f.startswith("src/")]) + [
        mirrored, folder, "src/graph", "src/ops", "src/base", "tests/support"]


def problem(rules, outside, name, quote, what):
    """Why the file `name` must not include `what`, or None."""
    head, folder = what.split("/")[0], name.rsplit("/", 1)[0]
    if head in outside:
        return None if holds(outside[head], name) else f"not for {folder}"
    if quote == "<" and STANDARD.match(what):
        return None
    here = [f"{folder}/{what}"] if "/" not in what else []
    place = next((p for p in here + [w + what for w in WHERE] for f in rules if holds([f], p)), None)
    if place is None:
        return "src/layers.txt does not know it"
    return None if holds(allowed_for(rules, name), place) else f"not below {folder}"


def main(root):
    rules, outside = read_rules(root / "src/layers.txt")
    files = sorted(p for top in ("src", "capi", "include", "examples", "bench", "tests")
                   for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    bad = 0
    for path in files:
        name = path.relative_to(root).as_posix()
        if allowed_for(rules, name) is None:
            print(f"{name}: its folder has no line in src/layers.txt")
            bad += 1
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
            reason = match and problem(rules, outside, name, match[1], match[2])
            if reason:
                print(f"{name}:{number}: includes {match[2]}: {reason}")
                bad += 1
    print(f"{len(files)} files, {bad} findings")
    return bad > 0 or not files


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
