"""The federation with and without marks: attribution, agreement, accuracy (`tab:attribution`)."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zktrace.federation.roster import experimental_roster
from zktrace.federation.run import Progress, run
from zktrace.federation.spec import RunSpec
from zktrace.federation.workers import worker_engine
from zktrace.learning.presets import Preset
from zktrace.studies.rows import Row, Rows, trial_id

_PRETRAINED = "pretraining.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationTrial:
    """One run: a preset (its dataset and whether it writes marks are part of it) and a seed."""

    preset: Preset
    seed: int

    def facts(self) -> dict[str, Any]:
        """What the row says of it."""
        return {"study": "federation", "seed": self.seed, "preset": self.preset.as_dict()}

    @property
    def folder(self) -> str:
        """A name for the run's folder."""
        marks = "marked" if self.preset.marks.lambda_wm else "control"
        return f"{self.preset.data.dataset}-{self.seed}-{marks}-{trial_id(self.facts())[:8]}"

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


def perform(
    trial: FederationTrial,
    rows: Rows,
    *,
    siblings: Iterable[FederationTrial] = (),
    work: Path,
    cifar10: Path | None = None,
    cache: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Row | None:
    """Run a trial and save its row, unless it has one; an interrupted run goes on in its folder."""
    if trial_id(trial.facts()) in rows.done():
        return None
    spec = trial.spec(cifar10=cifar10, cache=cache)
    alike = [each for each in siblings if (each.seed, each.preset.data) == (trial.seed, trial.preset.data)]
    share_pretraining(work / trial.folder, [work / each.folder for each in alike])
    with worker_engine(spec, workers=workers) as engine:
        outcome = run(spec, work / trial.folder, engine, resume=True, progress=progress)
    return rows.add(trial.facts(), outcome)


def share_pretraining(folder: Path, others: Iterable[Path]) -> None:
    """Pre-training knows nothing of marks: a run takes over what another of its seed and data has."""
    own = folder / _PRETRAINED
    for theirs in (other / _PRETRAINED for other in others):
        if theirs.exists() and not own.exists():
            own.parent.mkdir(parents=True, exist_ok=True)
            scratch = own.with_suffix(".part")
            shutil.copyfile(theirs, scratch)
            scratch.rename(own)
