"""Evidence that was lost after its verdict was on record: made again, without a look that nobody paid for."""

import json
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cli import test_trace
from zktrace.cli.app import run
from zktrace.evidence import Evidence
from zktrace.models import open_model, save_model
from zktrace.registry.export import write_export
from zktrace.registry.records import RevocationRecord
from zktrace.registry.workspace import Home

made, here = test_trace.made, test_trace.here  # a workspace of four stations with a copy each


def lost(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, Evidence]:
    """Trace, and lose the evidence: the place of the investigation, and what the file had said."""
    assert run([*command, "--json"]) in (0, 3, 4)
    facts = json.loads(capsys.readouterr().out)
    path = Path(facts["evidence"])
    evidence = Evidence.from_bytes(path.read_bytes())
    path.unlink()
    (place,) = (each["investigation"] for each in _cases(capsys) if each["evidence"] is None)
    return place, evidence


def _cases(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert run(["cases", "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["cases"]
    return found


def rebuilt(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Path, dict[str, object]]:
    before = Home.find().registry
    size, spent = before.head().size, before.ledger().spent
    assert run(["cases", "rebuild", *arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    after = Home.find().registry
    assert (after.head().size, after.ledger().spent) == (size, spent)
    return Path(str(facts["evidence"])), facts


@pytest.mark.parametrize("options", [[], ["--no-align"]])
def test_evidence_is_made_again(here: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    place, before = lost(capsys, "trace", "../bravo.safetensors", *options)
    path, facts = rebuilt(capsys, str(place), "../bravo.safetensors")
    assert path == here / "home" / "cases" / f"case-{place}.zkt.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == before.to_bytes()  # nothing was added to the log meanwhile
    assert facts["verdict"] == "certified-attribute"
    assert facts["named"] == list(before.findings.stations)
    assert "bravo" in before.findings.stations
    assert _cases(capsys)[0]["evidence"] == str(path)
    arguments = ["judge", str(path), "--head", before.head, "--suspect", "../bravo.safetensors"]
    assert run(arguments) == 0


def test_the_log_may_have_grown_meanwhile(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, before = lost(capsys, "trace", "../bravo.safetensors")
    home = Home.find()
    home.registry.add(RevocationRecord(station="delta", reason="left"))
    assert run(["trace", "../alpha.safetensors"]) == 0
    capsys.readouterr()
    path, facts = rebuilt(capsys, str(place), "../bravo.safetensors")
    found = Evidence.from_bytes(path.read_bytes())
    assert found.findings == before.findings
    assert found.head == facts["head"] == Home.find().registry.head().to_text() != before.head
    write_export(home.registry, here / "export")
    arguments = ["judge", str(path), "--head", found.head, "--suspect", "../bravo.safetensors"]
    assert run([*arguments, "--registry", str(here / "export")]) == 0


def test_looks_through_an_alignment_are_taken_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, before = lost(capsys, "trace", "../unmarked.safetensors")
    assert len(before.findings.looks) == 2  # as it is, and with its channels put back
    path, facts = rebuilt(capsys, str(place), "../unmarked.safetensors")
    assert path.read_bytes() == before.to_bytes()
    assert facts["verdict"] == str(before.findings.verdict)


def test_an_uncertified_look_needs_its_level(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    look = ["trace", "../bravo.safetensors", "--uncertified", "--yes", "--budget", "1/50"]
    place, before = lost(capsys, *look)
    assert before.findings.level == Fraction(1, 50)
    (leads,) = (here / "home" / "secrets").glob("leads-*.txt")
    text = leads.read_bytes()
    leads.unlink()
    assert run(["cases", "rebuild", str(place), "../bravo.safetensors"]) == 2
    assert "the same files, program and level" in capsys.readouterr().err
    path, _ = rebuilt(capsys, str(place), "../bravo.safetensors", "--level", "1/50")
    assert path.read_bytes() == before.to_bytes()
    assert leads.read_bytes() == text


def test_what_cannot_be_rebuilt_is_said(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = lost(capsys, "trace", "../bravo.safetensors")
    with monkeypatch.context() as patch:
        patch.setattr("zktrace.tracing.protocol.investigate", _killed)
        assert run(["trace", "../bravo.safetensors"]) == 130
    open_place = max(Home.find().registry.ledger().investigations)
    capsys.readouterr()
    home = Home.find().registry
    size, spent = home.head().size, home.ledger().spent
    for arguments, words in (
        ([str(place), "../alpha.safetensors"], "on record is"),
        ([str(place)], "name the suspect's file or give --scores"),
        ([str(place), "../bravo.safetensors", "--scores", "x.npz"], "one of them"),
        (["1", "../bravo.safetensors"], "entry 1 is no investigation"),
        (["999", "../bravo.safetensors"], "entry 999 is no investigation"),
        ([str(open_place), "../bravo.safetensors"], "has no verdict"),
        ([str(place), "../none.safetensors"], "none.safetensors"),
        ([str(place), "../bravo.safetensors", "--level", "2"], "--level must lie between 0 and 1"),
    ):
        assert run(["cases", "rebuild", *arguments]) == 2, arguments
        (said,) = capsys.readouterr().err.splitlines()
        assert words in said
    assert run(["cases", "--json", "rebuild", str(place), "../bravo.safetensors"]) == 2
    assert "options stand after rebuild" in capsys.readouterr().err
    assert run(["cases", "rebuild", str(place), "../bravo.safetensors"]) == 0
    assert "Rebuilt: certified-attribute: " in capsys.readouterr().out
    assert run(["cases", "rebuild", str(place), "../bravo.safetensors"]) == 2
    assert "nothing was lost" in capsys.readouterr().err
    assert (home.head().size, home.ledger().spent) == (size, spent)


def test_changed_readings_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another version of the program, or another processor."""
    from zktrace.readouts.weight import WeightReader

    place, _ = lost(capsys, "trace", "../bravo.safetensors")
    honest = WeightReader.read
    monkeypatch.setattr(WeightReader, "read", lambda self, state: np.nextafter(honest(self, state), np.inf))
    assert run(["cases", "rebuild", str(place), "../bravo.safetensors"]) == 2
    assert "now reads otherwise" in capsys.readouterr().err
    assert not list(Path("cases").iterdir())


def test_the_same_model_in_another_file_will_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, before = lost(capsys, "trace", "../bravo.safetensors")
    np.savez(here / "again.npz", **open_model(here / "bravo.safetensors"))
    path, _ = rebuilt(capsys, str(place), "../again.npz")
    assert path.read_bytes() == before.to_bytes()
    save_model(here / "near.safetensors", _nearly(open_model(here / "bravo.safetensors")))
    path.unlink()
    assert run(["cases", "rebuild", str(place), "../near.safetensors"]) == 2
    assert "on record is" in capsys.readouterr().err


def _nearly(state: object) -> dict[str, np.ndarray]:
    changed = {name: np.array(value) for name, value in state.items()}  # type: ignore[attr-defined]
    changed["bn0.weight"][0] = np.nextafter(changed["bn0.weight"][0], np.float32(9))
    return changed


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
