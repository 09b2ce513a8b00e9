"""Objects built for one instruction set call nothing and share nothing. Usage: isa_objects.py LIB...

The linker keeps one copy of an inline function for the whole program. If that copy came from a
file built for AVX-512, every CPU would run it. So these files may define npurt::kernels functions
and call the memory functions that the compiler itself calls; no STL, no Abseil, no templates with
external linkage. Only the plain release build says the truth (sanitizers and -O0 add calls).
"""
import subprocess
import sys

MAY_CALL = {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}
SHARED = "WwVvu"  # nm's letters for weak, weak object and unique symbols
OWN = ("_ZN5npurt7kernels", "_ZNK5npurt7kernels")  # npurt::kernels::
NAMED = "TtDdBbRr"


def check(library):
    listing = subprocess.run(["nm", "-A", library], check=True, capture_output=True, text=True)
    bad = seen = 0
    for line in listing.stdout.splitlines():
        place, *rest = line.split()
        kind, symbol = rest[-2], rest[-1]
        member = place.split(":")[-2] if place.count(":") > 1 else place
        seen += 1
        message = None
        if kind == "U" and symbol not in MAY_CALL:
            message = "calls"
        elif kind in SHARED:
            message = "defines, for the whole program to share,"
        elif kind.isupper() and kind in NAMED and not symbol.startswith(OWN):
            message = "defines, outside npurt::kernels,"
        if message:
            print(f"{member}: {message} {symbol}")
            bad += 1
    print(f"{library}: {seen} symbols, {bad} bad")
    return bad > 0 or seen == 0


sys.exit(max(check(library) for library in sys.argv[1:]))
