"""Somebody else's federation: a network of the zoo in Flower's own FedAvg, with a guard and without."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg, Strategy

from zktrace.errors import FederationFailed, InputError
from zktrace.federation.flower.guarded import Guarded
from zktrace.federation.flower.inprocess import InProcessGrid
from zktrace.learning.arrays import State
from zktrace.learning.data.partition import deal, dirichlet_shares
from zktrace.learning.states import state_of
from zktrace.registry.workspace import Home
from zktrace.studies.guard.runs import CARRIERS
from zktrace.studies.runner import Prerequisite, Progress, Trial
from zktrace.studies.zoo.table import ZooNetwork, network_of
from zktrace.studies.zoo.tasks import SampleTask
from zktrace.studies.zoo.training import Further, finetuned, seeded

STATIONS: Final = 5
ROUNDS: Final = 8
STEPS: Final = 36  # of a station and round
ALPHA: Final = 2.0  # Dirichlet concentration of the label partition
_PAIR: Final = 200.0  # seconds of two federations
_SHARING, _TRAINING = 1, 2  # purposes of randomness


@dataclass(frozen=True, kw_only=True)
class FlowerRun:
    """One federation of a network of the zoo."""

    network: ZooNetwork
    task: SampleTask
    seed: int
    guarded: bool
    stations: int = STATIONS
    rounds: int = ROUNDS
    steps: int = STEPS

    def facts(self) -> dict[str, Any]:
        """What its row says of it."""
        return {
            "study": "guard",
            "part": "utility",
            "network": self.network.name,
            "dataset": "cifar10",
            "seed": self.seed,
            "design": "guarded" if self.guarded else "unguarded",
            "stations": self.stations,
            "rounds": self.rounds,
            "steps": self.steps,
            "alpha": ALPHA,
        }

    @cached_property
    def shards(self) -> tuple[SampleTask, ...]:
        """What each station learns: its own share of every class."""
        samples, labels = self.task.train
        rng = np.random.default_rng([self.seed, _SHARING])
        shares = dirichlet_shares(classes=int(labels.max()) + 1, stations=self.stations, alpha=ALPHA, rng=rng)
        holder = deal(labels, shares, rng)
        chosen = [np.flatnonzero(holder == each) for each in range(self.stations)]
        return tuple(
            SampleTask(train=(samples[each], labels[each]), test=self.task.test, moved=self.task.moved)
            for each in chosen
        )

    def answer(self, message: Message, context: Context) -> Message:
        """A station's side of a round."""
        station = int(context.node_config["station"])
        task, number = self.shards[station], message.content.config_records["config"]["server-round"]
        how = Further(
            steps=self.steps,
            rate=self.network.lesson.rate,
            batch=self.network.lesson.batch,
            seed=int(
                np.random.default_rng([self.seed, _TRAINING, station, int(str(number))]).integers(1 << 31)
            ),
        )
        given = message.content.array_records["arrays"]
        state = {name: each.numpy() for name, each in given.items()}
        trained = finetuned(self.network.build(), state, task, how)
        metrics = MetricRecord({"num-examples": len(task.train[1])})
        return Message(RecordDict({"arrays": _record(trained), "metrics": metrics}), reply_to=message)

    def outcome(self) -> dict[str, Any]:
        """The accuracy of what comes out, and how long it took."""
        started = time.perf_counter()
        grid = InProcessGrid(self.answer, [{"station": each} for each in range(self.stations)])
        first = state_of(seeded(self.network.build, self.seed))
        with _strategy(self) as strategy, _quiet():
            found = strategy.start(grid, _record(first), num_rounds=self.rounds).arrays
        if found is None:
            raise FederationFailed("the strategy aggregated nothing")
        state = {name: each.numpy() for name, each in found.items()}
        return {
            "accuracy": self.network.measured(state, self.task),
            "weights": sum(int(each.size) for each in state.values()),
            "seconds": round(time.perf_counter() - started, 1),
        }


@dataclass(frozen=True, kw_only=True)
class FlowerBatch:
    """A network of the zoo in Flower under one seed: unguarded, then guarded."""

    network: str
    seed: int
    cifar10: Path | None
    study: ClassVar[str] = "guard"
    needs: ClassVar[tuple[Prerequisite, ...]] = ()
    size: ClassVar[int] = 2
    guess: ClassVar[float] = _PAIR

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.network} in Flower, seed {self.seed}"

    def trials(self, report: Progress) -> Iterator[Trial]:
        """A row each."""
        network = network_of(self.network)
        task = network.task(self.cifar10)
        if not isinstance(task, SampleTask):
            raise InputError(f"{network.name} does not learn images: it is not trained in Flower here")
        for number, guarded in enumerate((False, True), start=1):
            run = FlowerRun(network=network, task=task, seed=self.seed, guarded=guarded)
            yield Trial(facts=run.facts(), outcome=run.outcome)
            report(self.name, number, 2)


@contextmanager
def _strategy(run: FlowerRun) -> Iterator[Strategy]:
    """FedAvg over everybody; with the two lines of a guard, if it is asked for."""
    strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=run.stations, min_available_nodes=run.stations)
    if not run.guarded:
        yield strategy
        return
    with TemporaryDirectory(prefix="zktrace-guard-") as folder:
        home = Home.create(Path(folder) / "operator", title="study: guard", carriers=CARRIERS)
        yield Guarded(strategy, workspace=home, enrol=True, begin=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Flower tells every round; a study tells its rows."""
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _record(state: State) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(each)) for name, each in state.items()})
