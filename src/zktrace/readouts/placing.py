"""Step (1) of an alignment: the channel of the suspect that stands for each of the reference."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from zktrace.readouts.assignment import Indices, assign
from zktrace.readouts.channels import EPSILON, PARTS, Convolution, Streams, flat
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays

_SWEEPS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """Of each set: which channel of the suspect stands for each of the reference, and roughly its factor."""

    order: dict[int, Indices]
    factor: dict[int, Floats]


def place(streams: Streams, convolutions: list[Convolution], wanted: Arrays, given: Arrays) -> Placed:
    """Where the channels of the suspect, `given`, stand in the reference, `wanted`."""
    ours, theirs = _Effective(wanted, convolutions), _Effective(given, convolutions)
    return _Placing(streams, convolutions, ours, theirs).run()


class _Effective:
    """What each convolution with its BatchNorm layer does: filters (out, in, area) and shifts (out,).

    Filters are made when they are asked for: those of a whole model in float64 would be several times it.
    """

    def __init__(self, state: Arrays, convolutions: list[Convolution]) -> None:
        self._state = state
        self._gains: dict[str, Floats] = {}
        self.shifts: dict[str, Floats] = {}
        for each in convolutions:
            scale, shift, mean, variance = (state[f"{each.norm}.{part}"].astype(np.float64) for part in PARTS)
            self._gains[each.name] = scale / np.sqrt(variance + EPSILON)
            self.shifts[each.name] = shift - self._gains[each.name] * mean

    def filters(self, each: Convolution) -> Floats:
        """The filters of one convolution."""
        return self._gains[each.name][:, None, None] * flat(self._state[each.weight])


class _Placing:
    """Sets of channels are assigned one after the other, in sweeps."""

    def __init__(
        self,
        streams: Streams,
        convolutions: list[Convolution],
        ours: _Effective,
        theirs: _Effective,
    ) -> None:
        self._count = len(streams)
        self._convolutions = convolutions
        self._ours, self._theirs = ours, theirs
        self._order: dict[int, Indices] = {}
        self._factor: dict[int, Floats] = {}

    def run(self) -> Placed:
        for sweep in range(_SWEEPS):
            moved = [self._place(number, readers=sweep > 0) for number in range(self._count)]
            if sweep and not any(moved):
                break
        return Placed(order=self._order, factor=self._factor)

    def _place(self, number: int, *, readers: bool) -> bool:
        """Assign one set; whether that changed anything."""
        written = [self._written(each) for each in self._convolutions if self._known_writer(each, number)]
        pairs = list(written)
        if readers:
            pairs += [self._read(each) for each in self._convolutions if each.reads == number]
        likeness = sum(_unit(ours) @ _unit(theirs).T for ours, theirs in pairs)
        order = assign(np.asarray(likeness))
        before = self._order.get(number)
        self._order[number] = order
        self._factor[number] = _ratio([(ours, theirs[order]) for ours, theirs in written])
        return before is None or not np.array_equal(before, order)

    def _known_writer(self, each: Convolution, number: int) -> bool:
        return each.writes == number and (each.reads is None or each.reads in self._order)

    def _written(self, each: Convolution) -> tuple[Floats, Floats]:
        """A channel as it is written: filters and shift, the suspect's with aligned inputs."""
        theirs = self._theirs.filters(each)
        if each.reads is not None:
            theirs = theirs[:, self._order[each.reads]] * self._factor[each.reads][:, None]
        return (
            _rows(self._ours.filters(each), self._ours.shifts[each.name]),
            _rows(theirs, self._theirs.shifts[each.name]),
        )

    def _read(self, each: Convolution) -> tuple[Floats, Floats]:
        """A channel as it is read, by filters whose own channels are aligned."""
        theirs = self._theirs.filters(each)[self._order[each.writes]]
        theirs = theirs / self._factor[each.writes][:, None, None]
        ours = self._ours.filters(each)
        return ours.swapaxes(0, 1).reshape(ours.shape[1], -1), theirs.swapaxes(0, 1).reshape(
            ours.shape[1], -1
        )


def _rows(filters: Floats, shifts: Floats) -> Floats:
    return np.concatenate((filters.reshape(len(filters), -1), shifts[:, None]), axis=1)


def _unit(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0), dtype=np.float64)


def _ratio(pairs: list[tuple[Floats, Floats]]) -> Floats:
    """By least squares, how many times ours theirs is, row by row; 1 where that is no positive number."""
    product = sum(np.einsum("ij,ij->i", ours, theirs) for ours, theirs in pairs)
    square = sum(np.einsum("ij,ij->i", ours, ours) for ours, theirs in pairs)
    return positive_ratio(np.asarray(product), np.asarray(square), np.ones(len(pairs[0][0])))


def positive_ratio(product: Floats, square: Floats, otherwise: Floats) -> Floats:
    """product / square where that is a positive number, and `otherwise` elsewhere."""
    usable = (product > 0) & (square > 0)
    quotient = np.divide(product, square, out=np.ones_like(product), where=usable)
    return np.asarray(np.where(usable, quotient, otherwise), dtype=np.float64)
