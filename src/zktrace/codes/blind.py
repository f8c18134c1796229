"""Coefficients from a collusion channel that is not known: estimated first, then used (blind MAP).

At each position some number m of k colluders have a one, and the readout depends on m alone. Two families of
channels are fitted to readout and biases by expectation-maximisation, for k up to ten:

    linear   z = o + a (2m/k - 1) + noise: copies are averaged
    voting   z = µ1 + noise with probability θ_m, else µ0 + noise: a word is chosen position by position.
             θ_0 = 0 and θ_k = 1 by the marking assumption; all else is free: majority, minority,
             interleaving, all ones, coins

Levels rise with m: a copy that says the opposite of a row is not explained here, and stays what the negative
tail of `soft` is for. The one with the largest likelihood, less a price for each θ, says what a bit is worth:

    c_b = ln f(z_b | X_b = 1) - ln f(z_b | X_b = 0),

the other colluders' bits being drawn from the biases, except rows already named, which are known. No other
row is looked at; so an innocent's row is independent of c, and what a wrong estimate costs is power, never
soundness. For averages it is no better than `soft`; for words that `soft` cannot follow it is.

All arithmetic is that of `elementary`: the same bits on every machine.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zktrace.codes.biases import Biases
from zktrace.codes.checks import Floats, packed_rows, real_vector
from zktrace.codes.coefficients import Coefficients, quantise
from zktrace.codes.elementary import exponential, logarithm, total
from zktrace.codes.soft import fit_channel
from zktrace.primitives.gf2 import Bits

SIZES: Final = (1, 2, 3, 4, 5, 6, 8, 10)  # coalitions that are tried: 7 is much like 6 or 8
MOST_COLLUDERS: Final = SIZES[-1]  # with as many named there is no estimate
_POSITIONS: Final = 2048  # that an estimate is made from, evenly spread
_FIRST_ROUNDS: Final = 5  # of expectation-maximisation, from every start
_LEADING: Final = 3  # starts that then go on
_ROUNDS: Final = 40
_GAIN: Final = 1e-3  # of ln likelihood: a round with less is the last
_FLOOR: Final = 0.05  # of the readout's deviation: the least noise, the same for all channels
_DOUBT: Final = 0.005  # that a readout is none of the model's
_PRICE: Final = 0.25  # of a θ, times ln n
_SMALLEST: Final = 2.0**-500

Counts = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """Readout, biases, and how many of the rows already named have a one."""

    z: Floats
    p: Floats
    ones: Counts
    named: int

    @cached_property
    def mean(self) -> float:
        return float(total(self.z)) / len(self.z)

    @cached_property
    def deviation(self) -> float:
        away = self.z - self.mean
        return math.sqrt(float(total(away * away)) / len(away))

    @property
    def least_noise(self) -> float:
        return _FLOOR * self.deviation

    def some(self) -> "_Data":
        step = -(-len(self.z) // _POSITIONS)
        return _Data(z=self.z[::step], p=self.p[::step], ones=self.ones[::step], named=self.named)

    def chances(self, size: int) -> Floats:
        """P[m of `size` rows have a one], m = 0..size, given those of the named rows among them."""
        free = size - self.named
        powers, others = [np.ones_like(self.p)], [np.ones_like(self.p)]
        for _ in range(free):
            powers.append(powers[-1] * self.p)
            others.append(others[-1] * (1.0 - self.p))
        table = np.array([math.comb(free, j) * powers[j] * others[free - j] for j in range(free + 1)])
        place = np.arange(size + 1)[:, None] - self.ones
        found = np.take_along_axis(table, np.clip(place, 0, free), axis=0)
        return np.where((place >= 0) & (place <= free), found, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Collusion:
    """A channel: how likely a readout is if m of k colluders have a one."""

    colluders: int  # k
    levels: Floats  # what the readout would be without noise: one a count, or two if `votes`
    noise: float  # σ
    votes: Floats | None  # θ_m of the second level; None: linear

    @property
    def free(self) -> int:
        """Votes that were chosen."""
        return 0 if self.votes is None else self.colluders - 1

    def likelihoods(self, z: Floats) -> tuple[Floats, Floats]:
        """f(z_b | m), m = 0..k, as parts of the likelihood of the nearest level; and that one's logarithm."""
        away = (z - self.levels[:, None]) / self.noise
        squares = 0.5 * away * away
        least = squares.min(axis=0)
        found = exponential(least - squares)
        if self.votes is not None:
            found = found[0] + self.votes[:, None] * (found[1] - found[0])
        return found, -least


