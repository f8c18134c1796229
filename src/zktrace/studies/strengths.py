"""How strong a mark in all weights may be: what copies cost, and how well they are read, by strength.

For a network, the type of its numbers and a strength, ten copies are made as by an operator. Their cost is
measured on held-out data; one of them is read as it is, and in four bits. Nothing is put on record.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar, Final

from zktrace.codes import unpack
from zktrace.codes.readings import deviations
from zktrace.dispatch.copies import CopyPlan, maker_of
from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays
from zktrace.marking.settings import CopySettings
from zktrace.models import open_model, save_model
from zktrace.studies.changes import FORMATS, as_state, brain, half, single
from zktrace.studies.models import CARRIERS, STATIONS, ModelBench, ModelsTrial
from zktrace.studies.runner import Progress, Trial
from zktrace.studies.zoo.table import network_of
from zktrace.studies.zoo.trained import TrainedNetwork

STRENGTHS: Final = (0.005, 0.01, 0.02, 0.04)
TYPES: Final = {"float32": lambda model: as_state(single(model)), "float16": half, "bfloat16": brain}
KEYS: Final = 4000  # seed of what the rule was chosen on


@dataclass(frozen=True, kw_only=True)
class StrengthsBatch:
    """One network: a row for each type and strength."""

    trained: TrainedNetwork
    seed: int
    work: Path
    strengths: tuple[float, ...] = STRENGTHS
    types: tuple[str, ...] = ("float32",)
    study: ClassVar[str] = "strengths"

    def __post_init__(self) -> None:
        if unknown := set(self.types) - set(TYPES):
            raise InputError(f"no type {sorted(unknown)[0]!r}; known: {', '.join(TYPES)}")

    @property
    def name(self) -> str:
        """The network's."""
        return self.trained.network

    @property
    def needs(self) -> tuple[TrainedNetwork, ...]:
        """The network."""
        return (self.trained,)

    @property
    def size(self) -> int:
        """A row each."""
        return len(self.strengths) * len(self.types)

    @property
    def guess(self) -> float:
        """Of one core."""
        return self.size * 60.0

    def trials(self, report: Progress) -> Iterator[Trial]:
        """Ten copies each."""
        trial = ModelsTrial(
            network=network_of(self.trained.network),
            task=self.trained.task,
            model=self.trained.path,
            foreign=None,
            seed=self.seed,
            work=self.work,
        )
        facts = trial.facts() | {"study": self.study}
        for kind, strength in product(self.types, self.strengths):
            told = {"type": kind, "strength": strength}
            yield Trial(facts=facts | told, outcome=partial(_outcome, trial, kind, strength))


def _stored(trial: ModelsTrial, kind: str) -> Path:
    """The network in numbers of a type."""
    path = trial.work / f"{trial.network.name}-{kind}.safetensors"
    if not path.exists():
        trial.work.mkdir(parents=True, exist_ok=True)
        save_model(path, TYPES[kind](open_model(trial.model)))
    return path


def _outcome(trial: ModelsTrial, kind: str, strength: float) -> dict[str, Any]:
    started, bench = time.perf_counter(), ModelBench(trial=replace(trial, model=_stored(trial, kind)))
    (carrier,) = CARRIERS
    make = maker_of(CopyPlan.of(bench.release, CopySettings(strength=strength)), bench.release.shared)
    code = bench.release.code(carrier)
    words = unpack(code.rows(range(STATIONS)), code.length)
    copies = [as_state(make({carrier: word}, row, lambda _share: None)) for row, word in enumerate(words)]
    shared = bench.measured(bench.release.shared)
    costs = [bench.cost_of(shared, bench.measured(each)) for each in copies]
    leaked = copies[trial.leaker]

    def score(suspect: Arrays) -> float:
        (readout,) = bench.release.read(suspect, align=False, strict=True).readouts
        row = code.rows([trial.leaker])
        return round(float(deviations(readout.values, code.biases, row, bench.release.rule)[0]), 2)

    layout = bench.release.layout(carrier)
    return {
        "measure": trial.task.measure,
        "shared": shared,
        "mean_cost": mean(costs),
        "worst_cost": max(costs),
        "dimension": layout.dimension,
        "length": layout.length,
        "score": score(leaked),
        "score_4_bits": score(FORMATS["4 bits"](leaked)),
        "seconds": round(time.perf_counter() - started, 1),
    }
