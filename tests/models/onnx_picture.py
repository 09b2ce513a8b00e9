"""Writes ONNX models that turn an encoded picture into the input of another model.

The model has one input `data`, the bytes of the file, and decodes, cuts, scales, shifts and orders it.
"""
import struct


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of protobuf: numbers as varints, strings and messages by length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    body = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(body)) + body


FLOAT, UINT8, INT64 = 1, 2, 7


def tensor(name, kind, values, dims=None):
    dims = [len(values)] if dims is None else dims
    code = {FLOAT: "f", INT64: "q"}[kind]
    return field(5, b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) +
                 field(9, struct.pack(f"<{len(values)}{code}", *values)))


def attribute(name, value):
    if isinstance(value, int):
        return field(5, field(1, name) + field(3, value) + field(20, 2))
    if isinstance(value, str):
        return field(5, field(1, name) + field(4, value) + field(20, 3))
    return field(5, field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7))


def node(op, inputs, output, **attributes):
    return field(1, b"".join(field(1, i) for i in inputs) + field(2, output) + field(4, op) +
                 b"".join(attribute(k, v) for k, v in attributes.items()))


def value(number, name, kind, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, kind) + field(2, shape))))


def picture_model(height, width, scale, shift, pixels="RGB", rows_last=False, cut=None):
    """pixel * scale + shift per channel as [1, 3, height, width] (rows_last: [1, height, width, 3]).

    `cut` is (top, left, bottom, right).
    """
    top, left, bottom, right = cut or (0, 0, 1 << 30, 1 << 30)
    order = [0, 2, 3, 1] if rows_last else [0, 1, 2, 3]
    size = [1, height, width, 3] if rows_last else [1, 3, height, width]
    graph = b"".join([
        node("ImageDecoder", ["data"], "pixels", pixel_format=pixels),
        node("Slice", ["pixels", "starts", "ends"], "part"),
        node("Cast", ["part"], "real", to=FLOAT),
        node("Transpose", ["real"], "planes", perm=[2, 0, 1]),
        node("Unsqueeze", ["planes", "zero"], "batch"),
        node("Resize", ["batch", "", "", "sizes"], "sized", mode="linear"),
        node("Mul", ["sized", "scale"], "scaled"),
        node("Add", ["scaled", "shift"], "shifted"),
        node("Transpose", ["shifted"], "out", perm=order),
        field(2, "picture"),
        tensor("starts", INT64, [top, left]), tensor("ends", INT64, [bottom, right]),
        tensor("zero", INT64, [0]), tensor("sizes", INT64, [1, 3, height, width]),
        tensor("scale", FLOAT, scale, [1, 3, 1, 1]), tensor("shift", FLOAT, shift, [1, 3, 1, 1]),
        value(11, "data", UINT8, ["bytes"]), value(12, "out", FLOAT, size)])
    return field(1, 9) + field(7, graph) + field(8, field(2, 20))
