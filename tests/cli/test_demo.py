"""The demo: everything ends as expected, and a folder of somebody else is left alone."""

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from zktrace.cli.app import run
from zktrace.learning.presets import load_preset

pytest.importorskip("torch", reason="torch is not installed")


def test_a_short_demo_ends_as_expected(tmp_path: Path) -> None:
    from zktrace.cli.story import Story

    demo = load_preset("demo")
    short = replace(
        demo,
        data=replace(demo.data, samples=3_000),
        pretraining=replace(demo.pretraining, epochs=1),
        episodes=replace(demo.episodes, episodes=2),
        federation=replace(demo.federation, rounds=6),
        marks=replace(demo.marks, push_margin=0.2),
    )
    lines: list[str] = []
    story = Story(tmp_path, seed=7, say=lines.append, preset=short)
    story.tell()
    assert [each.case for each in story.outcomes if not each.ok] == []
    assert len(story.outcomes) >= 16
    pages = [each.page for each in story.outcomes if each.page]
    assert len(pages) == 6
    for page in ("report.html", *pages):
        HTMLParser().feed((tmp_path / page).read_text())
    assert "MISMATCH" not in story.table()
    assert any("dispatch" in line for line in lines)
    # an auditor and a judge can work from what lies in the folder
    assert run(["log", "verify", "--export", str(tmp_path / "registry.json")]) == 0
    evidence = json.loads((tmp_path / "cases" / "case-1.zkt.json").read_bytes())
    suspect = tmp_path / "cases" / "suspect-1.safetensors"
    arguments = ["judge", str(tmp_path / "cases" / "case-1.zkt.json"), "--head", evidence["head"]]
    assert run([*arguments, "--suspect", str(suspect)]) == 0
    assert run([*arguments, "--suspect", str(tmp_path / "cases" / "suspect-2.safetensors")]) == 1


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert run(["demo", "--out", str(tmp_path)]) == 2
    assert "not of a demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.slow
def test_the_whole_demo_ends_as_expected_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["demo", "--out", str(tmp_path / "demo"), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["ok"]
        assert Path(facts["report"]).is_file()
