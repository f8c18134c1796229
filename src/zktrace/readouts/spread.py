"""The spread carrier as a tracer or a judge reads it: all weights of any network, beside the shared model's.

Of every tensor that carries there is a reading of its own, phi of the differences d to the shared model's
weights (`blocks`). What a disguise did to a tensor is noise to it: s^2 a weight, so s^2/J a position, beside
a mark that is as strong in every tensor. Readings are added up with the weights that such noise asks for,

    z = sum of g J/s^2 phi  /  sum of g^2 J/s^2

where g is the part of the weights that still say something. Both are found from the differences alone:

- weights that are equal to the shared model's, or not finite, say nothing;
- single weights that moved far (pruned ones) are dropped where that pays: beyond the difference L at which
  (part kept - its loss at the edge)^2 / (mean square of what is kept) is largest, if that is clearly more
  than without. A tensor that was reset, retrained or badly aligned has a large s and counts for little.

No row and no key to one enters. Tensors that a suspect does not have are left out.

Under a guard (docs/guard.md) training never moves along the directions, so the shared model of every round
reads as the first one: differences to that one are large and say nothing of the noise, but phi of what
training did is 0. There the readings themselves tell: of each tensor they are taken with all differences and
with far ones dropped, what varies less counts, and 1/(its mean square) is its weight. What is smaller than
float32 leaves behind counts as silence: rounding may depend on rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.derivation.streams import Stream
from zktrace.errors import InputError
from zktrace.models import ModelState
from zktrace.primitives.hadamard import Singles
from zktrace.primitives.loading import loaded
from zktrace.primitives.text import shown
from zktrace.readouts.blocks import REALS, Blocks, Differences, Part, carrying, large, usual
from zktrace.readouts.directions import Floats
from zktrace.readouts.flow import Flow, every
from zktrace.readouts.matching import Matched, matched
from zktrace.readouts.reader import Reader, Survey, finite
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays

BEYOND: Final = 64.0  # deviations: a weight that moved further says nothing
FLOOR: Final = 2.0**-8  # deviations: what a weight moved at least, as far as it counts for noise
GLIMPSE: Final = 1 << 24  # weights after which a copy that was just made is known to carry its row
SAMPLE: Final = 1 << 16  # weights of a tensor whose differences decide what is dropped
PAYS: Final = 1.25  # times as much, or nothing is dropped
_EDGE: Final = 0.125  # of a difference: where the density at it is counted
_LIMITS: Final = np.array([2.0**power * (1 + part / 8) for power in range(-12, 6) for part in range(8)])
Undo = Callable[[Arrays, Arrays, Sequence[str]], Arrays]  # a suspect, the shared model, names -> put back
_UNDO: Final = {
    "channels": "zktrace.readouts.realigning:realigned",
    "rotated": "zktrace.readouts.unrotating:unrotated",
}
_HUGE: Final = 2.0**64  # deviations: squares and sums of less are numbers
SILENT: Final = 1e-5  # deviations: readings of a guarded model below it are rounding
_SINGLE_TOLERANCE: Final = 1e-5  # float32 sums in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What the differences of a tensor are worth."""

    kept: float  # g: the part of the weights that says something
    noise: float  # s^2, a weight
    limit: float  # L: differences beyond it are dropped

    def weight(self, blocks: int) -> float:
        """Of the tensor's readings, in the sum of all."""
        return self.kept * blocks / (self.noise + FLOOR * FLOOR)


