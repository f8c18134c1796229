"""Training: it learns, it is deterministic, and a run that was killed ends in the same weights."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from learning.synthetic import narrow, same, task
from zktrace.errors import InputError, Refused
from zktrace.learning.arrays import State
from zktrace.learning.checkpoints import Checkpoint, load_checkpoint, save_checkpoint
from zktrace.learning.configs import EpisodeShape, EpisodicConfig, PretrainConfig, cosine
from zktrace.learning.evaluation import embed, episode_accuracy
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.learning.training import EpisodeReport, EpochReport, pretrain, train_episodes

CONFIG = PretrainConfig(epochs=6, batch_size=16, learning_rate=0.05)
EPISODES = EpisodicConfig(way=3, shot=2, query=4, episodes=4, learning_rate=0.05)


def pretrained(path: Path | None = None, *, resume: bool = False, config: PretrainConfig = CONFIG) -> State:
    """The weights after pre-training on the small task."""
    model = narrow(1)
    pretrain(model, *task(49), config, np.random.default_rng(2), checkpoint=path, resume=resume)
    return state_of(model)


def test_a_narrow_model_learns() -> None:
    model, (images, labels) = narrow(width=8), task(360)
    rng = np.random.default_rng(0)
    shape = EpisodeShape(way=5, shot=2, query=5)
    unseen, unseen_labels = task(180, seed=1)
    epochs = pretrain(model, images, labels, PretrainConfig(epochs=4, batch_size=32, learning_rate=0.02), rng)
    assert epochs[-1].loss < epochs[0].loss
    config = EpisodicConfig(way=5, shot=2, query=5, episodes=12, learning_rate=0.01)
    report = train_episodes(model, images, labels, config, rng)
    assert report.accuracy > 0.5
    score = episode_accuracy(embed(model, unseen), unseen_labels, shape, rng, episodes=50)
    assert score.mean - score.half_width > 0.5  # chance is 0.2


def test_the_same_seed_gives_the_same_bits() -> None:
    found = []
    for seed in (2, 2, 3):
        model = narrow(1)
        rng = np.random.default_rng(seed)
        pretrain(model, *task(40), PretrainConfig(epochs=1, batch_size=16), rng)
        train_episodes(model, *task(60), EPISODES, rng)
        found.append(state_of(model))
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_a_seed_has_the_outcome_it_always_had() -> None:
    """Numbers of the loops that `learning.loop` replaced; what is drawn is the same to the last bit."""
    model, rng = narrow(1), np.random.default_rng(2)
    epochs = pretrain(model, *task(49), replace(CONFIG, epochs=3), rng)
    assert [each.loss for each in epochs] == pytest.approx([1.947710, 1.547059, 1.449332], rel=1e-3)
    assert train_episodes(model, *task(60), EPISODES, rng).loss == pytest.approx(11.94755, rel=1e-2)
    assert rng.integers(1 << 60) == 597153021092866894


def test_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    pretrained(config=PretrainConfig(epochs=1))
    assert torch.equal(torch.get_rng_state(), before)


def test_one_episode_is_one_step_of_plain_sgd() -> None:
    """Weight decay and a first momentum step, by hand, with the penalty's gradient in it."""
    model, other = narrow(1), narrow(1)
    images, labels = task(60)
    config = EpisodicConfig(way=3, shot=2, query=4, episodes=1, learning_rate=0.1, weight_decay=0.01)

    def penalty(model: ResNet) -> Tensor:
        return 0.5 * model.bn1.weight.square().sum()

    report = train_episodes(model, images, labels, config, np.random.default_rng(5), penalty=penalty)
    assert report.penalty == pytest.approx(0.5 * 4)
    train_episodes(
        other,
        images,
        labels,
        EpisodicConfig(way=3, shot=2, query=4, episodes=1, learning_rate=0.1, weight_decay=0),
        np.random.default_rng(5),
    )
    with_both, without = state_of(model), state_of(other)
    start = state_of(narrow(1))
    decay = 0.1 * 0.01 * start["layer1.0.conv1.weight"]
    difference = without["layer1.0.conv1.weight"] - with_both["layer1.0.conv1.weight"]
    np.testing.assert_allclose(difference, decay, atol=2e-7)
    pulled = without["bn1.weight"] - with_both["bn1.weight"]
    np.testing.assert_allclose(pulled, 0.1 * (0.01 + 1.0) * start["bn1.weight"], atol=2e-6)
    assert with_both["bn1.num_batches_tracked"] == 1


