"""Directions in all weights of a model: what the spread carrier writes along and reads.

A tensor is cut into blocks of n weights in their stored order; what is left at its end carries nothing. With
H the n x n Hadamard matrix, S_j and R_j the signs of block j, sigma the deviation of the shared model's
tensor and J its blocks,

    a move of b      sigma n^(-1/2) S_j o (H (R_j o e_b))    in every block j
    a reading        phi_b(d) = (1/J) sum over j of n^(-1/2) [R_j o (H (S_j o d_j / sigma))]_b

The n moves are orthogonal, and phi of a move by t is t, exactly. Every weight carries every position, so the
mark of a single weight is nearly Gaussian (docs/coalitions.md says why that matters). Signs are two streams
of bits a tensor, under the seed of the release's directions: whoever has it knows no row.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.primitives.hadamard import Singles, transform
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays

LEAST: Final = 64  # positions of a code
MOST: Final = 1 << 13
BLOCKS: Final = 16  # that a tensor has at least
TENSORS: Final = 2048  # that carry at most: the largest
CHUNK: Final = 1 << 18  # weights that are worked on at a time
_ROOM: Final = 1 << 10  # weights a position that a code has by default
_LONGEST: Final = 1 << 12  # what a code has by default at most
_SIGNS: Final = (1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)).astype(
    np.float32
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A tensor that carries."""

    name: str
    blocks: int
    deviation: float  # of all its weights, in the shared model: a float32

    def __post_init__(self) -> None:
        if self.blocks < 1 or not 0.0 < self.deviation < math.inf:
            raise InputError(f"{self.name}: {self.blocks} blocks of deviation {self.deviation} carry nothing")


def sizes(arrays: Arrays) -> dict[str, int]:
    """Weights of every tensor that may carry: of real numbers, and with two axes or more."""
    if isinstance(arrays, ModelState):
        facts = [(each.name, each.dtype, each.shape) for each in arrays.tensors()]
    else:
        facts = [(name, str(each.dtype), np.shape(each)) for name, each in arrays.items()]
    return {
        name: math.prod(shape)
        for name, dtype, shape in facts
        if dtype in ("float64", "float32", "float16", "bfloat16") and len(shape) >= 2
    }


def longest(arrays: Arrays) -> int:
    """Positions of the longest code that a model bears; 0 if it bears none."""
    largest = max(sizes(arrays).values(), default=0) // BLOCKS
    found = 1 << max(largest.bit_length() - 1, 0)
    return min(found, MOST) if largest >= LEAST else 0


def usual(arrays: Arrays) -> int:
    """Positions that suit a model: one for 1,024 weights, a power of two."""
    bearable, weights = longest(arrays), sum(sizes(arrays).values())
    wanted = max(weights // _ROOM, 4 * LEAST)
    return min(bearable, 1 << (wanted.bit_length() - 1), _LONGEST)


def check_length(length: int, arrays: Arrays) -> None:
    """InputError, with the longest code that the model bears, if it does not bear this one."""
    bearable = longest(arrays)
    if not bearable:
        raise InputError(
            "the model is too small to carry a code in its weights: it has no matrix of "
            f"{BLOCKS * LEAST} real numbers or more"
        )
    if length & (length - 1) or not LEAST <= length <= bearable:
        raise InputError(
            f"a code of {length} positions: this model bears a power of two from {LEAST} to {bearable}"
        )


def carrying(arrays: Arrays, length: int) -> tuple[Part, ...]:
    """The tensors of a shared model that carry, in the order of their names: 16 blocks or more, finite."""
    check_length(length, arrays)
    large = [(size // length, name) for name, size in sizes(arrays).items() if size >= BLOCKS * length]
    chosen = sorted(name for _, name in sorted(large, key=lambda each: (-each[0], each[1]))[:TENSORS])
    found = []
    for name in chosen:
        deviation = spread_of(arrays[name])
        if deviation > 0.0:
            found.append(Part(name=name, blocks=arrays[name].size // length, deviation=deviation))
    if not found:
        raise InputError("no matrix of the model has finite weights that differ: nothing can carry a code")
    return tuple(found)


def spread_of(array: NDArray[Any]) -> float:
    """The deviation of a tensor's numbers, rounded to float32; 0 if they are not all finite, or alike."""
    flat, total, squares = array.reshape(-1), 0.0, 0.0
    for begin in range(0, flat.size, CHUNK):
        some = flat[begin : begin + CHUNK].astype(np.float64)
        total += float(some.sum())
        squares += float(some @ some)
    if not (math.isfinite(total) and math.isfinite(squares)):
        return 0.0
    variance = squares / flat.size - (total / flat.size) ** 2
    found = float(np.float32(math.sqrt(max(variance, 0.0))))
    return found if found > 1e-6 * math.sqrt(squares / flat.size) and math.isfinite(found) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The directions of a seed."""

    seed: bytes
    length: int  # n, a power of two

    def signs(self, part: Part) -> Iterator[tuple[int, Singles, Singles]]:
        """From the front of a tensor to its end: where some blocks begin, and their S and R, a row each."""
        outer, inner = (
            Stream(f"spread/{use}", self.seed, part.name.encode()) for use in ("outer", "inner")
        )
        step = max(1, CHUNK // self.length)
        for first in range(0, part.blocks, step):
            count = min(step, part.blocks - first)
            yield first * self.length, self._drawn(outer, count), self._drawn(inner, count)

    def _drawn(self, stream: Stream, count: int) -> Singles:
        words = stream.words(count * self.length // 64).astype("<u8").view(np.uint8)
        found: Singles = _SIGNS[words].reshape(count, self.length)
        return found

    def moves(self, part: Part, values: Floats) -> Iterator[tuple[int, Singles]]:
        """The move of a tensor by a value a position, in deviations: where a piece begins, and the piece."""
        wanted = (values / math.sqrt(self.length)).astype(np.float32)
        for begin, outer, inner in self.signs(part):
            inner *= wanted
            moved = transform(inner)
            moved *= outer
            yield begin, moved.reshape(-1)

    def readings(self, part: Part, differences: Callable[[int, int], Singles]) -> Floats:
        """phi of differences, in deviations, which are asked for piece by piece: where, and how many."""
        total = np.zeros(self.length)
        for begin, outer, inner in self.signs(part):
            outer *= differences(begin, outer.size).reshape(outer.shape)
            seen = transform(outer)
            seen *= inner
            total += seen.sum(axis=0)
        return total / (part.blocks * math.sqrt(self.length))
