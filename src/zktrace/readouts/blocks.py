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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from zktrace.carriers import LEAST
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.primitives.hadamard import Octets, Singles, transformed, transformed_signs
from zktrace.primitives.pipeline import in_order
from zktrace.readouts.directions import Floats
from zktrace.readouts.flow import Flow
from zktrace.readouts.scales import Arrays

Differences = Callable[[slice], Singles]  # at a place among the weights of a piece

MOST: Final = 1 << 13
REALS: Final = ("float64", "float32", "float16", "bfloat16")
BLOCKS: Final = 16  # that a tensor has at least
TENSORS: Final = 2048  # that carry at most: the largest
CHUNK: Final = 1 << 20  # weights that a thread works on at a time: large pages
_READ: Final = 1 << 17  # of them that are read at once: their sums are in single precision
_MOVED: Final = 1 << 19  # that are moved at once: the fewer steps, the less threads wait for each other
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
    return {name: math.prod(shape) for name, dtype, shape in facts if dtype in REALS and len(shape) >= 2}


def longest(arrays: Arrays) -> int:
    """Positions of the longest code that a model bears; 0 if it bears none."""
    largest = max(sizes(arrays).values(), default=0) // BLOCKS
    found = 1 << max(largest.bit_length() - 1, 0)
    return min(found, MOST) if largest >= LEAST else 0


