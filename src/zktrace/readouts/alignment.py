"""A rewritten suspect as it was: channels back in their places and at their sizes, against the reference.

What a ResNet computes does not change if channels are permuted, or are written times f > 0 and read divided
by f (a residual stream as one), nor if inside a BatchNorm layer filter and running mean are scaled by g, of
either sign, and scale and running deviation by h. A reader of scales must not depend on such choices:

    gamma = sign(g) h f gamma'    beta = f beta'    mean = g mean'    var + eps = (g h)^2 (var' + eps)
    a filter's row = g row' / f of what it reads

(1) Places. The effective filter gamma W / sqrt(var + eps) and shift of a channel know neither g nor h. From
    the image on, channels are assigned by the cosines of what writes them, inputs already aligned; then again
    by the cosines of all that writes and reads them, until nothing moves.
(2) Sizes. f and g by least squares on the filters that read a channel, rows and columns in turn; they hold
    no mark of the weight carrier. One number a stream is left open: filters that were not scaled decide
    it, or the mean of a layer's scales.
(3) h from the running variances, in layers where it varies more than training on explains.

The reference is the shared model. Rows, keys and directions play no part.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded
from zktrace.primitives.text import shown
from zktrace.readouts.assignment import Indices, assign
from zktrace.readouts.directions import Floats
from zktrace.readouts.scales import Arrays
from zktrace.readouts.suspects import plain

EPSILON: Final = 1e-5  # of BatchNorm layers
SCALED: Final = 0.1  # deviation of log |g| from which on filters count as rewritten
QUIET: Final = 0.15  # deviation of log h that is no rewrite,
EXPLAINED: Final = 3.0  # and more of it by so many times the sine of how far filters were trained on
MAX_CHANNELS: Final = 4096  # of a layer,
MAX_FILTERS: Final = 1 << 24  # and numbers in its filters
_SWEEPS: Final = 4
_TURNS: Final = 20  # of rows and columns
_PARTS: Final = ("weight", "bias", "running_mean", "running_var")
_BLOCK: Final = re.compile(r"layer([1-4])\.([0-9]{1,3})\.conv1\.weight")
_HEAD: Final = "fc.weight"


def align_scales(suspect: Arrays, reference: Arrays) -> dict[str, NDArray[Any]]:
    """The suspect's state with channels placed and scaled as the reference has them; the same function.

    Features change places (and, where they were rescaled, sizes) too. Element types are at least float32.
    """
    given, wanted = plain(suspect), plain(reference)
    streams = _streams(wanted)
    convolutions = _convolutions(streams)
    _check(given, wanted, convolutions)
    with np.errstate(all="ignore"):  # what overflows is refused below
        ours, theirs = _Effective(wanted, convolutions), _Effective(given, convolutions)
        placed = _Placing(streams, convolutions, ours, theirs).run()
        made = _Sizing(streams, convolutions, wanted, given, placed).run()
    for name, array in made.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{shown(name)}: the suspect's numbers cannot be aligned with the reference's")
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolution:
    """A convolution, the BatchNorm layer behind it, and the sets of channels on both sides."""

    name: str
    norm: str
    reads: int | None  # None: the image
    writes: int

    @property
    def weight(self) -> str:
        return f"{self.name}.weight"


def _streams(state: Arrays) -> list[list[tuple[str, str]]]:
    """Sets of channels from the image on: the convolutions and BatchNorm layers that write each."""
    found = [match.groups() for match in map(_BLOCK.fullmatch, state) if match]
    counts = [sum(stage == number for stage, _ in found) for number in "1234"]
    if min(counts) < 2:
        raise InputError("channels are aligned for ResNets of basic blocks only")
    sets = []
    for stage, count in enumerate(counts, start=1):
        blocks = [f"layer{stage}.{number}" for number in range(count)]
        short = f"layer{stage}.0.downsample"
        first = ("conv1", "bn1") if stage == 1 else (f"{short}.0", f"{short}.1")
        sets.append([first, *((f"{block}.conv2", f"{block}.bn2") for block in blocks)])
        sets.extend([(f"{block}.conv1", f"{block}.bn1")] for block in blocks)
    return sets


def _convolutions(streams: list[list[tuple[str, str]]]) -> list[_Convolution]:
    inner = {writers[0][0]: number for number, writers in enumerate(streams) if len(writers) == 1}
    outer = [number for number, writers in enumerate(streams) if len(writers) > 1]

    def read_by(name: str) -> int | None:
        if name == "conv1":
            return None
        stage, block, kind = name.removeprefix("layer").split(".")[:3]
        if kind == "conv2":
            return inner[f"layer{stage}.{block}.conv1"]
        before = int(stage) > 1 and int(block) == 0
        return outer[int(stage) - 1 - before]

    return [
        _Convolution(name=name, norm=norm, reads=read_by(name), writes=number)
        for number, writers in enumerate(streams)
        for name, norm in writers
    ]


def _check(given: Arrays, wanted: Arrays, convolutions: list[_Convolution]) -> None:
    for name in _names(convolutions):
        for whose, state in (("reference", wanted), ("suspect", given)):
            if name not in state:
                raise InputError(f"the {whose} lacks {name!r}: it cannot be aligned")
            if state[name].dtype.kind != "f" or not np.isfinite(state[name]).all():
                raise InputError(f"the {whose}'s {name!r} is not of finite real numbers")
            if name.endswith(".running_var") and state[name].min(initial=0.0) < 0:
                raise InputError(f"the {whose}'s {name!r} has negative variances")
        if given[name].shape != wanted[name].shape:
            raise InputError(
                f"{name!r} has shape {given[name].shape} in the suspect and {wanted[name].shape} in the "
                "reference: only the same architecture can be aligned"
            )
    if set(filter(_BLOCK.fullmatch, given)) != set(filter(_BLOCK.fullmatch, wanted)):
        raise InputError(
            "the suspect is deeper than the reference: only the same architecture can be aligned"
        )
    for each in convolutions:
        shape = wanted[each.weight].shape
        inputs = next(
            (wanted[f"{other.norm}.weight"] for other in convolutions if other.writes == each.reads), None
        )
        sizes = {wanted[f"{each.norm}.{part}"].shape for part in _PARTS} | {shape[:1]}
        if math.prod(shape) > MAX_FILTERS or max(shape, default=0) > MAX_CHANNELS:
            raise LimitExceeded(
                f"{each.weight!r} has shape {shape}: layers of at most {MAX_CHANNELS} channels and "
                f"{MAX_FILTERS} numbers are aligned"
            )
        if len(shape) != 4 or len(sizes) != 1 or (inputs is not None and len(inputs) != shape[1]):
            raise InputError(f"{each.weight!r} of shape {shape} does not fit the layers around it")
    last = wanted[f"{convolutions[-1].norm}.weight"]
    if _HEAD in given and (given[_HEAD].ndim != 2 or given[_HEAD].shape[1] != len(last)):
        raise InputError(f"{_HEAD!r} has shape {given[_HEAD].shape}, the model needs (outputs, {len(last)})")


def _names(convolutions: list[_Convolution]) -> Iterator[str]:
    for each in convolutions:
        yield each.weight
        yield from (f"{each.norm}.{part}" for part in _PARTS)


class _Effective:
    """What each convolution with its BatchNorm layer does: filters (out, in, area) and shifts (out,).

    Filters are made when they are asked for: those of a whole model in float64 would be several times it.
    """

    def __init__(self, state: Arrays, convolutions: list[_Convolution]) -> None:
        self._state = state
        self._gains: dict[str, Floats] = {}
        self.shifts: dict[str, Floats] = {}
        for each in convolutions:
            scale, shift, mean, variance = (
                state[f"{each.norm}.{part}"].astype(np.float64) for part in _PARTS
            )
            self._gains[each.name] = scale / np.sqrt(variance + EPSILON)
            self.shifts[each.name] = shift - self._gains[each.name] * mean

    def filters(self, each: _Convolution) -> Floats:
        """The filters of one convolution."""
        return self._gains[each.name][:, None, None] * _flat(self._state[each.weight])


def _flat(weight: NDArray[Any]) -> Floats:
    return weight.reshape(*weight.shape[:2], -1).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Placed:
    """Of each set: which channel of the suspect stands for each of the reference, and roughly its factor."""

    order: dict[int, Indices]
    factor: dict[int, Floats]


class _Placing:
    """Step (1)."""

    def __init__(
        self,
        streams: list[list[tuple[str, str]]],
        convolutions: list[_Convolution],
        ours: _Effective,
        theirs: _Effective,
    ) -> None:
        self._count = len(streams)
        self._convolutions = convolutions
        self._ours, self._theirs = ours, theirs
        self._order: dict[int, Indices] = {}
        self._factor: dict[int, Floats] = {}

    def run(self) -> _Placed:
        for sweep in range(_SWEEPS):
            moved = [self._place(number, readers=sweep > 0) for number in range(self._count)]
            if sweep and not any(moved):
                break
        return _Placed(order=self._order, factor=self._factor)

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

    def _known_writer(self, each: _Convolution, number: int) -> bool:
        return each.writes == number and (each.reads is None or each.reads in self._order)

    def _written(self, each: _Convolution) -> tuple[Floats, Floats]:
        """A channel as it is written: filters and shift, the suspect's with aligned inputs."""
        theirs = self._theirs.filters(each)
        if each.reads is not None:
            theirs = theirs[:, self._order[each.reads]] * self._factor[each.reads][:, None]
        return (
            _rows(self._ours.filters(each), self._ours.shifts[each.name]),
            _rows(theirs, self._theirs.shifts[each.name]),
        )

    def _read(self, each: _Convolution) -> tuple[Floats, Floats]:
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
    return _positive(np.asarray(product), np.asarray(square), np.ones(len(pairs[0][0])))


