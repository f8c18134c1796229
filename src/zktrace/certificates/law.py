"""The law of an innocent's score, exactly.

S = sum_b c_b (X_b - p_b) with c_b = C_b/2^s, p_b = T_b/2^32 and independent X_b ~ Bernoulli(p_b) (A5(a)).
With L = sum_b C_b X_b an integer,

    S = (2^32 L - sum_b C_b T_b) / 2^(s+32),

so a statement about S is a statement about L. A position with C_b < 0 counts its zeros instead of its ones:
L = floor + sum_b |C_b| J_b with J_b = X_b or 1 - X_b, a sum of independent non-negative jumps.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zktrace.codes import Coefficients
from zktrace.codes.biases import BIAS_BITS, ONE
from zktrace.primitives.encoding import fields

_TILT_RANGE = (1e-9, 1e3)  # times the largest jump
_BISECTIONS = 60


@dataclass(frozen=True, kw_only=True)
class InnocentLaw:
    """The law of L = floor + sum_b jump_b J_b for one vector of coefficients."""

    coefficients: Coefficients

    @cached_property
    def _active(self) -> NDArray[np.bool_]:
        active: NDArray[np.bool_] = self.coefficients.numerators != 0
        return active

    @cached_property
    def jumps(self) -> NDArray[np.int64]:
        """|C_b| of the positions that count, all positive."""
        return np.abs(self.coefficients.numerators[self._active])

    @cached_property
    def odds(self) -> NDArray[np.int64]:
        """2^32 P[J_b = 1] of the same positions, an integer strictly between 0 and 2^32."""
        ones = self.coefficients.biases.thresholds.astype(np.int64)
        zeros = ONE - ones
        return np.where(self.coefficients.numerators > 0, ones, zeros)[self._active]

    @cached_property
    def floor(self) -> int:
        """The least value of L."""
        numerators = self.coefficients.numerators
        return int(numerators[numerators < 0].sum())

    def sum_at(self, score: Fraction) -> Fraction:
        """The (real) value of L at which S would be `score`."""
        return (Fraction(score) * self.coefficients.denominator + self.coefficients.offset) / ONE

    def greatest_sum(self, score: Fraction) -> int:
        """The greatest whole K at which S is at most `score`: S > score means L > K."""
        return math.floor(self.sum_at(score))

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over coefficients, scale and biases: what a certificate is about."""
        parts = (
            b"zkt-innocent-law-v1",
            self.coefficients.scale_bits.to_bytes(4, "big", signed=True),
            self.coefficients.numerators.astype(">i8").tobytes(),
            self.coefficients.biases.thresholds.astype(">u4").tobytes(),
        )
        return hashlib.sha256(fields(parts)).hexdigest()

    # ── in float64, for choosing a tilt: any positive tilt gives a valid bound ──────────────────────────

    def tilt_for(self, exponent: float) -> float:
        """The tilt a with a psi'(a) - psi(a) = exponent: the best one for a tail near e^-exponent.

        psi is the logarithm of the moment generating function of the jumps.
        """
        return self._bisect(lambda a, mean, log_mgf: a * mean - log_mgf, exponent)

    def tilt_at(self, score: Fraction) -> float:
        """The tilt under which the mean score is `score`: the best one for the tail above it."""
        top = self.floor + int(self.jumps.sum())  # beyond it every tilt serves
        wanted = float(min(max(self.sum_at(score), Fraction(self.floor)), Fraction(top)) - self.floor)
        return self._bisect(lambda _a, mean, _log_mgf: mean, wanted)

    def _bisect(self, measure: Callable[[float, float, float], float], wanted: float) -> float:
        """Where a measure that increases with the tilt reaches `wanted`, or the end of the range."""
        low, high = (math.log(end / float(self.jumps.max())) for end in _TILT_RANGE)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            a = math.exp(middle)
            if measure(a, *self._moments(a)) < wanted:
                low = middle
            else:
                high = middle
        return math.exp(low)

    def _moments(self, a: float) -> tuple[float, float]:
        """Mean of the sum of jumps under the tilt a, and log of its moment generating function."""
        log_stay, log_odds = self._logs
        log_leap = log_odds + a * self.jumps
        log_terms = np.logaddexp(log_stay, log_leap)
        return float((self.jumps * np.exp(log_leap - log_terms)).sum()), float(log_terms.sum())

    @cached_property
    def _logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln(1 - q_b) and ln q_b."""
        scale = BIAS_BITS * math.log(2)
        return np.log(ONE - self.odds) - scale, np.log(self.odds) - scale
