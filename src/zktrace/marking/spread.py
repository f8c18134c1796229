"""A word in all weights of a model, in closed form: no network is run, and no other tensor is touched.

Every matrix that carries moves by `strength` deviations of its weights (`readouts.blocks`). Where the type's
grid is coarser than the move (float16, bfloat16), a weight goes to one of its two neighbours on the grid, up
with the probability of the fraction, by a keyed dither: the sum over weights keeps its mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.marking.settings import usual_strength
from zktrace.marking.writer import Job, Step, Writer
from zktrace.models import LazyTensor, ModelState, Tensor
from zktrace.primitives.pipeline import in_order
from zktrace.primitives.room import room_for
from zktrace.readouts.blocks import Blocks, Part
from zktrace.readouts.directions import Floats
from zktrace.readouts.flow import Flow
from zktrace.readouts.identity import Words
from zktrace.readouts.reader import Terms
from zktrace.readouts.scales import Arrays
from zktrace.readouts.spread import recorded

_COARSE: Final = ("float16", "bfloat16")
_HALF_LOST: Final = 13  # bits of a float32 that a float16 does not have
_HALF_LEAST: Final = 2.0**-14  # below it a float16 has the fixed step of 2^-24
_HALF_STEP: Final = 2.0**-24
_HALF_MOST: Final = 65504.0


@dataclass(frozen=True, kw_only=True)
class SpreadMark:
    """How words are added to the tensors of one shared model, and to those it is trained into."""

    blocks: Blocks
    parts: Mapping[str, Part]  # the tensors that carry, by name
    strength: float

    @classmethod
    def of(cls, terms: Terms, shared: Arrays, strength: float | None) -> "SpreadMark":
        """By what is on record of the shared model; without a strength, of the one that suits it."""
        parts = recorded(shared, terms.length, terms.layers, terms.deviations)
        return cls(
            blocks=Blocks(seed=terms.seed, length=terms.length),
            parts={each.name: each for each in parts},
            strength=usual_strength(terms.dimension) if strength is None else strength,
        )

    def signs(self, word: Words) -> Floats:
        """A word as what is added of each direction, or InputError."""
        length = self.blocks.length
        if word.shape != (length,) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} where {length} bits are written")
        found: Floats = 2.0 * word.astype(np.float64) - 1.0
        return found

    def pieces(
        self, name: str, flow: Flow, dtype: str, signs: Floats, dither: Stream
    ) -> Iterator[NDArray[Any]]:
        """The numbers of a tensor with a word in them, in an element type (of bfloat16: the bits)."""
        part, length = self.parts[name], self.blocks.length

        def made(piece: tuple[int, int], weights: NDArray[Any]) -> NDArray[Any]:
            out = np.empty(len(weights), dtype=_stored(dtype))
            self._write(part, piece, weights, out, dtype=dtype, signs=signs, dither=dither)
            return out

        given = ((each, flow.take(each[1] * length)) for each in self.blocks.pieces(part))
        yield from in_order(lambda each: made(*each), given)
        yield _unmarked(flow.take(length), dtype)

    def written(
        self, tensors: Mapping[str, tuple[NDArray[Any], str, Stream]], signs: Floats
    ) -> dict[str, NDArray[Any]]:
        """The same of tensors in memory, flat and whole: by name, an array, an element type and a dither.

        All of them are shared out among the same threads, so small ones do not wait for each other.
        """
        length = self.blocks.length
        made = room_for({name: (each.size, _stored(dtype)) for name, (each, dtype, _) in tensors.items()})

        def write(name: str, piece: tuple[int, int]) -> None:
            array, dtype, dither = tensors[name]
            place = slice(piece[0] * length, (piece[0] + piece[1]) * length)
            weights, out = array.reshape(-1)[place], made[name][place]
            self._write(self.parts[name], piece, weights, out, dtype=dtype, signs=signs, dither=dither)

        pieces = ((name, piece) for name in tensors for piece in self.blocks.pieces(self.parts[name]))
        for _ in in_order(lambda each: write(*each), pieces):
            pass
        for name, (array, dtype, _) in tensors.items():
            rest = slice(self.parts[name].blocks * length, None)
            made[name][rest] = _unmarked(array.reshape(-1)[rest], dtype)
        return made

    def _write(
        self,
        part: Part,
        piece: tuple[int, int],
        weights: NDArray[Any],
        out: NDArray[Any],
        *,
        dtype: str,
        signs: Floats,
        dither: Stream,
    ) -> None:
        """Some blocks of a tensor with a word in them."""
        begin = piece[0] * self.blocks.length
        for place, move in self.blocks.move(part, piece, signs, self.strength * part.deviation):
            into = move if dtype in _COARSE else out[place]
            np.add(weights[place], move, out=into, casting="same_kind")
            if into is move:
                out[place] = rounded(move, dtype, dither.at((begin + place.start) // 4))


class SpreadWriter(Writer):
    """Writes the spread carrier of copies."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        super().__init__(job, carriers)
        (self._name,) = carriers
        self._terms = job.terms[self._name]
        self._mark = SpreadMark.of(self._terms, job.shared, job.settings.strength)

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """The state with its matrices moved."""
        signs = self._mark.signs(words[self._name])
        return ModelState(
            self._moved(state, each, signs, row) if each.name in self._mark.parts else each
            for each in state.tensors()
        )

    def _moved(self, state: ModelState, tensor: Tensor, signs: Floats, row: int) -> Tensor:
        def pieces() -> Iterator[NDArray[Any]]:
            dither = Stream("spread/dither", self._terms.seed, tensor.name.encode(), row.to_bytes(8, "big"))
            return self._mark.pieces(tensor.name, Flow(state, tensor.name), tensor.dtype, signs, dither)

        return LazyTensor(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, make=pieces)


def rounded(values: NDArray[Any], dtype: str, dither: Stream) -> NDArray[Any]:
    """Values in an element type; of bfloat16 the bits. Types of 16 bits are dithered."""
    if dtype not in _COARSE:
        return values
    drawn = dither.words(-(-len(values) // 4)).view(np.uint16)[: len(values)].astype(np.uint32)
    if dtype == "bfloat16":
        bits = values.view(np.uint32)
        up = (bits + drawn) >> 16
        return np.where((up & 0x7F80) == 0x7F80, bits >> 16, up).astype(np.uint16)
    kept = np.uint32((1 << 32) - (1 << _HALF_LOST))
    normal = ((values.view(np.uint32) + (drawn >> (16 - _HALF_LOST))) & kept).view(np.float32)
    small = np.floor(values / np.float32(_HALF_STEP) + drawn / np.float32(1 << 16)) * np.float32(_HALF_STEP)
    both = np.where(np.abs(values) < _HALF_LEAST, small, normal)
    return np.clip(both, -_HALF_MOST, _HALF_MOST).astype(np.float16)


def _stored(dtype: str) -> np.dtype[Any]:
    """What numpy has for an element type."""
    return np.dtype(np.uint16 if dtype == "bfloat16" else dtype)


def _unmarked(rest: NDArray[Any], dtype: str) -> NDArray[Any]:
    """What a tensor has after its last block: less than one, which carries nothing."""
    wide = rest.astype(np.float64 if dtype == "float64" else np.float32, copy=False)
    if dtype == "bfloat16":
        return (wide.view(np.uint32) >> 16).astype(np.uint16)
    return wide.astype(dtype, copy=False)