def usual(arrays: Arrays) -> int:
    """Positions that suit a model: one for 1,024 weights, a power of two."""
    bearable, weights = longest(arrays), sum(sizes(arrays).values())
    wanted = max(weights // _ROOM, 2 * LEAST)
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


def large(arrays: Arrays, length: int) -> dict[str, int]:
    """Blocks of the tensors that have enough of them, the largest, in the order of their names."""
    check_length(length, arrays)
    found = [(size // length, name) for name, size in sizes(arrays).items() if size >= BLOCKS * length]
    chosen = sorted(found, key=lambda each: (-each[0], each[1]))[:TENSORS]
    return {name: blocks for blocks, name in sorted(chosen, key=lambda each: each[1])}


def carrying(arrays: Arrays, length: int) -> tuple[Part, ...]:
    """The tensors of a shared model that carry: large ones whose numbers are finite, and not all alike."""
    found = []
    for name, blocks in large(arrays, length).items():
        deviation = deviation_of(arrays, name)
        if deviation > 0.0:
            found.append(Part(name=name, blocks=blocks, deviation=deviation))
    if not found:
        raise InputError("no matrix of the model has finite weights that differ: nothing can carry a code")
    return tuple(found)


def deviation_of(arrays: Arrays, name: str) -> float:
    """The deviation of a tensor's numbers, rounded to float32; 0 if they are not all finite, or alike."""
    flow, size, total, squares = Flow(arrays, name), 0, 0.0, 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        while len(some := flow.take(CHUNK)):
            wide = some.astype(np.float64)
            size += len(wide)
            total += float(wide.sum())
            squares += float(wide @ wide)
        if not (math.isfinite(total) and math.isfinite(squares)):
            return 0.0
        variance = squares / size - (total / size) ** 2
        found = float(np.float32(math.sqrt(max(variance, 0.0))))
    return found if 1e-6 * math.sqrt(squares / size) < found < math.inf else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The directions of a seed."""

    seed: bytes
    length: int  # n, a power of two

    def pieces(self, part: Part) -> Iterator[tuple[int, int]]:
        """From the front of a tensor to its last whole block: where some blocks begin, and how many."""
        step = max(1, CHUNK // self.length)
        return ((first, min(step, part.blocks - first)) for first in range(0, part.blocks, step))

    def move(
        self, part: Part, piece: tuple[int, int], values: Floats, unit: float
    ) -> Iterator[tuple[slice, Singles]]:
        """The move of some blocks by a value a position, each times a unit.

        It comes a few blocks at a time, with their place among the weights of all of them; room is used
        again, so what is to be kept is copied. Where values are signs, sums are of whole numbers: the same
        on every machine, to the last bit.
        """
        outer, inner = self._octets(part, "outer", piece), self._octets(part, "inner", piece)
        signs, wanted = _SIGNS * np.float32(unit / math.sqrt(self.length)), values.astype(np.float32)
        whole = bool((np.abs(values) == 1.0).all())
        if whole:
            inner = inner ^ np.packbits(values < 0.0)
        for some, one, two in self._steps(piece[1], _MOVED):
            if whole:
                made = transformed_signs(inner[some], one, two)
            else:
                np.multiply(_signs(inner[some], _SIGNS, one), wanted, out=one)
                made = transformed(one, two)
            found = _signs(outer[some], signs, two if made is one else one)
            np.multiply(made, found, out=found)
            yield self._place(some), found.reshape(-1)

    def reading(self, part: Part, piece: tuple[int, int], differences: Differences) -> Floats:
        """What some blocks add to phi, before it is divided by the tensor's blocks and n^(1/2).

        What is not finite makes all of it so.
        """
        outer, inner = self._octets(part, "outer", piece), self._octets(part, "inner", piece)
        total = np.zeros(self.length)
        with np.errstate(over="ignore", invalid="ignore"):
            for some, one, two in self._steps(piece[1], _READ):
                given = differences(self._place(some)).reshape(-1, self.length)
                np.multiply(_signs(outer[some], _SIGNS, one), given, out=one)
                made = transformed(one, two)
                signs = _signs(inner[some], _SIGNS, two if made is one else one)
                total += np.einsum("ij,ij->j", made, signs)
        return total

    def _octets(self, part: Part, use: str, piece: tuple[int, int]) -> Octets:
        """The bits of some blocks' signs, a row a block: a one is minus."""
        stream = Stream(f"spread/{use}", self.seed, part.name.encode()).at(piece[0] * self.length // 64)
        words = stream.words(piece[1] * self.length // 64)
        return words.astype("<u8", copy=False).view(np.uint8).reshape(piece[1], self.length // 8)

    def _place(self, some: slice) -> slice:
        """Of the weights of some blocks."""
        return slice(some.start * self.length, some.stop * self.length)

    def _steps(self, count: int, weights: int) -> Iterator[tuple[slice, Singles, Singles]]:
        """Some of so many blocks after the other, of so many weights at most, with two arrays of room for
        them that are used again."""
        step = max(1, weights // self.length)
        one, two = (np.empty((min(step, count), self.length), dtype=np.float32) for _ in range(2))
        for at in range(0, count, step):
            left = min(step, count - at)
            yield slice(at, at + left), one[:left], two[:left]

    def moves(self, part: Part, values: Floats, unit: float = 1.0) -> Iterator[Singles]:
        """The move of a tensor, piece by piece up to its last whole block."""

        def whole(piece: tuple[int, int]) -> Singles:
            found: Singles = np.empty(piece[1] * self.length, dtype=np.float32)
            for place, move in self.move(part, piece, values, unit):
                found[place] = move
            return found

        return in_order(whole, self.pieces(part))

    def readings(self, tensors: Iterable[tuple[Part, Callable[[int], Differences]]]) -> dict[str, Floats]:
        """phi of the differences of tensors, by their names, in the unit of these differences.

        They are asked for so many after so many, and each when a thread is at it.
        """
        totals: dict[str, Floats] = {}

        def pieces() -> Iterator[tuple[Part, tuple[int, int], Differences]]:
            for part, differences in tensors:
                for piece in self.pieces(part):
                    yield part, piece, differences(piece[1] * self.length)

        def read(part: Part, piece: tuple[int, int], differences: Differences) -> tuple[Part, Floats]:
            return part, self.reading(part, piece, differences) / (part.blocks * math.sqrt(self.length))

        for part, found in in_order(lambda each: read(*each), pieces()):
            totals[part.name] = totals[part.name] + found if part.name in totals else found
        return totals


def _signs(octets: Octets, table: Singles, room: Singles) -> Singles:
    np.take(table, octets, axis=0, out=room.reshape(*octets.shape, 8), mode="clip")  # every byte is in range
    return room
