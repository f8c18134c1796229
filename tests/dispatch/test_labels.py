"""A copy behind a service that answers with classes alone: marked, asked, traced and judged by commands."""

import json
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dispatch.small import SHAPES, operator, short_release
from learning.synthetic import task, taught
from zktrace.cli.app import run
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import InputError, MalformedFile
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.configs import EpisodicConfig
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, open_model, save_model
from zktrace.readouts.samples import Pool
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease
from zktrace.releases.queries import Order, label_queries_of, picked, picked_labels

MARK = {"passes": 40, "batch_size": 32, "beside": 32, "triggers": 12.0, "lead": 2.0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A release whose copies say their rows in answers too, and a copy of it for `beta`."""
    folder = tmp_path_factory.mktemp("labels")
    place = operator(folder / "op", "alpha", "beta", "gamma", shapes=SHAPES, budget=Fraction(1, 2))
    save_model(folder / "model.safetensors", taught(width=8))
    images, labels = task(320, seed=1)
    config = EpisodicConfig(way=5, shot=2, query=3, temperature=8.0, learning_rate=0.01)
    pool = Pool(images=images, labels=labels, episodes=asdict(config), note="a task")
    short_release(place, folder / "model.safetensors", carriers=("output",), pool=pool)
    list(dispatch(place, stations=["beta"], settings=CopySettings(marks={"output": MARK})))
    return place


def answers(made: Home, model: ModelState, inputs: np.ndarray) -> np.ndarray:
    """The nearest prototype's class, as a service might be built on an embedding."""
    asked = OpenRelease.of(made, "r1").terms("output").probes or {}
    support = Support(images=np.array(asked["support"]), labels=np.array(asked["labels"]))
    return class_scores(model, inputs, support).argmax(axis=1)


def test_a_service_that_answers_with_classes_is_traced_and_judged(
    made: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    at = ["--workspace", str(made.root)]
    assert run(["probes", "export", "--labels", "--out", "q.npz", "--order", "o.key", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 128
    said = answers(made, open_model(made.copy_path("r1", "beta")), np.load("q.npz")["inputs"])
    np.savez("answers.npz", answers=said)
    assert run(["probes", "collect", "answers.npz", "--order", "o.key", "--out", "scores.npz", *at]) == 0
    capsys.readouterr()
    asked = ["trace", "--scores", "scores.npz", "--budget", "1/100", "--out", "case.json", "--json", *at]
    assert run(asked) == 0
    assert [each["station"] for each in json.loads(capsys.readouterr().out)["named"]] == ["beta"]
    Path("policy.toml").write_text("accept_weak_credentials = true\n")  # the stations' keys are for tests
    head = made.registry.head().to_text()
    judged = ["judge", "case.json", "--head", head, "--policy", "policy.toml", "--scores"]
    assert run([*judged, "scores.npz"]) == 0


def test_a_model_without_a_row_says_none_behind_a_service(made: Home) -> None:
    """The shared model, moved a little: at its own triggers two classes are level, and rounding decides."""
    opened, rng = OpenRelease.of(made, "r1"), np.random.default_rng(3)
    moved = {
        name: array * (1 + 0.02 * rng.standard_normal(array.shape)) if array.dtype.kind == "f" else array
        for name, array in opened.shared.items()
    }
    inputs, order = label_queries_of(opened)
    said = answers(made, ModelState.from_arrays(moved), inputs)
    (found,) = opened.read_answers(picked_labels(said, order, opened)).readouts
    code = opened.code("output")
    rows = np.unpackbits(code.rows(range(3)), axis=1, count=128)
    assert max(abs(float(np.corrcoef(found.values, row)[0, 1])) for row in rows) < 0.35


def test_a_service_that_always_answers_alike_tells_nothing(made: Home) -> None:
    opened = OpenRelease.of(made, "r1")
    _, order = label_queries_of(opened)
    with pytest.raises(InputError, match="there is nothing to read"):
        picked_labels(np.zeros(len(order.places), np.int64), order, opened)


def test_orders_of_triggers_and_of_probes_are_kept_apart(made: Home) -> None:
    opened = OpenRelease.of(made, "r1")
    inputs, order = label_queries_of(opened)
    assert Order.from_bytes(order.to_bytes()) == order
    assert sorted(order.places) == list(range(len(inputs)))
    labels = np.zeros(len(inputs), np.int64)
    with pytest.raises(InputError, match="not with scores"):
        picked(np.zeros((len(inputs), 6)), order)
    with pytest.raises(InputError, match="127 answers to 128"):
        picked_labels(labels[1:], order, opened)
    plain = Order(release="r1", total=8, places=tuple(range(8)))
    with pytest.raises(InputError, match="not with labels"):
        picked_labels(labels[:8], plain, opened)
    with pytest.raises(MalformedFile, match="zkt-order-labels-v1"):
        Order.from_bytes(order.to_bytes().replace(b"labels-v1", b"labels-v9"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["probes", "export", "--labels", "--decoys", "5", "--out", "q.npz", "--order", "o.key"], "decoys"),
        (["probes", "collect", "a.npz", "--order", "l.key", "--out", "s.npz"], "whole numbers"),
        (["probes", "collect", "a.npz", "--order", "l.key", "--out", "s.npz", "--probabilities"], "leave"),
    ],
)
def test_bad_input_is_one_line(
    made: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", answers=np.zeros(128))
    order = Order(release="r1", total=128, places=tuple(range(128)), labels=True)
    Path("l.key").write_bytes(order.to_bytes())
    assert run([*arguments, "--workspace", str(made.root)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
