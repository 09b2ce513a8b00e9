"""Every source file is in the build. Usage: sources.py ROOT BUILD

A test file that nobody compiles cannot fail. Fuzz targets and corpora are another build's, what times a
peer is compiled by bench/compare.py, and instruction sets of another CPU cannot be built here.
"""
import json
import pathlib
import sys

TOPS = ("src", "capi", "bench", "examples", "tests")
ELSEWHERE = ("_fuzz.cc", "tests/install/consumer.c", "bench/peers/ort_bench.cc")


def main(root, build):
    commands = json.loads((build / "compile_commands.json").read_text())
    compiled = {(pathlib.Path(c["directory"]) / c["file"]).resolve() for c in commands}
    sources = [p for top in TOPS for p in sorted((root / top).rglob("*")) if p.suffix in {".c", ".cc"}]
    names = [p.relative_to(root).as_posix() for p in sources if p.resolve() not in compiled]
    names = [n for n in names if not n.endswith(ELSEWHERE)]
    for name in names:
        print(f"{name}: not in the build; add it to its folder's meson.build")
    print(f"{len(sources)} sources, {len(names)} not built")
    return bool(names) or not sources


sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))
