"""Quantised blocks of GGUF files turned into float32, many blocks at a time.

A tensor of a quantised type is a row of blocks, each of `count` elements in `size` bytes. Every formula is
computed in float32 in the order in which it is written here, so that the numbers, and the digest of a model,
are the same everywhere. Names are those of ggml: d is a scale, m a minimum, q a small integer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Octets = NDArray[np.uint8]
Small = NDArray[Any]  # small integers of one byte

_ELEMENTS = 1 << 20  # made at a time
_NONLINEAR = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], dtype=np.float32
)
_TINY = np.array(
    [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], dtype=np.float32
)  # halves of E2M1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """One quantised type: how its blocks are cut, and what they mean."""

    name: str
    count: int  # elements a block
    size: int  # bytes a block
    values: Callable[[Octets], Floats]  # (blocks, size) -> (blocks, count)


def pieces(kind: Quantised, data: memoryview) -> Iterator[Floats]:
    """The elements of a whole number of blocks, a bounded part at a time."""
    blocks = np.frombuffer(data, np.uint8).reshape(-1, kind.size)
    step = _ELEMENTS // kind.count
    for at in range(0, len(blocks), step):
        with np.errstate(all="ignore"):  # a scale may be infinite: values are judged where they matter
            made = kind.values(blocks[at : at + step])
        yield np.ascontiguousarray(made, dtype="<f4").reshape(-1)


def _half(blocks: Octets, at: int) -> Floats:
    """The float16 at this byte of each block, as a column."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _real(q: Small) -> Floats:
    return q.astype(np.float32)


def _nibbles(octets: Octets) -> Small:
    """Low halves of the last axis, then its high halves."""
    return np.concatenate((octets & 15, octets >> 4), axis=-1)


def _bits(blocks: Octets, at: int) -> Small:
    """The 32 bits at this byte, lowest first."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little")


def _signed(octets: Octets) -> Floats:
    return _real(octets.view(np.int8))


def _q4_0(b: Octets) -> Floats:
    return _half(b, 0) * (_real(_nibbles(b[:, 2:])) - 8)


def _q4_1(b: Octets) -> Floats:
    return _half(b, 0) * _real(_nibbles(b[:, 4:])) + _half(b, 2)


def _q5_0(b: Octets) -> Floats:
    q = _nibbles(b[:, 6:]) | _bits(b, 2) << 4
    return _half(b, 0) * (_real(q) - 16)


def _q5_1(b: Octets) -> Floats:
    q = _nibbles(b[:, 8:]) | _bits(b, 4) << 4
    return _half(b, 0) * _real(q) + _half(b, 2)


def _q8_0(b: Octets) -> Floats:
    return _half(b, 0) * _signed(b[:, 2:])


def _q8_k(b: Octets) -> Floats:
    return np.ascontiguousarray(b[:, :4]).view("<f4") * _signed(b[:, 4:260])


def _crumbs(octets: Octets, halves: int) -> Small:
    """Two bits of each byte at a time: (blocks, halves, 4, bytes of a half)."""
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    return octets.reshape(len(octets), halves, 1, -1) >> shifts & 3


def _q2_k(b: Octets) -> Floats:
    q = _real(_crumbs(b[:, 16:80], 2)).reshape(-1, 16, 16)
    d = _half(b, 80) * _real(b[:, :16] & 15)
    m = _half(b, 82) * _real(b[:, :16] >> 4)
    return (d[:, :, None] * q - m[:, :, None]).reshape(-1, 256)


def _q3_k(b: Octets) -> Floats:
    low = _crumbs(b[:, 32:96], 2)
    high = b[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    q = _real(low).reshape(-1, 8, 32) - 4 * _real(1 - high)
    scales = _nibbles(b[:, 96:104]) | _crumbs(b[:, 104:108], 1).reshape(-1, 16) << 4
    d = _half(b, 108) * (_real(scales) - 32)
    return (d[:, :, None] * q.reshape(-1, 16, 16)).reshape(-1, 256)


def _scales_and_minima(packed: Octets) -> tuple[Small, Small]:
    """Eight scales and eight minima of six bits each from twelve bytes."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate((first & 63, third & 15 | first >> 6 << 4), axis=1)
    minima = np.concatenate((second & 63, third >> 4 | second >> 6 << 4), axis=1)
    return scales, minima


def _scaled(b: Octets, q: Small) -> Floats:
    """d sc q - dmin m, as Q4_K and Q5_K have it."""
    scales, minima = _scales_and_minima(b[:, 4:16])
    d, m = _half(b, 0) * _real(scales), _half(b, 2) * _real(minima)
    return (d[:, :, None] * _real(q) - m[:, :, None]).reshape(-1, 256)


def _q4_k(b: Octets) -> Floats:
    return _scaled(b, _nibbles(b[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def _q5_k(b: Octets) -> Floats:
    high = b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _scaled(b, _nibbles(b[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32) | high << 4)


def _q6_k(b: Octets) -> Floats:
    low = _nibbles(b[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    q = _real(low | _crumbs(b[:, 128:192], 2) << 4) - 32
    d = _half(b, 208) * _signed(b[:, 192:208])
    return (d[:, :, None] * q.reshape(-1, 16, 16)).reshape(-1, 256)


def _iq4_nl(b: Octets) -> Floats:
    return _half(b, 0) * _NONLINEAR[_nibbles(b[:, 2:])]


def _iq4_xs(b: Octets) -> Floats:
    low = np.stack((b[:, 4:8] & 15, b[:, 4:8] >> 4), axis=-1).reshape(-1, 8)
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    d = _half(b, 0) * (_real(low | high << 4) - 32)
    return (d[:, :, None] * _NONLINEAR[_nibbles(b[:, 8:].reshape(-1, 8, 16))]).reshape(-1, 256)


def _mxfp4(b: Octets) -> Floats:
    d = np.ldexp(np.ones(1, np.float32), b[:, :1].astype(np.int32) - 128)
    return _real(d) * _TINY[_nibbles(b[:, 1:])]


QUANTISED = {
    number: Quantised(name=name, count=count, size=size, values=values)
    for number, name, count, size, values in (
        (2, "Q4_0", 32, 18, _q4_0),
        (3, "Q4_1", 32, 20, _q4_1),
        (6, "Q5_0", 32, 22, _q5_0),
        (7, "Q5_1", 32, 24, _q5_1),
        (8, "Q8_0", 32, 34, _q8_0),
        (10, "Q2_K", 256, 84, _q2_k),
        (11, "Q3_K", 256, 110, _q3_k),
        (12, "Q4_K", 256, 144, _q4_k),
        (13, "Q5_K", 256, 176, _q5_k),
        (14, "Q6_K", 256, 210, _q6_k),
        (15, "Q8_K", 256, 292, _q8_k),
        (20, "IQ4_NL", 32, 18, _iq4_nl),
        (23, "IQ4_XS", 256, 136, _iq4_xs),
        (39, "MXFP4", 32, 17, _mxfp4),
    )
}
