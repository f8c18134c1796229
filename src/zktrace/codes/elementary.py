"""Exponential, logarithm and sums that every IEEE 754 machine repeats bit for bit.

A platform's own differ in the last place, and so may the order in which it adds. Here are only +, -, *, /,
rounding to whole numbers and powers of two, one entry at a time and in a fixed order. They are good to about
1e-10, which is plenty for a model's estimate and of no consequence for a bound.
"""

import math
from fractions import Fraction
from typing import Final

import numpy as np

from zktrace.codes.checks import Floats

_LEAST: Final = -700.0  # below it the exponential is that of it
_LN2: Final = 0.6931471805599453
_LN2_HIGH: Final = 0.693145751953125  # 17 bits: whole multiples are exact
_LN2_LOW: Final = 1.4286068203094172e-06
_EXP: Final = tuple(float(Fraction(1, math.factorial(power))) for power in range(9, -1, -1))
_MIDDLE: Final = 0.75
_LN_MIDDLE: Final = -0.2876820724517809
_ATANH: Final = tuple(float(Fraction(2, power)) for power in range(15, 0, -2))


def exponential(x: Floats) -> Floats:
    """e^x for x <= 0, never 0."""
    given = np.maximum(x, _LEAST)
    turns = np.rint(given * (1.0 / _LN2))
    rest = (given - turns * _LN2_HIGH) - turns * _LN2_LOW
    value = np.full_like(rest, _EXP[0])
    for factor in _EXP[1:]:
        value = value * rest + factor
    return np.ldexp(value, turns.astype(np.int64))


def logarithm(x: Floats) -> Floats:
    """ln x for x > 0."""
    mantissa, power = np.frexp(x)
    s = (mantissa - _MIDDLE) / (mantissa + _MIDDLE)
    square = s * s
    value = np.full_like(s, _ATANH[0])
    for factor in _ATANH[1:]:
        value = value * square + factor
    return power * _LN2 + (_LN_MIDDLE + value * s)


def total(x: Floats) -> Floats:
    """Sums along the last axis: halves are added to each other until one entry is left."""
    size = 1 << max(0, x.shape[-1] - 1).bit_length()
    now = np.zeros((*x.shape[:-1], size))
    now[..., : x.shape[-1]] = x
    while size > 1:
        size //= 2
        now = now[..., :size] + now[..., size:]
    return now[..., 0]
