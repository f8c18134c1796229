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

from zktrace.carriers import parts
from zktrace.certificates.adjudicate import TAILS, carrier_share
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes import Biases
from zktrace.dispatch.releases import Reader, reader_of
from zktrace.errors import InputError
from zktrace.models import open_model
from zktrace.readouts.identity import Words
from zktrace.registry.records import AS_IT_IS, RULE_OF, ReleaseRecord
from zktrace.registry.workspace import Workspace
from zktrace.tracing.score import deviations

BUDGET: Final = Fraction(1, 1000)  # of the investigation that a copy is made for


@dataclass(frozen=True, kw_only=True)
class CopyCheck:
    """Reads the copies of one release."""

    workspace: Workspace
    release: ReleaseRecord

    def weak(self, path: Path, words: Mapping[str, Words]) -> dict[str, str]:
        """Carriers on which a copy would not be named by itself, and why."""
        copy, found = open_model(path), {}
        for layout in self.release.layouts:
            carrier = layout.carrier
            try:
                values = self._readers[carrier].read(copy)
            except InputError as error:
                found[carrier] = str(error)
                continue
            row = np.packbits(words[carrier])[None, :]
            rule = RULE_OF[layout.profile]
            score = float(deviations(values, self._biases[carrier], row, rule)[0])
            if score <= self._needed[carrier]:
                needed = self._needed[carrier]
                found[carrier] = f"its row scores {score:.1f} deviations, {needed:.1f} are needed"
        return found

    @cached_property
    def _readers(self) -> dict[str, Reader]:
        return {name: reader_of(self.workspace, self.release.name, name) for name in self._carriers}

    @cached_property
    def _biases(self) -> dict[str, Biases]:
        return {name: self.workspace.code(name).biases for name in self._carriers}

    @cached_property
    def _needed(self) -> dict[str, float]:
        """Scores that name, in deviations."""
        rule = RULE_OF[self.release.layouts[0].profile]
        stations = len(self.workspace.registry.ledger().by_row)
        stage = BUDGET * AS_IT_IS / (1 if rule == "paper" else 2)
        return {
            name: candidate_threshold(
                length=1,
                recipients=max(stations, 1),
                budget=stage * carrier_share(parts(name), [parts(each) for each in self._carriers], rule),
                tails=len(TAILS),
            )
            for name in self._carriers
        }

    @property
    def _carriers(self) -> tuple[str, ...]:
        return tuple(each.carrier for each in self.release.layouts)
