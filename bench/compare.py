#!/usr/bin/env python3
"""Times models on npurt and on ONNX Runtime, by turns, and prints the ratio of each pair.

Usage: bench/compare.py NPURT [NAME...] [--threads N] [--pairs N] [--seconds S] [--shared DIR]
       [--standard DIR] [--option K=V]... [--work DIR] [--json]
NAMEs are of the manifest in --shared and may have wildcards. --standard: instead, the full-size
networks that shared/models/standard/export_standard.py wrote to DIR, a line for each of their cases.
--option goes to npurt. A ratio above 1 means that npurt is faster, or needs less. Each run is a
process of its own; the figure of a run is its median; that of a model is the median over the pairs.
"best" compares the least times, which other programs on the machine disturb less. The peer is
installed from npm into --work.
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


def cases(flags):
    """(name, model file, input table) of each case."""
    if flags.standard is not None:
        for table in sorted(flags.standard.glob("*.tsv")):
            model = flags.standard / (table.name.split(".")[0] + ".onnx")
            if model.exists():
                yield table.stem, model, table
        return
    folder = flags.shared / "models"
    for model in json.loads((folder / "manifest.json").read_text())["models"]:
        if "input_values" in model:
            yield model["name"], folder / model["file"], folder / model["input_values"]


def figures(line, peer):
    """Milliseconds and bytes of a run, under one set of names."""
    run_ = json.loads(line)
    return {"p50_ms": run_["p50_ms"], "min_ms": run_["min_ms"], "load_ms": run_["load_ms"],
            "peak_rss_bytes": run_["peak_rss_kb"] * 1024 if peer else run_["peak_rss_bytes"]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("npurt", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parent.parent / "shared")
    parser.add_argument("--standard", type=pathlib.Path)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--work", type=pathlib.Path, default=HERE.parent / "build/compare")
    parser.add_argument("--json", action="store_true")
    flags = parser.parse_args()
    bench, library = peer_program(flags.work)
    options = [word for option in flags.option for word in ("--option", option)]
    results = {}
    for name, file, inputs in cases(flags):
        if flags.names and not any(fnmatch.fnmatch(name, n) for n in flags.names):
            continue
        common = ["--inputs", inputs, "--threads", flags.threads, "--seconds", flags.seconds]
        ours, theirs = [], []
        try:
            for _ in range(flags.pairs):
                line = run([flags.npurt, "bench", file, *common, *options, "--json"], 600).splitlines()[-1]
                ours.append(figures(line, False))
                line = run([bench, file, *common, "--lib", library], 600).splitlines()[-1]
                theirs.append(figures(line, True))
        except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            print(f"{name:<34} {error}", file=sys.stderr)
            continue
        pairs = [b["p50_ms"] / a["p50_ms"] for a, b in zip(ours, theirs)]
        row = {"ratio": statistics.median(pairs), "least": min(pairs), "most": max(pairs),
               "best": min(b["min_ms"] for b in theirs) / min(a["min_ms"] for a in ours)}
        for key in ("p50_ms", "load_ms", "peak_rss_bytes"):
            row["npurt_" + key], row["onnxruntime_" + key] = (
                statistics.median(run_[key] for run_ in runs) for runs in (ours, theirs))
        results[name] = row
        if not flags.json:
            print(f"{name:<34} {row['npurt_p50_ms']:9.4f} ms {row['onnxruntime_p50_ms']:9.4f} ms  "
                  f"{row['ratio']:5.2f} ({row['least']:.2f} to {row['most']:.2f})  best {row['best']:5.2f}  "
                  f"load {row['npurt_load_ms']:6.0f} {row['onnxruntime_load_ms']:6.0f} ms  peak "
                  f"{row['npurt_peak_rss_bytes'] / 2**20:5.0f} {row['onnxruntime_peak_rss_bytes'] / 2**20:5.0f} MiB",
                  flush=True)
    if flags.json:
        print(json.dumps({"threads": flags.threads, "pairs": flags.pairs, "models": results}))
    elif results:
        for key in ("ratio", "best"):
            ratios = [row[key] for row in results.values()]
            print(f"{key}: {len(ratios)} models, geometric mean {statistics.geometric_mean(ratios):.2f}, "
                  f"faster on {sum(r > 1 for r in ratios)}")
        less = sum(row["npurt_peak_rss_bytes"] < row["onnxruntime_peak_rss_bytes"] for row in results.values())
        print(f"less memory at the peak on {less} of {len(results)}")
    return 0 if results else 77


sys.exit(main())
