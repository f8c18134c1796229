"""The federation with and without marks: attribution, agreement, accuracy (`tab:attribution`)."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from zktrace.federation.roster import experimental_roster
from zktrace.federation.run import run
from zktrace.federation.server import RoundReport
from zktrace.federation.spec import RunSpec, preset_facts
from zktrace.federation.workers import worker_engine
from zktrace.learning.presets import Preset
from zktrace.learning.training import EpochReport
from zktrace.studies.identity import measured
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Prerequisite, Progress, Trial

_PRETRAINED = "pretraining.safetensors"
SPEED = 380  # images a second of one process, at width 64


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationTrial:
    """One run: a preset (its dataset and whether it writes marks are part of it) and a seed."""

    preset: Preset
    seed: int
    variant: str = ""  # the name of what was made harder (`variants`); none: the preset as it is

    def facts(self) -> dict[str, Any]:
        """What the row says of it."""
        what = {"study": "stressors", "variant": self.variant} if self.variant else {"study": "federation"}
        return what | {"seed": self.seed, "preset": preset_facts(self.preset)}

    @property
    def folder(self) -> str:
        """A name for the run's folder."""
        kind = self.variant or ("marked" if self.preset.marks.lambda_wm else "control")
        return f"{self.preset.data.dataset}-{self.seed}-{kind}-{trial_id(self.facts())[:8]}"

    @property
    def start(self) -> str:
        """What pre-training depends on: runs with the same start share it.

        Who holds a sample shows in it where stations have receivers of their own.
        """
        facts, data = preset_facts(self.preset), self.preset.data
        seen = {name: facts[name] for name in ("data", "model", "pretraining")} | {"seed": self.seed}
        if data.dataset == "gnss" and (data.domain_shift or data.receiver_shift):
            seen |= {name: facts["federation"][name] for name in ("clients", "alpha")}
        return trial_id(seen)

    def spec(self, *, cifar10: Path | None, cache: Path | None) -> RunSpec:
        """The run."""
        keys = experimental_roster(self.seed, self.preset.federation.clients)
        bits = self.preset.marks.bits
        return RunSpec(
            preset=self.preset,
            seed=self.seed,
            words=tuple(key.codeword(bits) for key in keys),
            cifar10=cifar10,
            cache=cache,
        )


def trials(preset: Preset, datasets: list[str], seeds: list[int]) -> Iterator[FederationTrial]:
    """With marks and without, on every dataset with every seed."""
    for seed in seeds:
        for dataset in datasets:
            chosen = replace(preset, data=replace(preset.data, dataset=dataset))
            yield FederationTrial(preset=chosen, seed=seed)
            control = replace(chosen, marks=replace(chosen.marks, lambda_wm=0.0))
            yield FederationTrial(preset=control, seed=seed)


@dataclass(frozen=True, kw_only=True)
class FederationBatch:
    """Runs of one study, dataset and seed; those that begin with the same pre-training share it."""

    runs: tuple[FederationTrial, ...]
    beside: tuple[FederationTrial, ...] = ()  # of another study, which may have left a pre-training
    work: Path
    cifar10: Path | None = None
    cache: Path | None = None
    needs: ClassVar[tuple[Prerequisite, ...]] = ()

    @property
    def name(self) -> str:
        """By the first run."""
        return self.runs[0].folder

    @property
    def study(self) -> str:
        """As its rows call it."""
        return str(self.runs[0].facts()["study"])

    @property
    def size(self) -> int:
        """A row each."""
        return len(self.runs)

    @property
    def guess(self) -> float:
        """By the images they train on."""
        return sum(training_seconds(each.preset) for each in self.runs)

    def trials(self, report: Progress) -> Iterator[Trial]:
        """An interrupted run goes on in its folder."""
        for each in self.runs:
            yield Trial(facts=each.facts(), outcome=partial(self._run, each, report))

    def _run(self, trial: FederationTrial, report: Progress) -> dict[str, Any]:
        alike = [each for each in (*self.runs, *self.beside) if each.start == trial.start]
        folder = self.work / trial.folder
        share_pretraining(folder, [self.work / each.folder for each in alike])
        spec = trial.spec(cifar10=self.cifar10, cache=self.cache)
        result = trained(spec, folder, report)
        return result | measured(spec, folder, never_trained=result["never_trained"])


def batches(
    preset: Preset,
    datasets: list[str],
    seeds: list[int],
    *,
    work: Path,
    cifar10: Path | None = None,
    cache: Path | None = None,
) -> list[FederationBatch]:
    """One for every dataset and seed."""
    return [
        FederationBatch(
            runs=tuple(trials(preset, [dataset], [seed])), work=work, cifar10=cifar10, cache=cache
        )
        for seed in seeds
        for dataset in datasets
    ]


def trained(spec: RunSpec, folder: Path, report: Progress) -> dict[str, Any]:
    """The federation of a run; epochs and rounds are reported as they end."""

    def show(each: EpochReport | RoundReport) -> None:
        if isinstance(each, RoundReport):
            report("rounds", each.round + 1, spec.preset.federation.rounds)
        else:
            report("epochs", each.epoch, each.epochs)

    with worker_engine(spec) as engine:
        return run(spec, folder, engine, resume=True, progress=show)


def training_seconds(preset: Preset) -> float:
    """About how long one process trains; narrow networks cost by their width."""
    drawn = preset.pretraining.samples or preset.data.samples
    local = preset.federation.clients * preset.federation.participation * preset.episodes.episodes
    rounds = preset.federation.rounds * local * preset.episodes.shape.images
    return (preset.pretraining.epochs * drawn + rounds) / SPEED * preset.model.width / 64


def share_pretraining(folder: Path, others: Iterable[Path]) -> None:
    """Pre-training knows nothing of marks: a run takes over what another of its seed and data has."""
    own = folder / _PRETRAINED
    for theirs in (other / _PRETRAINED for other in others):
        if theirs.exists() and not own.exists():
            own.parent.mkdir(parents=True, exist_ok=True)
            scratch = own.with_suffix(".part")
            shutil.copyfile(theirs, scratch)
            scratch.rename(own)
