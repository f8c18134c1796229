"""A word in all weights of a model, in closed form: no network is run, and no other tensor is touched.

Every matrix that carries moves by `strength` deviations of its weights (`readouts.blocks`). Where the type's
grid is coarser than the move (float16, bfloat16), a weight goes to one of its two neighbours on the grid, up
with the probability of the fraction, by a keyed dither: the sum over weights keeps its mean.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.marking.settings import usual_strength
from zktrace.marking.writer import Job, Step, Writer
from zktrace.models import LazyTensor, ModelState, Tensor
from zktrace.primitives.pipeline import in_order
from zktrace.readouts.blocks import Blocks
from zktrace.readouts.directions import Floats
from zktrace.readouts.flow import Flow
from zktrace.readouts.identity import Words
from zktrace.readouts.spread import recorded

_HALF_LOST: Final = 13  # bits of a float32 that a float16 does not have
_HALF_LEAST: Final = 2.0**-14  # below it a float16 has the fixed step of 2^-24
_HALF_STEP: Final = 2.0**-24
_HALF_MOST: Final = 65504.0


class SpreadWriter(Writer):
    """Writes the spread carrier of copies."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        super().__init__(job, carriers)
        (self._name,) = carriers
        terms = job.terms[self._name]
        self._length, self._seed = terms.length, terms.seed
        wanted = job.settings.strength
        self._strength = usual_strength(terms.dimension) if wanted is None else wanted
        self._blocks = Blocks(seed=terms.seed, length=terms.length)
        parts = recorded(job.shared, terms.length, terms.layers, terms.deviations)
        self._parts = {each.name: each for each in parts}

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """The state with its matrices moved."""
        word = words[self._name]
        if word.shape != (self._length,) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} where {self._length} bits are written")
        signs: Floats = 2.0 * word.astype(np.float64) - 1.0
        return ModelState(
            self._moved(state, each, signs, row) if each.name in self._parts else each
            for each in state.tensors()
        )

    def _moved(self, state: ModelState, tensor: Tensor, signs: Floats, row: int) -> Tensor:
        part = self._parts[tensor.name]
        unit = self._strength * part.deviation
        dither = Stream("spread/dither", self._seed, part.name.encode(), row.to_bytes(8, "big"))

        def added(piece: tuple[int, int], weights: NDArray[Any]) -> NDArray[Any]:
            move = self._blocks.move(part, piece, signs, unit)
            into = move if tensor.dtype != "float64" else np.empty(len(move))
            return rounded(
                np.add(weights, move, out=into), tensor.dtype, dither.at(piece[0] * self._length // 4)
            )

        def pieces() -> Iterator[NDArray[Any]]:
            flow = Flow(state, tensor.name)
            given = ((each, flow.take(each[1] * self._length)) for each in self._blocks.pieces(part))
            yield from in_order(lambda each: added(*each), given)
            rest = flow.take(self._length)  # carries nothing: less than a block
            yield (rest.view(np.uint32) >> 16).astype(np.uint16) if tensor.dtype == "bfloat16" else rest

        return LazyTensor(name=tensor.name, dtype=tensor.dtype, shape=tensor.shape, make=pieces)


def rounded(values: NDArray[Any], dtype: str, dither: Stream) -> NDArray[Any]:
    """Values in an element type; of bfloat16 the bits. Types of 16 bits are dithered."""
    if dtype not in ("float16", "bfloat16"):
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
