"""`zktrace judge`: heads that moved on, networks that are read again, and the page of a judgement."""

import json
import re
from pathlib import Path

import pytest

from cli.test_trace import here, made, spoken  # noqa: F401
from zktrace.cli.app import run
from zktrace.registry.export import write_export
from zktrace.registry.workspace import Home

STRICT = (
    "max_total_budget = 0.01\nrequire_suspect = true\nrequire_readout = true\nrequire_shared = true\n"
    "require_registry = true\nrequire_before = true\naccept_tamper = false\naccept_scores = false\n"
    'rules = ["certified"]\n'
)


@pytest.fixture
def case(here: Path, capsys: pytest.CaptureFixture[str]) -> str:  # noqa: F811
    """A case in the folder; its head."""
    assert run(["trace", "../bravo.safetensors", "--out", "case.zkt.json"]) == 0
    spoken(capsys)
    return Home.find().registry.head().to_text()


def grown(capsys: pytest.CaptureFixture[str]) -> str:
    """The head after another case."""
    assert run(["trace", "../alpha.safetensors"]) == 0
    spoken(capsys)
    return Home.find().registry.head().to_text()


def test_a_log_that_has_grown_takes_a_consistency_proof(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = grown(capsys)
    assert run(["judge", "case.zkt.json", "--head", newer]) == 2
    said = capsys.readouterr().err
    assert said.startswith("cannot tell: ")
    assert "rejected" not in said
    assert run(["judge", "case.zkt.json", "--head", newer, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "CannotTell"
    assert run(["log", "prove", "--since", case]) == 0
    Path("since.json").write_text(spoken(capsys))
    assert run(["judge", "case.zkt.json", "--head", newer, "--consistency", "since.json"]) == 0
    text = " ".join(spoken(capsys).split())
    assert "by a consistency proof" in text
    assert "upheld: certified-attribute, bravo" in text
    write_export(Home.find().registry, Path("export"))
    assert run(["judge", "case.zkt.json", "--head", newer, "--registry", "export"]) == 0
    text = " ".join(spoken(capsys).split())
    assert "1/1000 for all of the log up to it (recounted; 1/500 with those after it)" in text
    Path("since.json").write_text("{}")
    assert run(["judge", "case.zkt.json", "--head", newer, "--consistency", "since.json"]) == 2


def test_the_last_line_says_what_the_setup_allows(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge", "case.zkt.json", "--head", case]) == 0
    text = " ".join(spoken(capsys).split())
    assert "at most 1/1000 for this investigation and 1/100 for all of the log together" in text
    assert "not checked: that the log keeps its rules" in text


def test_the_strictest_policy_is_met_by_honest_evidence(
    here: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = Home.find()
    before = home.registry.head().to_text()
    assert run(["trace", "../bravo.safetensors", "--out", "case.zkt.json"]) == 0
    spoken(capsys)
    write_export(home.registry, Path("export"))
    Path("strict.toml").write_text(STRICT)
    given = {
        "--suspect": "../bravo.safetensors",
        "--shared": "../shared.safetensors",
        "--registry": "export",
        "--before": before,
        "--policy": "strict.toml",
    }
    command = ["judge", "case.zkt.json", "--head", home.registry.head().to_text()]
    assert run([*command, *(part for pair in given.items() for part in pair)]) == 0
    for option in ("--suspect", "--shared", "--before"):
        rest = [part for pair in given.items() if pair[0] != option for part in pair]
        assert run([*command, *rest]) == 1
    assert "step 8" in capsys.readouterr().err


def plain(page: str) -> str:
    return re.sub(r"<[^>]*>", "", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))


def test_a_page_of_an_upheld_case(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["judge", "case.zkt.json", "--head", case, "--suspect", "../bravo.safetensors"]
    assert run([*command, "--report", "page.html"]) == 0
    page = Path("page.html")
    assert page.stat().st_mode & 0o777 == 0o600
    text = plain(page.read_text())
    assert text.startswith("\n") or "Upheld: certified-attribute" in text
    assert re.search(r"Judgement of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC on case\.zkt\.json", text)
    for number in range(1, 10):
        assert f"({number}) " in text
    for said in (case, "max_total_budget", "Python", "numpy", "zktrace", "What was not checked", "A5(a)"):
        assert said in text
    assert "<script" not in page.read_text()
    assert run([*command, "--report", "page.html"]) == 2  # it is there already
    assert run([*command, "--report", "page.html", "--force"]) == 0
    assert run([*command, "--report", "nowhere/page.html"]) == 2
    capsys.readouterr()


def test_a_page_of_a_rejected_case(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["judge", "case.zkt.json", "--head", case, "--suspect", "../alpha.safetensors"]
    assert run([*command, "--report", "page.html"]) == 1
    text = plain(Path("page.html").read_text())
    assert "Rejected at step 5, readout." in text
    assert text.count("Not reached.") == 4
    assert "the suspect given has the digest" in text
    capsys.readouterr()


def test_a_page_where_nothing_decides(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    newer = grown(capsys)
    assert run(["judge", "case.zkt.json", "--head", newer, "--report", "page.html"]) == 2
    text = plain(Path("page.html").read_text())
    assert "Cannot tell: nothing speaks against the evidence" in text
    assert f"zktrace log prove --since {case}" in text
    assert "ejected" not in text
    assert text.count("Not reached.") == 7
    capsys.readouterr()


def test_probes_must_be_the_release_s(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["judge", "case.zkt.json", "--head", case, "--probes", "../shared.safetensors"]
    assert run(command) == 1
    assert "the probes given have the digest" in capsys.readouterr().err
