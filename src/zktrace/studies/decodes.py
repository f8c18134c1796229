"""One decode beside everybody's rows: where they differ, how they score, whom a threshold alone would name.

    candidate   √(2 n ln(N/eps)), `thm:tardos`
    normal      √n Φ⁻¹(1 - eps/N): the paper's central-limit threshold, of which it gives no formula

A certificate is asked of neither. Both are for the paper's hard scores: an innocent's are about normal, with
deviation √n (`lem:innoc`).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from zktrace.carriers.split import HARD
from zktrace.certificates.adjudicate import TAILS
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes import Code, sums, unpack
from zktrace.codes.readings import coefficients_of, floats
from zktrace.primitives.gf2 import Bits
from zktrace.readouts.directions import Floats
from zktrace.tracing.score import Scored

CANDIDATE, NORMAL = "candidate", "normal"
THRESHOLDS: Final = (CANDIDATE, NORMAL)
_DIGITS: Final = 4


def normal_threshold(*, length: int, recipients: int, level: Fraction) -> float:
    """√n Φ⁻¹(1 - eps/N): what N normal scores pass with probability eps at most."""
    return math.sqrt(length) * -NormalDist().inv_cdf(float(level / recipients))


@dataclass(frozen=True, kw_only=True, eq=False)
class Decoder:
    """Everybody's rows on one carrier, and what they are compared with."""

    code: Code
    stations: int
    level: Fraction

    def disagreements(self, word: Bits) -> Floats:
        """Of each station, the part of the positions at which its row is another."""
        return np.asarray((self._rows != word).mean(axis=1))

    def unanimous(self, word: Bits, members: tuple[int, ...]) -> float | None:
        """The part of the positions in which members are at one and the word is not; None: they never are."""
        held = self._rows[list(members)]
        alike = (held == held[0]).all(axis=0)
        return float((held[0] != word)[alike].mean()) if alike.any() else None

    def beyond(self, values: Floats) -> dict[str, list[int]]:
        """By threshold, the rows whose hard score is above it."""
        coefficients = coefficients_of(values, self.code.biases, HARD)
        scores = floats(sums(self._packed, coefficients), coefficients)
        return {name: np.flatnonzero(scores > self.thresholds[name]).tolist() for name in THRESHOLDS}

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """In units of the score."""
        length, recipients, level = self.code.length, self.stations, self.level
        return {
            CANDIDATE: candidate_threshold(length=length, recipients=recipients, level=level),
            NORMAL: normal_threshold(length=length, recipients=recipients, level=level),
        }

    @cached_property
    def _packed(self) -> Bits:
        return self.code.rows(range(self.stations))

    @cached_property
    def _rows(self) -> Bits:
        return unpack(self._packed, self.code.length)

    def facts(self, values: Floats, members: tuple[int, ...]) -> dict[str, Any]:
        """What a row says of a decode: its disagreement with members, with the nearest of the others, ...

        `unanimous` is the disagreement where members are at one. Of a single owner both are q_owner.
        """
        word = (values > 0).astype(np.uint8)
        apart = self.disagreements(word)
        others = np.delete(apart, list(members))
        return {
            "length": self.code.length,
            "disagreement": _rounded(apart[list(members)].mean()),
            "unanimous": _rounded(self.unanimous(word, members)),
            "least_innocent": _rounded(others.min() if len(others) else None),
        }


def gates(found: Scored) -> dict[str, dict[str, Any]]:
    """By carrier, the positive tail of its first score: the threshold, and whether its certificate passes."""
    made = () if found.first is None else found.first.certificates
    gated: dict[str, dict[str, Any]] = {}
    for at, reading in enumerate(found.readings if made else ()):
        gate = made[len(TAILS) * at]
        told = {"gate": round(float(gate.threshold), _DIGITS), "certificate": gate.passes}
        gated.setdefault(reading.carrier, told)
    return gated


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)