def test_the_penalty_is_asked_at_every_step_and_trained() -> None:
    model = narrow(1)
    asked: list[float] = []

    def penalty(model: ResNet) -> Tensor:
        value = (model.bn1.weight - 3).square().sum()
        asked.append(value.item())
        return value

    seen: list[EpisodeReport] = []
    report = train_episodes(
        model, *task(60), EPISODES, np.random.default_rng(0), penalty=penalty, progress=seen.append
    )
    assert len(asked) == EPISODES.episodes
    assert asked[-1] < asked[0]
    assert [each.penalty for each in seen] == asked
    assert report.penalty == pytest.approx(np.mean(asked))
    assert report.images == EPISODES.episodes * 18


def test_the_rate_is_annealed() -> None:
    assert [cosine(2.0, step, 4) for step in range(5)] == pytest.approx([2, 1 + 0.5**0.5, 1, 1 - 0.5**0.5, 0])
    assert EPISODES.at_round(0, 10) == EPISODES
    assert EPISODES.at_round(5, 10).learning_rate == pytest.approx(0.025)
    first = pretrained(config=PretrainConfig(epochs=1, learning_rate=0.05))
    assert not same(first, pretrained(config=PretrainConfig(epochs=2, learning_rate=0.05)))


def test_the_temperature_reaches_the_loss() -> None:
    first = [
        train_episodes(
            narrow(1), *task(60), replace(EPISODES, temperature=each), np.random.default_rng(0)
        ).loss
        for each in (1.0, 1e9)
    ]
    assert first[1] == pytest.approx(math.log(3), rel=1e-4)  # all three classes alike
    assert first[0] != pytest.approx(first[1], rel=1e-2)


def test_the_mode_is_as_before() -> None:
    model = narrow(1).eval()
    train_episodes(model, *task(60), EPISODES, np.random.default_rng(0))
    assert not model.training


def test_epochs_of_a_part_of_the_samples() -> None:
    seen: list[EpochReport] = []
    config = PretrainConfig(epochs=2, batch_size=16, samples=20)
    reports = pretrain(narrow(1), *task(50), config, np.random.default_rng(0), progress=seen.append)
    assert list(reports) == seen
    assert [(each.epoch, each.epochs, each.images) for each in seen] == [(1, 2, 20), (2, 2, 20)]


def test_a_last_batch_of_one_is_left_out() -> None:
    config = PretrainConfig(epochs=1, batch_size=16)
    (report,) = pretrain(narrow(1), *task(49), config, np.random.default_rng(0))
    assert report.images == 48


# Resuming.


class Stop(Exception):
    """Raised by the test in the middle of a run."""


def stop_after(epoch: int) -> Callable[[EpochReport], None]:
    def progress(report: EpochReport) -> None:
        if report.epoch == epoch:
            raise Stop

    return progress


@pytest.mark.parametrize("epoch", [1, 3, 5])
def test_resuming_equals_never_having_stopped(epoch: int, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(Stop):
        pretrain(
            narrow(1),
            *task(49),
            CONFIG,
            np.random.default_rng(2),
            checkpoint=path,
            progress=stop_after(epoch),
        )
    model, rng = narrow(77), np.random.default_rng(77)  # both are overwritten by what was saved
    reports = pretrain(model, *task(49), CONFIG, rng, checkpoint=path, resume=True)
    assert [each.epoch for each in reports] == list(range(1, 7))
    assert same(state_of(model), pretrained())
    assert same(pretrained(path, resume=True), pretrained())  # a finished run changes no more


def test_the_generator_goes_on_as_well(tmp_path: Path) -> None:
    whole, halved = np.random.default_rng(2), np.random.default_rng(2)
    pretrain(narrow(1), *task(49), CONFIG, whole)
    with pytest.raises(Stop):
        pretrain(narrow(1), *task(49), CONFIG, halved, checkpoint=tmp_path / "run", progress=stop_after(2))
    pretrain(narrow(1), *task(49), CONFIG, halved, checkpoint=tmp_path / "run", resume=True)
    assert whole.bit_generator.state == halved.bit_generator.state


CHILD = """
import os, sys, time
import numpy as np, torch
from pathlib import Path
torch.set_num_threads(1)
from learning.synthetic import narrow, task
from learning.test_training import CONFIG
from zktrace.learning.training import pretrain

path, where = Path(sys.argv[1]), sys.argv[2]
saves, fsync = 0, os.fsync

def stuck(descriptor):
    global saves
    saves += 1
    if saves == 5:  # two a save: the third, with all bytes written but not yet in place
        print("ready", flush=True)
        time.sleep(600)
    fsync(descriptor)

def slow(report):
    if report.epoch == 3:
        print("ready", flush=True)
    if report.epoch == 5:  # never to the end, however late the signal
        time.sleep(600)

if where == "writing":
    os.fsync = stuck
progress = slow if where == "training" else None
pretrain(narrow(1), *task(49), CONFIG, np.random.default_rng(2), checkpoint=path, progress=progress)
"""


@pytest.mark.parametrize(("where", "epochs"), [("training", {3, 4, 5}), ("writing", {2})])
def test_a_killed_run_loses_at_most_an_epoch(where: str, epochs: set[int], tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), where], stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert len(load_checkpoint(path, kind="pre-training").facts["reports"]) in epochs
    assert len(list(tmp_path.iterdir())) == (2 if where == "writing" else 1)
    assert same(pretrained(path, resume=True), pretrained())
    assert [each.name for each in tmp_path.iterdir()] == ["run.safetensors"]


