"""`zktrace study paper` and `figure`: estimates, pages and figures; what is wrong is one line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from studies.paper_rows import some
from zktrace.cli.app import run
from zktrace.studies.paper import NAMES


def rows_file(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    lines = [{"trial": each.trial, "outcome": each.outcome, "origin": each.origin} for each in some()]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def test_a_dry_run_tells_each_experiment_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["study", "paper", "--out", str(tmp_path / "rows.jsonl"), "--work", str(tmp_path / "work")]
    assert run([*command, "--dataset", "gnss", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["experiments"]) == set(NAMES)
    assert found["trials"] == sum(each["trials"] for each in found["experiments"].values())
    assert found["experiments"]["federation"] == {"seeds": 10, "trials": 20, "seconds": 2368}
    assert run([*command, "--dataset", "gnss", "--dry-run", "--only", "disguise"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("disguise")
    assert last.startswith("30 trials are left: about ")
    assert list(tmp_path.iterdir()) == []


def test_one_experiment_is_run_and_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["study", "paper", "--out", str(tmp_path / "rows.jsonl"), "--work", str(tmp_path / "work")]
    short = [*command, "--grid", "short", "--only", "steering", "--workers", "1"]
    assert run(short) == 0
    assert capsys.readouterr().out.startswith("36 new rows in ")
    assert run(short) == 0
    assert capsys.readouterr().out == f"0 new rows in {tmp_path / 'rows.jsonl'}, 36 were there\n"


def test_a_page_and_a_figure_are_drawn_from_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    rows, page, figure = rows_file(tmp_path), tmp_path / "page.html", tmp_path / "tracing.svg"
    assert run(["study", "paper", "--out", str(rows), "--report", str(page)]) == 0
    assert "Coalitions that steer a word" in page.read_text()
    assert run(["study", "figure", "tracing", str(rows), "--out", str(figure)]) == 0
    assert figure.read_text().startswith("<?xml")
    assert run(["study", "figure", "tracing", str(rows), "--out", str(figure)]) == 2
    assert "exists already (--force replaces it)" in capsys.readouterr().err
    assert run(["study", "figure", "channel-price", "--out", str(figure), "--force"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("paper --out rows.jsonl", "--work is missing"),
        ("paper --out rows.jsonl --work w --only moon", "no experiment 'moon'"),
        ("paper --out none.jsonl --report page.html", "none.jsonl: no such file"),
        ("figure moon --out a.svg", "no figure 'moon'"),
        (
            "figure tracing --out a.svg",
            "no rows for the figure tracing; they are made by: zktrace study paper",
        ),
        ("table --kind attacks", "is drawn from rows: name a file of them"),
    ],
)
def test_what_is_wrong_is_one_line(
    options: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["study", *options.split()]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert found.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_computed_table_needs_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "table", "--kind", "finite-guarantees"]) == 0
    assert "111.0004 (111.0004)" in capsys.readouterr().out
