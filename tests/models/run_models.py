"""Runs real models on the CPU and on the reference device and compares both with a peer's outputs.

Usage: run_models.py NPURT [NAME...] [--shared DIR] [--work DIR] [--timeout S]
NAMEs may have wildcards; without any, those of models.txt. Models, inputs and the peer's outputs
are at ../shared; without them everything is skipped, aloud.

Rule, per floating output: RMS(ours - reference) <= 1.25 * RMS(peer - reference) + 1e-6 * max|reference|,
where reference is the same model in double precision. Shapes, and whole outputs that are no
floating numbers (labels, indices), must be the peer's.
"""
import argparse
import array
import ast
import concurrent.futures
import fnmatch
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77  # what Meson takes for "skipped"
ARRAY_CODES = {"f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
               "u1": "B", "u2": "H", "u4": "I", "u8": "Q", "b1": "B"}
PEER = "onnxruntime-node@1.30.0"
MAKING_PEER = threading.Lock()


class Refused(Exception):
    pass


def read_npy(path):
    """(type, shape, values) of a .npy file; values of strings as a list of str."""
    data = path.read_bytes()
    size = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:10 + size].decode("latin1"))
    kind, body = header["descr"].lstrip("<|="), data[10 + size:]
    if kind[0] == "U":
        width = 4 * int(kind[1:])
        texts = [body[i:i + width].decode("utf-32-le").rstrip("\0") for i in range(0, len(body), width)]
        return "string", header["shape"], texts
    if kind == "f2":
        return kind, header["shape"], [v[0] for v in struct.iter_unpack("<e", body)]
    values = array.array(ARRAY_CODES[kind])
    values.frombytes(body)
    return kind, header["shape"], values


def rms(a, b):
    """Root of the mean square of a - b; NaN where both are NaN counts as no difference."""
    total = 0.0
    for x, y in zip(a, b):
        d = x - y
        if d != d:
            if x != x and y != y or x == y:
                continue
            return math.inf
        total += d * d
    return math.sqrt(total / len(a)) if len(a) else 0.0


def largest(values):
    return max((abs(v) for v in values if v == v and abs(v) != math.inf), default=0.0)


def run(command, timeout):
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL, errors="replace")
    except subprocess.TimeoutExpired:
        raise Refused(f"took longer than {timeout} s")
    if done.returncode != 0:
        words = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()
        raise Refused(words[0] if done.returncode > 0 else f"crashed (signal {-done.returncode})")
    return done.stdout


def peer_outputs(name, shared, work, timeout):
    """The folder with the peer's outputs; made with the peer itself where they were too big to keep."""
    kept = shared / "models/ref" / name
    if list(kept.glob("out_*.npy")):
        return kept
    made = work / "peer_outputs" / name
    if not list(made.glob("out_*.npy")):
        try:
            with MAKING_PEER:
                bench, library = peer_program(shared, work / "peer")
            made.mkdir(parents=True, exist_ok=True)
            run([bench, shared / f"models/onnx/{name}.onnx", "--inputs", shared / f"models/inputs/{name}.tsv",
                 "--seconds", "0", "--save", made, "--lib", library], timeout)
        except (Refused, OSError) as error:
            raise LookupError(f"the peer's outputs were not kept, and it cannot be run: {error}")
    return made


def peer_program(shared, folder):
    folder.mkdir(parents=True, exist_ok=True)
    found = list(folder.glob("node_modules/onnxruntime-node/bin/*/linux/x64/libonnxruntime.so.1"))
    if not found:
        run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder, PEER], 600)
        found = list(folder.glob("node_modules/onnxruntime-node/bin/*/linux/x64/libonnxruntime.so.1"))
    if not found:
        raise Refused(f"{PEER} has no library for this machine")
    bench = folder / "ort_bench"
    if not bench.exists():
        run(["g++", "-O2", "-std=c++20", shared / "peers/ort_bench.cc", "-o", bench, "-ldl"], 300)
    return bench, found[0]


