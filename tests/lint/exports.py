"""npurt.h, npurt.map and libnpurt.so name the same functions. Usage: exports.py HEADER MAP LIBRARY"""
import pathlib
import re
import subprocess
import sys

NODE = r"NPURT_1(\.\d+)?"  # one node per ABI major, one more for each later set of additions


def in_header(path):
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#.*?[^\\]$", "", path.read_text(), flags=re.S | re.M)
    return set(re.findall(r"\bNPURT_API\b[^;{(]*?\b(\w+)\s*\(", text))


def in_map(path):
    text = re.sub(r"#[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
    nodes = re.findall(rf"{NODE}\s*\{{\s*global:(.*?)(?:local:\s*\*;\s*)?\}}", text, flags=re.S)
    return {name for _, names in nodes for name in names.replace(";", " ").split()}


def in_library(path):
    """Defined dynamic symbols, name@@node, but for those that stand for the nodes themselves."""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    names = {line.split()[-1] for line in lines}
    return {n for n in names if not re.fullmatch(rf"{NODE}(@@{NODE})?", n)}


def main(header, map_file, library):
    declared, mapped = in_header(header), in_map(map_file)
    exported = in_library(library)
    wrong = {s for s in exported if not re.fullmatch(rf"npurt_\w+@@{NODE}", s)}
    exported = {s.split("@")[0] for s in exported}
    findings = [
        ("declared in the header, not in the map", declared - mapped),
        ("in the map, not declared in the header", mapped - declared),
        ("in the map, not exported (not written?)", mapped - exported),
        ("exported, not in the map", exported - mapped),
        ("exported, but not npurt_* in a node of the map", wrong),
    ]
    for what, names in findings:
        for name in sorted(names):
            print(f"{name}: {what}")
    print(f"{len(declared)} declared, {len(mapped)} mapped, {len(exported)} exported")
    return any(names for _, names in findings) or not declared


sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
