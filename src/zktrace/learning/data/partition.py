"""Who holds what: a Dirichlet partition over labels, and the plan of a federation made from it.

For every class the stations' shares of it are one draw from Dirichlet(alpha, ..., alpha). The class's
training samples, in random order, are dealt out by these shares (largest remainders), so nothing is lost and
nothing is held twice. Validation and test samples get a station by the same shares: it decides whose receiver
heard a sample where receivers differ, and nothing else.

No shard is empty in the paper. If one is, the shares are drawn again, up to a limit; `minimum=0` takes the
first draw as it comes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.arrays import Indices
from zktrace.learning.data.counts import apportion
from zktrace.learning.data.splits import Split, split_samples
from zktrace.learning.data.streams import generator

ATTEMPTS: Final = 1000
MOST_STATIONS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitPlan:
    """A split, and a station for every sample."""

    split: Split
    stations: int
    station_of: Indices  # [n], -1 for a sample outside the split
    shares: NDArray[np.float64]  # [classes, stations], rows sum to 1
    draws: int  # how often the shares were drawn until no shard was too small

    def shard(self, station: int) -> Indices:
        """The training samples of a station."""
        if not 0 <= station < self.stations:
            raise InputError(f"station {station}: must lie in 0..{self.stations - 1}")
        held: Indices = self.split.train[self.station_of[self.split.train] == station]
        return held

    def shards(self) -> tuple[Indices, ...]:
        """Of all stations, in order."""
        return tuple(self.shard(station) for station in range(self.stations))


def dirichlet_shares(
    *, classes: int, stations: int, alpha: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """One draw of Dirichlet(alpha) a class, [classes, stations]. Large alpha: equal shares.

    By normalised gammas in the log domain, so that a small alpha cannot leave a row of zeros:
    Gamma(alpha) = Gamma(alpha + 1) U^(1/alpha).
    """
    if not 1 <= stations <= MOST_STATIONS:
        raise InputError(f"{stations} stations: must be 1..{MOST_STATIONS}")
    if not 1e-6 <= alpha <= 1e9:
        raise InputError(f"alpha {alpha:g}: must lie in 1e-6..1e9")
    logs = np.log(rng.standard_gamma(alpha + 1, (classes, stations)))
    logs += np.log1p(-rng.random((classes, stations))) / alpha
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares


def deal(labels: Indices, shares: NDArray[np.float64], rng: np.random.Generator) -> Indices:
    """A station for every sample: each class in random order, cut by its shares."""
    station_of = np.empty(len(labels), np.int64)
    for label, share in enumerate(shares):
        members = np.flatnonzero(labels == label)
        owners = np.repeat(np.arange(len(share)), apportion(len(members), share))
        station_of[rng.permutation(members)] = owners
    return station_of


def make_plan(
    labels: Indices,
    *,
    classes: int,
    stations: int = 10,
    alpha: float = 2.0,
    seed: int,
    split: Split | None = None,
    minimum: int = 1,
) -> SplitPlan:
    """The federation of a seed: an 80/10/10 split unless one is given, and a Dirichlet(alpha) partition."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise InputError(f"labels {labels.min()}..{labels.max()} of {classes} classes")
    split = split_samples(len(labels), seed=seed) if split is None else split
    if minimum * stations > len(split.train):
        raise InputError(
            f"{len(split.train)} training samples are too few: {stations} stations, {minimum} each"
        )
    rng = generator(seed, "partition")
    draws, enough = 0, False
    while not enough:
        if draws == ATTEMPTS:
            raise InputError(
                f"alpha {alpha:g} left one of {stations} stations with less than {minimum} of "
                f"{len(split.train)} samples in each of {ATTEMPTS} draws; minimum=0 allows that"
            )
        draws += 1
        shares = dirichlet_shares(classes=classes, stations=stations, alpha=alpha, rng=rng)
        train = deal(labels[split.train], shares, rng)
        enough = bool(np.bincount(train, minlength=stations).min() >= minimum)
    station_of = np.full(len(labels), -1, np.int64)
    station_of[split.train] = train
    for part in (split.validation, split.test):
        station_of[part] = deal(labels[part], shares, rng)
    return SplitPlan(split=split, stations=stations, station_of=station_of, shares=shares, draws=draws)
