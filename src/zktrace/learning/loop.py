"""The one loop of all that trains: pre-training, episodes, students, copies.

A `Course` says what differs: where batches come from, what their loss is, how the rate goes, and what is told
of an epoch. With a `Keeping` the run is saved after every epoch, and a saved one goes on. Whatever ends the
loop in the middle of an epoch - Ctrl-C, an error, a kill - leaves the last whole epoch saved.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor
from torch.optim import Optimizer

from zktrace.errors import InputError
from zktrace.learning.keeping import Keeping, Report

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """What a batch gave. In means over an epoch it has the weight of its `count`."""

    loss: Tensor  # of the task
    penalty: Tensor | None = None  # trained as well, told apart
    count: int = 1
    right: float = 0.0  # answers, of `count`


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Means over the batches of one epoch."""

    number: int  # from 1
    count: int
    loss: float
    penalty: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course(Generic[Batch, Report]):
    """What is trained, on what, how. Where a step is all there is to tell of, an epoch has one step."""

    optimizer: Optimizer
    epochs: int
    steps: int = 1  # in an epoch
    batches: Iterator[Batch]  # without end; each is drawn when its step comes
    loss: Callable[[Batch], Trained]
    rate: Callable[[int], float]  # of step 0, 1, ... of the whole course
    report: Callable[[Epoch], Report]
    unit: str = "epoch"  # what errors call an epoch


def train(
    course: Course[Batch, Report],
    *,
    keeping: Keeping[Report] | None = None,
    progress: Callable[[Report], None] | None = None,
) -> tuple[Report, ...]:
    """Train to the end of the course, from where a saved run stopped; one report an epoch."""
    reports = [] if keeping is None else keeping.begin(course.optimizer)
    while len(reports) < course.epochs:
        reports.append(course.report(_epoch(course, len(reports))))
        if keeping is not None:
            keeping.save(course.optimizer, reports)
        if progress is not None:
            progress(reports[-1])
    return tuple(reports)


def _epoch(course: Course[Batch, Report], done: int) -> Epoch:
    count, loss, penalty, right = 0, 0.0, 0.0, 0.0
    for place in range(course.steps):
        for group in course.optimizer.param_groups:
            group["lr"] = course.rate(done * course.steps + place)
        outcome = course.loss(next(course.batches))
        _update(course.optimizer, outcome, f"{course.unit} {done + 1}")
        count += outcome.count
        loss += outcome.loss.item() * outcome.count
        penalty += 0.0 if outcome.penalty is None else outcome.penalty.item() * outcome.count
        right += outcome.right
    return Epoch(
        number=done + 1, count=count, loss=loss / count, penalty=penalty / count, accuracy=right / count
    )


def _update(optimizer: Optimizer, outcome: Trained, place: str) -> None:
    """One step by the gradient of loss + penalty."""
    total = outcome.loss if outcome.penalty is None else outcome.loss + outcome.penalty
    if not math.isfinite(total.item()):
        raise InputError(f"{place}: the loss is {total.item()}; lower the learning rate, or check the data")
    optimizer.zero_grad()
    total.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
