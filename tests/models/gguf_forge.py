"""GGUF files made by hand, and what their blocks mean, element by element."""

import struct
from collections.abc import Callable, Mapping, Sequence

import numpy as np

ALIGNMENT = 32


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: int, value: bytes) -> bytes:
    """One entry of the metadata."""
    return text(key) + struct.pack("<I", kind) + value


def line(name: str, shape: Sequence[int], kind: int, offset: int) -> bytes:
    """One line of the table of tensors."""
    dims = struct.pack(f"<{len(shape)}Q", *reversed(shape))
    return text(name) + struct.pack("<I", len(shape)) + dims + struct.pack("<IQ", kind, offset)


def gguf(
    tensors: Mapping[str, tuple[int, Sequence[int], bytes]],
    metadata: Sequence[bytes] = (),
    *,
    version: int = 3,
    alignment: int = ALIGNMENT,
) -> bytes:
    """A file of tensors given by type, shape and bytes."""
    table, data = b"", b""
    for name, (kind, shape, octets) in tensors.items():
        table += line(name, shape, kind, len(data))
        data += octets + bytes(-len(octets) % alignment)
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)) + b"".join(metadata) + table
    return head + bytes(-len(head) % alignment) + data


# -- the meaning of a block, by loops


def half(block: bytes, at: int) -> np.float32:
    return np.float32(np.frombuffer(block, "<f2", 1, at)[0])


def six_bits(packed: bytes, at: int) -> tuple[int, int]:
    """Scale and minimum number `at` of eight."""
    if at < 4:
        return packed[at] & 63, packed[at + 4] & 63
    return (
        packed[at + 4] & 15 | packed[at - 4] >> 6 << 4,
        packed[at + 4] >> 4 | packed[at] >> 6 << 4,
    )


def q4_0(b: bytes, i: int) -> np.float32:
    q = b[2 + i % 16] >> 4 * (i // 16) & 15
    return half(b, 0) * np.float32(q - 8)


def q4_1(b: bytes, i: int) -> np.float32:
    q = b[4 + i % 16] >> 4 * (i // 16) & 15
    return half(b, 0) * np.float32(q) + half(b, 2)


def q5_0(b: bytes, i: int) -> np.float32:
    q = b[6 + i % 16] >> 4 * (i // 16) & 15 | (b[2 + i // 8] >> i % 8 & 1) << 4
    return half(b, 0) * np.float32(q - 16)


def q5_1(b: bytes, i: int) -> np.float32:
    q = b[8 + i % 16] >> 4 * (i // 16) & 15 | (b[4 + i // 8] >> i % 8 & 1) << 4
    return half(b, 0) * np.float32(q) + half(b, 2)


def signed(octet: int) -> np.float32:
    return np.float32(octet - 256 if octet > 127 else octet)


def q8_0(b: bytes, i: int) -> np.float32:
    return half(b, 0) * signed(b[2 + i])


def q8_k(b: bytes, i: int) -> np.float32:
    return np.frombuffer(b, "<f4", 1)[0] * signed(b[4 + i])


def q2_k(b: bytes, i: int) -> np.float32:
    scale = b[i // 16]
    q = b[16 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
    return half(b, 80) * np.float32(scale & 15) * np.float32(q) - half(b, 82) * np.float32(scale >> 4)


def q3_k(b: bytes, i: int) -> np.float32:
    part = i // 16
    scale = b[96 + part % 8] >> 4 * (part // 8) & 15 | (b[104 + part % 4] >> 2 * (part // 4) & 3) << 4
    q = b[32 + 32 * (i // 128) + i % 32] >> 2 * (i % 128 // 32) & 3
    if not b[i % 32] >> i // 32 & 1:
        q -= 4
    return half(b, 108) * np.float32(scale - 32) * np.float32(q)


def q4_k(b: bytes, i: int) -> np.float32:
    scale, minimum = six_bits(b[4:16], i // 32)
    q = b[16 + 32 * (i // 64) + i % 32] >> 4 * (i % 64 // 32) & 15
    return half(b, 0) * np.float32(scale) * np.float32(q) - half(b, 2) * np.float32(minimum)


def q5_k(b: bytes, i: int) -> np.float32:
    scale, minimum = six_bits(b[4:16], i // 32)
    q = b[48 + 32 * (i // 64) + i % 32] >> 4 * (i % 64 // 32) & 15 | (b[16 + i % 32] >> i // 32 & 1) << 4
    return half(b, 0) * np.float32(scale) * np.float32(q) - half(b, 2) * np.float32(minimum)


def q6_k(b: bytes, i: int) -> np.float32:
    side, within = divmod(i, 128)
    low = b[64 * side + within % 64] >> 4 * (within // 64) & 15
    high = b[128 + 32 * side + within % 32] >> 2 * (within // 32) & 3
    return half(b, 208) * signed(b[192 + i // 16]) * np.float32((low | high << 4) - 32)


CURVE = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def iq4_nl(b: bytes, i: int) -> np.float32:
    return half(b, 0) * np.float32(CURVE[b[2 + i % 16] >> 4 * (i // 16) & 15])


def iq4_xs(b: bytes, i: int) -> np.float32:
    part = i // 32
    high = (b[2] | b[3] << 8) >> 2 * part & 3
    scale = (b[4 + part // 2] >> 4 * (part % 2) & 15 | high << 4) - 32
    q = b[8 + 16 * part + i % 16] >> 4 * (i % 32 // 16) & 15
    return half(b, 0) * np.float32(scale) * np.float32(CURVE[q])


def mxfp4(b: bytes, i: int) -> np.float32:
    q = b[1 + i % 16] >> 4 * (i // 16) & 15
    size = (0, 0.5, 1, 1.5, 2, 3, 4, 6)[q & 7]
    return np.float32((-size if q > 7 else size) * 2.0 ** (b[0] - 127))


ELEMENTS: Mapping[str, Callable[[bytes, int], np.float32]] = {
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q8_0": q8_0,
    "Q2_K": q2_k,
    "Q3_K": q3_k,
    "Q4_K": q4_k,
    "Q5_K": q5_k,
    "Q6_K": q6_k,
    "Q8_K": q8_k,
    "IQ4_NL": iq4_nl,
    "IQ4_XS": iq4_xs,
    "MXFP4": mxfp4,
}
