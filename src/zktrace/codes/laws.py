"""The laws that biases are drawn from.

tardos   the density of the paper (`def:overlay`): p = sin²θ with θ uniform between the cutoffs. For hard bits
         of which nothing is known but the marking assumption.
fair     p = 1/2 everywhere. In a noisy linear readout a position is worth p (1 - p), and no law has more of
         it; a word in which a coalition says the opposite of its majority says nothing here.
nuida    the discrete law under which c colluders' words look alike (Nuida et al., 2009): the nodes of a Gauss
         quadrature. Between the two: the least that hard bits of at most c colluders take.

What is real in a law is settled by rigorous enclosures, so every machine gets the same integers; no
platform's sine or square root is asked.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from zktrace.codes.biases import (
    BIAS_BITS,
    COLLUDERS_LIMIT,
    LENGTH_LIMIT,
    ONE,
    Biases,
    cutoff,
    threshold_range,
)
from zktrace.codes.checks import whole
from zktrace.errors import InputError
from zktrace.primitives.precision import WORKING_BITS, precision
from zktrace.primitives.shake import Shake

Law: TypeAlias = Literal["tardos", "fair", "nuida"]
LAWS: Final[tuple[Law, ...]] = get_args(Law)
NUIDA_LIMIT: Final = 256  # colluders: its outermost points stay within the cutoff
_DRAW_BITS: Final = 64  # of the uniform integer behind a bias
_HALF: Final = ONE // 2


def check_law(law: str, colluders: int) -> None:
    """InputError unless there is such a law for this coalition size."""
    if law not in LAWS:
        raise InputError(f"unknown law {law!r} of biases: {', '.join(LAWS)}")
    whole(colluders, "the coalition size of a code", 2, NUIDA_LIMIT if law == "nuida" else COLLUDERS_LIMIT)


@lru_cache(maxsize=32)
def draw(seed: bytes, length: int, colluders: int, law: Law = "tardos") -> Biases:
    """The biases under a seed, the same on every machine. A longer code begins with a shorter one."""
    positions = whole(length, "the length of a code", 1, LENGTH_LIMIT)
    check_law(law, colluders)
    if law == "fair":
        thresholds = np.full(positions, _HALF, dtype=np.uint32)
    elif law == "nuida":
        points, ends = _nuida(int(colluders))
        found = np.searchsorted(ends, _uniform(seed, positions, colluders, b"nuida"), side="right")
        thresholds = points[found]
    else:
        low, high = threshold_range(colluders)
        drawn = _rounded(_uniform(seed, positions, colluders).tolist(), colluders)
        thresholds = np.array([min(max(t, low), high) for t in drawn], dtype=np.uint32)
    return Biases(thresholds=thresholds, colluders=colluders)


def _uniform(seed: bytes, length: int, colluders: int, *law: bytes) -> NDArray[np.uint64]:
    """A uniform integer of 64 bits for each position."""
    stream = Shake("zkt-biases-v1", seed, int(colluders).to_bytes(8, "big"), *law)
    return np.frombuffer(stream.digest(8 * length), dtype="<u8")


def _settled(enclose: Callable[[], Sequence[int | None]]) -> list[int]:
    """Whole numbers of which each is settled at some precision, found with ever more bits."""
    result: list[int | None] = [None]
    bits = WORKING_BITS
    while None in result:
        with precision(bits):
            result = list(enclose())
        bits *= 2
    return [value for value in result if value is not None]


def _nearest(value: arb) -> int | None:
    """⌊value + 1/2⌋, if the ball lies between two integers."""
    found: Any = (value + arb((1, -1))).floor().unique_fmpz()
    return None if found is None else int(found)


# ── tardos ──────────────────────────────────────────────────────────────────────────────────────────────


def _rounded(uniform: list[int], colluders: int) -> list[int]:
    """⌊2^32 sin²(θ0 + (π/2 - 2 θ0)(U + 1/2)/2^64) + 1/2⌋ for each U, with θ0 = asin √δ.

    A ball that lies between two integers settles the floor, whatever the precision was; the few that do not
    are enclosed again, more tightly.
    """
    with precision():
        first = _enclosed(uniform, colluders)
    open_at = [at for at, value in enumerate(first) if value is None]
    again = _settled(lambda: _enclosed([uniform[at] for at in open_at], colluders)) if open_at else []
    for at, value in zip(open_at, again, strict=True):
        first[at] = value
    return [value for value in first if value is not None]


def _enclosed(uniform: list[int], colluders: int) -> list[int | None]:
    """The floors that the working precision settles, None for the others."""
    first = (arb(1) / cutoff(colluders).denominator).sqrt().asin()
    span = arb.pi() / 2 - 2 * first
    angles = (first + span * arb((2 * drawn + 1, -_DRAW_BITS - 1)) for drawn in uniform)
    return [_nearest(angle.sin() ** 2 * ONE) for angle in angles]


# ── nuida ───────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=32)
def _nuida(colluders: int) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The points in ascending order as thresholds, and where in [0, 2^64) each but the last one ends."""
    found = _settled(lambda: _points(-(-colluders // 2)))
    count = (len(found) + 1) // 2
    return np.array(found[:count], dtype=np.uint32), np.array(found[count:], dtype=np.uint64)


def _points(degree: int) -> list[int | None]:
    """Roots of the Legendre polynomial on [0, 1], and cumulative weights of all but the last.

    The weight of a root is proportional to (p (1 - p))^(-3/2) / P'(p)^2: Gauss' weight over √(p (1 - p)).
    """
    nodes = [arb.legendre_p_root(degree, at, weight=True) for at in reversed(range(degree))]
    shares = [weight / (1 - x * x).sqrt() for x, weight in nodes]
    total = sum(shares, arb(0))
    ends, upto = [], arb(0)
    for share in shares[:-1]:
        upto += share / total
        ends.append(_nearest(upto * arb((1, _DRAW_BITS))))
    points = [_nearest((1 + x) / 2 * arb((1, BIAS_BITS))) for x, _ in nodes]
    return points + ends
