"""The paper's grids of attacks over trained federations (`sub:attack-protocol`, `tab:attacks`).

A trial is a federation, a target in it (`attack_targets`) and a point of the grid (`attacks.grid`). Its row
says what is read of the attacked model, how accurate it is, and what a theorem had promised. Everything that
is drawn depends on the seed and the point alone: the same noise for every target, whatever else is run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Final

from zktrace.attacks.grid import Attack, Equipment
from zktrace.errors import InputError
from zktrace.learning.arrays import Images, Labels
from zktrace.learning.threads import single_threaded
from zktrace.studies.attack_targets import AttackTarget
from zktrace.studies.federation import SPEED
from zktrace.studies.ground import Ground
from zktrace.studies.leaker import leakers_samples
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress, Trial, quietly

SAMPLES: Final = 16_000  # of an attacker who trains
_ATTACK, _SAMPLES = 17, 18  # purposes of randomness
_READ = 5.0  # seconds of what trains nothing, and of reading what is left


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

    def outcome(self, report: Progress = quietly) -> dict[str, Any]:
        """Attack the target and read what is left; a student that was stopped goes on with its epoch."""
        with single_threaded():
            suspect = self.attack(self.target.model, self._equipment(report))
        after = self.target.accuracy(suspect)
        found = {
            **self.target.remains(suspect, trained=self.attack.trained),
            "accuracy": after.mean,
            "accuracy_half_width": after.half_width,
            "accuracy_before": self.target.accuracy_before,
            "model": self.target.ground.digest,
        }
        self.checkpoint.unlink(missing_ok=True)
        return found

    @cached_property
    def checkpoint(self) -> Path:
        """Where a student is kept until it is read."""
        return self.target.ground.folder / f"attack-{self.key}.checkpoint"

    def _equipment(self, report: Progress) -> Equipment:
        spec = self.target.ground.spec
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


@dataclass(frozen=True, kw_only=True)
class AttackBatch:
    """Every attack on one target: they share its copies."""

    target: AttackTarget
    attacks: tuple[Attack, ...]
    samples: int = SAMPLES
    study: ClassVar[str] = "attacks"

    def __post_init__(self) -> None:
        if not self.attacks:
            raise InputError("a study of attacks needs an attack")

    @property
    def name(self) -> str:
        """By federation and target."""
        return f"{self.target.ground.key}-{self.target.name}"

    @property
    def needs(self) -> tuple[Ground, ...]:
        """The federation, trained."""
        return (self.target.ground,)

    @property
    def size(self) -> int:
        """A row each."""
        return len(self.attacks)

    @property
    def guess(self) -> float:
        """Those who train take most of it."""
        return sum(_READ + self._training(each) for each in self.attacks)

    def _training(self, attack: Attack) -> float:
        """By the images that an attacker trains on."""
        preset, given = self.target.ground.federation.preset, attack.parameters
        episodes = given.get("episodes", 0) * preset.episodes.shape.images
        epochs = given.get("epochs", 0) * (self.samples or preset.data.samples)
        return float((episodes + epochs) / SPEED * preset.model.width / 64)

    def trials(self, report: Progress) -> Iterator[Trial]:
        """In the order of the grid."""
        for attack in self.attacks:
            trial = AttackTrial(target=self.target, attack=attack, samples=self.samples)
            yield Trial(facts=trial.facts(), outcome=partial(trial.outcome, report))
