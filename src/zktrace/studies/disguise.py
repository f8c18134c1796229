"""Disguised copies: what each attacker makes of a copy, and what each carrier reads of it (`tab:kdclass`).

A federation is trained, copies are dispatched as an operator would, and every attacker makes a suspect of one
of them, or of two. The suspect is then traced on each carrier alone and on all of them, alignments included,
with the shares of the budget that a real investigation has. A study puts no investigation on record.

    none                copy as it is
    rescale, permute    function-preserving rewrites of channels; `rewrite`: both, features too
    isometry            a random rotation behind the backbone
    features            a student taught the copy's features; `deeper`: of 34 layers instead of 18
    logits              a classifier taught soft labels only; `headless`: published without its head
    distances           an embedding taught soft labels only, as distances in its own features
    pair-logits         a classifier taught the soft labels of two averaged copies
    top1                a classifier taught the copy's best class alone
    service             the copy behind a head of the leaker, asked for classes; `top1-service`: top1, asked
    labels, foreign     nobody's: a student without a teacher, and a copy that another federation marked

Suspects are files: a study that was stopped goes on with the next of them, and with the epoch it was in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.cost import accuracy
from zktrace.learning.evaluation import EpisodeScore
from zktrace.learning.presets import DataConfig
from zktrace.models import ModelState
from zktrace.studies.columns import columns
from zktrace.studies.federation import SPEED
from zktrace.studies.ground import Ground
from zktrace.studies.runner import Progress, Trial
from zktrace.studies.stability import stability
from zktrace.studies.suspects import ASKED, ATTACKERS, STUDENTS, Students, Suspects

_READ: Final = 60.0  # seconds to make copies, and to read and measure a suspect


@dataclass(frozen=True, kw_only=True)
class DisguiseBatch:
    """Federations on the same data in the same profile, each with another, whose copy is nobody's in it."""

    pairs: tuple[tuple[Ground, Ground | None], ...]
    students: Students
    attackers: tuple[str, ...] = ATTACKERS
    study: ClassVar[str] = "disguise"

    def __post_init__(self) -> None:
        unknown = set(self.attackers) - set(ATTACKERS)
        if unknown:
            raise InputError(f"no attacker {sorted(unknown)[0]!r}; known: {', '.join(ATTACKERS)}")

    @property
    def name(self) -> str:
        """By the first federation."""
        first, _ = self.pairs[0]
        return f"{first.key}-{first.profile}"

    @property
    def needs(self) -> tuple[Ground, ...]:
        """All of the federations, trained."""
        return tuple(each for pair in self.pairs for each in pair if each is not None)

    @property
    def size(self) -> int:
        """A row for each federation and attacker."""
        return sum(self._possible(each, *pair) for pair in self.pairs for each in self.attackers)

    @property
    def guess(self) -> float:
        """Students take most of it."""
        preset = self.pairs[0][0].federation.preset
        images = self.students.epochs * (self.students.samples or preset.data.samples)
        taught = sum(each in STUDENTS for each in self.attackers) * len(self.pairs)
        return self.size * _READ + taught * images / SPEED * preset.model.width / 64

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Suspects are made as they are asked for."""
        for ground, foreign in self.pairs:
            suspects = Suspects(ground=ground, students=self.students, foreign=foreign, report=report)
            bench = _Bench(ground=ground, suspects=suspects)
            for attacker in self.attackers:
                if self._possible(attacker, ground, foreign):
                    facts = ground.facts | {"attacker": attacker} | suspects.teaching(attacker)
                    yield Trial(facts=facts, outcome=partial(bench.outcome, attacker))

    @staticmethod
    def _possible(attacker: str, ground: Ground, foreign: Ground | None) -> bool:
        if attacker in ASKED:
            return ground.profile == "informed"  # the paper's copies have nothing to answer with
        return attacker != "foreign" or foreign is not None


def batches(
    places: Sequence[Ground], *, students: Students, attackers: Sequence[str] = ATTACKERS
) -> list[DisguiseBatch]:
    """One for all federations on the same data in the same profile."""
    groups: dict[tuple[DataConfig, str], list[tuple[Ground, Ground | None]]] = {}
    for each in places:
        alike = groups.setdefault((each.federation.preset.data, each.profile), [])
        alike.append((each, each.other(places)))
    return [
        DisguiseBatch(pairs=tuple(each), students=students, attackers=tuple(attackers))
        for each in groups.values()
    ]


@dataclass(frozen=True, kw_only=True)
class _Bench:
    """One federation under attack."""

    ground: Ground
    suspects: Suspects

    def outcome(self, attacker: str) -> dict[str, Any]:
        suspect = self.suspects.made(attacker)
        members = self.suspects.members(attacker)
        after = self._accuracy(suspect)
        found: dict[str, Any] = {
            "members": list(members),
            "accuracy": after.mean,
            "accuracy_half_width": after.half_width,
            **self._before,
            "columns": columns(self.ground, suspect, members, asked=attacker in ASKED),
        }
        if attacker in ("features", "deeper"):
            found["stability"] = stability(self.ground, suspect)
        return found

    def _accuracy(self, model: ModelState) -> EpisodeScore:
        """On the same test episodes for all models."""
        images, labels = self._tests
        preset = self.ground.federation.preset
        return accuracy(
            model, images, labels, shape=preset.evaluation.shape, seed=self.ground.federation.seed
        )

    @cached_property
    def _tests(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return self.ground.spec.source.samples("test")

    @cached_property
    def _before(self) -> dict[str, float]:
        """Accuracy of the shared model and of its copies."""
        shared = self.ground.release.shared
        return {
            "shared_accuracy": self._accuracy(shared).mean,
            "copy_accuracy": self._accuracy(self.ground.copies[0]).mean,
            "other_accuracy": self._accuracy(self.ground.copies[1]).mean,
        }
