"""`zktrace attack` as a researcher meets it."""

import json
from pathlib import Path

import numpy as np
import pytest

from dispatch.small import arrays, model_file
from zktrace.cli.app import run
from zktrace.models import ModelState, Tensor, model_digest, open_model, save_model


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    model_file(tmp_path / "a.safetensors")
    model_file(tmp_path / "b.safetensors", 1)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["quantise", "--bits", "2"],
        ["quantise", "--bits", "3", "--all"],
        ["prune", "--share", "0.4"],
        ["prune", "--share", "0.4", "--structured"],
        ["noise", "--sigma", "0.5", "--seed", "3"],
        ["reset", "--stage", "layer2"],
    ],
)
def test_a_model_file_becomes_another(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    before = Path("a.safetensors").read_bytes()
    assert run(["attack", *command, "a.safetensors", "--out", "c.safetensors", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    state = open_model("c.safetensors")
    assert facts["attack"] == command[0]
    assert facts["digest"] == model_digest(state).hex()
    assert model_digest(state) != model_digest(open_model("a.safetensors"))
    assert set(state) == set(arrays())
    assert Path("a.safetensors").read_bytes() == before
    assert run(["attack", *command, "a.safetensors", "--out", "c.safetensors"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run(["attack", *command, "a.safetensors", "--out", "c.safetensors", "--force"]) == 0


def test_copies_are_put_together(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [arrays(seed)["conv1.weight"] for seed in (0, 1)]
    expected = {"mean": (both[0] + both[1]) / 2, "minimum": np.minimum(*both), "maximum": np.maximum(*both)}
    for strategy, wanted in expected.items():
        command = ["attack", "collude", "a.safetensors", "b.safetensors", "--strategy", strategy]
        assert run([*command, "--out", f"{strategy}.safetensors"]) == 0
        assert np.array_equal(open_model(f"{strategy}.safetensors")["conv1.weight"], wanted)
    plain = ["attack", "collude", "a.safetensors", "b.safetensors", "--out", "c.safetensors"]
    assert run(plain) == 0
    assert open_model("c.safetensors") == open_model("mean.safetensors")
    weighted = [*plain, "--strategy", "weighted", "--force"]
    assert run([*weighted, "--weights", "3,1"]) == 0
    mixed = open_model("c.safetensors")["conv1.weight"]
    assert mixed == pytest.approx(0.75 * both[0] + 0.25 * both[1], abs=1e-6)
    assert run([*weighted, "--seed", "1"]) == 0
    assert not np.array_equal(open_model("c.safetensors")["conv1.weight"], mixed)


def test_a_coalition_of_bfloat16_copies_leaks_bfloat16(here: Path) -> None:
    bits = np.random.default_rng(0).integers(0x3F00, 0x4000, (2, 300)).astype("<u2")
    for name, each in zip("xy", bits, strict=True):
        held = Tensor(name="w", dtype="bfloat16", shape=(300,), data=each.data)
        save_model(here / f"{name}.safetensors", ModelState([held]))
    command = ["attack", "collude", "x.safetensors", "y.safetensors", "--strategy", "maximum"]
    assert run([*command, "--out", "z.safetensors"]) == 0
    (found,) = open_model("z.safetensors").tensors()
    assert found.dtype == "bfloat16"
    assert np.array_equal(np.frombuffer(found.data, "<u2"), bits.max(axis=0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.safetensors"], "at least two"),
        (["a.safetensors", "b.safetensors", "--strategy", "vote"], "not known"),
        (["a.safetensors", "b.safetensors", "--weights", "1,2"], "for the strategy 'weighted'"),
        (["a.safetensors", "b.safetensors", "--strategy", "weighted", "--weights", "1"], "one for each"),
        (["a.safetensors", "b.safetensors", "--strategy", "weighted", "--weights", "1,x"], "must be numbers"),
        (["a.safetensors", "b.safetensors", "--strategy", "weighted", "--weights", "1,-1"], "at least 0"),
        (["a.safetensors", "other.safetensors"], "copies of one model?"),
    ],
)
def test_a_coalition_that_cannot_be_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    save_model(here / "other.safetensors", {"w": np.zeros(3, np.float32)})
    assert run(["attack", "collude", *arguments, "--out", "c.safetensors"]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert not Path("c.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prune", "a.safetensors", "--share", "2"], "0..1"),
        (["noise", "a.safetensors", "--sigma", "-1"], "at least 0"),
        (["reset", "a.safetensors", "--stage", "layer9"], "not known"),
        (["quantise", "missing.safetensors"], "cannot be read"),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(["attack", *arguments, "--out", "c.safetensors"]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert not Path("c.safetensors").exists()


@pytest.fixture
def network(here: Path) -> Path:
    pytest.importorskip("torch", reason="torch is not installed")
    from attacks.lived import lived

    save_model(here / "n.safetensors", lived(width=4))
    return here


@pytest.mark.parametrize(
    ("command", "new"),
    [
        (["rescale", "--spread", "0.5", "--norms"], set()),
        (["rescale", "--features", "--seed", "2"], set()),
        (["permute", "--features"], set()),
        (["isometry", "--seed", "5"], {"fc.weight"}),
    ],
)
def test_a_network_becomes_another(
    network: Path, capsys: pytest.CaptureFixture[str], command: list[str], new: set[str]
) -> None:
    assert run(["attack", *command, "n.safetensors", "--out", "c.safetensors", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    before, after = open_model("n.safetensors"), open_model("c.safetensors")
    assert facts["attack"] == command[0]
    assert set(after) - set(before) == new
    assert model_digest(after) != model_digest(before)
    assert run(["attack", *command, "a.safetensors", "--out", "d.safetensors"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_student_is_distilled_and_taken_up(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from zktrace.learning.presets import preset_text

    text = preset_text("smoke")
    samples = next(line for line in text.splitlines() if line.startswith("samples"))
    Path("tiny.toml").write_text(text.replace(samples, "samples = 300", 1))
    command = ["attack", "distill", "n.safetensors", "--data", "tiny.toml", "--samples", "64"]
    command += ["--objective", "logits", "--epochs", "2", "--batch-size", "32", "--json"]
    assert run([*command, "--out", "s.safetensors", "--checkpoint", "run.safetensors"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert set(open_model("s.safetensors")) == set(open_model("n.safetensors"))
    assert run([*command, "--out", "t.safetensors", "--checkpoint", "run.safetensors"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == facts["digest"]
    assert run([*command, "--out", "s.safetensors"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert run([*command, "--samples", "100000", "--out", "u.safetensors"]) == 2
    assert "samples for the leaker" in capsys.readouterr().err
    assert run([*command, "--objective", "dreams", "--out", "u.safetensors"]) == 2
    assert "must be one of" in capsys.readouterr().err
