"""`zktrace release` and `zktrace dispatch` as an operator meets them."""

import json
from pathlib import Path

import pytest

from dispatch.small import model_file, operator
from zktrace.cli.app import run
from zktrace.marking.settings import CopySettings
from zktrace.marking.weight import SHARE
from zktrace.models import model_digest, open_model


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    operator(tmp_path / "op", "alpha", "beta", "gamma")
    monkeypatch.chdir(tmp_path / "op")
    model_file(tmp_path / "op" / "model.safetensors")
    return tmp_path / "op"


def test_release_then_dispatch(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "model.safetensors", "--name", "spring", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["release"], facts["carriers"], facts["profile"]) == ("spring", ["weight"], "informed")
    assert facts["model"] == model_digest(open_model("model.safetensors")).hex()
    assert run(["dispatch", "--station", "beta", "--json"]) == 0
    (copy,) = json.loads(capsys.readouterr().out)["copies"]
    assert copy["file"] == str(here / "copies" / "spring" / "beta.safetensors")
    assert copy["digest"] == model_digest(open_model(copy["file"])).hex()
    assert run(["dispatch", "--all"]) == 0
    text = capsys.readouterr().out
    assert "2 copies of spring made, 1 were there" in text
    assert run(["dispatch", "--all", "--out", "elsewhere", "--release", "spring", "--workspace", "."]) == 0
    assert "3 copies of spring made, 0 were there" in capsys.readouterr().out
    assert run(["revoke", "gamma", "--reason", "left"]) == 0
    capsys.readouterr()
    assert run(["dispatch", "--station", "gamma"]) == 2
    assert "revoked" in capsys.readouterr().err


def test_the_default_share_is_the_librarys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert CopySettings().share == SHARE
    assert run(["release", "model.safetensors"]) == 0
    assert run(["dispatch", "--station", "alpha", "--out", "a"]) == 0
    assert run(["dispatch", "--station", "alpha", "--out", "b", "--share", str(SHARE)]) == 0
    assert Path("a/alpha.safetensors").read_bytes() == Path("b/alpha.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["release", "missing.safetensors"], "cannot be read"),
        (["release", "model.safetensors", "--profile", "paper"], "--proxy"),
        (["release", "model.safetensors", "--carrier", "both"], "--proxy"),
        (["release", "model.safetensors", "--name", "a b"], "no release name"),
        (["dispatch", "--all"], "no release yet"),
        (["dispatch"], "--all"),
        (["dispatch", "--all", "--station", "alpha"], "leave --station out"),
        (["dispatch", "--station", "omega", "--release", "x"], "no release"),
        (["dispatch", "--all", "--workspace", "copies"], "no workspace"),
    ],
)
def test_bad_input_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1


def test_unknown_stations_and_shares_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "model.safetensors"]) == 0
    capsys.readouterr()
    for extra, words in (
        (["--station", "omega"], "no station"),
        (["--station", "alpha", "--share", "0"], "share"),
    ):
        assert run(["dispatch", *extra]) == 2
        assert words in capsys.readouterr().err


def test_trained_copies_and_what_they_cost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.learning.presets import preset_text

    text = preset_text("smoke").replace("samples = 1_200", "samples = 700").replace("width = 8", "width = 4")
    text = text.replace("shot = 5\nquery = 5", "shot = 1\nquery = 2").replace(
        "imbalance = 2.0", "imbalance = 1.0"
    )
    Path("tiny.toml").write_text(text)
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--workspace", "."]) == 0
    model = "run/model.safetensors"
    assert run(["release", model, "--carrier", "both", "--proxy", "tiny.toml", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "70 validation samples of" in json.loads(lines[-1])["proxy"]
    both = ["dispatch", "--station", "alpha", "--station", "beta", "--evaluate", "tiny.toml", "--jobs", "1"]
    assert run([*both, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["made"] == 2
    assert facts["cost"] == pytest.approx(
        100 * (facts["accuracy"] - sum(copy["accuracy"] for copy in facts["copies"]) / 2)
    )
    assert run(both) == 0
    assert "a copy loses" in capsys.readouterr().out
    assert run(["release", model, "--profile", "paper", "--proxy", "tiny.toml"]) == 0
    assert run(["dispatch", "--station", "beta", "--episodes", "2"]) == 0
    tuned = [
        "attack",
        "finetune",
        model,
        "--preset",
        "tiny.toml",
        "--episodes",
        "2",
        "--out",
        "t.safetensors",
    ]
    assert run(tuned) == 0
    assert model_digest(open_model("t.safetensors")) != model_digest(open_model(model))
