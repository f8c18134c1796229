"""An investigation that was interrupted after it was paid for is carried to its verdict."""

import json
from pathlib import Path

import pytest

from cli import test_rebuild, test_trace
from zktrace.cli.app import run
from zktrace.registry.workspace import Home

made, here = test_trace.made, test_trace.here  # a workspace of four stations with a copy each


@pytest.fixture
def place(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Of an investigation without a verdict."""
    with monkeypatch.context() as patch:
        patch.setattr("zktrace.tracing.protocol.investigate", test_rebuild._killed)
        assert run(["trace", "../bravo.safetensors"]) == 130
    (found,) = Home.find().registry.ledger().investigations
    capsys.readouterr()
    return found


def test_it_ends_in_its_verdict_and_costs_nothing_more(
    place: int, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = Home.find().registry.ledger().spent
    assert run(["cases"]) == 0
    assert f"zktrace cases resume {place} SUSPECT" in capsys.readouterr().out
    assert run(["cases", "resume", str(place), "../bravo.safetensors", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["investigation"], facts["verdict"], facts["named"]) == (
        place,
        "certified-attribute",
        ["bravo"],
    )
    ledger = Home.find().registry.ledger()
    assert ledger.spent == spent
    assert list(ledger.verdicts) == [place]
    judged = ["judge", facts["evidence"], "--head", facts["head"], "--suspect", "../bravo.safetensors"]
    assert run(judged) == 0
    capsys.readouterr()
    assert run(["cases", "resume", str(place), "../bravo.safetensors"]) == 2
    assert "has its verdict already (zktrace cases rebuild)" in capsys.readouterr().err
    assert run(["cases", "rebuild", str(place), "../bravo.safetensors"]) == 2


def test_another_suspect_carries_nothing_on(place: int, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        ([str(place), "../alpha.safetensors"], "on record is"),
        ([str(place)], "name the suspect's file or give --scores"),
        (["1", "../bravo.safetensors"], "entry 1 is no investigation"),
        ([str(place), "../bravo.safetensors", "--level", "2"], "--level must lie between 0 and 1"),
    ):
        assert run(["cases", "resume", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err
    assert not Home.find().registry.ledger().verdicts
    assert run(["cases", "resume", str(place), "../bravo.safetensors"]) == 0
    assert "Resumed: certified-attribute: bravo" in capsys.readouterr().out
