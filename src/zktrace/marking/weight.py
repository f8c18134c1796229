"""A word in the BatchNorm scales in closed form: the smallest change with the wanted projections.

With C the directions less their mean in each layer and t = 2X - 1 the signs of a word, the change of least
norm with <delta, C_b> = a t_b at every position is a C^T (C C^T)^-1 t. It moves no layer's mean. The matrix
is inverted once for a family of directions; a word then costs one product.

Where the code fills more than half of the room, C C^T has small eigenvalues, and exact projections would
spend the change on them. A ridge on the diagonal then trades exactness for amplitude (docs/carriers.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.marking.settings import SHARE
from zktrace.marking.writer import Job, Step, Writer
from zktrace.models import ModelState, Tensor
from zktrace.readouts.directions import Directions, Floats
from zktrace.readouts.identity import Words
from zktrace.readouts.scales import Arrays, centred, gather, layer_sizes, scale_names
from zktrace.readouts.weight import weight_directions

CROWDED: Final = 0.5  # of the room: a code beyond it is written with the ridge
RIDGE: Final = 0.1  # beside a mean eigenvalue of 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Written:
    """A marked state, and the amplitude a of its mark: it reads a (2X - 1), with a ridge on average."""

    state: ModelState
    amplitude: float


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightWriter:
    """Writes words of `length` bits into scales of layers of the sizes `layers` (profile `informed`)."""

    seed: bytes
    length: int
    layers: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.room:
            raise InputError(
                f"{self.length} bits for scales that have room for 1..{self.room}: a shorter code"
            )

    @property
    def room(self) -> int:
        """The dimension of all changes that move no layer's mean."""
        return sum(self.layers) - len(self.layers)

    @property
    def ridge(self) -> float:
        """What is added to the diagonal of C C^T: nothing unless the code is crowded."""
        return RIDGE if self.length > CROWDED * self.room else 0.0

    @cached_property
    def directions(self) -> Directions:
        """As the reader has them."""
        return weight_directions(self.seed, length=self.length, layers=self.layers)

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """(C C^T + ridge)^-1 C, whose row b moves position b, and what each row moves every position by."""
        columns = centred(self.directions.block(0, self.length), self.layers)
        gram = columns @ columns.T
        try:
            moves = np.linalg.solve(gram + self.ridge * np.eye(self.length), columns)
        except np.linalg.LinAlgError as error:
            raise InputError(f"{self.length} bits are too many for these scales: a shorter code") from error
        return np.asarray(moves, dtype=np.float64), np.asarray(moves @ columns.T, dtype=np.float64)

    def change(self, word: Words, *, norm: float) -> tuple[Floats, float]:
        """The change of all scales, of this norm, that writes a word; and its amplitude."""
        if word.shape != (self.length,) or not np.isin(word, (0, 1)).all():
            raise InputError(f"a word of shape {word.shape} where {self.length} bits are written")
        if not 0.0 < norm < np.inf:
            raise InputError(f"a change of norm {norm}")
        signs = 2.0 * word - 1.0
        moves, moved = self._solved
        unit = signs @ moves
        size = norm / float(np.linalg.norm(unit))
        return size * unit, size * float(signs @ moved @ signs) / self.length

    def write(self, state: ModelState, word: Words, *, share: float = SHARE) -> Written:
        """A copy of `state` with the word in its scales, moved by `share` of their norm.

        Every other tensor is the very one of `state`, so a copy takes no more memory than its scales.
        """
        if not 0.0 < share <= 1.0:
            raise InputError(f"a share of {share}: must lie above 0 and at most at 1")
        if layer_sizes(state) != self.layers:
            raise InputError("the model's BatchNorm layers are not those of the release")
        gamma = gather(state)
        delta, amplitude = self.change(word, norm=share * float(np.linalg.norm(gamma)))
        return Written(state=with_scales(state, gamma + delta), amplitude=amplitude)


class ScaleWriter(Writer):
    """Writes the informed weight carrier of copies. Whoever writes after it leaves the scales alone."""

    def __init__(self, job: Job, carriers: tuple[str, ...]) -> None:
        super().__init__(job, carriers)
        (self._name,) = carriers
        terms = job.terms[self._name]
        self._writer = WeightWriter(seed=terms.seed, length=terms.length, layers=terms.layers)

    def write(self, state: ModelState, words: Mapping[str, Words], *, row: int, step: Step) -> ModelState:
        """The state with its scales moved."""
        return self._writer.write(state, words[self._name], share=self.job.settings.share).state


def with_scales(state: ModelState, gamma: Floats) -> ModelState:
    """`state` with these scales, rounded to the element types of its own (bfloat16 becomes float32)."""
    parts = dict(zip(scale_names(state), _split(state, gamma), strict=True))
    return ModelState(
        Tensor.from_array(each.name, parts[each.name]) if each.name in parts else each
        for each in state.tensors()
    )


def _split(arrays: Arrays, gamma: Floats) -> list[NDArray[Any]]:
    names = scale_names(arrays)
    cuts = np.cumsum([len(arrays[name]) for name in names])[:-1]
    parts = np.split(gamma, cuts)
    return [part.astype(arrays[name].dtype) for name, part in zip(names, parts, strict=True)]
