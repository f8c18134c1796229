"""Code lengths and score thresholds that need no integration: planning rules, and one uniform bound.

`eq:design` and `eq:c-from-carrier` are asymptotic planning rules and promise nothing at a finite length. The
candidate threshold of `prop:adjudicate` promises nothing either until a certificate passes at it. The
Bernstein threshold of `thm:tardos` is a bound for every word and every draw of the biases.
"""

import math
from fractions import Fraction

from flint import arb

from zktrace.certificates.intervals import Number, ball, exact, refined, upper_dyadic, upper_float
from zktrace.certificates.level import exact_level
from zktrace.codes import cutoff
from zktrace.errors import InputError
from zktrace.primitives.precision import precision


def score_bound(design: int) -> float:
    """B = √((1 - δ_c)/δ_c), the largest score of one position, rounded up (`eq:antisym`)."""
    with precision():
        return upper_float(_score_bound(design))


def design_length(*, design: int, recipients: int, level: Number, flip: Number = 0) -> int:
    """⌈(π²/2) c² (1 - 2q)^-2 ln(N/eps1)⌉, `eq:design`: an asymptotic planning rule."""
    if design < 1:
        raise InputError(f"a coalition of {design}")
    price = design**2 / _channel(flip) ** 2
    length = refined(lambda: _planning_constant() * ball(price) * _required(recipients, level))
    mantissa, exponent = upper_dyadic(length)
    return math.ceil(Fraction(mantissa) * Fraction(2) ** exponent)


def planning_index(*, length: int, recipients: int, level: Number, flip: Number = 0) -> float:
    """c_plan = (1 - 2q) √(n/((π²/2) ln(N/eps1))), `eq:c-from-carrier`: not a certified coalition size."""
    _positive(length)
    with precision():
        price = _planning_constant() * _required(recipients, level)
        return float((ball(_channel(flip)) * (length / price).sqrt()).mid())


def candidate_threshold(
    *, length: int, recipients: int, level: Number, tails: int = 1, carriers: int = 1
) -> float:
    """√(2 n ln(tails K N/eps)), rounded up: one tail as in `thm:tardos`, two as in `prop:adjudicate`."""
    _positive(length)
    if tails not in (1, 2):
        raise InputError(f"a score has one tail or two, not {tails}")
    if carriers < 1:
        raise InputError(f"{carriers} carriers")
    with precision():
        return upper_float((2 * length * _required(recipients, level, tails * carriers)).sqrt())


def bernstein_threshold(*, design: int, length: int, recipients: int, level: Number) -> float:
    """z_B of `eq:tardos-sound-proved`, rounded up: some innocent exceeds it with probability at most eps1.

    Holds for any word and any biases of the code.
    """
    _positive(length)
    with precision():
        required = _required(recipients, level)
        third = _score_bound(design) * required / 3
        return upper_float(third + (third * third + 2 * length * required).sqrt())


def _score_bound(design: int) -> arb:
    return ball(1 / cutoff(design) - 1).sqrt()


def _planning_constant() -> arb:
    return arb.pi() ** 2 / 2


def _required(recipients: int, level: Number, times: int = 1) -> arb:
    """ln(times N/eps)."""
    if recipients < 1:
        raise InputError(f"{recipients} recipients")
    return ball(times * recipients / exact_level(level)).log()


def _channel(flip: Number) -> Fraction:
    """1 - 2q."""
    rate = exact(flip, "the flip rate")
    if not 0 <= rate < Fraction(1, 2):
        raise InputError(f"the flip rate must lie in [0, 1/2), not {flip}")
    return 1 - 2 * rate


def _positive(length: int) -> None:
    if length < 1:
        raise InputError(f"a code needs at least one position, not {length}")
