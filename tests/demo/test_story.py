"""The story of the demo: everything ends as expected, and its pages show it."""

import json
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from zktrace.cli.app import run
from zktrace.cli.demo import outcome_table
from zktrace.demo.pages import DemoCase, demo_html, write_demo_pages
from zktrace.learning.presets import load_preset
from zktrace.report.html import Html

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.demo.outcomes import Agreement, Examined, Losses, Shown, Told, Traced
from zktrace.demo.story import EXPORT, RUN, Story
from zktrace.report.training import write_training_report


def test_a_short_demo_ends_as_expected(tmp_path: Path) -> None:
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
    story = Story(tmp_path, seed=7, say=lines.append, preset=short).tell()
    write_training_report(tmp_path / RUN, tmp_path / RUN / "report.html")
    document = write_demo_pages(story, training=f"{RUN}/report.html", export=EXPORT)
    assert document == tmp_path / "report.html"
    assert [each.case for each in story.outcomes if not each.ok] == []
    assert len(story.outcomes) >= 16
    pages = pages_of(story)
    assert len(pages) == 7
    for page in ("report.html", *pages):
        HTMLParser().feed((tmp_path / page).read_text())
    assert outcome_table(story.outcomes).count("\N{CHECK MARK}") == len(story.outcomes)
    assert any("dispatch" in line for line in lines)
    check_page(story)
    # an auditor and a judge can work from what lies in the folder
    assert run(["log", "verify", "--export", str(tmp_path / "registry.json")]) == 0
    evidence = json.loads((tmp_path / "cases" / "case-1.zkt.json").read_bytes())
    suspect = tmp_path / "cases" / "suspect-1.safetensors"
    arguments = ["judge", str(tmp_path / "cases" / "case-1.zkt.json"), "--head", evidence["head"]]
    assert run([*arguments, "--suspect", str(suspect)]) == 0
    assert run([*arguments, "--suspect", str(tmp_path / "cases" / "suspect-2.safetensors")]) == 1


def pages_of(story: Told) -> list[str]:
    """Addresses of the cases' own reports."""
    traced = [each.shown.evidence.name for each in story.outcomes if isinstance(each.shown, Traced)]
    return [f"cases/{name.removesuffix('.zkt.json')}.html" for name in traced]


def picture_title(shown: Shown) -> str:
    """How the picture of a case is called."""
    match shown:
        case Agreement():
            return "Agreement of components and codewords"
        case Losses():
            return "Accuracy that a copy loses"
        case Traced():
            return "Scores and thresholds, spread carrier"
        case Examined():
            return shown.title


def check_page(story: Told) -> None:
    """A picture for every case, a tick, no link into nothing, and what to do next."""
    document = (story.folder / "report.html").read_text()
    main = document.partition("<main>")[2]
    for each in story.outcomes:
        assert main.count(escape(each.case)) >= 2
    articles = main.split("<article>")[1:]
    assert len(articles) == len(story.outcomes)
    for each, article in zip(story.outcomes, articles, strict=True):
        assert escape(each.case) in article
        assert article.count("<figure") == 1
        assert f"<title>{escape(picture_title(each.shown))}" in article
    assert main.count("\N{CHECK MARK}") == 2 * len(story.outcomes)
    assert "\N{BALLOT X}" not in main
    addresses = re.findall('href="([^"]*)"', main)
    assert {"run/report.html", "registry.json", "cases/case-1.zkt.json"} <= set(addresses)
    assert set(pages_of(story)) <= set(addresses)
    assert [each for each in addresses if not (story.folder / each).is_file()] == []
    assert "Next: your own model" in main
    wrong = DemoCase(case="c", expected="e", happened="h", ok=False, figure=Html("<svg></svg>"))
    assert demo_html([wrong], head="h", reports={}, evidence={}).count("\N{BALLOT X}") == 2
