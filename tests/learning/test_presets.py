"""Presets: the paper's values, files that a user may edit, and one line for whatever is wrong with one."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from zktrace.errors import InputError, MalformedFile, Refused, UnknownParameters
from zktrace.learning.data import class_counts, episode_report, make_plan
from zktrace.learning.data.counts import shuffled_labels
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
        ('"gnss"', '"mnist"', "x.toml: data.dataset = 'mnist' must be one of gnss, cifar10, recordings"),
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
    with pytest.raises(
        UnknownParameters, match="no preset 'tiny'; known: smoke, demo, study, half, desk, paper"
    ):
        load_preset("tiny")
    with pytest.raises(Refused, match=r"absent\.toml: cannot be read"):
        load_preset(tmp_path / "absent.toml")
    noise = tmp_path / "noise.toml"
    noise.write_bytes(b"\xff\xfe")
    with pytest.raises(MalformedFile, match=r"noise\.toml: not UTF-8"):
        load_preset(noise)


def test_study_has_the_papers_load_and_takes_two_minutes() -> None:
    study, paper = load_preset("study"), load_preset("paper")
    assert (study.episodes.shape, study.evaluation.shape) == (paper.episodes.shape, paper.evaluation.shape)
    assert study.federation.clients == paper.federation.clients
    assert study.marks.bits / study.model.width == paper.marks.bits / paper.model.width  # scales by width
    first = study.pretraining.epochs * study.pretraining.samples
    local = study.federation.clients * study.episodes.episodes * study.episodes.shape.images
    assert (first + study.federation.rounds * local) / 1500 <= 120  # images/s of one process


@pytest.mark.parametrize("seed", [42, 137, 271, 314, 1729, 2718, 3141, 5772, 6561, 9999])
def test_in_study_every_station_forms_episodes(seed: int) -> None:
    """By the labels alone: no sample is simulated."""
    study = load_preset("study")
    labels = shuffled_labels(class_counts(study.data.samples, imbalance=study.data.imbalance), seed=seed)
    plan = make_plan(labels, classes=6, alpha=study.federation.alpha, seed=seed)
    reports = episode_report(labels, plan.shards(), classes=6, shape=study.episodes.shape)
    assert all(each.formable for each in reports)


def test_a_preset_stands_on_another(tmp_path: Path) -> None:
    """By name or from a file beside it; only what is named differs."""
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "skewed.toml").write_text('base = "study"\n[federation]\nalpha = 0.5\n')
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "near/skewed.toml"\n[federation]\nclients = 20\n[marks]\nmu = 2\n')
    study, found = load_preset("study"), load_preset(mine)
    assert found.federation == dataclasses.replace(study.federation, alpha=0.5, clients=20)
    assert found.marks == dataclasses.replace(study.marks, mu=2.0)
    rest = {"data", "model", "pretraining", "episodes", "evaluation"}
    assert all(getattr(found, each) == getattr(study, each) for each in rest)
    assert parse_preset('base = "study"', source="x") == study


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base = 3", "mine.toml: base must be text in quotes, not 3"),
        (
            'base = "tiny"',
            "mine.toml: base: no preset 'tiny'; known: smoke, demo, study, half, desk, paper, or",
        ),
        ('base = "absent.toml"', "absent.toml: cannot be read"),
        ('base = "mine.toml"', "mine.toml: base: stands on itself"),
        ('base = "back.toml"', "mine.toml: base: stands on itself"),
        ('base = "study"\n[marks]\nbit = 3', "mine.toml: unknown key 'marks.bit'; known here: bits"),
        ('base = "study"\n[mark]\nbits = 3', "mine.toml: unknown key 'mark'; known here: data"),
        ('base = "study"\nmarks = 3', "mine.toml: marks must be a section, not 3"),
        ('base = "study"\n[marks]\nbits = 0', "mine.toml: marks.bits = 0 must be at least 1"),
        ('base = "study"\n[marks]\nbits = "a"', "mine.toml: marks.bits must be a whole number, not 'a'"),
        ('base = "wrong.toml"', "wrong.toml: marks.bits = 0 must be at least 1"),
        (
            "[marks]\nbits = 3",
            "mine.toml: missing keys 'data', 'episodes', 'evaluation', 'federation', 'model'",
        ),
    ],
)
def test_what_is_wrong_with_a_base_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "back.toml").write_text('base = "mine.toml"')
    (tmp_path / "wrong.toml").write_text('base = "study"\n[marks]\nbits = 0')
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_preset(tmp_path / "mine.toml")
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)
    assert "\n" not in str(caught.value)


def test_presets_do_not_stand_on_each_other_without_end(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.toml").write_text(f'base = "{number + 1}.toml"')
    (tmp_path / "30.toml").write_text('base = "study"')
    assert load_preset(tmp_path / "20.toml") == load_preset("study")
    with pytest.raises(InputError, match=r"16\.toml: base: more than 16 presets stand on each other"):
        load_preset(tmp_path / "0.toml")


def test_a_text_that_came_alone_names_no_file() -> None:
    with pytest.raises(InputError, match=r"a run file: base = '/etc/x\.toml' must be one of smoke"):
        parse_preset('base = "/etc/x.toml"', source="a run file")


def test_a_preset_names_recordings(tmp_path: Path) -> None:
    """From where its file is; a preset without recordings says nothing of them."""
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "study"\n[data]\ndataset = "recordings"\nfolder = "crpa"\nfull_scale = 32768\n')
    data = load_preset(mine).data
    assert (data.dataset, data.folder, data.full_scale) == ("recordings", str(tmp_path / "crpa"), 32768.0)
    assert data.as_dict().keys() - load_preset("study").data.as_dict().keys() == {"folder", "full_scale"}
    mine.write_text('base = "study"\n[data]\ndataset = "recordings"\n')
    with pytest.raises(InputError, match=r"mine\.toml: data\.folder is missing: where the recordings are"):
        load_preset(mine)
    mine.write_text('base = "study"\n[data]\nfull_scale = 0\n')
    with pytest.raises(InputError, match=r"data\.full_scale = 0\.0 must be a positive number"):
        load_preset(mine)


def test_a_receiver_shift_is_told_only_where_there_is_one() -> None:
    """So that runs of presets that never heard of it keep their names."""
    study = load_preset("study")
    shifted = parse_preset('base = "study"\n[data]\nreceiver_shift = true\n', source="x.toml")
    assert "receiver_shift" not in study.as_dict()["data"]
    assert shifted.as_dict()["data"] == study.as_dict()["data"] | {"receiver_shift": True}
    with pytest.raises(InputError, match=r"data\.receiver_shift is of simulated GNSS, not of cifar10"):
        parse_preset('base = "study"\n[data]\ndataset = "cifar10"\nreceiver_shift = true\n', source="x.toml")
