"""Reading a copy back before it is handed out: would it be named if it leaked as it is?

A copy whose row cannot be read is a copy that nobody can trace. What is asked for is the candidate threshold
of `prop:adjudicate` at the share that the first stage of a first look has of a usual budget. Exact thresholds
are lower, so whoever passes would be named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from zktrace.carriers import AS_IT_IS
from zktrace.carriers.split import HARD, SOFT, tail_level
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes.readings import deviations
from zktrace.errors import InputError
from zktrace.models import open_model
from zktrace.readouts.identity import Words
from zktrace.releases import OpenRelease

BUDGET: Final = Fraction(1, 1000)  # of the investigation that a copy is made for


@dataclass(frozen=True, kw_only=True)
class CopyCheck:
    """Reads the copies of one release."""

    release: OpenRelease

    def weak(self, path: Path, words: Mapping[str, Words]) -> dict[str, str]:
        """Carriers on which a copy would not be named by itself, and why."""
        copy, found = open_model(path), {}
        for carrier in self.release.carriers:
            try:
                values = self.release.reader(carrier).glimpse(copy)
            except InputError as error:
                found[carrier] = str(error)
                continue
            row = np.packbits(words[carrier])[None, :]
            biases = self.release.code(carrier).biases
            score = float(deviations(values, biases, row, self.release.rule)[0])
            if score <= self._needed[carrier]:
                needed = self._needed[carrier]
                found[carrier] = f"its row scores {score:.1f} deviations, {needed:.1f} are needed"
        return found

    @cached_property
    def _needed(self) -> dict[str, float]:
        """Scores that name, in deviations."""
        rule, carriers = self.release.rule, self.release.carriers
        stations = len(self.release.ledger.by_row)
        return {
            name: candidate_threshold(
                length=1,
                recipients=max(stations, 1),
                level=tail_level(
                    BUDGET * AS_IT_IS,
                    stage=1,
                    carrier=name,
                    together=carriers,
                    score=HARD if rule == "paper" else SOFT,
                    vary=self.release.code(name).biases.vary,
                    tail="positive",
                    rule=rule,
                ),
            )
            for name in carriers
        }
