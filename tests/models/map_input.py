#!/usr/bin/env python3
"""Runs the model of the manifest whose input is a map, on both devices, against the sum of its trees.

Usage: map_input.py NPURT [--shared DIR] [--work DIR]
The peer cannot be asked: its harness makes no maps. So the model is read here (a DictVectorizer, then a
TreeEnsembleRegressor that adds up leaves) and computed by hand. Exit code 77: the model is not there.
"""
import argparse
import pathlib
import shutil
import struct
import subprocess
import sys

from onnx_picture import FLOAT, INT64, field, varint

MODEL = "pipeline_vectorize"


def fields(data):
    """(number, value) of a protobuf message; values are numbers or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        size = {0: 0, 1: 8, 2: None, 5: 4}[key & 7]
        if size == 0:
            yield key >> 3, number()
            continue
        size = number() if size is None else size
        yield key >> 3, data[at:at + size]
        at += size


def attributes(node):
    """Lists of numbers and texts by name."""
    result = {}
    for number, data in fields(node):
        if number != 5:
            continue
        name, values = "", []
        for inner, value in fields(data):
            if inner == 1:
                name = value.decode()
            elif inner == 7:  # floats, packed or not
                values += struct.unpack(f"<{len(value) // 4}f", value)
            elif inner == 8:
                values += unpacked(value)
            elif inner in (4, 9):
                values.append(value.decode())
        result[name] = values
    return result


def unpacked(value):
    """Whole numbers of a repeated field, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers, current, shift = [], 0, 0
    for byte in value:
        current |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(current)
            current = shift = 0
    return numbers


def answer(model, features):
    graph = dict(fields(model))[7]
    nodes = [data for number, data in fields(graph) if number == 1]
    by_type = {dict(fields(n))[4].decode(): attributes(n) for n in nodes}
    row = [features.get(key, 0.0) for key in by_type["DictVectorizer"]["int64_vocabulary"]]
    trees = by_type["TreeEnsembleRegressor"]
    assert set(trees["nodes_modes"]) <= {"BRANCH_LEQ", "LEAF"}
    where = {key: i for i, key in enumerate(zip(trees["nodes_treeids"], trees["nodes_nodeids"]))}
    leaves = {}
    for tree, node, weight in zip(trees["target_treeids"], trees["target_nodeids"], trees["target_weights"]):
        leaves[tree, node] = leaves.get((tree, node), 0.0) + weight
    total = sum(trees.get("base_values", []))
    for tree in sorted(set(trees["nodes_treeids"])):
        node = next(n for t, n in where if t == tree)
        while trees["nodes_modes"][i := where[tree, node]] == "BRANCH_LEQ":
            left = row[trees["nodes_featureids"][i]] <= trees["nodes_values"][i]
            node = trees["nodes_truenodeids" if left else "nodes_falsenodeids"][i]
        total += leaves.get((tree, node), 0.0)
    return total


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("npurt", type=pathlib.Path)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/models"))
    flags = parser.parse_args()
    source = flags.shared / "models/onnx" / f"{MODEL}.onnx"
    if not source.exists():
        print(f"SKIPPED: there is no {source}")
        return 77
    failed = 0
    for step in (0.0, 0.5, 3.0):
        features = {key: key * step - 1.0 for key in range(10)}
        case = flags.work / "map_input" / f"step_{step}"
        (case / "test_data_set_0").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, case / "model.onnx")
        items = b"".join(field(3, field(1, 1) + field(2, FLOAT) + field(9, struct.pack("<f", v)))
                         for v in features.values())
        (case / "test_data_set_0/input_0.pb").write_bytes(
            field(1, "float_input") + field(2, INT64) + field(3, b"".join(varint(k) for k in features)) +
            field(5, field(2, 1) + items))
        want = answer(source.read_bytes(), features)
        (case / "test_data_set_0/output_0.pb").write_bytes(
            field(1, 1) + field(1, 1) + field(2, FLOAT) + field(8, "variable1") +
            field(9, struct.pack("<f", want)))
        for device in ("cpu", "reference"):
            done = subprocess.run([flags.npurt, "test", case, "--device", device], check=False)
            failed += done.returncode != 0
            print(f"step {step}, {device}: {'FAILED' if done.returncode else 'ok'}, want {want:.6g}")
    print(f"{6 - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
