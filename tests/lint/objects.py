"""The library runs no code at load or exit, never prints, never ends the process.

Usage: objects.py LIBRARY.a. Reads our own objects: what libstdc++ or Abseil do is not counted.
"""
import collections
import re
import subprocess
import sys

# Sections whose functions the loader would call.
LOAD_AND_EXIT = re.compile(r"\.(init_array|fini_array|preinit_array|ctors|dtors)\b")

# Symbol -> what it would mean. A file for the caller's own path is written through std::FILE or a
# descriptor; only the process's own streams are banned.
FORBIDDEN = {
    "__cxa_atexit": "a destructor at exit", "atexit": "a function at exit",
    "__cxa_thread_atexit": "a destructor at thread exit",
    "abort": "ends the process", "exit": "ends the process", "_exit": "ends the process",
    "quick_exit": "ends the process", "__assert_fail": "an assert that is still there",
    "stdout": "prints", "stderr": "prints", "printf": "prints", "__printf_chk": "prints",
    "vprintf": "prints", "puts": "prints", "putchar": "prints", "perror": "prints",
    "_ZSt4cout": "prints", "_ZSt4cerr": "prints", "_ZSt4clog": "prints",
    "_ZNSt8ios_base4InitC1Ev": "<iostream>",
}

# (object, symbol) -> why it is right there.
EXCEPTIONS = {
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def main(library):
    bad, members, used = 0, collections.Counter(), set()
    for line in run("nm", "-A", library):
        place, *rest = line.split()
        member, symbol = place.split(":")[1], rest[-1].split("@")[0]
        members[member] += 1
        if rest[-2] == "U" and symbol in FORBIDDEN:
            if (member, symbol) in EXCEPTIONS:
                used.add((member, symbol))
                continue
            print(f"{member}: uses {symbol}: {FORBIDDEN[symbol]}")
            bad += 1
    member = "?"
    for line in run("readelf", "-SW", library):
        if line.startswith("File: "):
            member = line.split("(")[-1].rstrip(")")
        elif LOAD_AND_EXIT.search(line) and ".rela" not in line:
            print(f"{member}: has {LOAD_AND_EXIT.search(line)[0]}: code that runs at load or exit")
            bad += 1
    for member, symbol in EXCEPTIONS.keys() - used:
        print(f"the exception for {symbol} in {member} is no longer needed")
        bad += 1
    print(f"{len(members)} objects, {bad} findings")
    return bad > 0 or not members


sys.exit(main(sys.argv[1]))
