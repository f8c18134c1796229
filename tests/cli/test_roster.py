"""Enrolment and training are one roster: keys, order, names and codeword length come from the registry."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dispatch.small import SHAPES, operator
from federation import small
from zktrace.cli.app import run
from zktrace.errors import InputError, MalformedFile
from zktrace.federation.flower.runfile import RunFile, parse_run_file, preset_toml
from zktrace.models import open_model
from zktrace.readouts.identity import read_component
from zktrace.readouts.runs import RunFacts
from zktrace.registry.custody import default_shape
from zktrace.registry.records import RevocationRecord
from zktrace.registry.roster import roster
from zktrace.registry.workspace import Home

NAMES = ("kiel", "aachen", "munich", "berlin")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry of four stations, one of them revoked, and a run of the other three."""
    root = tmp_path_factory.mktemp("roster")
    home = operator(root / "op", *NAMES, shapes=(default_shape("spread"), *SHAPES[:1]))
    home.registry.add(RevocationRecord(station="aachen", reason="left"))
    (root / "tiny.toml").write_text(preset_toml(small.preset(rounds=1, clients=7, bits=16)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setenv("XDG_CACHE_HOME", str(root.parent / "cache"))
        command = ["train", "--preset", "tiny.toml", "--out", "run", "--workers", "0", "--workspace", "op"]
        assert run(command) == 0
        assert run(["train", "--preset", "tiny.toml", "--out", "short", "--workers", "0"]) == 0
    return root


@pytest.fixture
def here(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained


def test_a_run_has_the_stations_of_the_registry(here: Path) -> None:
    spec = json.loads(Path("run/spec.json").read_text())
    assert (spec["stations"], spec["rows"]) == (["kiel", "munich", "berlin"], [0, 2, 3])
    assert spec["preset"]["federation"]["clients"] == 3
    assert spec["preset"]["marks"]["bits"] == 128
    assert json.loads(Path("run/result.json").read_text())["stations"] == spec["stations"]
    ledger = Home.open(Path("op")).registry.ledger()
    for name in spec["stations"]:
        assert Path(f"run/stations/{name}.pub").read_bytes() == ledger.station(name).enrolment.public_key
    page = Path("run/report.html").read_text()
    assert "munich" in page
    assert "station001" not in page
    facts = RunFacts.beside(Path("run/model.safetensors"))
    assert facts is not None
    assert facts.trained_with([key.codeword(128) for key in roster(ledger).keys])


def test_attribution_by_the_registry(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attribute", "run/model.safetensors", "--workspace", "op", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["station"] for each in facts["stations"]] == ["kiel", "munich", "berlin"]
    assert (facts["bits"], facts["warnings"]) == (128, [])
    result = json.loads(Path("run/result.json").read_text())
    assert facts["self_agreement"] == pytest.approx(result["marks"]["self_agreement"])


def test_a_station_is_marked_in_the_block_of_its_row(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `credential component --station` reads, which knows nothing of the run."""
    assert run(["attribute", "run/model.safetensors", "--workspace", "op", "--json"]) == 0
    agreement = {
        each["station"]: each["agreement"] for each in json.loads(capsys.readouterr().out)["stations"]
    }
    ledger = Home.open(Path("op")).registry.ledger()
    state = open_model("run/model.safetensors")
    for name in ("munich", "berlin"):
        enrolment = ledger.station(name).enrolment
        read = np.frombuffer(read_component(state, row=enrolment.row, bits=128), np.uint8)
        wrong = np.bitwise_count(read ^ np.frombuffer(enrolment.codeword, np.uint8)).sum()
        assert agreement[name] == pytest.approx(1 - wrong / 128)


def test_a_station_that_is_revoked_later_stays_in_the_roster_of_its_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home.open(Path("op"))
    if home.registry.ledger().station("berlin").revoked is None:
        home.registry.add(RevocationRecord(station="berlin", reason="left too"))
    assert run(["attribute", "run/model.safetensors", "--workspace", "op", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["station"] for each in facts["stations"]] == ["kiel", "munich", "berlin"]


def keys(folder: str) -> list[str]:
    return [word for path in sorted(Path(folder, "stations").iterdir()) for word in ("--public", str(path))]


def test_codewords_of_another_length_are_not_read(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen bits read as 128 looked like a third attributed."""
    short = ["attribute", "short/model.safetensors", *keys("short")]
    assert run([*short, "--bits", "128"]) == 2
    assert "trained with codewords of 16 bits, not with 128" in capsys.readouterr().err
    assert run([*short, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bits"] == 16
    assert run(["attribute", "short/model.safetensors", "--workspace", "op"]) == 2
    assert "short/model.safetensors: trained with codewords of 16 bits" in capsys.readouterr().err
    assert run(["release", "short/model.safetensors", "--workspace", "op"]) == 2
    said = capsys.readouterr().err
    assert "trained with codewords of 16 bits, the registry's have 128" in said
    assert "train --workspace" in said
    assert list(Home.open(Path("op")).registry.ledger().releases) == ["federation"]


def test_keys_that_are_not_the_runs_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed = keys("run")  # sorted by name: another order
    assert run(["attribute", "run/model.safetensors", *mixed, "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert "not in its order" in warning
    assert run(["attribute", "run/model.safetensors", *mixed[:4]]) == 2
    assert "a run of 3 stations, and 2 keys are given" in capsys.readouterr().err
    assert run(["attribute", "run/model.safetensors", *mixed, "--raw"]) == 2
    assert "no --raw" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train --out out --workspace op --public a.pub", "leave --public out"),
        ("train --out out --workspace nowhere", "is no workspace"),
        ("attribute run/model.safetensors", "whose codewords?"),
        ("attribute run/model.safetensors --workspace op --public a.pub", "whose codewords?"),
        ("attribute run/model.safetensors --workspace op --bits 16", "have 128 bits, not 16"),
    ],
)
def test_what_contradicts_itself_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], command: str, words: str
) -> None:
    assert run(command.split()) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not Path("out").exists()


def test_a_run_file_carries_the_names(here: Path) -> None:
    base = small.spec()
    named = RunFile(spec=small.replace(base, names=("a", "b", "c"), rows=(0, 5, 2)))
    assert parse_run_file(named.to_bytes(), source="x").spec == named.spec
    with pytest.raises(InputError, match="2 rows for 3 stations"):
        small.replace(base, rows=(0, 5))
    for rows in ([-1, 0, 1], [1 << 30, 0, 1], ["0", 1, 2], 7):
        broken = json.dumps(json.loads(named.to_bytes()) | {"rows": rows}).encode()
        with pytest.raises(MalformedFile, match="rows must be a list of whole numbers"):
            parse_run_file(broken, source="x")
    assert named.spec.digest() != base.digest()
    with pytest.raises(InputError, match="2 names for 3 stations"):
        small.replace(base, names=("a", "b"))
    with pytest.raises(InputError, match="same name"):
        small.replace(base, names=("a", "b", "a"))


@pytest.mark.parametrize("text", ["{}", "[]", "no", '{"preset": 3}', '{"preset": {"marks": {"bits": "x"}}}'])
def test_somebody_elses_file_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "spec.json").write_text(text)
    assert RunFacts.beside(tmp_path / "model.safetensors") is None
    assert RunFacts.beside(tmp_path / "other.safetensors") is None


def test_a_registry_without_stations_has_no_roster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator(tmp_path / "op")
    assert run(["train", "--out", str(tmp_path / "run"), "--workspace", str(tmp_path / "op")]) == 2
    assert "there is no roster" in capsys.readouterr().err
