"""Several leakers who put their copies together, weight by weight (docs/coalitions.md).

    from zktrace.attacks.collusion import collude

    leaked = dict(collude(copies, "median"))

Nobody in a coalition knows the shared model or a row: all they have is k numbers for each weight, and what
they make of them lies between the least and the greatest. The names are those of Zhao et al. and Wu et al.
"""

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.bfloat16 import rounded, widened
from zktrace.errors import InputError
from zktrace.learning.aggregation import middle
from zktrace.learning.arrays import Array, Arrays

Floats = NDArray[np.float64]
_PART: Final = 1 << 20  # numbers of all copies together that are in double precision at a time


def _mean(held: Floats, draw: np.random.Generator) -> Floats:
    return np.asarray(sum(held) / len(held))


def _random(held: Floats, draw: np.random.Generator) -> Floats:
    """A copy drawn for each weight."""
    who = draw.integers(len(held), size=held.shape[1])
    return np.asarray(held[who, np.arange(held.shape[1])])


def _median(held: Floats, draw: np.random.Generator) -> Floats:
    return np.asarray(middle(list(held)))


def _minimum(held: Floats, draw: np.random.Generator) -> Floats:
    return np.asarray(held.min(axis=0))


def _maximum(held: Floats, draw: np.random.Generator) -> Floats:
    return np.asarray(held.max(axis=0))


def _midrange(held: Floats, draw: np.random.Generator) -> Floats:
    """(minimum + maximum) / 2."""
    return np.asarray(held.min(axis=0) / 2 + held.max(axis=0) / 2)


def _modified_negative(held: Floats, draw: np.random.Generator) -> Floats:
    """Minimum + maximum - median."""
    return np.asarray(held.min(axis=0) + (held.max(axis=0) - middle(list(held))))


def _random_negative(held: Floats, draw: np.random.Generator) -> Floats:
    """The minimum or the maximum, by a coin for each weight."""
    return np.asarray(np.where(draw.random(held.shape[1]) < 0.5, held.min(axis=0), held.max(axis=0)))


def _farthest(held: Floats, draw: np.random.Generator) -> Floats:
    """The value farthest from the mean: the minimum or the maximum; a coin decides a tie."""
    low, high, mean = held.min(axis=0), held.max(axis=0), held.mean(axis=0)
    lean = (high - mean) - (mean - low)
    coin = draw.random(held.shape[1]) < 0.5
    return np.asarray(np.where((lean > 0) | ((lean == 0) & coin), high, low))


Strategy = Callable[[Floats, np.random.Generator], Floats]  # (copies, weights) -> (weights,)
WEIGHTED: Final = "weighted"
_RULES: Final[Mapping[str, Strategy]] = {
    "mean": _mean,
    "random": _random,
    "median": _median,
    "minimum": _minimum,
    "maximum": _maximum,
    "midrange": _midrange,
    "modified-negative": _modified_negative,
    "random-negative": _random_negative,
    "farthest": _farthest,
}
STRATEGIES: Final = (*_RULES, WEIGHTED)
_DRAWN: Final = ("random", "random-negative", "farthest", WEIGHTED)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coalition(Mapping[str, Array]):
    """What a coalition leaks: a model by names. A tensor is made when it is asked for, and kept by nobody.

    Floating-point tensors of any shape are put together; integers, counters and flags are the first copy's.
    Asked for twice, a tensor is the same.
    """

    states: Sequence[Arrays]
    rule: Strategy
    seed: tuple[int, ...]  # of all that is drawn
    bfloat16: Container[str]

    def __getitem__(self, name: str) -> Array:
        first = self.states[0][name]
        made = np.empty(first.shape, first.dtype)
        flat, at = made.reshape(-1), 0
        for piece in self.pieces(name):
            flat[at : at + piece.size] = piece
            at += piece.size
        return made

    def pieces(self, name: str) -> Iterator[Array]:
        """The numbers of a tensor in order, a part at a time."""
        held = [state[name] for state in self.states]
        _check_alike(name, held)
        half, dtype = name in self.bfloat16, held[0].dtype
        if dtype.kind != "f" and not half:
            yield held[0].reshape(-1)
            return
        rows = [each.reshape(-1) for each in held]
        draw = np.random.default_rng([*self.seed, *name.encode()])
        step = max(1, _PART // len(rows))
        for start in range(0, rows[0].size, step):
            parts = [row[start : start + step] for row in rows]
            exact = np.stack([widened(part) if half else part for part in parts]).astype(np.float64)
            _check_finite(name, exact)
            put = self.rule(exact, draw)
            yield rounded(put) if half else put.astype(dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.states[0])

    def __len__(self) -> int:
        return len(self.states[0])


def collude(
    states: Sequence[Arrays],
    strategy: str = "mean",
    *,
    rng: np.random.Generator | None = None,
    weights: Sequence[float] | None = None,
    bfloat16: Container[str] = (),
) -> Coalition:
    """What these copies give by a strategy, in their own types, each number rounded once to the nearest.

    `weights`, one a copy, are for `weighted` alone; without them a mixture is drawn, each as likely as any
    other. Arrays named in `bfloat16` are the bits of such numbers.
    """
    if len(states) < 2:
        raise InputError(f"{len(states)} copies: a coalition has at least two")
    if strategy not in STRATEGIES:
        raise InputError(f"strategy {strategy!r} is not known; it is one of {', '.join(STRATEGIES)}")
    if weights is not None and strategy != WEIGHTED:
        raise InputError(f"weights are for the strategy {WEIGHTED!r}, not for {strategy!r}")
    for place, state in enumerate(states, start=1):
        if strange := sorted(set(state) ^ set(states[0])):
            raise InputError(
                f"copy {place}: only one of it and copy 1 has {strange[0]!r}; copies of one model?"
            )
    if rng is None and strategy in _DRAWN and weights is None:
        raise InputError(f"the strategy {strategy!r} draws: give it a generator")
    rule = _weighted(len(states), weights, rng) if strategy == WEIGHTED else _RULES[strategy]
    seed = () if rng is None else tuple(int(each) for each in rng.integers(1 << 32, size=4))
    return Coalition(states=states, rule=rule, seed=seed, bfloat16=bfloat16)


def _weighted(count: int, weights: Sequence[float] | None, rng: np.random.Generator | None) -> Strategy:
    drawn = [] if rng is None else rng.dirichlet(np.ones(count)).tolist()
    given = [float(each) for each in (drawn if weights is None else weights)]
    if len(given) != count:
        raise InputError(f"{count} copies and {len(given)} weights: there must be one for each")
    if not all(0 <= each < math.inf for each in given) or not 0 < math.fsum(given) < math.inf:
        raise InputError("weights of copies are numbers of at least 0, and not all of them 0")
    shares = np.array(given) / math.fsum(given)
    return lambda held, _: shares @ held


def _check_alike(name: str, held: Sequence[Array]) -> None:
    for place, each in enumerate(held, start=1):
        if each.shape != held[0].shape or each.dtype != held[0].dtype:
            raise InputError(
                f"copy {place}: {name!r} is {each.dtype} {each.shape}, "
                f"in copy 1 {held[0].dtype} {held[0].shape}; copies of one model?"
            )


def _check_finite(name: str, exact: Floats) -> None:
    for place, row in enumerate(exact, start=1):
        if not np.isfinite(row).all():
            raise InputError(f"copy {place}: {name!r} has values that are NaN or infinite")
