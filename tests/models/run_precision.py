"""Runs real models in mixed precision and compares them with the original precision.

Usage: run_precision.py NPURT [NAME...] [--shared DIR] [--work DIR] [--all]
Rules: cosine of every floating output at least 0.999 (mixed_float16) or 0.99 (mixed_bfloat16), other outputs
equal; on pictures and sound the same text, class, decisions and boxes (IoU >= 0.9). precision_known.txt lists
models that cannot, with the first node that goes wrong; one that can must not stand there.
NAMEs may have wildcards; without any a few small models, with --all every one.
"""
import argparse
import array
import fnmatch
import json
import math
import pathlib
import sys

import onnx_picture
from run_models import HERE, SKIP, Refused, read_npy, run

LIMITS = {"mixed_float16": 0.999, "mixed_bfloat16": 0.99}
FEW = ["mnist8", "ppocr_cls", "yunet_n_640", "squeezenet_fp16", "silero_vad_v5", "gtcrn_stream", "tfbert_qa",
       "oww_embedding", "bidi_lstm"]


def write_npy(path, kind, shape, data):
    head = str({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data)


def cosine(a, b):
    """Of two lists; what is no finite number must be the same in both."""
    ab = aa = bb = 0.0
    for x, y in zip(a, b):
        if not (math.isfinite(x) and math.isfinite(y)):
            if x != y and (x == x or y == y):
                return 0.0
            continue
        ab, aa, bb = ab + x * y, aa + x * x, bb + y * y
    return ab / math.sqrt(aa * bb) if aa * bb > 0 else float(aa == bb)


class Place:
    def __init__(self, npurt, shared, work):
        self.npurt, self.shared, self.work = npurt, shared, work

    def model(self, name):
        return self.shared / f"models/onnx/{name}.onnx"

    def outputs(self, model, mode, *flags):
        """Files of outputs by name, of one run."""
        folder = self.work / "precision" / model.stem / mode
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.npy"):
            old.unlink()
        run([self.npurt, "run", model, "--option", f"precision_mode_v2={mode}", "--output-dir", folder, *flags], 600)
        return {path.name: read_npy(path) for path in sorted(folder.glob("*.npy"))}

    def picture(self, name, *how, **kinds):
        """A .npy with a picture as a model wants it."""
        folder = self.work / "precision" / "picture"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(onnx_picture.picture_model(*how, **kinds))
        data = (self.shared / "models/data" / name).read_bytes()
        write_npy(folder / "data.npy", "|u1", [len(data)], data)
        run([self.npurt, "run", folder / "model.onnx", "--input", f"data={folder / 'data.npy'}", "--output-dir", folder],
            600)
        return folder / "out_0.npy"


def check_random(place, name, mode, origin):
    """"" or what is wrong with a model on the inputs of its table."""
    got = place.outputs(place.model(name), mode, "--inputs", place.shared / f"models/inputs/{name}.tsv")
    if got.keys() != origin.keys():
        return f"outputs {sorted(got)}, want {sorted(origin)}"
    for key, (kind, shape, values) in origin.items():
        if got[key][:2] != (kind, shape):
            return f"{key} is {got[key][:2]}, want {(kind, shape)}"
        if kind[0] != "f":
            bad = sum(a != b for a, b in zip(got[key][2], values))
            if bad:
                return f"{key}: {bad} of {len(values)} values differ"
            continue
        near = cosine(got[key][2], values)
        if not near >= LIMITS[mode]:
            return f"{key}: cosine {near:.6f}, want {LIMITS[mode]}"
    return ""


# --- pictures and sound ------------------------------------------------------------------------------------

def overlap(a, b):
    """Intersection over union of two boxes (left, top, right, bottom)."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    area = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return both / (area - both) if area > both else 0.0


def same_boxes(want, got, least):
    """`want` and `got` map places of a detector to (score, box)."""
    found = {k: v for k, v in want.items() if v[0] > least}
    if not found:
        return "the original finds nothing"
    for k, (score, box) in found.items():
        if got[k][0] < least - 0.1:
            return f"a face of {score:.2f} has {got[k][0]:.2f}"
        if overlap(box, got[k][1]) < 0.9:
            return f"a box has moved: {box}, now {got[k][1]}"
    return ""


def ultraface(files):
    scores, boxes = files["out_0.npy"][2], files["out_1.npy"][2]
    return {i: (scores[2 * i + 1], tuple(boxes[4 * i:4 * i + 4])) for i in range(len(boxes) // 4)}


def centred(x, y, width, height):
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def blazeface(files):
    found = {}
    for level in range(2):
        scores, boxes = files[f"out_{level}.npy"][2], files[f"out_{level + 2}.npy"][2]
        for i, score in enumerate(scores):
            found[level, i] = 1 / (1 + math.exp(-min(max(score, -80), 80))), centred(*boxes[16 * i:16 * i + 4])
    return found


def yunet(files):
    found = {}
    for level, stride in enumerate((8, 16, 32)):
        cls, obj, box = (files[f"out_{level + k}.npy"][2] for k in (0, 3, 6))
        for i, score in enumerate(cls):
            x, y, w, h = box[4 * i:4 * i + 4]
            size = [stride * math.exp(min(v, 20)) for v in (w, h)]
            found[level, i] = math.sqrt(max(score * obj[i], 0)), centred(x * stride, y * stride, *size)
    return found


def faces(place, model, picture, read, least, entry, *how, **kinds):
    pixels = place.picture(picture, *how, **kinds)
    seen = {mode: read(place.outputs(place.model(model), mode, "--input", f"{entry}={pixels}"))
            for mode in ("origin", *LIMITS)}
    for mode in LIMITS:
        yield mode, same_boxes(seen["origin"], seen[mode], least)


def label(place, picture):
    """The class of a picture, as squeezenet_winml names it."""
    pixels = place.picture(picture, 227, 227, [1.0] * 3, [0.0] * 3, pixels="BGR")
    seen = {mode: place.outputs(place.model("squeezenet_winml"), mode, "--input", f"data={pixels}")["out_0.npy"][2]
            for mode in ("origin", *LIMITS)}
    for mode in LIMITS:
        yield mode, "" if seen[mode] == seen["origin"] else f"{seen[mode]}, want {seen['origin']}"


def bands(flags):
    """Runs of true as (first, last + 1)."""
    edges = [i for i in range(len(flags) + 1)
             if (i > 0 and flags[i - 1]) != (i < len(flags) and flags[i])]
    return list(zip(edges[::2], edges[1::2]))


def text(place, picture, size=640):
    """Where PP-OCR sees text, and what it reads in the lines it sees."""
    scale, shift = [1 / 127.5] * 3, [-1.0] * 3
    pixels = place.picture(picture, size, size, scale, shift, pixels="BGR")
    maps = {mode: [p > 0.3 for p in place.outputs(place.model("ppocrv4_det"), mode, "--input", f"x={pixels}")
                   ["out_0.npy"][2]] for mode in ("origin", *LIMITS)}
    for mode in LIMITS:
        both = sum(a and b for a, b in zip(maps["origin"], maps[mode]))
        either = sum(a or b for a, b in zip(maps["origin"], maps[mode]))
        yield mode, "" if either and both / either >= 0.9 else f"text overlaps {both} of {either} pixels"
    rows = [maps["origin"][y * size:(y + 1) * size] for y in range(size)]
    high, wide = picture_size(place, picture)
    lines = [band for band in bands([any(row) for row in rows]) if band[1] - band[0] >= 8][:6]
    for top, bottom in lines:
        columns = [x for x in range(size) if any(row[x] for row in rows[top:bottom])]
        cut = (max(top - 4, 0) * high // size, max(columns[0] - 4, 0) * wide // size,
               (bottom + 4) * high // size, (columns[-1] + 5) * wide // size)
        width = max(48, 48 * (cut[3] - cut[1]) // max(cut[2] - cut[0], 1))
        line = place.picture(picture, 48, min(width, 960), scale, shift, pixels="BGR", cut=cut)
        read = {}
        for mode in ("origin", *LIMITS):
            _, shape, values = place.outputs(place.model("ppocrv4_rec"), mode, "--input", f"x={line}")["out_0.npy"]
            best = [max(range(shape[2]), key=values[t * shape[2]:(t + 1) * shape[2]].__getitem__)
                    for t in range(shape[1])]
            read[mode] = [c for t, c in enumerate(best) if c != 0 and (t == 0 or best[t - 1] != c)]
        for mode in LIMITS:
            yield mode, "" if read["origin"] and read[mode] == read["origin"] else f"{read[mode]}, want {read['origin']}"


def picture_size(place, picture):
    """(height, width) of a JPEG, from its frame header."""
    data = (place.shared / "models/data" / picture).read_bytes()
    at = 2
    while not 0xC0 <= data[at + 1] <= 0xC2:
        at += 2 + int.from_bytes(data[at + 2:at + 4], "big")
    return int.from_bytes(data[at + 5:at + 7], "big"), int.from_bytes(data[at + 7:at + 9], "big")


def speech(place, sound, chunks=24, size=512):
    """Whether silero hears speech, chunk by chunk with its state."""
    samples = array.array("h")
    samples.frombytes((place.shared / "models/data" / sound).read_bytes()[44:][:2 * size * chunks])
    heard = {}
    for mode in ("origin", *LIMITS):
        folder = place.work / "precision" / "sound" / mode
        folder.mkdir(parents=True, exist_ok=True)
        write_npy(folder / "state.npy", "<f4", [2, 1, 128], bytes(1024))
        write_npy(folder / "sr.npy", "<i8", [], (16000).to_bytes(8, "little"))
        heard[mode] = []
        for c in range(chunks):
            chunk = array.array("f", (s / 32768 for s in samples[c * size:(c + 1) * size]))
            write_npy(folder / "chunk.npy", "<f4", [1, size], chunk.tobytes())
            files = place.outputs(place.model("silero_vad_v5"), mode, "--input", f"input={folder}/chunk.npy",
                                  "--input", f"state={folder}/state.npy", "--input", f"sr={folder}/sr.npy")
            heard[mode].append(files["out_0.npy"][2][0])
            write_npy(folder / "state.npy", "<f4", [2, 1, 128], array.array("f", files["out_1.npy"][2]).tobytes())
    for mode in LIMITS:
        other = [(a, b) for a, b in zip(heard["origin"], heard[mode]) if (a > 0.5) != (b > 0.5) and abs(a - 0.5) > 0.02]
        if max(heard["origin"]) < 0.5:
            yield mode, "the original hears nothing"
        else:
            yield mode, f"another decision: {other}" if other else ""


def scenes(place):
    half, full = [1 / 128] * 3, [1.0] * 3
    return {
        "faces, ultraface_rfb_320": faces(place, "ultraface_rfb_320", "faces_1.jpg", ultraface, 0.7, "input",
                                          240, 320, half, [-127 / 128] * 3),
        "faces, blazeface_front": faces(place, "blazeface_front", "faces_10.jpg", blazeface, 0.75, "input:0",
                                        128, 128, [1 / 127.5] * 3, [-1.0] * 3, rows_last=True,
                                        cut=(0, 0, 400, 400)),
        "faces, yunet_n_640": faces(place, "yunet_n_640", "faces_10.jpg", yunet, 0.6, "input", 640, 640, full,
                                    [0.0] * 3, pixels="BGR"),
        "class, dog": label(place, "dog.jpg"),
        "class, goldfish": label(place, "goldfish.jpg"),
        "text, PP-OCR": text(place, "ocr_ch_en_num.jpg"),
        "speech, silero_vad_v5": speech(place, "librispeech_1272-141231-0002.wav"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("npurt", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--shared", type=pathlib.Path, default=HERE.parents[2] / "shared")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    manifest = args.shared / "models/manifest.json"
    if not manifest.exists():
        print(f"SKIPPED: there is no {manifest}: no model was run")
        return SKIP
    place = Place(args.npurt.resolve(), args.shared, args.work)
    known = {}
    for line in (HERE / "precision_known.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            model, mode, reason = line.split("\t")
            known[model, mode] = reason
    all_names = [model["name"] for model in json.loads(manifest.read_text())["models"]]
    patterns = args.names or (["*"] if args.all else FEW)
    count = {"passed": 0, "failed": 0, "skipped": 0}

    def tell(name, mode, problem):
        state = "ok" if not problem else f"FAILED {problem}"
        reason = known.get((name, mode))
        if reason is not None:
            state = f"known: {problem} ({reason})" if problem else "FAILED passes now: take it off precision_known.txt"
        count["failed" if state.startswith("FAILED") else "passed"] += 1
        print(f"{name:26} {mode:15} {state}", flush=True)

    for name in all_names:
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        try:
            origin = place.outputs(place.model(name), "origin", "--inputs", args.shared / f"models/inputs/{name}.tsv")
        except Refused as error:
            count["skipped"] += 1
            print(f"{name:26} SKIPPED: {error}")
            continue
        for mode in LIMITS:
            try:
                tell(name, mode, check_random(place, name, mode, origin))
            except Refused as error:
                tell(name, mode, str(error))
    for name, steps in ({} if args.names else scenes(place)).items():
        try:
            for mode, problem in steps:
                tell(name, mode, problem)
        except Refused as error:
            if "libnpurt_image" in str(error):  # built without codecs
                count["skipped"] += 1
                print(f"{name:26} SKIPPED: {error}")
            else:
                tell(name, "", str(error))
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    return int(count["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