def compare(cpu, reference, peer):
    """Yields (output, ours, the peer's, limit, problem)."""
    files = sorted(peer.glob("out_*.npy"))
    for path in files:
        output = path.stem[4:]
        if not (cpu / path.name).exists() or not (reference / path.name).exists():
            yield output, 0, 0, 0, f"there is no {path.name}"
            continue
        got, want, oracle = read_npy(cpu / path.name), read_npy(path), read_npy(reference / path.name)
        if got[:2] != want[:2] or oracle[:2] != want[:2]:
            yield output, 0, 0, 0, f"{got[0]} {got[1]}, reference {oracle[0]} {oracle[1]}, peer {want[0]} {want[1]}"
        elif want[0][0] != "f":
            bad = sum(a != b or c != b for a, b, c in zip(got[2], want[2], oracle[2]))
            yield output, bad, 0, 0, f"{bad} values differ from the peer's" if bad else ""
        else:
            ours, theirs = rms(got[2], oracle[2]), rms(want[2], oracle[2])
            top = largest(oracle[2])
            limit = 1.25 * theirs + 1e-6 * top
            problem = "" if ours <= limit else "too far from the reference"
            if theirs > 1e-2 * top and not problem:
                problem = "the reference device is far from the peer"
            yield output, ours, theirs, limit, problem
    for text in strings(peer / "ref.json"):
        output, want = text
        for folder in (cpu, reference):
            path = folder / f"out_{output}.npy"
            got = list(read_npy(path)[2]) if path.exists() else None
            if got != want:
                yield output, 0, 0, 0, f"got {got}, the peer says {want}"


def strings(path):
    """(file suffix, values) of the outputs that are strings: the peer kept those in its JSON."""
    def visit(value, suffix):
        if isinstance(value, list):
            for k, item in enumerate(value):
                yield from visit(item, f"{suffix}_{k}")
        elif "map" in value:
            yield from visit(value["map"], suffix)
        elif "strings" in value:
            yield suffix, value["strings"]

    if path.exists():
        for i, output in enumerate(json.loads(path.read_text())["outputs"]):
            yield from visit(output["value"], str(i))


def check(name, npurt, shared, work, timeout):
    """(passed or failed, lines of the table) of a model."""
    model, inputs = shared / f"models/onnx/{name}.onnx", shared / f"models/inputs/{name}.tsv"
    peer = peer_outputs(name, shared, work, timeout)
    folders = {}
    for device in ("cpu", "reference"):
        folders[device] = work / "outputs" / name / device
        folders[device].mkdir(parents=True, exist_ok=True)
        for old in folders[device].glob("*.npy"):
            old.unlink()
        try:
            run([npurt, "run", model, "--inputs", inputs, "--device", device, "--output-dir", folders[device]],
                timeout)
        except Refused as error:
            raise Refused(f"on {device}: {error}")
    rows = list(compare(folders["cpu"], folders["reference"], peer))
    if not rows:
        raise Refused("the peer has no outputs to compare with")
    lines = [f"{name:24} {output:6} {ours:10.3g} {theirs:10.3g} {limit:10.3g}  {problem or 'ok'}"
             for output, ours, theirs, limit, problem in rows]
    return "failed" if any(problem for *_, problem in rows) else "passed", "\n".join(lines)


def outcome(name, *how):
    """(state, text) of a model, whatever happens."""
    try:
        return check(name, *how)
    except Refused as error:
        return "failed", f"{name:24} FAILED {error}"
    except LookupError as error:
        return "skipped", f"{name:24} SKIPPED: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("npurt", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parents[2] / "shared")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    manifest = args.shared / "models/manifest.json"
    if not manifest.exists():
        print(f"SKIPPED: there is no {manifest}: no model was run")
        return SKIP
    npurt = args.npurt.resolve()
    known = [model["name"] for model in json.loads(manifest.read_text())["models"]]
    lines = (HERE / "models.txt").read_text().splitlines()
    patterns = args.names or [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    count = {"passed": 0, "failed": 0, "skipped": 0}
    print(f"{'model':24} {'output':6} {'ours':>10} {'peer':>10} {'limit':>10}  RMS against double precision")
    names = []
    for pattern in patterns:
        found = fnmatch.filter(known, pattern)
        if not found:
            print(f"{pattern:24} FAILED: the manifest has no such model")
            count["failed"] += 1
        names += [name for name in found if name not in names]
    # The reference device has one thread, and takes nearly all the time.
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda name: outcome(name, npurt, args.shared, args.work, args.timeout), names)
        for state, text in results:
            count[state] += 1
            print(text, flush=True)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return int(count["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
