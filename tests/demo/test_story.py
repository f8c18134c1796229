"""The story of the demo: everything ends as expected, and its pages show it."""

import json
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from primitives.test_processes import heeding
from service.test_fetch import free_port
from service.test_serving import healthy, until
from zktrace.cli.app import run
from zktrace.cli.demo import outcome_table
from zktrace.demo.pages import DemoCase, demo_html, write_demo_pages
from zktrace.learning.presets import load_preset
from zktrace.report.html import Html

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.demo.folder import EXPORT, RUN, ended
from zktrace.demo.outcomes import Agreement, Examined, Losses, Shown, Told, Traced
from zktrace.demo.story import Story
from zktrace.report.training import write_training_report

SEED = 7


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """What the story says."""
    return []


@pytest.fixture(scope="module")
def story(folder: Path, lines: list[str]) -> Told:
    """A short one, with its pages."""
    demo = load_preset("demo")
    short = replace(
        demo,
        data=replace(demo.data, samples=3_000),
        pretraining=replace(demo.pretraining, epochs=1),
        episodes=replace(demo.episodes, episodes=2),
        federation=replace(demo.federation, rounds=6),
        marks=replace(demo.marks, push_margin=0.2),
    )
    told = Story(folder, seed=SEED, say=lines.append, preset=short).tell()
    assert not ended(folder, seed=SEED)  # its pages come last
    write_training_report(folder / RUN, folder / RUN / "report.html")
    document = write_demo_pages(told, training=f"{RUN}/report.html", export=EXPORT)
    assert document == folder / "report.html"
    return told


def test_a_short_demo_ends_as_expected(folder: Path, lines: list[str], story: Told) -> None:
    assert [each.case for each in story.outcomes if not each.ok] == []
    assert len(story.outcomes) >= 16
    pages = pages_of(story)
    assert len(pages) == 7
    for page in ("report.html", *pages):
        HTMLParser().feed((folder / page).read_text())
    assert outcome_table(story.outcomes).count("\N{CHECK MARK}") == len(story.outcomes)
    assert any("dispatch" in line for line in lines)
    check_page(story)
    # an auditor and a judge can work from what lies in the folder
    assert run(["log", "verify", "--export", str(folder / "registry.json")]) == 0
    evidence = json.loads((folder / "cases" / "case-1.zkt.json").read_bytes())
    suspect = folder / "cases" / "suspect-1.safetensors"
    arguments = ["judge", str(folder / "cases" / "case-1.zkt.json"), "--head", evidence["head"]]
    assert run([*arguments, "--suspect", str(suspect)]) == 0
    assert run([*arguments, "--suspect", str(folder / "cases" / "suspect-2.safetensors")]) == 1


def test_a_demo_that_has_ended_is_shown_in_a_console(folder: Path, story: Told) -> None:
    before = (folder / "report.html").read_bytes()
    command = [sys.executable, "-m", "zktrace", "demo", "--serve", "--out", str(folder), "--seed", str(SEED)]
    url = f"http://127.0.0.1:{(port := free_port())}"
    child = subprocess.Popen(
        [*command, "--port", str(port), "--json"],
        stdout=subprocess.PIPE,
        preexec_fn=heeding,  # noqa: PLW1509
    )
    try:
        assert child.stdout is not None
        said = json.loads(child.stdout.readline())
        assert (said["url"], said["report"]) == (url, str(folder / "report.html"))
        until(lambda: healthy(f"{url}/healthz"))
        given = {"name": said["account"], "password": said["password"]}
        with httpx.Client(base_url=url) as client:
            token = client.post("/api/v1/login", json=given).json()["token"]
            signed_in = {"authorization": f"Bearer {token}"}
            found = client.get("/api/v1/overview", headers=signed_in).json()
            assert "Cases" in client.get("/", headers=signed_in).text
        assert found["stations"] == found["copies"] == 10
        assert found["cases"] == len(pages_of(story))
    finally:
        child.send_signal(signal.SIGINT)
        rest = child.communicate(timeout=60)[0]
    assert (child.returncode, rest) == (0, b"")
    assert (folder / "report.html").read_bytes() == before


def test_another_demo_is_told_anew(folder: Path, story: Told, tmp_path: Path) -> None:
    assert ended(folder, seed=SEED)
    assert not ended(folder, seed=SEED + 1)
    assert not ended(tmp_path, seed=SEED)
    for name in ("zktrace-demo.txt", "report.html", f"{RUN}/spec.json"):
        copied = shutil.copytree(folder, tmp_path / name.replace("/", "-"), ignore=only_the_small)
        assert ended(copied, seed=SEED)
        (copied / name).unlink()
        assert not ended(copied, seed=SEED)


def only_the_small(place: str, names: list[str]) -> set[str]:
    """What a copy of the folder leaves out: models, and the workspace."""
    return {name for name in names if name in ("workspace", "cases") or name.endswith(".safetensors")}


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