def _positive(product: Floats, square: Floats, otherwise: Floats) -> Floats:
    usable = (product > 0) & (square > 0)
    quotient = np.divide(product, square, out=np.ones_like(product), where=usable)
    return np.asarray(np.where(usable, quotient, otherwise), dtype=np.float64)


class _Sizing:
    """Steps (2) and (3), and the new state."""

    def __init__(
        self,
        streams: list[list[tuple[str, str]]],
        convolutions: list[_Convolution],
        wanted: Arrays,
        given: Arrays,
        placed: _Placed,
    ) -> None:
        self._streams, self._convolutions = streams, convolutions
        self._wanted, self._given, self._placed = wanted, given, placed
        self._factor: dict[int, Floats] = {}  # f of each set
        self._gain: dict[str, Floats] = {}  # g of each convolution
        self._apart: list[float] = []  # how far the convolutions are from the reference's, as sines

    def run(self) -> dict[str, NDArray[Any]]:
        stem = next(each for each in self._convolutions if each.reads is None)
        ours, theirs = self._weights(stem)
        self._gain[stem.name] = _gains((ours * ours).sum(axis=(1, 2)), (ours * theirs).sum(axis=(1, 2)))
        for number in range(len(self._streams)):
            self._size(number)
        return self._made(EXPLAINED * float(np.mean(self._apart)) + QUIET)

    def _weights(self, each: _Convolution) -> tuple[Floats, Floats]:
        """A convolution's weights in the reference and, in their places, in the suspect."""
        theirs = _flat(self._given[each.weight])[self._placed.order[each.writes]]
        if each.reads is not None:
            theirs = theirs[:, self._placed.order[each.reads]]
        return _flat(self._wanted[each.weight]), theirs

    def _vectors(self, norm: str, part: str, order: Indices) -> tuple[Floats, Floats]:
        ours, theirs = (state[f"{norm}.{part}"].astype(np.float64) for state in (self._wanted, self._given))
        return ours, theirs[order]

    def _size(self, number: int) -> None:
        """f of a set of channels, and g of every convolution that reads it."""
        readers = [each for each in self._convolutions if each.reads == number]
        squares, products, sizes = [], [], []
        for each in readers:
            ours, theirs = self._weights(each)
            squares.append((ours * ours).sum(axis=2))
            products.append((ours * theirs).sum(axis=2))
            sizes.append((theirs * theirs).sum(axis=2))
        inverse, gains = _balance(squares, products, 1 / self._placed.factor[number])
        for s, p, t, gain in zip(squares, products, sizes, gains, strict=True):
            fitted = gain[:, None] * inverse
            self._apart.append(_sine((fitted**2 * s).sum(), (fitted * p).sum(), t.sum()))
        k = self._open_number(number, inverse, gains)
        self._factor[number] = 1 / (inverse * k)
        self._gain |= {each.name: gain / k for each, gain in zip(readers, gains, strict=True)}

    def _open_number(self, number: int, inverse: Floats, gains: list[Floats]) -> float:
        """k such that 1/f = k * inverse and g = gains / k.

        Filters that were not scaled have g = 1. Otherwise the first layer that writes the set is to have the
        mean scale that it has in the reference, which no mark moves.
        """
        size = np.log(np.abs(np.concatenate(gains)))
        if _spread(size) < SCALED:
            return float(np.exp(np.median(size)))
        first = next(each for each in self._convolutions if each.writes == number)
        order = self._placed.order[number]
        ours, theirs = self._vectors(first.norm, "weight", order)
        mean = float((theirs * inverse * np.sign(self._gain[first.name]) / self._widths(first)).mean())
        return float(ours.mean()) / mean if float(ours.mean()) * mean > 0 else float(np.exp(np.median(size)))

    def _widths(self, each: _Convolution) -> Floats:
        """h of a BatchNorm layer, if its running variances are those of the reference's data."""
        ours, theirs = self._vectors(each.norm, "running_var", self._placed.order[each.writes])
        return np.sqrt((theirs + EPSILON) / (ours + EPSILON)) / np.abs(self._gain[each.name])

    def _made(self, explained: float) -> dict[str, NDArray[Any]]:
        made = {name: np.array(array) for name, array in self._given.items()}
        for each in self._convolutions:
            order = self._placed.order[each.writes]
            scale, shift, mean, variance = (self._vectors(each.norm, part, order)[1] for part in _PARTS)
            g, f, h = self._gain[each.name], self._factor[each.writes], self._widths(each)
            h = h if _spread(np.log(h)) > explained else np.ones_like(h)
            weight = self._weights(each)[1] / g[:, None, None]
            if each.reads is not None:
                weight *= self._factor[each.reads][:, None]
            values = (
                scale / (np.sign(g) * h * f),
                shift / f,
                mean / g,
                np.maximum((variance + EPSILON) / (g * h) ** 2 - EPSILON, 0.0),
            )
            for part, value in zip(_PARTS, values, strict=True):
                _put(made, f"{each.norm}.{part}", value)
            _put(made, each.weight, weight)
        if _HEAD in made:
            last = max(number for number, writers in enumerate(self._streams) if len(writers) > 1)
            _put(made, _HEAD, made[_HEAD][:, self._placed.order[last]] * self._factor[last])
        return made


