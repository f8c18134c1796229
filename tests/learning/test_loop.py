"""The one loop: plain steps of torch, means over an epoch, and runs that go on where they were stopped."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from learning.synthetic import same
from zktrace.errors import InputError, MalformedModel, Refused
from zktrace.learning.arrays import Indices, State
from zktrace.learning.batches import passes, steps_of
from zktrace.learning.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from zktrace.learning.configs import cosine
from zktrace.learning.keeping import Keeping
from zktrace.learning.loop import Course, Epoch, Trained, train
from zktrace.learning.resnet import generator_of, linear
from zktrace.learning.states import state_of

POINTS = torch.from_numpy(np.random.default_rng(0).standard_normal((11, 5))).float()
EPOCHS, SIZE, RATE = 4, 4, 0.05
STEPS = steps_of(len(POINTS), SIZE)
OPTIMIZERS: dict[str, Callable[[Iterator[nn.Parameter]], Optimizer]] = {
    "sgd": lambda parameters: SGD(parameters, lr=RATE),
    "momentum": lambda parameters: SGD(parameters, lr=RATE, momentum=0.9, weight_decay=0.01),
    "adam": lambda parameters: Adam(parameters, lr=RATE, weight_decay=0.01),
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """Something that JSON can hold."""

    epoch: int
    loss: float


class Run:
    """Points that are to be mapped on themselves, by two layers."""

    def __init__(self, optimizer: str, *, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.modules: dict[str, nn.Module] = {
            "model": linear(5, 3, generator_of(self.rng)),
            "head": linear(3, 5, generator_of(self.rng)),
        }
        self.optimizer = OPTIMIZERS[optimizer](nn.ModuleDict(self.modules).parameters())

    def missed(self, chosen: Indices) -> Tensor:
        points = POINTS[chosen]
        noise = torch.from_numpy(self.rng.standard_normal(points.shape)).float()  # drawn by the loss
        return (self.modules["head"](self.modules["model"](points + 0.1 * noise)) - points).square().mean()

    def course(self) -> Course[Indices, Told]:
        return Course(
            optimizer=self.optimizer,
            epochs=EPOCHS,
            steps=STEPS,
            batches=passes(len(POINTS), SIZE, self.rng),
            loss=lambda chosen: Trained(loss=self.missed(chosen), count=len(chosen)),
            rate=lambda step: cosine(RATE, step, EPOCHS * STEPS),
            report=lambda epoch: Told(epoch=epoch.number, loss=epoch.loss),
        )

    def keeping(self, path: Path, *, resume: bool = False, facts: int = 7) -> Keeping[Told]:
        return Keeping(
            path=path,
            resume=resume,
            kind="toy",
            facts={"config": facts},
            modules=self.modules,
            rng=self.rng,
            report=Told,
        )

    def state(self) -> State:
        return state_of(nn.ModuleDict(self.modules))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_loop_is_plain_torch(optimizer: str) -> None:
    """Bit for bit what the obvious nested loop gives."""
    run, plain = Run(optimizer), Run(optimizer)
    reports = train(run.course())
    step, means = 0, []
    for _ in range(EPOCHS):
        order, total = plain.rng.permutation(len(POINTS)), 0.0
        for at in range(0, len(POINTS), SIZE):
            chosen = order[at : at + SIZE]
            for group in plain.optimizer.param_groups:
                group["lr"] = RATE * (1 + math.cos(math.pi * step / (EPOCHS * STEPS))) / 2
            loss = plain.missed(chosen)
            plain.optimizer.zero_grad()
            loss.backward()
            plain.optimizer.step()
            total += loss.item() * len(chosen)
            step += 1
        means.append(total / len(POINTS))
    assert same(run.state(), plain.state())
    assert [each.loss for each in reports] == means
    assert means[-1] < means[0]
    assert run.rng.bit_generator.state == plain.rng.bit_generator.state


def test_an_epoch_is_told_by_its_means() -> None:
    """Losses, penalties and right answers, each batch with the weight of its count."""
    weight = nn.Parameter(torch.zeros(()))
    given = [(1.0, 10.0, 1, 1.0), (4.0, 40.0, 3, 2.0)]

    def loss(batch: tuple[float, float, int, float]) -> Trained:
        value, penalty, count, right = batch
        zero = 0.0 * weight
        return Trained(loss=value + zero, penalty=penalty + zero, count=count, right=right)

    course = Course(
        optimizer=SGD([weight], lr=1.0),
        epochs=1,
        steps=2,
        batches=iter(given),
        loss=loss,
        rate=lambda _: 1.0,
        report=lambda epoch: epoch,
    )
    seen: list[Epoch] = []
    (found,) = train(course, progress=seen.append)
    assert asdict(found) == {"number": 1, "count": 4, "loss": 3.25, "penalty": 32.5, "accuracy": 0.75}
    assert seen == [found]


def test_the_penalty_is_trained_as_well() -> None:
    weight = nn.Parameter(torch.zeros(()))
    course = Course(
        optimizer=SGD([weight], lr=1.0),
        epochs=2,
        batches=iter(range(2)),
        loss=lambda _: Trained(loss=2 * weight, penalty=3 * weight),
        rate=lambda step: 1.0 / (1 + step),
        report=lambda epoch: epoch,
    )
    train(course)
    assert weight.item() == -5.0 - 2.5


class Stop(BaseException):
    """As Ctrl-C does: it is no Exception."""


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("stop", [1, STEPS, STEPS + 2, 3 * STEPS + 1])
def test_stopped_anywhere_a_run_ends_in_the_same_weights(optimizer: str, stop: int, tmp_path: Path) -> None:
    """Stopped in the middle of a step: the epoch it was in is done again, from what was saved."""
    whole, path = Run(optimizer), tmp_path / "run"
    wanted = train(whole.course())
    first, missed, calls = Run(optimizer), Run.missed, 0

    def interrupted(chosen: Indices) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > stop:
            raise Stop
        return missed(first, chosen)

    first.missed = interrupted  # type: ignore[method-assign]
    with pytest.raises(Stop):
        train(first.course(), keeping=first.keeping(path))
    assert path.exists() == (stop >= STEPS)
    again = Run(optimizer, seed=1 if stop < STEPS else 99)  # overwritten by what was saved
    seen: list[Told] = []
    assert train(again.course(), keeping=again.keeping(path, resume=True), progress=seen.append) == wanted
    assert [each.epoch for each in seen] == list(range(1 + stop // STEPS, EPOCHS + 1))
    assert same(again.state(), whole.state())
    assert again.rng.bit_generator.state == whole.rng.bit_generator.state


def test_a_saved_run_is_neither_overwritten_nor_mixed_up(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = Run("adam")
    train(run.course(), keeping=run.keeping(path))
    before = path.read_bytes()
    other = Run("adam")
    with pytest.raises(Refused, match="was begun"):
        train(other.course(), keeping=other.keeping(path))
    with pytest.raises(InputError, match="another config"):
        train(other.course(), keeping=other.keeping(path, resume=True, facts=8))
    assert path.read_bytes() == before


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
@pytest.mark.parametrize("damage", ["shape", "name", "facts"])
def test_a_damaged_memory_is_refused(optimizer: str, damage: str, tmp_path: Path) -> None:
    path, run = tmp_path / "run", Run(optimizer)
    train(run.course(), keeping=run.keeping(path))
    saved = load_checkpoint(path, kind="toy")
    arrays = {name: np.array(each) for name, each in saved.arrays.items()}
    facts = dict(saved.facts)
    name = next(each for each in arrays if each.endswith("model.bias") and not each.startswith("model"))
    if damage == "shape":
        arrays[name] = arrays[name][:2]
    elif damage == "name":
        arrays[name.replace("model.bias", "model.strange")] = arrays.pop(name)
    else:
        facts["reports"] = [{"epoch": 1}]
    save_checkpoint(path, Checkpoint(kind="toy", arrays=arrays, facts=facts))
    again = Run(optimizer)
    with pytest.raises(MalformedModel, match=r"lacks what a run needs|has shape"):
        train(again.course(), keeping=again.keeping(path, resume=True))


def test_an_optimizer_whose_memory_is_not_known_is_refused_before_training(tmp_path: Path) -> None:
    run = Run("adam")
    before = run.state()
    run.optimizer = AdamW(nn.ModuleDict(run.modules).parameters())
    with pytest.raises(InputError, match="SGD and Adam, not AdamW"):
        train(run.course(), keeping=run.keeping(tmp_path / "run"))
    assert same(run.state(), before)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_run_before_the_step(value: float) -> None:
    weight = nn.Parameter(torch.ones(()))
    course = Course(
        optimizer=SGD([weight], lr=1.0),
        epochs=3,
        batches=iter([1.0, value]),
        loss=lambda factor: Trained(loss=factor * weight),
        rate=lambda _: 0.5,
        report=lambda epoch: epoch,
        unit="step",
    )
    with pytest.raises(InputError, match=f"step 2: the loss is {value}; lower the learning rate"):
        train(course)
    assert weight.item() == 0.5
