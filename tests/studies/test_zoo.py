"""Networks of the zoo: what they are called, that a seed has one outcome, and what leakers do with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import torch
from torch import nn

from zktrace.errors import InputError, Refused
from zktrace.learning.arrays import State
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import load_state, state_of
from zktrace.studies.changes import single
from zktrace.studies.zoo.convolutions import PlainNet
from zktrace.studies.zoo.digits import Perceptron, arrays_of, digits, fitted
from zktrace.studies.zoo.rewrites import REWRITES
from zktrace.studies.zoo.table import ZOO, ZooNetwork, network_of, trainable
from zktrace.studies.zoo.tasks import SYMBOLS, EpisodeTask, SampleTask, TextTask, encoded
from zktrace.studies.zoo.training import (
    RANK,
    Curriculum,
    CurriculumReport,
    Further,
    adapted,
    finetuned,
    measured,
    trained,
)
from zktrace.studies.zoo.transformers import LanguageModel, backwards


def tiny(*, count: int = 40) -> SampleTask:
    rng = np.random.default_rng(5)
    images = rng.standard_normal((count, 3, 32, 32)).astype(np.float32)
    labels = rng.integers(0, 10, count)
    return SampleTask(train=(images, labels), test=(images[:12], labels[:12]), moved=True)


def small() -> nn.Module:
    return PlainNet(widths=(4, 4, 8, 8))


def input_of(each: ZooNetwork, count: int = 3) -> torch.Tensor:
    rng = np.random.default_rng(1)
    if each.data == "text":
        return torch.from_numpy(rng.integers(0, SYMBOLS, (count, 20)))
    shape = (count, 64) if each.data == "digits" else (count, 3, 32, 32)
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("name", trainable())
def test_every_network_answers_and_has_no_batch_norm(name: str) -> None:
    module, each = network_of(name).build(), network_of(name)
    answers = module(input_of(each))
    assert answers.shape == ((3, 20, SYMBOLS) if each.data == "text" else (3, 10))
    assert not any("running" in tensor for tensor in module.state_dict())
    weights = sum(tensor.numel() for tensor in module.parameters())
    assert weights > (400_000 if name != "mlp" else 80_000)


def test_transformers_have_the_names_that_disguises_know() -> None:
    parts = ("norm1", "attn.q", "attn.k", "attn.v", "attn.o", "norm2", "mlp.up", "mlp.down")
    inside = {f"blocks.{block}.{part}.weight" for block in range(4) for part in parts}
    found = {name: set(network_of(name).build().state_dict()) for name in ("vit", "language")}
    assert found["language"] == inside | {"embed.weight", "norm.weight", "head.weight"}
    assert found["vit"] == inside | {"patch.weight", "pos", "cls", "norm.weight", "head.weight"}


def test_a_name_that_is_not_known_and_data_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no network 'gpt'; known: resnet, cnn, "):
        network_of("gpt")
    with pytest.raises(InputError, match="vit learns CIFAR-10"):
        network_of("vit").task(None)


def test_the_resnet_learns_by_episodes_and_is_trained_elsewhere(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    labels = np.repeat(np.arange(5), 20)
    images = rng.standard_normal((100, 3, 32, 32)).astype(np.float32) + labels[:, None, None, None]
    task = EpisodeTask(train=(images, labels), test=(images, labels))
    module = ResNet(depth=18, channels=3, width=2, rng=rng)
    before = state_of(module)
    how = Further(steps=1, rate=1e-3, batch=0, seed=1)
    tuned, merged = (way(module, before, task, how) for way in (finetuned, adapted))
    assert not np.array_equal(tuned["conv1.weight"], before["conv1.weight"])
    assert not np.array_equal(merged["conv1.weight"], before["conv1.weight"])
    assert np.array_equal(merged["bn1.weight"], before["bn1.weight"])
    assert 0.2 < measured(module, tuned, task) <= 1.0
    with pytest.raises(Refused, match=r"put its model into resnet\.safetensors"):
        network_of("resnet").kept(tmp_path, task)
    assert set(ZOO) - set(trainable()) == {"resnet"}


def test_a_language_model_sees_nothing_that_comes_later() -> None:
    model = LanguageModel(symbols=SYMBOLS, width=16, depth=2)
    text = input_of(network_of("language"), 1)
    later = text.clone()
    later[0, 12:] = (later[0, 12:] + 1) % SYMBOLS
    with torch.inference_mode():
        before, after = model(text), model(later)
    assert torch.equal(before[:, :12], after[:, :12])
    assert not torch.equal(before[:, 12:], after[:, 12:])


def test_distance_weighs_as_it_is_said_to() -> None:
    found = backwards(5, 0.25)
    for i in range(5):
        for j in range(5):
            assert found[i, j] == (-0.25 * (i - j) if j <= i else -np.inf)


def test_characters_are_symbols() -> None:
    assert encoded("\n ~é\tA").tolist() == [0, 1, 95, ord("?") - 31, SYMBOLS - 1, ord("A") - 31]


def test_text_is_measured_by_its_perplexity() -> None:
    """A model that finds everything equally likely has the perplexity of a fair die."""
    text = np.random.default_rng(3).integers(0, SYMBOLS, 400)
    task = TextTask(train=text, test=text)
    model = LanguageModel(symbols=SYMBOLS, width=8, depth=1)
    nn.init.zeros_(model.head.weight)
    assert task.measured(model, part=64) == pytest.approx(SYMBOLS, rel=1e-4)


def test_a_seed_has_one_outcome_also_after_an_interruption(tmp_path: Path) -> None:
    lesson, task = Curriculum(epochs=2, steps=2, batch=4), tiny()
    whole = trained(small, task, lesson, seed=3)

    def stop(report: CurriculumReport) -> None:
        if report.epoch == 1:
            raise InterruptedError

    kept = tmp_path / "kept"
    with pytest.raises(InterruptedError):
        trained(small, task, lesson, seed=3, checkpoint=kept, progress=stop)
    resumed = trained(small, task, lesson, seed=3, checkpoint=kept)
    other = trained(small, task, lesson, seed=4)
    for name, each in whole.items():
        assert np.array_equal(each, resumed[name])
    assert not np.array_equal(whole["head.weight"], other["head.weight"])


def test_a_file_is_made_once(tmp_path: Path) -> None:
    each = replace(network_of("cnn"), build=small, lesson=Curriculum(epochs=1, steps=1, batch=4))
    path = each.kept(tmp_path, tiny())
    before = path.stat().st_mtime_ns
    assert each.kept(tmp_path, tiny()) == path
    assert path.stat().st_mtime_ns == before
    assert each.kept(tmp_path, tiny(), seed=43).name == "cnn-43.safetensors"
    assert len(list(tmp_path.iterdir())) == 2  # no checkpoint is left


def start() -> State:
    return trained(small, tiny(), Curriculum(epochs=1, steps=1, batch=4), seed=3)


def test_fine_tuning_moves_every_weight_and_lora_matrices_by_a_low_rank() -> None:
    how = Further(steps=2, rate=1e-3, batch=4, seed=1)
    before = start()
    tuned, merged = (way(small(), before, tiny(), how) for way in (finetuned, adapted))
    for name, each in before.items():
        assert not np.array_equal(each, tuned[name]), name
        change = (merged[name] - each).reshape(len(each), -1)
        if each.ndim == 1:
            assert not change.any()
        else:
            assert 1 <= np.linalg.matrix_rank(change, tol=1e-6) <= RANK


def test_the_perceptron_is_what_scikit_learn_computes() -> None:
    task = digits()
    model = fitted(task, seed=1, epochs=2)
    module = Perceptron()
    load_state(module, arrays_of(model))
    samples = task.test[0]
    with torch.inference_mode():
        ours = torch.softmax(module(torch.from_numpy(samples)), 1).numpy()
    np.testing.assert_allclose(ours, model.predict_proba(samples), atol=1e-5)


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_keeps_what_a_network_computes_and_moves_its_weights(name: str) -> None:
    each = network_of(name)
    module, inputs = each.build().eval(), input_of(each)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))
    state = state_of(module)
    for rewrite in REWRITES[name].values():
        other = each.build().eval()
        made = rewrite(state, np.random.default_rng(4))
        load_state(other, single(made))
        with torch.inference_mode():
            np.testing.assert_allclose(other(inputs).numpy(), module(inputs).numpy(), atol=1e-4)
        moved = sum(state[tensor].size for tensor in state if not np.allclose(made[tensor], state[tensor]))
        assert moved > 0.9 * sum(array.size for array in state.values())
