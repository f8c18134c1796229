"""The study of published systems: rows of every part, resumed, and tables that say what rows say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from federation import small
from zktrace.baselines.fedipr import FedIPR
from zktrace.baselines.listing import LISTED, Listed
from zktrace.baselines.protocol import MarkReading
from zktrace.baselines.table import SYSTEMS
from zktrace.errors import InputError
from zktrace.studies.baselines import GRIDS, PARTS, BaselineBatch, batches
from zktrace.studies.baselines_field import Field
from zktrace.studies.baselines_tables import (
    baselines_coalitions_table,
    baselines_table,
    framing,
    kd_table,
    retained,
)
from zktrace.studies.baselines_words import baselines_words, kd_words
from zktrace.studies.exhibits import EXHIBITS
from zktrace.studies.provenance import provenance
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import estimate, run_study
from zktrace.studies.tracing_figure import _band


def wanted(work: Path, **changes: Any) -> list[BaselineBatch]:
    grid = replace(GRIDS["short"], **changes)
    return batches(small.preset(), [FedIPR.smallest()], ["gnss"], [1], grid, work=work)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    work = tmp_path_factory.mktemp("baselines")
    found = Rows(work / "rows.jsonl")
    ran = run_study(wanted(work), found)
    assert not ran.failures
    assert len(ran.made) == len(PARTS)
    return work, found


def test_every_part_has_a_row_and_is_not_done_again(rows: tuple[Path, Rows]) -> None:
    work, found = rows
    by_part = {row.trial["part"]: row.outcome for row in found.read()}
    assert set(by_part) == set(PARTS)
    assert estimate(wanted(work), found).trials == 0
    assert estimate(wanted(work, keys=3), found).trials == 1
    marks = by_part["marks"]
    assert marks["mark"] == marks["shared"]["mark"]
    assert marks["proof"] is None
    assert set(marks["payload"]) == {"projection", "word"}
    assert by_part["coalitions"]["alike"] is True
    assert [each["family"] for each in by_part["attacks"]["attacks"]] == ["none", "noise", "finetune"]
    assert by_part["attacks"]["attacks"][0]["mark"] == marks["copies"][1]["mark"]
    assert provenance(found.read())


def test_a_run_that_was_stopped_begins_its_rounds_again(rows: tuple[Path, Rows]) -> None:
    _, found = rows
    work = found.path.parent
    folder = next(each for each in work.glob("fedipr-*") if each.is_dir())
    batch = wanted(work, parts=("marks",))[0]
    before = (folder / "model.safetensors").read_bytes()
    (folder / "early.safetensors").unlink()
    field = Field(system=batch.system, base=batch.control.spec, control=batch.control.folder, folder=folder)
    assert field.result["rounds"] == 2
    assert (folder / "model.safetensors").read_bytes() == before
    assert (folder / "early.safetensors").exists()


def test_tables_show_what_rows_say(rows: tuple[Path, Rows]) -> None:
    found = rows[1].read()
    marks = next(row.outcome for row in found if row.trial["part"] == "marks")
    line = baselines_table(found).splitlines()[2]
    assert f"{marks['accuracy']:.3f} (.925)" in line
    assert "none: all are alike" in line
    assert "fedipr" in kd_table(found)
    assert baselines_coalitions_table(found).count("\n") == 1, "it names no recipients"
    assert kd_words(found).startswith(("0 of 1", "1 of 1"))
    for exhibit in EXHIBITS:
        if exhibit.studies[:1] == ("baselines",) and exhibit.kind == "table":
            assert exhibit.table(found) is not None


def row(part: str, outcome: dict[str, Any], **trial: Any) -> Row:
    facts = {"study": "baselines", "part": part, "dataset": "gnss", "seed": 1, "system": "deepmarks"}
    return Row(trial=facts | trial, outcome=outcome, origin={})


def coalition(size: int, strategy: str, framed: int) -> dict[str, Any]:
    return {"size": size, "strategy": strategy, "count": 4, "traced": 1, "framed": framed}


def test_framing_counts_averages_and_those_within_the_design() -> None:
    lines = [coalition(2, "mean", 1), coalition(8, "mean", 3), coalition(2, "minimum", 4)]
    some = [row("coalitions", {"alike": False, "coalitions": lines})]
    assert framing(some) == (4, 8)
    assert framing(some, within=True) == (1, 4)
    assert framing([]) is None
    assert "4 of 8 averaged coalitions of all sizes (paper: 50 %)" in baselines_words(some)
    assert "1 of 4 averaged coalitions of at most 5 members (paper: 58 %)" in baselines_words(some)
    assert "the noise of averaging" not in baselines_words(some)
    few = [row("coalitions", {"alike": False, "coalitions": [coalition(2, "mean", 0)]})]
    assert "Words are read exactly here, along centred directions" in baselines_words(few)
    assert [each.value for each in _band(some)] == [0.5, 0.5, 0.58]
    assert _band([]) == ()
    assert "| 1, 1, 4 | 1, 3, 4 |" in baselines_coalitions_table(some)


def test_an_innocent_is_counted_where_recipients_are_named_and_only_there() -> None:
    field = Field(system=SYSTEMS["duw"](), base=small.spec(), control=Path("none"), folder=Path("none"))
    reading = MarkReading(mark=1.0, scores=(0.1, 1.0, 0.2), named=(1,))
    told = field.told(reading, [0])
    assert (told["caught"], told["framed"], told["first"], told["own"]) == (0, 1, 1, 0.1)
    assert field.told(reading, [1])["framed"] == 0
    shared = Field(system=SYSTEMS["fedipr"](), base=small.spec(), control=Path("none"), folder=Path("none"))
    assert shared.told(reading, [0])["framed"] == 0, "its words say who took part"


@pytest.mark.parametrize(
    ("system", "outcome", "kept"),
    [
        ("duw", {"named": [3], "present": None}, True),
        ("duw", {"named": [2], "present": None}, False),
        ("deepmarks", {"named": [2, 3], "present": None}, False),
        ("waffle", {"named": [], "present": True}, True),
        ("fedipr", {"named": [3], "present": False}, False),
    ],
)
def test_a_suspect_is_told_if_its_leaker_and_nobody_else_is(
    system: str, outcome: dict[str, Any], kept: bool
) -> None:
    assert retained(system, outcome, 3) is kept


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(InputError, match="marks, innocents, attacks, coalitions, distillation"):
        replace(GRIDS["short"], parts=("nothing",))


def test_rows_are_json(rows: tuple[Path, Rows]) -> None:
    for line in rows[1].path.read_text().splitlines():
        assert json.loads(line)["trial"]["study"] == "baselines"


def student(target: str, seed: int, **named_by: bool) -> Row:
    look = {"spread": {"greatest_member": 5.0 + seed}}
    columns = {
        name: {
            "named": [3] * told,
            "framed": 0,
            "read": True,
            "look": "identity",
            "sigma": {"identity": look},
        }
        for name, told in named_by.items()
    }
    return Row(
        trial={
            "study": "attacks",
            "dataset": "gnss",
            "seed": seed,
            "target": target,
            "family": "distill",
            "parameters": {"epochs": 80},
            "samples": 16_000,
        },
        outcome={"accuracy": 0.5, "columns": columns},
        origin={},
    )


def test_students_of_our_own_copies_stand_below_carrier_by_carrier() -> None:
    rows = [student("paper", seed, weight=False, feature=seed > 1, all=True) for seed in (1, 2)]
    lines = kd_table([*rows, student("informed", 1, spread=False, all=False)]).splitlines()[2:]
    assert lines == [
        "| zk-trace, profile paper | weight | 80 | 16,000 | 0/2 (6.0), 0.500 (0/10) | - (0/10) |",
        "| zk-trace, profile paper | feature | 80 | 16,000 | 1/2 (6.0), 0.500 (10/10) | - (10/10) |",
        "| zk-trace, profile informed | spread | 80 | 16,000 | 0/1 (6.0), 0.500 (-) | - (-) |",
    ]


def test_a_system_that_the_paper_does_not_have_is_in_the_tables(
    rows: tuple[Path, Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = rows[1].read()
    monkeypatch.setitem(LISTED, "one-bias", Listed(place="weight-space", names_recipients=True))
    renamed = [replace(each, trial=dict(each.trial) | {"system": "one-bias"}) for each in found]
    line = baselines_table(renamed).splitlines()[2]
    assert "one-bias" in line
    assert " (-) " in line
    assert "one-bias" in kd_table(renamed)
