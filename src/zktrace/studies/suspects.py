"""What each attacker makes of copies: files, so that a stopped study goes on with the next of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from zktrace.attacks.collusion import collude
from zktrace.attacks.distill import DistillConfig, distill
from zktrace.attacks.isometry import isometry
from zktrace.attacks.rewrite import permute, rescale
from zktrace.attacks.service import with_head
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, Images, Labels, State
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState, open_model, save_model
from zktrace.studies.ground import Ground
from zktrace.studies.leaker import leakers_samples
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress

REWRITES: Final = ("rescale", "permute", "rewrite", "isometry")
STUDENTS: Final[dict[str, DistillConfig]] = {
    "features": DistillConfig(objective="features"),
    "deeper": DistillConfig(objective="features", depth=34),
    "logits": DistillConfig(objective="logits", head=True),
    "headless": DistillConfig(objective="logits"),
    "pair-logits": DistillConfig(objective="logits", head=True),
    "labels": DistillConfig(objective="labels"),
    "distances": DistillConfig(objective="distances"),
    "top1": DistillConfig(objective="top1", head=True),
}
_FIRST: Final = ("none", *REWRITES, *(each for each in STUDENTS if each != "top1"), "foreign")
ASKED: Final = ("service", "top1-service")  # are asked, and answer with a class
ATTACKERS: Final = (*_FIRST, "top1", *ASKED)  # later ones come last: a place decides what is drawn
SPREAD: Final = 1.0  # of rescaled channels
_STUDENT, _LEAKER, _REWRITE = 11, 12, 13  # purposes of randomness


@dataclass(frozen=True, slots=True, kw_only=True)
class Students:
    """How students learn, and from how many images."""

    epochs: int = 8
    samples: int = 16_000
    inside: bool = False  # the server's samples, probes among them, are some of the leaker's

    def config(self, attacker: str) -> DistillConfig:
        """Of one attacker."""
        return replace(STUDENTS[attacker], epochs=self.epochs)

    def facts(self) -> dict[str, Any]:
        """What rows say of them."""
        return {"epochs": self.epochs, "samples": self.samples, "inside": self.inside}


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """Of one federation."""

    ground: Ground
    students: Students
    foreign: Ground | None
    report: Progress

    def teaching(self, attacker: str) -> dict[str, Any]:
        """What rows say of how a student was taught."""
        if attacker == "service":
            return {"leaker": {"samples": self.students.samples}}
        return {"students": self.students.facts()} if attacker in (*STUDENTS, "top1-service") else {}

    def members(self, attacker: str) -> tuple[int, ...]:
        """Whose rows a suspect carries."""
        if attacker in ("labels", "foreign"):
            return ()
        return self.ground.members if attacker.startswith("pair") else self.ground.members[:1]

    def made(self, attacker: str) -> ModelState:
        """What an attacker made, from its file if it is there."""
        if attacker == "none":
            return self.ground.copies[0]
        if attacker == "top1-service":
            return self.made("top1")
        if attacker == "service":
            return ModelState.from_arrays(with_head(self.ground.copies[0], *self._samples()))
        if attacker == "foreign":
            if self.foreign is None:
                raise InputError("a foreign copy needs a second federation")
            self.foreign.make(self.report)
            return self.foreign.copies[0]
        folder = self.ground.workspace.root / "suspects"
        folder.mkdir(exist_ok=True)
        taught = trial_id(self.teaching(attacker))[:8] if attacker in STUDENTS else "rewritten"
        path = folder / f"{attacker}-{taught}.safetensors"
        if attacker == "headless":
            kept = self.made("logits")
            return ModelState(each for each in kept.tensors() if not each.name.startswith("fc."))
        if not path.exists():
            made = self._student(attacker, path) if attacker in STUDENTS else self._rewritten(attacker)
            save_model(path, made)
        return open_model(path)

    def _rng(self, purpose: int, attacker: str) -> np.random.Generator:
        return self.ground.spec.rng(purpose, ATTACKERS.index(attacker))

    def _rewritten(self, attacker: str) -> State:
        copy, rng = self.ground.copies[0], self._rng(_REWRITE, attacker)
        if attacker == "isometry":
            return isometry(copy, rng)
        if attacker == "permute":
            return permute(copy, rng)
        features = attacker == "rewrite"
        made = rescale(copy, rng, spread=SPREAD, norms=True, features=features)
        return permute(made, rng, features=True) if attacker == "rewrite" else made

    def _samples(self) -> tuple[Images, Labels]:
        """The leaker's own images."""
        spec, students = self.ground.spec, self.students
        return leakers_samples(spec, samples=students.samples, rng=spec.rng(_LEAKER), inside=students.inside)

    def _student(self, attacker: str, path: Path) -> State:
        ground, students = self.ground, self.students
        images, labels = self._samples()
        teachers: list[Arrays] = [ground.copies[0]]
        if attacker.startswith("pair"):
            teachers = [dict(collude(ground.copies))]
        with single_threaded():
            return distill(
                teachers,
                images,
                labels,
                students.config(attacker),
                self._rng(_STUDENT, attacker),
                checkpoint=path.with_suffix(".checkpoint"),
                resume=True,
                progress=lambda each: self.report(f"epochs of {attacker}", each.epoch, each.epochs),
            )
