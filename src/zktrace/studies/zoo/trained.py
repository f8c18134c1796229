"""A network of the zoo as what a study needs beforehand."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from zktrace.studies.runner import Progress
from zktrace.studies.zoo.table import SEED, network_of
from zktrace.studies.zoo.tasks import ZooTask


@dataclass(frozen=True, kw_only=True)
class TrainedNetwork:
    """A network of the zoo in its folder, trained if it is missing; and what it learns."""

    network: str
    folder: Path
    seed: int = SEED
    cifar10: Path | None = None
    guess: ClassVar[float] = 600.0

    @property
    def key(self) -> str:
        """Network and seed."""
        return f"{self.network}-{self.seed}"

    @property
    def path(self) -> Path:
        """Its file."""
        return network_of(self.network).path(self.folder, seed=self.seed)

    @property
    def task(self) -> ZooTask:
        """What it learns."""
        return network_of(self.network).task(self.cifar10)

    def ready(self) -> bool:
        """Whether it is there."""
        return self.path.exists()

    def make(self, report: Progress) -> None:
        """Train it."""
        network_of(self.network).kept(self.folder, self.task, seed=self.seed)
