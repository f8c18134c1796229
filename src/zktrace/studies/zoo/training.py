"""How networks of the zoo come to be, and what an owner of a copy does with it: further training, LoRA."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.optim import Adam

from zktrace.learning.arrays import Arrays, State
from zktrace.learning.configs import cosine
from zktrace.learning.keeping import Keeping
from zktrace.learning.loop import Course, Epoch, Trained, train
from zktrace.learning.states import load_state, state_of
from zktrace.learning.threads import single_threaded
from zktrace.studies.zoo.tasks import Batch, ZooTask

RANK: Final = 8  # of an update by LoRA
_WARM: Final = 50  # steps in which the rate rises


@dataclass(frozen=True, slots=True, kw_only=True)
class Curriculum:
    """How long, how fast, how many samples a step."""

    epochs: int  # 0: it is trained elsewhere
    steps: int = 156  # an epoch: CIFAR-10's 20,000 images, once
    batch: int = 128
    rate: float = 1e-3

    def at(self, step: int) -> float:
        """The rate of a step: it rises for a while, then is annealed."""
        return cosine(self.rate, step, self.epochs * self.steps) * min(1.0, (step + 1) / _WARM)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumReport:
    """What is told of an epoch."""

    epoch: int
    loss: float


Told = Callable[[CurriculumReport], None]


def trained(
    build: Callable[[], nn.Module],
    task: ZooTask,
    lesson: Curriculum,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Told | None = None,
) -> State:
    """A new network after its lesson; with a checkpoint it goes on where it stopped."""
    with single_threaded():
        module = seeded(build, seed)
        rng = np.random.default_rng([seed, 1])
        keeping = checkpoint and Keeping(
            path=checkpoint,
            resume=True,
            kind="zoo",
            facts={"seed": seed, "rate": lesson.rate, "batch": lesson.batch, "steps": lesson.steps},
            modules={"model": module},
            rng=rng,
            report=CurriculumReport,
        )
        course = Course(
            optimizer=Adam(module.parameters(), lr=lesson.rate),
            epochs=lesson.epochs,
            steps=lesson.steps,
            batches=_batches(task, lesson.batch, rng),
            loss=lambda given: Trained(loss=task.loss(module, given)),
            rate=lesson.at,
            report=_told,
        )
        train(course, keeping=keeping or None, progress=progress)
        return state_of(module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """How somebody goes on with a trained network."""

    steps: int
    rate: float  # even
    batch: int
    seed: int

    def run(
        self,
        parameters: list[nn.Parameter],
        loss: Callable[[Batch], Tensor],
        task: ZooTask,
        rng: np.random.Generator,
    ) -> None:
        """Train these parameters."""
        course = Course(
            optimizer=Adam(parameters, lr=self.rate),
            epochs=1,
            steps=self.steps,
            batches=_batches(task, self.batch, rng),
            loss=lambda given: Trained(loss=loss(given)),
            rate=lambda _step: self.rate,
            report=_told,
        )
        train(course)


def finetuned(module: nn.Module, state: Arrays, task: ZooTask, how: Further) -> State:
    """All weights trained further."""
    with single_threaded():
        load_state(module, state)
        rng = np.random.default_rng([how.seed, 2])
        how.run(list(module.parameters()), lambda given: task.loss(module, given), task, rng)
        return state_of(module)


def adapted(module: nn.Module, state: Arrays, task: ZooTask, how: Further) -> State:
    """An update of low rank beside every matrix, trained alone, then merged into the weights (LoRA)."""
    with single_threaded():
        load_state(module, state)
        rng = np.random.default_rng([how.seed, 3])
        matrices = {name: each for name, each in module.named_parameters() if each.ndim > 1}
        factors = {name: _factors(each, rng) for name, each in matrices.items()}

        def merged() -> dict[str, Tensor]:
            return {
                name: each.detach() + (factors[name][0] @ factors[name][1]).view_as(each)
                for name, each in matrices.items()
            }

        def loss(given: Batch) -> Tensor:
            return task.loss(_Changed(module, merged()), given)

        how.run([each for pair in factors.values() for each in pair], loss, task, rng)
        return state_of(module) | {name: each.detach().numpy().copy() for name, each in merged().items()}


def measured(module: nn.Module, state: Arrays, task: ZooTask, *, part: int = 1) -> float:
    """What a task says of a network with these weights, asked of one in `part` of its held-out data."""
    with single_threaded():
        load_state(module, state)
        return task.measured(module.eval(), part=part)


def _told(epoch: Epoch) -> CurriculumReport:
    return CurriculumReport(epoch=epoch.number, loss=epoch.loss)


def _batches(task: ZooTask, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    while True:
        yield task.batch(size, rng)


def _factors(matrix: Tensor, rng: np.random.Generator) -> tuple[nn.Parameter, nn.Parameter]:
    """Rows x RANK of zeros, RANK x columns at random: together no change before training."""
    columns = matrix[0].numel()
    drawn = rng.standard_normal((RANK, columns)).astype(np.float32) / np.float32(np.sqrt(columns))
    return nn.Parameter(torch.zeros(len(matrix), RANK)), nn.Parameter(torch.from_numpy(drawn))


class _Changed(nn.Module):
    """A network with some of its weights replaced."""

    def __init__(self, module: nn.Module, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._module, self._weights = [module], dict(weights)  # a list: it is no part of this one

    def forward(self, *given: Tensor) -> Tensor:
        found: Tensor = functional_call(self._module[0], self._weights, given)
        return found


def seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A new network; torch's generator is as before when it is done."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().train()
