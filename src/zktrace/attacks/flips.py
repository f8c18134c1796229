"""Attack 5 (`sub:attack-protocol`): projected gradient steps against bits that are read along directions.

A bit is the sign of <gamma, e_b>, gamma being all BatchNorm scales: the readout is linear, and its gradient
is the direction itself. Of k bits t_b = ±1 that are to be lost, the objective is

    J(gamma) = - sum_b max(0, room + t_b <gamma, e_b>)

which is 0 when all of them are flipped. Few bits are flipped further than many, so the k weakest are tried
for several k, and what flips the most bits is kept. Each step is projected into a ball around the scales that
were marked: a clamp for `linf`, a rescaling for `l2`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.attacks.scales import batch_norms
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, State

Floats = NDArray[np.float64]

STEPS: Final = 100
TRIES: Final = 11  # numbers of bits that are tried, up to all of them
_FEWEST: Final = 1 / 32  # of the bits
_STEP: Final = 0.1  # of the radius: the first step, annealed to 0
_ROOM: Final = 1e-6  # of the norm of all scales: rounding to the model's own type must not undo a flip
_MOST: Final = 1 << 28  # coordinates of all directions together


def _clamped(change: Floats, radius: float) -> Floats:
    return np.clip(change, -radius, radius)


def _rescaled(change: Floats, radius: float) -> Floats:
    length = float(np.linalg.norm(change))
    return change if length <= radius else change * (radius / length)


def _signs(gradient: Floats) -> Floats:
    return np.sign(gradient)


def _unit(gradient: Floats) -> Floats:
    length = float(np.linalg.norm(gradient))
    return gradient / length if length else gradient


@dataclass(frozen=True, slots=True)
class _Ball:
    projected: Callable[[Floats, float], Floats]  # the nearest point of the ball
    steepest: Callable[[Floats], Floats]  # the step of length 1 that gains the most


_BALLS: Final[Mapping[str, _Ball]] = {
    "linf": _Ball(_clamped, _signs),
    "l2": _Ball(_rescaled, _unit),
}
NORMS: Final = tuple(_BALLS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownBits:
    """What an attacker knows, or guesses, of a mark: directions, and the bits that are read along them."""

    scales: tuple[str, ...]  # names of the arrays of scales, in the order of the directions' coordinates
    directions: Floats  # (bits, scales)
    word: NDArray[np.uint8]  # (bits,), of 0 and 1

    def __post_init__(self) -> None:
        if self.directions.ndim != 2 or not self.directions.size or self.directions.size > _MOST:
            raise InputError(
                f"directions of shape {self.directions.shape}: at least one, at most {_MOST} numbers"
            )
        if self.word.shape != self.directions.shape[:1] or not np.isin(self.word, (0, 1)).all():
            raise InputError(f"a word of shape {self.word.shape} for {len(self.directions)} directions")

    def gathered(self, state: Arrays) -> Floats:
        """gamma."""
        if missing := [name for name in self.scales if name not in state]:
            raise InputError(f"the model has no {missing[0]!r}")
        found = np.concatenate([state[name].astype(np.float64).reshape(-1) for name in self.scales])
        if len(found) != self.directions.shape[1]:
            raise InputError(f"{len(found)} scales for directions of {self.directions.shape[1]}")
        return found

    def flipped(self, state: Arrays) -> int:
        """Bits of a model that are not those of the word."""
        return int((self.signed(self.gathered(state)) < 0).sum())

    def signed(self, gamma: Floats) -> Floats:
        """t_b <gamma, e_b>: below 0 where the bit is lost."""
        found: Floats = (2.0 * self.word - 1.0) * (self.directions @ gamma)
        return found


def guessed_bits(state: Arrays, count: int, rng: np.random.Generator) -> KnownBits:
    """Of an attacker to whom directions are secret: random ones, and the bits that the model shows there."""
    scales = tuple(f"{layer}.weight" for layer in batch_norms(state))
    size = sum(state[name].size for name in scales)
    if not 0 < count * size <= _MOST:
        raise InputError(f"{count} guesses of {size} coordinates: at least one, at most {_MOST} numbers")
    drawn = rng.standard_normal((count, size))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    gamma = np.concatenate([state[name].astype(np.float64) for name in scales])
    return KnownBits(scales=scales, directions=drawn, word=(drawn @ gamma > 0).astype(np.uint8))


def flip_bits(state: Arrays, bits: KnownBits, *, norm: str, radius: float, steps: int = STEPS) -> State:
    """The model with its scales moved, by at most the radius, so that many bits are lost."""
    if norm not in _BALLS:
        raise InputError(f"norm {norm!r} is not known; it is one of {', '.join(NORMS)}")
    if not 0.0 <= radius < np.inf or steps < 1:
        raise InputError(
            f"a radius of {radius} in {steps} steps: a number of at least 0, and one step or more"
        )
    gamma = bits.gathered(state)
    if not np.isfinite(gamma).all():
        raise InputError("the model has scales that are not finite")
    margins = bits.signed(gamma)
    order = np.argsort(margins, kind="stable")
    lost = int((margins < 0).sum())
    towards = ((2.0 * bits.word - 1.0)[:, None] * bits.directions)[order[lost:]]
    best = np.zeros_like(gamma)
    for count in _counts(len(towards)):
        change = _ascended(gamma, towards[:count], _BALLS[norm], radius, steps)
        now = int((bits.signed(gamma + change) < 0).sum())
        if now > lost:
            best, lost = change, now
    return _moved(state, bits.scales, gamma + best)


def _counts(most: int) -> list[int]:
    """How many bits are to be flipped at once: from few to all of them."""
    if not most:
        return []
    return sorted({max(1, round(most * share)) for share in np.geomspace(_FEWEST, 1.0, TRIES)})


def _ascended(gamma: Floats, towards: Floats, ball: _Ball, radius: float, steps: int) -> Floats:
    """Steps uphill on J for bits of signed directions, until all are flipped or the steps are done."""
    room = _ROOM * float(np.linalg.norm(gamma))
    change = np.zeros_like(gamma)
    for step in range(steps):
        left = towards @ (gamma + change) >= -room
        if not left.any():
            break
        gradient = -towards[left].sum(axis=0)
        length = _STEP * radius * (1.0 - step / steps)
        change = ball.projected(change + length * ball.steepest(gradient), radius)
    return change


def _moved(state: Arrays, scales: Sequence[str], gamma: Floats) -> State:
    result = {name: np.array(array) for name, array in state.items()}
    start = 0
    for name in scales:
        stop = start + result[name].size
        result[name] = gamma[start:stop].reshape(result[name].shape).astype(result[name].dtype)
        start = stop
    return result
