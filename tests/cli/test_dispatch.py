"""`zktrace release` and `zktrace dispatch` as an operator meets them."""

import json
from pathlib import Path

import numpy as np
import pytest

from dispatch.small import SHAPES, arrays, operator
from zktrace.cli.app import run
from zktrace.marking.settings import CopySettings, usual_strength
from zktrace.marking.weight import SHARE
from zktrace.models import model_digest, open_model, save_model
from zktrace.registry.custody import default_shape

WEIGHT = ("--carrier", "weight", "--length", "128")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    operator(tmp_path / "op", "alpha", "beta", "gamma", shapes=(default_shape("spread"), *SHAPES[:2]))
    monkeypatch.chdir(tmp_path / "op")
    matrix = np.random.default_rng(1).normal(size=(96, 64)).astype(np.float32)
    save_model(tmp_path / "op" / "model.safetensors", {**arrays(), "fc.weight": matrix})
    return tmp_path / "op"


def test_release_then_dispatch(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["release", "model.safetensors", "--name", "spring", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["release"], facts["carriers"], facts["profile"]) == ("spring", ["spread"], "informed")
    assert facts["layouts"] == [
        {"carrier": "spread", "length": 256, "numbers": 6144, "tensors": {"fc.weight": 6144}}
    ]
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


@pytest.mark.parametrize(
    ("carrier", "option", "usual"),
    [(WEIGHT, "--share", SHARE), ((), "--strength", usual_strength(6144))],
    ids=["share", "strength"],
)
def test_the_default_share_is_the_librarys(
    here: Path, capsys: pytest.CaptureFixture[str], carrier: tuple[str, ...], option: str, usual: float
) -> None:
    assert (CopySettings().share, CopySettings().strength) == (SHARE, None)
    assert run(["release", "model.safetensors", *carrier]) == 0
    assert run(["dispatch", "--station", "alpha", "--out", "a"]) == 0
    assert run(["dispatch", "--station", "alpha", "--out", "b", option, str(usual)]) == 0
    assert run(["dispatch", "--station", "alpha", "--out", "c", option, str(2 * usual)]) == 0
    usual_copy, same, stronger = (Path(f"{each}/alpha.safetensors").read_bytes() for each in "abc")
    assert usual_copy == same != stronger


def test_lengths_are_said_for_one_carrier_or_for_several(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = ["release", "model.safetensors", "--json"]
    for more, expected in (
        (["--length", "128"], {"spread": 128}),
        (["--length", "spread=128"], {"spread": 128}),
        (WEIGHT, {"weight": 128}),
        (["--carrier", "weight", "--length", "128", "--length", "weight=200"], {"weight": 200}),
    ):
        assert run([*release, *more]) == 0
        layouts = json.loads(capsys.readouterr().out)["layouts"]
        assert {each["carrier"]: each["length"] for each in layouts} == expected
    assert run(["release", "model.safetensors"]) == 0
    assert "\n  spread: 256 positions, in 1 tensors\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["release", "missing.safetensors"], "cannot be read"),
        (["release", "model.safetensors", "--profile", "paper"], "--proxy"),
        (["release", "model.safetensors", "--carrier", "both"], "--proxy"),
        (["release", "model.safetensors", "--name", "a b"], "no release name"),
        (["release", "model.safetensors", "--length", "many"], "a number of positions, or CARRIER=NUMBER"),
        (["release", "model.safetensors", "--length", "spread="], "a number of positions"),
        (["release", "model.safetensors", "--length", "1" * 10], "a number of positions"),
        (["release", "model.safetensors", "--length", "64"], "a judge asks for 128"),
        (["release", "model.safetensors", "--length", "0"], "a judge asks for 128"),
        (["release", "model.safetensors", "--length", "512"], "a power of two from 128 to 256"),
        (["release", "model.safetensors", "--length", "weight=256"], "do not carry it"),
        (["release", "model.safetensors", "--carrier", "weight"], "room for 295"),
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
        (["--station", "alpha", "--strength", "0"], "strength"),
    ):
        assert run(["dispatch", *extra]) == 2
        assert words in capsys.readouterr().err


def test_trained_copies_and_what_they_cost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.learning.presets import preset_text

    text = (
        preset_text("smoke").replace("samples = 1_200", "samples = 1_300").replace("width = 8", "width = 4")
    )
    text = text.replace("shot = 5\nquery = 5", "shot = 1\nquery = 2").replace(
        "imbalance = 2.0", "imbalance = 1.0"
    )
    Path("tiny.toml").write_text(text)
    assert run(["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--workspace", "."]) == 0
    model = "run/model.safetensors"
    proxy = ["--carrier", "both", "--length", "128", "--proxy", "tiny.toml"]
    assert run(["release", model, *proxy, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "130 validation samples of" in json.loads(lines[-1])["proxy"]
    both = ["dispatch", "--station", "alpha", "--station", "beta", "--evaluate", "tiny.toml", "--jobs", "1"]
    assert run([*both, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["made"] == 2
    assert facts["cost"] == pytest.approx(
        100 * (facts["accuracy"] - sum(copy["accuracy"] for copy in facts["copies"]) / 2)
    )
    assert run(both) == 0
    assert "a copy loses" in capsys.readouterr().out
    assert run(["release", model, "--profile", "paper", "--length", "128", "--proxy", "tiny.toml"]) == 0
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
