"""The paper's grids of attacks over trained federations (`sub:attack-protocol`, `tab:attacks`).

A trial is a federation, a target in it (`attack_targets`) and a point of the grid (`attacks.grid`). Its row
says what is read of the attacked model, how accurate it is, and what a theorem had promised. Everything that
is drawn depends on the seed and the point alone: the same noise for every target, whatever else is run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from zktrace.attacks.grid import Attack, Equipment
from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.threads import single_threaded
from zktrace.studies.attack_targets import AttackTarget
from zktrace.studies.leaker import leakers_samples
from zktrace.studies.rows import Row, Rows, trial_id

SAMPLES: Final = 16_000  # of an attacker who trains
_ATTACK, _SAMPLES = 17, 18  # purposes of randomness

Progress = Callable[[str, int, int], None]  # what, done, of


@dataclass(frozen=True, kw_only=True)
class AttackTrial:
    """One row."""

    target: AttackTarget
    attack: Attack
    samples: int = SAMPLES  # 0: all that are not the server's

    def facts(self) -> dict[str, Any]:
        """What tells it from others; nothing is trained for that."""
        data = {"samples": self.samples} if self.attack.trained else {}
        return self.target.facts() | self.attack.facts() | data

    @property
    def key(self) -> str:
        """The trial's id."""
        return trial_id(self.facts())

    def outcome(self, progress: Progress | None = None) -> dict[str, Any]:
        """Attack the target and read what is left; the federation is trained if it is not."""
        self.target.ground.train()
        with single_threaded():
            suspect = self.attack(self.target.model, self._equipment(progress))
        after = self.target.accuracy(suspect)
        return {
            **self.target.remains(suspect, trained=self.attack.trained),
            "accuracy": after.mean,
            "accuracy_half_width": after.half_width,
            "accuracy_before": self.target.accuracy_before,
        }

    @cached_property
    def checkpoint(self) -> Path:
        """Where a student is kept until its row is there."""
        return self.target.ground.folder / f"attack-{self.key}.checkpoint"

    def _equipment(self, progress: Progress | None) -> Equipment:
        spec = self.target.ground.spec
        report = progress or (lambda _what, _done, _of: None)
        return Equipment(
            rng=spec.rng(_ATTACK, int(trial_id(self.attack.facts()), 16)),
            samples=self._leakers,
            episodes=spec.preset.episodes,
            bits=self.target.public,
            checkpoint=self.checkpoint,
            report=lambda done, of: report(f"epochs of a student, {self.target.name}", done, of),
        )

    def _leakers(self) -> tuple[Images, Labels]:
        spec = self.target.ground.spec
        return leakers_samples(spec, samples=self.samples, rng=spec.rng(_SAMPLES))


def trials(
    targets: Sequence[AttackTarget], attacks: Sequence[Attack], *, samples: int = SAMPLES
) -> list[AttackTrial]:
    """Every attack on every target; trials of one target follow each other and share its copies."""
    if not targets or not attacks:
        raise InputError("a study of attacks needs a target and an attack")
    return [
        AttackTrial(target=target, attack=attack, samples=samples) for target in targets for attack in attacks
    ]


def perform(trial: AttackTrial, rows: Rows, *, progress: Progress | None = None) -> Row | None:
    """Make the row of a trial, unless it has one; a student that was stopped goes on with its epoch."""
    if trial.key in rows.done():
        return None
    row = rows.add(trial.facts(), trial.outcome(progress))
    trial.checkpoint.unlink(missing_ok=True)
    return row


def left(wanted: Sequence[AttackTrial], rows: Rows) -> list[AttackTrial]:
    """Those without a row."""
    done = rows.done()
    return [each for each in wanted if each.key not in done]
