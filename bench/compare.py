#!/usr/bin/env python3
"""Times models on npurt and on ONNX Runtime, by turns, and prints the ratio of each pair.

Usage: bench/compare.py NPURT [NAME...] [--threads N] [--pairs N] [--seconds S] [--shared DIR]
       [--work DIR] [--json]
NAMEs are of the manifest in --shared and may have wildcards. A ratio above 1 means that npurt is
faster. Each run is a process of its own; the figure of a run is its median; that of a model is the
median over the pairs. The peer is installed from npm into --work.
"""
import argparse
import fnmatch
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEER = "onnxruntime-node@1.30.0"


def run(command, timeout):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace",
                          timeout=timeout, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1][:200])
    return done.stdout


def peer_program(folder):
    pattern = "node_modules/onnxruntime-node/bin/*/linux/x64/libonnxruntime.so.1"
    if not list(folder.glob(pattern)):
        folder.mkdir(parents=True, exist_ok=True)
        run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", folder, PEER], 600)
    program = folder / "ort_bench"
    if not program.exists():
        run(["g++", "-O2", "-std=c++20", HERE / "peers/ort_bench.cc", "-o", program, "-ldl"], 300)
    return program, list(folder.glob(pattern))[0]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("npurt", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parent.parent / "shared")
    parser.add_argument("--work", type=pathlib.Path, default=HERE.parent / "build/compare")
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    models = json.loads((flags.shared / "models/manifest.json").read_text())["models"]
    bench, library = peer_program(flags.work)
    results, ratios = {}, []
    for model in models:
        name = model["name"]
        if flags.names and not any(fnmatch.fnmatch(name, n) for n in flags.names):
            continue
        if "input_values" not in model:
            continue
        file = flags.shared / "models" / model["file"]
        inputs = flags.shared / "models" / model["input_values"]
        common = ["--inputs", inputs, "--threads", flags.threads, "--seconds", flags.seconds]
        ours, theirs = [], []
        try:
            for _ in range(flags.pairs):
                line = run([flags.npurt, "bench", file, *common, "--json"], 600).splitlines()[-1]
                ours.append(json.loads(line)["p50_ms"])
                theirs.append(json.loads(run([bench, file, *common, "--lib", library], 600))["p50_ms"])
        except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            print(f"{name:<24} {error}", file=sys.stderr)
            continue
        pairs = [b / a for a, b in zip(ours, theirs)]
        ratio = statistics.median(pairs)
        ratios.append(ratio)
        results[name] = {"npurt_ms": statistics.median(ours), "onnxruntime_ms": statistics.median(theirs),
                         "ratio": ratio, "least": min(pairs), "most": max(pairs)}
        if not flags.json:
            print(f"{name:<24} {statistics.median(ours):10.4f} ms {statistics.median(theirs):10.4f} ms   "
                  f"{ratio:5.2f} ({min(pairs):.2f} to {max(pairs):.2f})", flush=True)
    if flags.json:
        print(json.dumps({"threads": flags.threads, "pairs": flags.pairs, "models": results}))
    elif ratios:
        print(f"{len(ratios)} models, geometric mean {statistics.geometric_mean(ratios):.2f}, "
              f"faster on {sum(r > 1 for r in ratios)}")
    return 0 if ratios else 77


sys.exit(main())