def blind(values: ArrayLike, biases: Biases, named_rows: Bits | None = None) -> Coefficients:
    """Log-likelihood ratios of a bit, in the units of the symmetric score.

    `named_rows` are packed as from `Code.rows`. Zero coefficients if the readout says nothing, or if ten rows
    or more are named.
    """
    readout = real_vector(values, biases.length, "the readout")
    given = np.empty((0, -(-biases.length // 8)), dtype=np.uint8) if named_rows is None else named_rows
    rows = packed_rows(given, biases.length)
    channel = fit_channel(readout, biases)
    if channel is None or len(rows) >= MOST_COLLUDERS:
        return quantise(np.zeros(biases.length), biases)
    ones = np.zeros(biases.length, dtype=np.int64)
    for row in rows:
        ones += np.unpackbits(row, count=biases.length)
    p = biases.probabilities()
    data = _Data(z=channel.tamed, p=p, ones=ones, named=len(rows))
    ratios = np.where(channel.weights > 0.0, _ratios(data, estimate(data)), 0.0)
    variance = float(total(ratios * ratios * (p * (1.0 - p))))
    scale = math.sqrt(biases.length / variance) if variance > 0.0 else 0.0
    return quantise(ratios * scale, biases)


def _ratios(data: _Data, channel: Collusion) -> Floats:
    """ln f(z | X = 1) - ln f(z | X = 0) for one more colluder."""
    found = channel.likelihoods(data.z)[0] * (1.0 - _DOUBT) + _DOUBT
    others = data.chances(channel.colluders - 1)
    return logarithm(_sum(others * found[1:])) - logarithm(_sum(others * found[:-1]))


def estimate(data: _Data) -> Collusion:
    """The channel with the greatest likelihood less its price.

    All starts go a few rounds; those that lead then go on to the end.
    """
    some = data.some()
    price = _PRICE * float(logarithm(np.array([float(len(some.z))]))[0])
    chances = {size: some.chances(size) for size in SIZES if size > data.named}
    found = [start for size in chances for start in _starts(some, size)]
    for rounds, kept in ((_FIRST_ROUNDS, _LEADING), (_ROUNDS, 1)):
        fitted = [_maximised(some, chances[each.colluders], each, rounds) for each in found]
        worth = [reached - price * each.free for reached, each in fitted]
        order = sorted(range(len(worth)), key=lambda at: (-worth[at], at))
        found = [fitted[at][1] for at in order[:kept]]
    return found[0]


def _starts(data: _Data, size: int) -> Iterator[Collusion]:
    """Where expectation-maximisation begins: averages; then votes with, and against, the majority."""
    mean, spread = data.mean, data.deviation
    shares = np.arange(size + 1) / size
    yield Collusion(
        colluders=size, levels=mean + spread * (2.0 * shares - 1.0), noise=spread / 2.0, votes=None
    )
    for votes in (shares, 1.0 - shares) if size > 2 else (shares,) if size > 1 else ():
        yield Collusion(
            colluders=size,
            levels=np.array([mean - spread, mean + spread]),
            noise=spread / 2.0,
            votes=_marked(votes),
        )


def _marked(votes: Floats) -> Floats:
    """Votes under the marking assumption, none of them certain."""
    inner = np.clip(votes, _DOUBT, 1.0 - _DOUBT)
    inner[0], inner[-1] = _DOUBT, 1.0 - _DOUBT
    return inner


def _maximised(data: _Data, chances: Floats, channel: Collusion, rounds: int) -> tuple[float, Collusion]:
    """Expectation-maximisation from a start: ln likelihood, but for a constant, and the channel."""
    best = -math.inf
    for _ in range(rounds):
        found, log_nearest = channel.likelihoods(data.z)
        joint = chances * found
        together = np.maximum(_sum(joint), _SMALLEST)
        scale = float(logarithm(np.array([channel.noise]))[0])
        reached = float(total(logarithm(together) + log_nearest)) - len(data.z) * scale
        if reached < best + _GAIN:
            return reached, channel
        best = reached
        posterior = joint / together
        if channel.votes is None:
            channel = _linear(data, posterior, channel)
        else:
            channel = _voting(data, posterior, channel, channel.votes)
    return best, channel


def _linear(data: _Data, posterior: Floats, channel: Collusion) -> Collusion:
    """Offset, amplitude and noise that are likeliest if counts are as likely as `posterior` says."""
    n, size = len(data.z), channel.colluders
    u = 2.0 * np.arange(size + 1) / size - 1.0
    first, second = _sum(posterior * u[:, None]), _sum(posterior * (u * u)[:, None])
    s1, s2, sz, szu = (float(total(each)) for each in (first, second, data.z, data.z * first))
    determinant = n * s2 - s1 * s1
    a = max((n * szu - s1 * sz) / determinant, 0.0) if determinant > n * n * 1e-12 else 0.0
    o = (sz - a * s1) / n
    away = data.z - o
    squares = float(total(away * away - 2.0 * a * (away * first) + a * a * second)) / n
    noise = max(math.sqrt(max(squares, 0.0)), data.least_noise)
    return Collusion(colluders=size, levels=o + a * u, noise=noise, votes=None)


def _voting(data: _Data, posterior: Floats, channel: Collusion, votes: Floats) -> Collusion:
    """Votes, levels and noise, in the same way."""
    n = len(data.z)
    away = (data.z - channel.levels[:, None]) / channel.noise
    squares = 0.5 * away * away
    low, high = exponential(squares.min(axis=0) - squares)
    up = votes[:, None] * high
    one = posterior * (up / (up + (1.0 - votes[:, None]) * low))  # that m have a one, and it was voted one
    ones, counts = total(one), total(posterior)
    chosen = np.where(counts > 1e-9, ones / np.maximum(counts, 1e-9), votes)
    share = np.minimum(_sum(one), 1.0)
    up_weight = min(max(float(total(share)), 1e-6), n - 1e-6)
    upper = float(total(share * data.z)) / up_weight
    lower = float(total((1.0 - share) * data.z)) / (n - up_weight)
    if upper < lower:
        lower = upper = data.mean
    from_upper, from_lower = data.z - upper, data.z - lower
    spread = share * from_upper * from_upper + (1.0 - share) * from_lower * from_lower
    noise = max(math.sqrt(float(total(spread)) / n), data.least_noise)
    return Collusion(
        colluders=channel.colluders, levels=np.array([lower, upper]), noise=noise, votes=_marked(chosen)
    )


def _sum(table: Floats) -> Floats:
    """Over counts, in order."""
    result: Floats = table[0].copy()
    for row in table[1:]:
        result += row
    return result
