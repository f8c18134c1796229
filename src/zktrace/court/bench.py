"""What lies before the judge, and what its steps hand on to each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import Look
from zktrace.certificates.adjudicate import Rule
from zktrace.codes import Biases
from zktrace.court.dossier import Dossier
from zktrace.court.heads import Heads
from zktrace.court.judgement import Minutes, Total
from zktrace.court.policy import Policy
from zktrace.court.scoring import StageScore
from zktrace.evidence import Evidence
from zktrace.models import ModelState
from zktrace.readouts.network import Network
from zktrace.registry.log import Head
from zktrace.registry.signing import Receipt


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect:
    """What the judge was given of the suspect: the model, or the scores of one that was only queried."""

    model: ModelState | None = None
    scores: NDArray[Any] | None = None
    shared: ModelState | None = None  # the release's model, which an aligned suspect is held against
    probes: tuple[ModelState, ...] = ()  # of the release, by which a network is read
    network: Network | None = None  # the judge's own word for it, if it is none of this package's

    @property
    def given(self) -> bool:
        return self.model is not None or self.scores is not None


@dataclass(slots=True, kw_only=True)
class Bench:
    """What lies before the judge, and what the steps found so far."""

    evidence: Evidence
    policy: Policy
    suspect: Suspect
    export: Sequence[bytes] | None
    before: Head | None
    checkpoints: int  # that the judge has in place of a head
    receipts: Sequence[Receipt]
    heads: Heads
    minutes: Minutes
    dossier: Dossier
    biases: dict[str, Biases] = field(default_factory=dict)  # by carrier, drawn from the opened seed
    directions: dict[str, bytes] = field(default_factory=dict)  # by carrier: the seed of the directions
    rows: dict[tuple[str, str], bytes] = field(default_factory=dict)  # (station, carrier): packed, as derived
    stages: dict[tuple[int, str, str], StageScore] = field(
        default_factory=dict
    )  # (stage counted from 1, carrier, by which score)
    read: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # readouts that the judge made
    recomputed: set[str] = field(
        default_factory=set
    )  # carriers whose readout it made from the suspect itself
    recounted: Total | None = None  # budgets, from the exported registry

    @property
    def total(self) -> Total:
        """What all investigations may have spent: recounted, or what the setup allows them."""
        allowed = self.dossier.setup.budget
        return self.recounted or Total(upto=allowed, whole=allowed, recounted=False)

    @property
    def rule(self) -> Rule:
        return cast(Rule, self.dossier.investigation.rule)

    @property
    def look(self) -> Look:
        """The last look that was taken: the one that named somebody, if anybody is named."""
        return self.dossier.investigation.looks[len(self.evidence.findings.looks) - 1]

    @property
    def level(self) -> Fraction:
        """What that look may spend."""
        return self.evidence.findings.level * self.look.share
