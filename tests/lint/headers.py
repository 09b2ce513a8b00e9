"""The public headers compile alone, in every language a user may include them from.

Usage: headers.py INCLUDE_DIR COMPILER. Skipped (77) if there is no such compiler.
"""
import pathlib
import re
import shutil
import subprocess
import sys

WAYS = {
    "npurt.h": [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")],
    "npurt.hpp": [("c++", "c++17"), ("c++", "c++20")],
}
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]
OURS_OR_STANDARD = re.compile(r'[a-z_]+(\.h)?$|npurt/')


def main(include, compiler):
    if shutil.which(compiler) is None:
        print(f"SKIPPED: there is no {compiler} here")
        return 77
    bad = runs = 0
    for header in sorted((include / "npurt").iterdir()):
        for number, line in enumerate(header.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)', line)
            if match and not OURS_OR_STANDARD.match(match[1]):
                print(f"{header.name}:{number}: third party include {match[1]}")
                bad += 1
        if header.name not in WAYS:
            print(f"{header.name}: not listed in headers.py")
            bad += 1
        for language, standard in WAYS.get(header.name, []):
            for twice in (1, 2):  # the include guard too
                source = f'#include "npurt/{header.name}"\n' * twice + "int npurt_lint;\n"
                result = subprocess.run([compiler, "-x", language, f"-std={standard}", *FLAGS, "-I", include,
                                         "-"], input=source, text=True, capture_output=True)
                runs += 1
                if result.returncode:
                    print(f"{header.name} as {standard} with {compiler}:\n{result.stderr}")
                    bad += 1
    print(f"{compiler}: {runs} compilations, {bad} findings")
    return bad > 0 or runs == 0


sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
