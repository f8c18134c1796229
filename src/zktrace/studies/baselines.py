"""Six published systems beside each other: one protocol, one federation, the same attacks (`tab:baselines`).

A trial is a system, a federation and a part of what is measured of it (`baselines_measures`):

    marks         accuracy, the native mark, who is told by copies; an early leak, rewrites, queries; payload
    innocents     an unmarked federation's model, read with many keys
    attacks       the shared suite on one copy, students aside
    coalitions    copies put together by every strategy
    distillation  a student of one copy's features

A federation is trained once for each system, when the first of its trials asks for it; pre-training and the
federation without marks are shared by all.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from zktrace.attacks.collusion import STRATEGIES
from zktrace.attacks.grid import Attack
from zktrace.baselines.protocol import System
from zktrace.errors import InputError
from zktrace.federation.spec import RunSpec, preset_facts
from zktrace.learning.presets import Preset
from zktrace.learning.threads import single_threaded
from zktrace.studies import baselines_measures as measures
from zktrace.studies.baselines_field import Field
from zktrace.studies.federation import SPEED, FederationTrial, trained, training_seconds
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress, Trial

SIZES: Final = (2, 3, 5, 8)
_READ: Final = 30.0  # seconds of a part that trains nothing


def _point(family: str, **parameters: Any) -> Attack:  # noqa: ANN401
    return Attack(family=family, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class BaselineGrid:
    """How much is measured of each system."""

    attacks: tuple[Attack, ...] = (  # of `tab:attacks`, the student aside
        _point("none"),
        _point("structured", share=0.5),
        _point("noise", sigma=2.0),
        _point("quantise", bits=2),
        _point("pgd", norm="linf", epsilon=0.1),
        _point("reset", stages=["layer3", "layer4"]),
        _point("finetune", episodes=100),
    )
    epochs: int = 80  # of a student
    samples: int = 2000  # of whoever trains
    sizes: tuple[int, ...] = SIZES
    strategies: tuple[str, ...] = STRATEGIES
    sampled: int = 5  # coalitions of a size
    keys: int = 50  # that an unmarked model is read with
    parts: tuple[str, ...] = field(default_factory=lambda: tuple(PARTS))

    def __post_init__(self) -> None:
        if unknown := [each for each in self.parts if each not in PARTS]:
            raise InputError(f"no part {unknown[0]!r}; known: {', '.join(PARTS)}")

    def of(self, part: str) -> dict[str, Any]:
        """What a row of this part says it was made with."""
        made: dict[str, dict[str, Any]] = {
            "marks": {},
            "innocents": {"keys": self.keys},
            "attacks": {"attacks": [each.facts() for each in self.attacks], "samples": self.samples},
            "coalitions": {
                "sizes": list(self.sizes),
                "strategies": list(self.strategies),
                "sampled": self.sampled,
            },
            "distillation": {"epochs": self.epochs, "samples": self.samples},
        }
        return made[part]


Measure = Callable[[Field, BaselineGrid, Progress], dict[str, Any]]
PARTS: Final[Mapping[str, Measure]] = {
    "marks": lambda field, _, __: measures.marks(field),
    "innocents": lambda field, grid, _: measures.innocents(field, keys=grid.keys),
    "attacks": lambda field, grid, _: measures.attacks(field, grid.attacks, samples=grid.samples),
    "coalitions": lambda field, grid, _: measures.coalitions(
        field, sizes=grid.sizes, strategies=grid.strategies, sampled=grid.sampled
    ),
    "distillation": lambda field, grid, report: measures.distillation(
        field, epochs=grid.epochs, samples=grid.samples, report=report
    ),
}
GRIDS: Final = {
    "paper": BaselineGrid(),
    "short": BaselineGrid(  # goes through everything and measures nothing
        attacks=(_point("none"), _point("noise", sigma=2.0), _point("finetune", episodes=1)),
        epochs=1,
        samples=100,
        sizes=(2,),
        strategies=("mean", "minimum"),
        sampled=2,
        keys=2,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Control:
    """The federation without marks, which all systems on the same data begin with."""

    federation: FederationTrial
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None

    @property
    def key(self) -> str:
        """The run's folder."""
        return self.federation.folder

    @property
    def folder(self) -> Path:
        """Of the run."""
        return self.work / self.key

    @property
    def guess(self) -> float:
        """Seconds of its training."""
        return training_seconds(self.federation.preset)

    @property
    def spec(self) -> RunSpec:
        """The run."""
        return self.federation.spec(cifar10=self.cifar10, cache=self.cache)

    def ready(self) -> bool:
        """Whether it is trained."""
        return (self.folder / "model.safetensors").exists()

    def make(self, report: Progress) -> None:
        """Trained; what was stopped goes on."""
        if not self.ready():
            trained(self.spec, self.folder, report)


@dataclass(frozen=True, kw_only=True)
class BaselineBatch:
    """One system in one federation: its parts share what was trained."""

    system: System
    control: Control
    grid: BaselineGrid
    study: ClassVar[str] = "baselines"

    @property
    def name(self) -> str:
        """By system and federation."""
        return f"{self.system.name}-{self.control.key}"

    @property
    def needs(self) -> tuple[Control, ...]:
        """The federation without marks."""
        return (self.control,)

    @property
    def size(self) -> int:
        """A row for each part."""
        return len(self.grid.parts)

    @property
    def guess(self) -> float:
        """Rounds, a student, and reading."""
        preset = self.control.federation.preset
        images = self.grid.epochs * self.grid.samples if "distillation" in self.grid.parts else 0
        rounds = training_seconds(replace(preset, pretraining=replace(preset.pretraining, epochs=0)))
        return rounds + images / SPEED * preset.model.width / 64 + self.size * _READ

    def facts(self, part: str) -> dict[str, Any]:
        """What a row says of its trial."""
        run = self.control.federation
        return {
            "study": self.study,
            "part": part,
            "dataset": run.preset.data.dataset,
            "seed": run.seed,
            "preset": preset_facts(run.preset),
            **self.system.facts(),
            **self.grid.of(part),
        }

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Part by part; the first that is asked for trains."""
        place = Field(
            system=self.system,
            base=self.control.spec,
            control=self.control.folder,
            folder=self.control.work / f"{self.name}-{trial_id(self.system.facts())[:8]}",
            report=report,
        )
        for part in self.grid.parts:
            yield Trial(facts=self.facts(part), outcome=partial(self._outcome, place, part, report))

    def _outcome(self, place: Field, part: str, report: Progress) -> dict[str, Any]:
        with single_threaded():
            return PARTS[part](place, self.grid, report)


def batches(
    preset: Preset,
    systems: Sequence[System],
    datasets: Sequence[str],
    seeds: Sequence[int],
    grid: BaselineGrid,
    *,
    work: Path,
    cifar10: Path | None = None,
    cache: Path | None = None,
) -> list[BaselineBatch]:
    """Seed by seed, every system on all data."""
    found = []
    for seed in seeds:
        for dataset in datasets:
            chosen = replace(
                preset,
                data=replace(preset.data, dataset=dataset),
                marks=replace(preset.marks, lambda_wm=0.0),
            )
            run = FederationTrial(preset=chosen, seed=seed)
            control = Control(federation=run, work=work, cifar10=cifar10, cache=cache)
            found += [BaselineBatch(system=each, control=control, grid=grid) for each in systems]
    return found
