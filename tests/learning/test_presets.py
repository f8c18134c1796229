"""Presets: the paper's values, files that a user may edit, and one line for whatever is wrong with one."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from zktrace.errors import InputError, MalformedFile, Refused, UnknownParameters
from zktrace.learning.presets import NAMES, load_preset, parse_preset, preset_text


def test_the_papers_values() -> None:
    paper = load_preset("paper")
    assert paper.as_dict() == {
        "data": {
            "dataset": "gnss",
            "samples": 100_000,
            "imbalance": 178.0,
            "setting": "B",
            "domain_shift": True,
        },
        "model": {"depth": 18, "width": 64},
        "pretraining": {
            "epochs": 200,
            "batch_size": 128,
            "samples": 0,
            "learning_rate": 0.01,
            "momentum": 0.9,
            "weight_decay": 5e-4,
        },
        "episodes": {
            "way": 5,
            "shot": 5,
            "query": 15,
            "episodes": 25,
            "temperature": 1.0,
            "learning_rate": 0.001,
            "momentum": 0.9,
            "weight_decay": 5e-4,
        },
        "federation": {
            "clients": 10,
            "rounds": 100,
            "participation": 1.0,
            "alpha": 2.0,
            "aggregation": "fedavg",
        },
        "marks": {
            "bits": 128,
            "lambda_wm": 0.1,
            "mu": 1.0,
            "p_drop": 0.5,
            "raw": True,
            "push_margin": 0.0,
        },
        "evaluation": {"way": 5, "shot": 5, "query": 15, "episodes": 200},
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_its_file(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(preset_text(name))
    preset = load_preset(copy)
    assert preset == load_preset(str(copy)) == load_preset(name)
    assert preset.as_dict() == tomllib.loads(preset_text(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset.model.width = 1  # type: ignore[misc]


def test_desk_is_the_full_model_and_plans_forty_minutes() -> None:
    desk = load_preset("desk")
    paper = load_preset("paper")
    assert (desk.model, desk.data) == (paper.model, paper.data)
    assert dataclasses.replace(desk.marks, raw=True, push_margin=0.0) == paper.marks
    first = desk.pretraining.epochs * desk.pretraining.samples
    local = desk.federation.clients * desk.episodes.episodes * desk.episodes.shape.images
    assert first / 380 + desk.federation.rounds * local / 700 < 2400  # images/s of one process and of two


def test_whole_numbers_serve_as_numbers() -> None:
    text = preset_text("paper").replace("alpha = 2.0", "alpha = 2")
    alpha = parse_preset(text, source="x").federation.alpha
    assert (alpha, type(alpha)) == (2.0, float)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "clients = 10",
            "clients = 10\nclient = 3",
            "x.toml: unknown key 'federation.client'; known here: aggr",
        ),
        (
            "[marks]",
            "[watermarks]\na = 1\n[marks]",
            "x.toml: unknown key 'watermarks'; known here: data, epi",
        ),
        ("width = 64", "", "x.toml: missing key 'model.width'"),
        ("clients = 10", 'clients = "10"', "x.toml: federation.clients must be a whole number, not '10'"),
        ("clients = 10", "clients = 10.0", "x.toml: federation.clients must be a whole number, not 10.0"),
        ("clients = 10", "clients = true", "x.toml: federation.clients must be a whole number, not True"),
        ("alpha = 2.0", "alpha = [2.0]", "x.toml: federation.alpha must be a number, not [2.0]"),
        ("domain_shift = true", "domain_shift = 1", "x.toml: data.domain_shift must be true or false, not 1"),
        ('"gnss"', "7", "x.toml: data.dataset must be text in quotes, not 7"),
        ('"gnss"', '"mnist"', "x.toml: data.dataset = 'mnist' must be one of gnss, cifar10"),
        ('"fedavg"', '"mean"', "x.toml: federation.aggregation = 'mean' must be one of fedavg, median"),
        ("clients = 10", "clients = 0", "x.toml: federation.clients = 0 must be at least 1"),
        (
            "participation = 1.0",
            "participation = 0",
            "x.toml: federation.participation = 0.0 must be above 0",
        ),
        ("alpha = 2.0", "alpha = nan", "x.toml: federation.alpha = nan must be a positive number"),
        ("p_drop = 0.5", "p_drop = 1.0", "x.toml: marks.p_drop = 1.0 must be at least 0 and below 1"),
        ("epochs = 200", "epochs = -1", "x.toml: pretraining.epochs = -1 must be at least 0"),
        ("episodes = 25", "episodes = 0", "x.toml: episodes.episodes = 0 must be at least 1"),
        ("depth = 18", "depth = 50", "x.toml: model.depth = 50 must be 18 or 34"),
        ("query = 15", "query = 0", "x.toml: episodes.query = 0 must be at least 1 question a class"),
        ("[model]", "[model", "x.toml: not TOML (Expected ']'"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_key_and_the_file(old: str, new: str, message: str) -> None:
    text = preset_text("paper").replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        parse_preset(text, source="x.toml")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_section_must_be_one() -> None:
    with pytest.raises(InputError, match=r"x\.toml: data must be a section, not 3"):
        parse_preset(
            "data=3\nmodel=1\npretraining=1\nepisodes=1\nfederation=1\nmarks=1\nevaluation=1", source="x.toml"
        )


def test_what_is_no_preset(tmp_path: Path) -> None:
    with pytest.raises(UnknownParameters, match="no preset 'tiny'; known: smoke, demo, study, half, desk, paper"):
        load_preset("tiny")
    with pytest.raises(Refused, match=r"absent\.toml: cannot be read"):
        load_preset(tmp_path / "absent.toml")
    noise = tmp_path / "noise.toml"
    noise.write_bytes(b"\xff\xfe")
    with pytest.raises(MalformedFile, match=r"noise\.toml: not UTF-8"):
        load_preset(noise)
