"""The study of insiders at its smallest, what each is handed, and the table of saved rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.attacks.insider import Effort, negated, own_score
from zktrace.errors import InputError
from zktrace.learning.presets import load_preset
from zktrace.marking.settings import CopySettings
from zktrace.readouts.reader import Reader, reader_of
from zktrace.readouts.scales import Arrays
from zktrace.studies.federation import FederationTrial
from zktrace.studies.ground import Ground, grounds
from zktrace.studies.insiders import (
    ALONE,
    KINDS,
    InsidersTrial,
    _Bench,
    _copy,
    batches,
    trials,
)
from zktrace.studies.paper_words import insiders_words
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study
from zktrace.studies.tables import TABLES

LENGTHS = {"weight": 256, "feature": 64, "output": 32}


@pytest.fixture(autouse=True)
def short_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(cls: type[Reader], name: str, shared: Arrays) -> int:
        return LENGTHS[name]

    monkeypatch.setattr(Reader, "default_length", classmethod(short))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("insiders")


def place(work: Path, profile: str) -> Ground:
    smoke = load_preset("smoke")
    tiny = replace(
        smoke,
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, clients=4, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    small = {"passes": 2, "batch_size": 32}
    settings = CopySettings(episodes=2, marks={"feature": small, "output": small})
    federation = FederationTrial(preset=tiny, seed=5)
    (found,) = grounds([federation], [profile], settings, work=work, cifar10=None, cache=None)
    return found


def bench(ground: Ground, **given: Any) -> _Bench:
    ground.make()
    asked = {"kind": "negation", "knows": "directions", "episodes": 2, "number": 0, "samples": 300}
    trial = InsidersTrial(ground=ground, **(asked | given))
    return _Bench(trial=trial, copy=_copy(ground, trial.member))


@pytest.mark.slow
def test_directions_turn_the_weights_row_and_guessed_ones_do_not(work: Path) -> None:
    """Informed, twice the copy's mark: the row reads reversed along the operator's directions alone."""
    ground = place(work, "informed")
    found = {}
    for knows in ("directions", "row"):
        desk = bench(ground, knows=knows, factor=2.0)
        pen = desk._pen({"weight": desk._row()["weight"]}, np.random.default_rng(1))
        weight = {"weight": negated(desk._row()["weight"])}
        made = pen.write(desk.copy, weight, Effort(episodes=2, factor=2.0), np.random.default_rng(2))
        values = ground.release.reader("weight").read(made)
        found[knows] = own_score(values, desk._row()["weight"])
        first = own_score(ground.release.reader("weight").read(desk.copy), desk._row()["weight"])
    assert first > 10
    assert found["directions"] < -10
    assert found["row"] > 5


def test_an_insider_that_knows_its_row_is_handed_nothing_of_the_operators(work: Path) -> None:
    """No seed, probe or model of the release is in its pen, and none of its images is the server's."""
    ground = place(work, "informed")
    desk = bench(ground, knows="row")
    pen = desk._pen(desk._row(), np.random.default_rng(3))
    servers = {image.tobytes() for image in np.asarray(ground.release.pool.images)}
    assert not any(image.tobytes() in servers for image in pen.pool.images)
    for name, terms in pen.terms.items():
        theirs = ground.release.terms(name)
        assert terms.seed != theirs.seed
        assert terms.length == theirs.length
        assert terms.shared is None or terms.shared is desk.copy
        probes = [] if terms.probes is None else list(terms.probes["probes"])
        assert not any(image.tobytes() in servers for image in probes)


def test_the_paper_s_insider_has_directions_and_probes_but_no_shared_model(work: Path) -> None:
    desk = bench(place(work, "informed"), knows="directions")
    pen = desk._pen(desk._row(), np.random.default_rng(4))
    assert all(terms.seed == desk.trial.ground.release.terms(name).seed for name, terms in pen.terms.items())
    assert pen.terms["spread"].shared is desk.copy
    assert set(pen.read(desk.copy)) == {"weight", "feature"}
    np.testing.assert_allclose(
        pen.read(desk.copy)["weight"], reader_of(pen.terms["weight"]).project(desk.copy)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "kinds", "count"),
    [("paper", KINDS, 2 * 5 + len(ALONE)), ("informed", ("replacement", "adaptive", "noise"), 2 * 2 + 1)],
)
def test_every_insider_has_a_row_once(
    work: Path, tmp_path: Path, profile: str, kinds: tuple[str, ...], count: int
) -> None:
    ground, rows = place(work, profile), Rows(tmp_path / "rows.jsonl")
    wanted = list(trials([ground], kinds=kinds, episodes=[2], count=1, samples=300))
    ran = run_study(batches(wanted), rows)
    made = ran.made
    assert not ran.failures
    assert len(made) == len(wanted) == count
    assert run_study(batches(wanted[:2]), rows).there == 2
    carriers = {"weight", "feature"} | ({"spread", "output"} if profile == "informed" else set())
    for row in made:
        assert set(row.outcome["columns"]) == set(row.outcome["before"]) == carriers | {"all"}
        assert row.outcome["framed"] == 0
        assert row.outcome["before"]["weight"]["caught"] == 1
        assert 0 < row.outcome["accuracy"] <= 1
        assert row.outcome["escaped"] <= (not row.outcome["named"])
    by = {(row.trial["kind"], row.trial["knows"]): row.outcome for row in made}
    if profile == "informed":
        assert not by["replacement", "directions"]["columns"]["weight"]["caught"]
        assert by["replacement", "row"]["columns"]["weight"]["caught"]
    table = TABLES["insiders"](rows.read())
    assert table.count("\n") == 1 + len(wanted)