def _balance(squares: list[Floats], products: list[Floats], start: Floats) -> tuple[Floats, list[Floats]]:
    """Theirs[r, c] = g_r x_c ours[r, c] by least squares: x common to all convolutions, g of each."""
    x = start
    gains: list[Floats] = []
    for _ in range(_TURNS):
        gains = [_gains(s @ (x * x), p @ x) for s, p in zip(squares, products, strict=True)]
        product = sum(g @ p for g, p in zip(gains, products, strict=True))
        square = sum((g * g) @ s for g, s in zip(gains, squares, strict=True))
        x = _positive(np.asarray(product), np.asarray(square), start)
    return x, [_gains(s @ (x * x), p @ x) for s, p in zip(squares, products, strict=True)]


def _gains(square: Floats, product: Floats) -> Floats:
    """g = product / square, of either sign; 1 where a row says nothing."""
    usable = (square > 0) & (product != 0)
    return np.divide(product, square, out=np.ones_like(product), where=usable)


def _spread(values: Floats) -> float:
    """A deviation from the quartiles: a few channels that are gone, or were misplaced, do not count."""
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low) / 1.349


def _sine(square: float, product: float, size: float) -> float:
    """Of the angle between two weights, from the first's square, their product and the second's square."""
    cosine = product / np.sqrt(square * size) if square * size > 0 else 1.0
    return float(np.sqrt(max(0.0, 1.0 - float(cosine) ** 2)))


def _put(made: dict[str, NDArray[Any]], name: str, value: Floats) -> None:
    """In the shape it has, in its own element type but at least float32."""
    old = made[name]
    made[name] = np.ascontiguousarray(value.reshape(old.shape).astype(np.result_type(old.dtype, np.float32)))
