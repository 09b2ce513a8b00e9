"""The structs of npurt.h lie as capi/npurt.layout says. Usage: layout.py INCLUDE_DIR LAYOUT CC...

A struct may grow at its end; nothing else may change within an ABI major. Every public struct and
each of its fields stands in the layout file, and the C compiler confirms each number (LP64).
"""
import pathlib
import re
import subprocess
import sys

STRUCT = re.compile(r"typedef struct (npurt_\w+) \{(.*?)\n\} \1;", re.S)
FUNCTION = re.compile(r"\(\*(\w+)\)")


def structs(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    found = {}
    for name, body in STRUCT.findall(text):
        fields = found[name] = []
        for declaration in filter(str.strip, body.split(";")):
            function = FUNCTION.search(declaration)
            names = [function[1]] if function else re.findall(r"(\w+)\s*(?=,|$)", declaration)
            fields += names
    return found


def run(program, include, compiler, *options):
    return subprocess.run([*compiler, "-x", "c", "-std=c11", "-I", include, *options, "-"],
                          input="#include <npurt/npurt.h>\n" + program, text=True,
                          capture_output=True)


def read(layout):
    rows, struct = {}, None
    for line in layout.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, number = line.split()
            struct = struct if line.startswith(" ") else name
            rows[(struct, name if line.startswith(" ") else "")] = int(number)
    return rows


def main(include, layout, compiler):
    wanted = [(s, f) for s, fields in structs(include / "npurt/npurt.h").items()
              for f in ["", *fields]]
    expression = {(s, f): f"offsetof({s}, {f})" if f else f"sizeof({s})" for s, f in wanted}
    rows = read(layout)
    bad = [f"{s} {f}: in {'the layout' if (s, f) in rows else 'the header'} only"
           for s, f in sorted(set(wanted) ^ set(rows))]
    checks = "".join(f'_Static_assert({expression[key]} == {rows[key]}, "{key[0]} {key[1]}");\n'
                     for key in wanted if key in rows)
    result = run(checks, include, compiler, "-fsyntax-only")
    if result.returncode:
        bad.append(result.stderr)
    print("\n".join(bad) if bad else f"{len(structs(include / 'npurt/npurt.h'))} structs as laid down")
    return bool(bad) or not wanted


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]))