def test_what_is_planned(work: Path) -> None:
    ground = place(work, "informed")
    wanted = list(trials([ground], kinds=["hybrid", "noise", "retrain"], factors=[1.0, 2.0], count=3))
    assert len(wanted) == 2 * 3 * 2 * 3 + 3 + 3 * 3
    assert {each.member for each in wanted} == {1, 2, 3}
    (whole,), (part,) = batches(wanted), batches(wanted[:3])
    assert whole.size == len(wanted)
    assert whole.guess > part.guess
    with pytest.raises(InputError, match="no insider 'wish'"):
        list(trials([ground], kinds=["wish"]))
    with pytest.raises(InputError, match="does not know 'shared'"):
        list(trials([ground], kinds=["fresh"], knows=["shared"]))


def saved(kind: str, episodes: int, *, escaped: bool, own: float, **trial: object) -> Row:
    column = {"own": {"weight": own}}
    return Row(
        trial={
            "study": "insiders",
            "dataset": "gnss",
            "profile": "paper",
            "unit": 300,
            "kind": kind,
            "knows": "directions",
            "episodes": episodes,
            "factor": 1.0,
            "push": 0.0,
        }
        | trial,
        outcome={
            "named": not escaped,
            "escaped": escaped,
            "framed": 0,
            "columns": {"weight": column},
            "before": {"weight": {"own": {"weight": 12.0}}},
            "accuracy": 0.75,
            "copy_accuracy": 0.78,
        },
        origin={},
    )


def test_the_table_puts_escapes_beside_the_papers() -> None:
    rows = [
        saved("hybrid", 600, escaped=True, own=1.0),
        saved("hybrid", 300, escaped=False, own=6.0),
        saved("hybrid", 300, escaped=True, own=2.0),
        saved("hybrid", 1200, escaped=False, own=-9.0),
        saved("hybrid", 300, escaped=False, own=11.0, knows="row"),
        saved("noise", 0, escaped=False, own=11.5, knows="copy"),
    ]
    lines = [line.strip("| ").split(" | ") for line in TABLES["insiders"](rows).splitlines()]
    assert lines[0][:9] == [
        "data", "profile", "insider", "knows", "effort", "escaped", "named", "framed",
        "weight: score in deviations, before → after",
    ]  # fmt: skip
    shown = {(line[2], line[3], line[4]): line[5:] for line in lines[2:]}
    assert shown["hybrid", "row, directions", "300 episodes"] == [
        "1/2", "1/2", "0", "12.0 → 4.0 (2.0 to 6.0)", "75.0 % (78.0 %)", "5/20",
    ]  # fmt: skip
    assert shown["hybrid", "row, directions", "600 episodes"][-1] == "20/20"
    assert shown["hybrid", "row, directions", "1200 episodes"][-1] == "0/20"
    assert shown["hybrid", "row", "300 episodes"][-1] == "-"
    assert shown["noise on every matrix", "copy", "-"][0] == "0/1"
    assert shown["hybrid", "row", "300 episodes"][3] == "12.0 → 11.0", "one run has no range"


def test_words_hold_hybrids_against_the_papers_and_say_who_escaped() -> None:
    rows = [
        saved("hybrid", 300, escaped=False, own=6.0, seed=42),
        saved("hybrid", 600, escaped=False, own=6.0, seed=42),
        saved("hybrid", 1200, escaped=True, own=1.0, seed=42),
        saved("hybrid", 1200, escaped=True, own=1.0, seed=137),
        saved("hybrid", 300, escaped=True, own=1.0, seed=42, knows="row"),
        saved("adaptive", 300, escaped=False, own=7.0, seed=42),
    ]
    said = insiders_words(rows)
    assert "Profile paper: 3 of 6 insiders escaped; 0 framed somebody." in said
    assert (
        "Its hybrids escape in 0 of 1 at 1 times, 0 of 1 at 2 times, 2 of 2 at 4 times a copy's "
        "effort (paper: "
        "5 of 20, 20 of 20, 0 of 20)." in said
    )
    assert "1200 episodes, GNSS, simulated, seeds 42, 137: 75.0 % (its copy 78.0 %)" in said
    assert "copies here move less" in said
    assert "informed" not in said
    ours = insiders_words([saved("noise", 0, escaped=False, own=9.0, profile="informed", knows="copy")])
    assert ours == "Profile informed: 0 of 1 insiders escaped; 0 framed somebody."
