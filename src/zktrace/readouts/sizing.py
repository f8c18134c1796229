"""Steps (2) and (3) of an alignment: channels at the sizes that the reference has them in."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.readouts.assignment import Indices
from zktrace.readouts.channels import EPSILON, HEAD, PARTS, Convolution, Streams, flat
from zktrace.readouts.directions import Floats
from zktrace.readouts.placing import Placed, positive_ratio
from zktrace.readouts.scales import Arrays

SCALED: Final = 0.1  # deviation of log |g| from which on filters count as rewritten
QUIET: Final = 0.15  # deviation of log h that is no rewrite,
EXPLAINED: Final = 3.0  # and more of it by so many times the sine of how far filters were trained on
_TURNS: Final = 20  # of rows and columns


def resize(
    streams: Streams, convolutions: list[Convolution], wanted: Arrays, given: Arrays, placed: Placed
) -> dict[str, NDArray[Any]]:
    """The suspect's state, `given`, with channels placed and scaled as the reference, `wanted`, has them."""
    return _Sizing(streams, convolutions, wanted, given, placed).run()


class _Sizing:
    """Factors of one set of channels after the other, then the new state."""

    def __init__(
        self,
        streams: Streams,
        convolutions: list[Convolution],
        wanted: Arrays,
        given: Arrays,
        placed: Placed,
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

    def _weights(self, each: Convolution) -> tuple[Floats, Floats]:
        """A convolution's weights in the reference and, in their places, in the suspect."""
        theirs = flat(self._given[each.weight])[self._placed.order[each.writes]]
        if each.reads is not None:
            theirs = theirs[:, self._placed.order[each.reads]]
        return flat(self._wanted[each.weight]), theirs

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

    def _widths(self, each: Convolution) -> Floats:
        """h of a BatchNorm layer, if its running variances are those of the reference's data."""
        ours, theirs = self._vectors(each.norm, "running_var", self._placed.order[each.writes])
        return np.sqrt((theirs + EPSILON) / (ours + EPSILON)) / np.abs(self._gain[each.name])

    def _made(self, explained: float) -> dict[str, NDArray[Any]]:
        made = {name: np.array(array) for name, array in self._given.items()}
        for each in self._convolutions:
            order = self._placed.order[each.writes]
            scale, shift, mean, variance = (self._vectors(each.norm, part, order)[1] for part in PARTS)
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
            for part, value in zip(PARTS, values, strict=True):
                _put(made, f"{each.norm}.{part}", value)
            _put(made, each.weight, weight)
        if HEAD in made:
            last = max(number for number, writers in enumerate(self._streams) if len(writers) > 1)
            _put(made, HEAD, made[HEAD][:, self._placed.order[last]] * self._factor[last])
        return made


def _balance(squares: list[Floats], products: list[Floats], start: Floats) -> tuple[Floats, list[Floats]]:
    """Theirs[r, c] = g_r x_c ours[r, c] by least squares: x common to all convolutions, g of each."""
    x = start
    gains: list[Floats] = []
    for _ in range(_TURNS):
        gains = [_gains(s @ (x * x), p @ x) for s, p in zip(squares, products, strict=True)]
        product = sum(g @ p for g, p in zip(gains, products, strict=True))
        square = sum((g * g) @ s for g, s in zip(gains, squares, strict=True))
        x = positive_ratio(np.asarray(product), np.asarray(square), start)
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