def worth(differences: Singles) -> Worth:
    """What a sample of a tensor's differences, in deviations, says of all of them."""
    sizes = np.sort(np.abs(differences[np.abs(differences) <= BEYOND]).astype(np.float64))
    sizes = sizes[np.searchsorted(sizes, 0.0, side="right") :]
    if not len(sizes):
        return Worth(kept=0.0, noise=0.0, limit=BEYOND)
    many, power = float(len(differences)), np.concatenate(([0.0], np.cumsum(sizes * sizes)))
    whole = Worth(kept=len(sizes) / many, noise=float(power[-1]) / many, limit=BEYOND)
    below, high, low = (
        np.searchsorted(sizes, edge * _LIMITS, side="right") for edge in (1.0, 1.0 + _EDGE, 1.0 - _EDGE)
    )
    gain = np.maximum(below - (high - low) / (2.0 * _EDGE), 0.0) / many
    value = gain * gain / (power[below] / many + FLOOR * FLOOR)
    best = int(np.argmax(value))
    if value[best] <= PAYS * whole.kept**2 / (whole.noise + FLOOR * FLOOR):
        return whole
    return Worth(kept=float(gain[best]), noise=float(power[below[best]]) / many, limit=float(_LIMITS[best]))


class SpreadReader(Reader):
    """Reads values from a model that has tensors of the shared model's names and shapes, or some of them."""

    tolerance = _SINGLE_TOLERANCE
    readout_tolerance = _SINGLE_TOLERANCE
    aligned_tolerance = 1e-3

    @classmethod
    def default_length(cls, name: str, shared: Arrays) -> int:
        """By the number of its weights."""
        return usual(shared)

    @classmethod
    def survey(cls, name: str, shared: Arrays, *, length: int, pool: Pool | None, draws: Stream) -> Survey:
        """The tensors that carry: how many blocks each has, and the deviation of its weights."""
        parts = carrying(shared, length)
        return Survey(
            dimension=sum(each.blocks for each in parts) * length,
            length=length,
            layers=tuple(each.blocks for each in parts),
            deviations=tuple(each.deviation for each in parts),
        )

    @cached_property
    def shared(self) -> Arrays:
        """What a suspect is read beside."""
        if self.terms.shared is None:
            raise InputError(f"{self.terms.carrier}: is read beside the shared model, and it is not there")
        return self.terms.shared

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The tensors that carry, found in the shared model, as they are on record."""
        return recorded(self.shared, self.terms.length, self.terms.layers, self.terms.deviations)

    @property
    def carrying(self) -> dict[str, int]:
        """Weights of each tensor that carry."""
        return {each.name: each.blocks * self.terms.length for each in self.parts}

    @cached_property
    def blocks(self) -> Blocks:
        """The directions."""
        return Blocks(seed=self.terms.seed, length=self.terms.length)

    def project(self, arrays: Arrays) -> Floats:
        """What a model says beyond the shared one, which says nothing."""
        return self._read(self._named(arrays))

    def aligned(self, suspect: Arrays, how: str, *, shared: Arrays, pool: Pool | None) -> Floats:
        """Disguised tensors are put back beside the shared model's, one at a time."""
        undo: Undo = loaded(_UNDO[how])
        return self._read(undo(self._named(suspect), shared, self._names))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.parts)

    def _named(self, suspect: Arrays) -> Matched:
        """A suspect's tensors of real numbers under the shared model's names, in its shapes."""
        return matched(_reals(suspect), self.shared, self._names)

    def remarks(self, arrays: Arrays) -> tuple[str, ...]:
        """Tensors that were found otherwise than by their names, and those that were not."""
        found = self._named(arrays)
        return (*found.notes, *(f"{shown(name)}: not found in the suspect" for name in found.missing))

    def _read(self, arrays: Arrays) -> Floats:
        """Tensors that are there, added up by what they are worth."""
        total, gain, seen = np.zeros(self.terms.length), 0.0, 0
        for part in self.parts:
            given = _one(arrays, part.name)
            if part.name in given:
                weight, kept, values = (
                    self._frozen(part, given) if self.terms.frozen else self._part(part, given)
                )
                total += weight * values
                gain += weight * kept
                seen += 1
        if not seen:
            raise InputError("the model has none of the shared model's matrices, under any name")
        return finite(total / gain) if gain else total

    def glimpse(self, arrays: Arrays) -> Floats:
        """The readout of some of a copy's tensors: enough to tell whose it is, in a model of any size."""
        some, weights = {}, 0
        for part in sorted(self.parts, key=lambda each: (-each.blocks, each.name)):
            if weights < GLIMPSE:
                some[part.name] = arrays[part.name]
                weights += part.blocks * self.terms.length
        return self._read(some)

    def readout(self, projected: Floats, reference: Floats | None) -> Floats:
        """The same: the shared model is taken off weight by weight."""
        return projected

    def _part(self, part: Part, arrays: Arrays) -> tuple[float, float, Floats]:
        """Weight, part of the weights that says something, and readings of a tensor."""
        found = self._worth(part, arrays)
        return found.weight(part.blocks), found.kept, self._readings(part, arrays, found.limit)

    def _frozen(self, part: Part, arrays: Arrays) -> tuple[float, float, Floats]:
        """The same under a guard."""
        found, ways = self._worth(part, arrays), [self._readings(part, arrays, np.inf)]
        if found.limit < BEYOND and found.kept > 0.5:  # of less it is not known well how much is left
            ways.append(self._readings(part, arrays, found.limit) / found.kept)
        power, values = min(((float(np.mean(each * each)), each) for each in ways), key=lambda each: each[0])
        return (1.0 / power, 1.0, values) if power > SILENT * SILENT else (0.0, 1.0, values)

    def _worth(self, part: Part, arrays: Arrays) -> Worth:
        size = part.blocks * self.terms.length
        stride = -(-size // SAMPLE)
        some, others = (every(each, part.name, stride, size=size) for each in (arrays, self.shared))
        return worth(_differences(some, others, part.deviation))

    def _readings(self, part: Part, arrays: Arrays, limit: float) -> Floats:
        """phi of a tensor's differences, those beyond a limit left out, and what is no number."""
        ours, theirs = Flow(arrays, part.name), Flow(self.shared, part.name)

        def differences(count: int) -> Differences:
            some, others = ours.take(count), theirs.take(count)
            return lambda place: within(_differences(some[place], others[place], part.deviation))

        def within(some: Singles) -> Singles:
            if not (some.min() >= -most and some.max() <= most):
                some[~(np.abs(some) <= most)] = 0.0  # what is no number is not within any limit
            return some

        most = min(limit, _HUGE)
        return self.blocks.readings([(part, differences)])[part.name]


def _reals(arrays: Arrays) -> Arrays:
    """The tensors of real numbers; whole ones are left out, also those that stand for quantised weights."""
    if isinstance(arrays, ModelState):
        return ModelState(each for each in arrays.tensors() if each.dtype in REALS)
    return {name: each for name, each in arrays.items() if str(each.dtype) in REALS}


def _one(arrays: Arrays, name: str) -> Arrays:
    """A tensor of a name that can be read more than once; nothing if there is none, or none can be made."""
    if isinstance(arrays, Matched):
        return arrays
    try:
        return {name: arrays[name]} if name in arrays else {}
    except InputError:
        return {}


def _differences(ours: NDArray[Any], theirs: NDArray[Any], deviation: float) -> Singles:
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.result_type(ours.dtype, theirs.dtype, np.float32)
        some = np.subtract(ours, theirs, dtype=wide)
        some /= wide.type(deviation)
        found: Singles = some.astype(np.float32, copy=False)
        return found


def recorded(
    shared: Arrays, length: int, layers: tuple[int, ...], deviations: tuple[float, ...]
) -> tuple[Part, ...]:
    """The tensors of a shared model that carry, with the deviations on record; InputError if they differ.

    Deviations are measured again only if it must be found out which of the large tensors have one.
    """
    found = large(shared, length)
    if len(found) != len(layers):
        found = {each.name: each.blocks for each in carrying(shared, length)}
    if tuple(found.values()) != layers or len(layers) != len(deviations):
        raise InputError("the shared model's matrices are not those on record")
    return tuple(
        Part(name=name, blocks=blocks, deviation=deviation)
        for (name, blocks), deviation in zip(found.items(), deviations, strict=True)
    )