def test_a_run_is_not_overwritten_or_mixed_up(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    short = PretrainConfig(epochs=1, batch_size=16)
    pretrained(path, config=short)
    before = path.read_bytes()
    with pytest.raises(Refused, match="holds a run that was begun; resume it"):
        pretrained(path, config=short)
    with pytest.raises(InputError, match=r"another config \(epochs, learning_rate differ\)"):
        pretrained(path, resume=True)
    with pytest.raises(InputError, match=r"another data \(sha256 differ\)"):
        pretrain(narrow(1), *task(49, seed=5), short, np.random.default_rng(2), checkpoint=path, resume=True)
    wide = narrow(1, width=8)
    with pytest.raises(InputError, match=r"has shape|another architecture"):
        pretrain(wide, *task(49), short, np.random.default_rng(2), checkpoint=path, resume=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lost", ["rng", "reports"])
def test_a_checkpoint_without_what_is_needed(lost: str, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    short = PretrainConfig(epochs=1, batch_size=16)
    pretrained(path, config=short)
    saved = load_checkpoint(path, kind="pre-training")
    facts = {key: value for key, value in saved.facts.items() if key != lost}
    arrays = {name: np.array(each) for name, each in saved.arrays.items()}
    save_checkpoint(path, Checkpoint(kind=saved.kind, arrays=arrays, facts=facts))
    with pytest.raises(InputError, match="lacks what a run needs"):
        pretrained(path, resume=True, config=short)


# Bad input.


def test_training_that_cannot_start_leaves_the_model_alone(tmp_path: Path) -> None:
    model, (images, labels) = narrow(1), task(60)
    before = state_of(model)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="no 9-way 2-shot"):
        train_episodes(model, images, labels, EpisodicConfig(way=9, shot=2, query=2), rng)
    with pytest.raises(InputError, match="images of shape"):
        train_episodes(model, images[1:], labels, EPISODES, rng)
    with pytest.raises(InputError, match="at least two classes"):
        pretrain(model, images, labels * 0, CONFIG, rng)
    with pytest.raises(InputError, match="too few"):
        pretrain(model, images[:1], labels[:1], CONFIG, rng)
    other = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(InputError, match="PCG64"):
        pretrain(model, images, labels, CONFIG, other, checkpoint=tmp_path / "run")
    with pytest.raises(Refused, match="the folder does not exist"):
        pretrain(model, images, labels, CONFIG, rng, checkpoint=tmp_path / "absent" / "run")
    assert same(state_of(model), before)


def test_a_loss_that_is_not_finite_stops_the_run() -> None:
    images, labels = task(60)
    images[:] = np.nan
    with pytest.raises(InputError, match="episode 1: the loss is nan; lower the learning rate"):
        train_episodes(narrow(1), images, labels, EPISODES, np.random.default_rng(0))
    with pytest.raises(InputError, match="epoch 1: the loss is nan"):
        pretrain(narrow(1), images, labels, CONFIG, np.random.default_rng(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"episodes": 0},
        {"temperature": 0.0},
        {"learning_rate": 0.0},
        {"momentum": 1.0},
        {"weight_decay": -1.0},
        {"way": 1},
    ],
)
def test_an_impossible_config_cannot_exist(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        EpisodicConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"epochs": -1}, {"batch_size": 1}, {"samples": 1}, {"learning_rate": -1.0}]
)
def test_an_impossible_pretraining_cannot_exist(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        PretrainConfig(**({"epochs": 1} | wrong))  # type: ignore[arg-type]
