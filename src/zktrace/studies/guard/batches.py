"""What one process does of a study of guards: a federation in all its designs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from zktrace.errors import InputError
from zktrace.studies.federation import FederationTrial, training_seconds
from zktrace.studies.guard import residues, runs, tracing
from zktrace.studies.guard.runs import DESIGNS, GuardRun
from zktrace.studies.runner import Prerequisite, Progress, Trial

PARTS: Final = ("utility", "residues", "tracing")
_READ: Final = 2.0  # seconds of a row about leaks


@dataclass(frozen=True, kw_only=True)
class GuardBatch:
    """One federation of this package: trained in every design, then looked at."""

    federation: FederationTrial
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None
    parts: tuple[str, ...] = PARTS
    study: ClassVar[str] = "guard"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise InputError(f"no part {sorted(unknown)[0]!r}; known: {', '.join(PARTS)}")

    @property
    def name(self) -> str:
        """The federation's."""
        return self.federation.folder

    @property
    def size(self) -> int:
        """Counted: trials are cheap to list."""
        return sum(1 for _ in self.trials(lambda _what, _done, _of: None))

    @property
    def guess(self) -> float:
        """By what is trained, and by what is read."""
        return len(DESIGNS) * training_seconds(self.federation.preset) + self.size * _READ

    def trials(self, report: Progress) -> Iterator[Trial]:
        """A design is trained when the first row of it is asked for."""
        made = {
            design: GuardRun(
                federation=self.federation,
                design=design,
                work=self.work,
                cifar10=self.cifar10,
                cache=self.cache,
            )
            for design in DESIGNS
        }
        for design, run in made.items():
            if "utility" in self.parts:
                yield from runs.trials(run, report)
            if "residues" in self.parts and design != "unguarded":
                yield from residues.trials(run)
        if "tracing" in self.parts:
            yield from tracing.trials(made["guarded"])
