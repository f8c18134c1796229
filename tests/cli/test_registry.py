"""The registry's commands as an operator and an auditor meet them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zktrace.cli.app import run
from zktrace.credentials import SecretKey, by_name
from zktrace.registry.log import Head
from zktrace.registry.records import DispatchRecord, ReleaseRecord
from zktrace.registry.workspace import Home

OFFER = "zkt-offer-v1:" + "00" * 32


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the keys of two stations."""
    monkeypatch.chdir(tmp_path)
    for name in ("alpha", "beta"):
        key = SecretKey.generate(by_name("test-128-64-16"))
        (tmp_path / f"{name}.key").write_bytes(key.to_bytes())
        (tmp_path / f"{name}.pub").write_bytes(key.public.to_bytes())
    return tmp_path


@pytest.fixture
def inside(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """The same, with the stations' requests, from inside a workspace of the cheap carrier."""
    assert run(["init", "ws", "--carrier", "weight"]) == 0
    monkeypatch.chdir(here / "ws")
    capsys.readouterr()
    assert run(["offer"]) == 0
    offer = capsys.readouterr().out.strip()
    for name in ("alpha", "beta"):
        out = f"../{name}.request"
        assert run(["credential", "request", "--key", f"../{name}.key", "--offer", offer, "--out", out]) == 0
    capsys.readouterr()
    return here / "ws"


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    """Exit code and JSON object of a command run with --json."""
    code = run([*arguments, "--json"])
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return code, json.loads(out)


def enrol(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, object]:
    code, facts = ask(capsys, "enrol", name, "--request", f"../{name}.request", "--allow-weak-params")
    assert code == 0, facts
    return facts


def test_the_whole_story(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, first = ask(capsys, "log", "head")
    assert enrol(capsys, "alpha")["row"] == 0
    assert enrol(capsys, "beta")["row"] == 1
    code, revoked = ask(capsys, "revoke", "alpha", "--reason", "it left")
    assert (code, revoked["index"]) == (0, 3)
    code, listed = ask(capsys, "stations")
    rows = listed["stations"]
    assert isinstance(rows, list)
    assert [(row["row"], row["station"], row["copies"]) for row in rows] == [(0, "alpha", 0), (1, "beta", 0)]
    assert [row["revoked"] is None for row in rows] == [False, True]
    code, checked = ask(capsys, "log", "verify", "--head", str(first["head"]))
    assert (code, checked["size"]) == (0, 4)
    assert checked["head"] == ask(capsys, "log", "head")[1]["head"]


def test_a_request_is_for_one_offer_and_for_whoever_holds_the_key(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = ("credential", "request", "--key", "../beta.key", "--offer", OFFER, "--out", "../other.request")
    assert ask(capsys, *other)[0] == 0
    weak = ("--allow-weak-params",)
    code, facts = ask(capsys, "enrol", "beta", "--request", "../other.request", *weak)
    assert (code, facts["error"]) == (1, "InvalidProof")
    made = json.loads(Path("../beta.request").read_text())
    mine = json.loads(Path("../alpha.request").read_text())
    for field, value in (("nonce", "00" * 32), ("public_key", mine["public_key"]), ("proof", mine["proof"])):
        text = json.dumps(made | {field: value}, sort_keys=True, separators=(",", ":"))
        Path("../forged.request").write_text(text)
        code, facts = ask(capsys, "enrol", "beta", "--request", "../forged.request", *weak)
        assert (code, facts["error"]) == (1, "InvalidProof"), field
    assert ask(capsys, "stations")[1]["stations"] == []
    assert list(Path("requests").iterdir()) == []


def test_more_places_than_the_setup_promised(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, made = ask(capsys, "init", "ws", "--carrier", "weight", "--places", "1")
    monkeypatch.chdir(here / "ws")

    def enrolled(name: str, offer: object) -> tuple[int, dict[str, object]]:
        out = f"../{name}.request"
        words = ("--key", f"../{name}.key", "--offer", str(offer), "--out", out, "--force")
        assert ask(capsys, "credential", "request", *words)[0] == 0
        return ask(capsys, "enrol", name, "--request", out, "--allow-weak-params")

    assert enrolled("alpha", made["offer"])[0] == 0
    code, facts = enrolled("beta", made["offer"])
    assert (code, "zktrace reserve" in str(facts["message"])) == (2, True)
    assert ask(capsys, "offer")[0] == 2
    code, more = ask(capsys, "reserve", "70000")
    assert (code, more["promised"]) == (0, 70001)
    assert enrolled("beta", made["offer"])[0] == 1
    assert enrolled("beta", more["offer"])[0] == 0
    assert ask(capsys, "reserve", "2", "--releases")[1]["promised"] == 258
    assert ask(capsys, "log", "verify")[0] == 0


def test_the_table_of_stations(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stations"]) == 0
    head = "row station fingerprint enrolled at revoked at copies"
    assert " ".join(capsys.readouterr().out.split()) == head
    facts = enrol(capsys, "alpha")
    place = Home.open(inside)
    place.registry.add(lambda ledger: ReleaseRecord.from_json(RELEASE | {"root": ledger.root.hex()}))
    for _ in range(2):
        place.registry.add(DispatchRecord(station="alpha", release="v1", copy=bytes(32)))
    assert run(["stations"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert len(head) == len(row)
    assert row.split()[:3] == ["0", "alpha", str(facts["fingerprint"])[:16]]
    assert row.split()[-2:] == ["-", "2"]


RELEASE = {
    "name": "v1",
    "number": 0,
    "model": "00" * 32,
    "layouts": [
        {
            "carrier": "weight",
            "profile": "informed",
            "law": "fair",
            "length": 8,
            "dimension": 8,
            "layers": [8],
            "deviations": "",
            "frozen": False,
            "reference": "00" * 32,
            "probes": "00" * 32,
        }
    ],
}


def test_json_is_never_cut(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Long lines for people are shortened; what a program reads is whole."""
    layout = RELEASE["layouts"][0] | {"layers": list(range(1, 3500))}  # type: ignore[index,operator]
    Home.open(inside).registry.add(
        lambda ledger: ReleaseRecord.from_json(RELEASE | {"layouts": [layout], "root": ledger.root.hex()})
    )
    assert run(["log", "prove", "1"]) == 0
    proof = capsys.readouterr().out
    assert len(proof) > 10_000
    (inside / "proof").write_text(proof)
    _, head = ask(capsys, "log", "head")
    code, checked = ask(capsys, "log", "verify", "--proof", "proof", "--head", str(head["head"]))
    assert (code, checked["kind"]) == (0, "release")
    root = Home.open(inside).registry.ledger().release("v1").root.hex()
    assert checked["body"] == RELEASE | {"layouts": [layout], "root": root}


def test_an_auditor_needs_no_workspace(
    inside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = ask(capsys, "log", "head")
    enrol(capsys, "alpha")
    _, second = ask(capsys, "log", "head")
    code, exported = ask(capsys, "registry", "export", "../public.zkt")
    assert (code, exported["head"]) == (0, second["head"])
    assert run(["registry", "export", "../public.zkt"]) == 2
    assert run(["registry", "export", "../public.zkt", "--force"]) == 0
    assert run(["log", "prove", "1"]) == 0
    capsys.readouterr()
    assert run(["log", "prove", "1"]) == 0
    (inside.parent / "proof.json").write_text(capsys.readouterr().out)
    monkeypatch.chdir(inside.parent)
    assert run(["log", "verify"]) == 2
    assert ask(capsys, "log", "verify", "--export", "public.zkt", "--head", str(first["head"]))[0] == 0
    code, checked = ask(capsys, "log", "verify", "--proof", "proof.json", "--head", str(second["head"]))
    assert (code, checked["index"], checked["kind"]) == (0, 1, "enrolment")
    code, refused = ask(capsys, "log", "verify", "--proof", "proof.json", "--head", str(first["head"]))
    assert (code, refused["error"]) == (1, "InvalidProof")
    other = Head(size=1, root=bytes(32)).to_text()
    code, refused = ask(capsys, "log", "verify", "--export", "public.zkt", "--head", other)
    assert (code, refused["error"]) == (1, "InvalidLog")
    assert run(["log", "verify", "--proof", "proof.json"]) == 2
    assert run(["log", "verify", "--export", "public.zkt", "--workspace", "ws"]) == 2
    assert run(["log", "verify", "--export", "public.zkt", "--head", "nonsense"]) == 2
    assert run(["log", "verify", "--workspace", "ws"]) == 0


def test_two_heads_are_compared_without_the_log_between_them(
    inside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = ask(capsys, "log", "head")
    for name in ("alpha", "beta"):
        enrol(capsys, name)
    _, second = ask(capsys, "log", "head")
    old, new = str(first["head"]), str(second["head"])
    assert run(["log", "prove", "--since", old]) == 0
    (inside.parent / "proof.json").write_text(capsys.readouterr().out)
    never = Head(size=1, root=bytes(32)).to_text()
    code, refused = ask(capsys, "log", "prove", "--since", never)
    assert (code, refused["error"]) == (1, "InvalidLog")
    assert run(["log", "prove"]) == run(["log", "prove", "1", "--since", old]) == 2
    monkeypatch.chdir(inside.parent)
    capsys.readouterr()
    proof = ("log", "verify", "--proof", "proof.json")
    code, checked = ask(capsys, *proof, "--since", old, "--head", new)
    assert (code, checked["size"], checked["extends"]) == (0, 3, old)
    for since, head, error in (
        (never, new, "InvalidLog"),
        (old, Head(size=3, root=bytes(32)).to_text(), "InvalidLog"),
        (new, new, "InvalidProof"),
    ):
        code, refused = ask(capsys, *proof, "--since", since, "--head", head)
        assert (code, refused["error"]) == (1, error)
    code, refused = ask(capsys, *proof, "--head", new)
    assert (code, refused["error"]) == (2, "MalformedFile")
    assert run(["log", "verify", "--since", old, "--workspace", "ws"]) == 2


def test_what_is_refused(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    enrol(capsys, "alpha")
    cases = {
        ("enrol", "alpha", "--request", "../beta.request", "--allow-weak-params"): "enrolled already",
        (
            "enrol",
            "gamma",
            "--request",
            "../alpha.request",
            "--allow-weak-params",
        ): "enrolled already, for alpha",
        ("enrol", "gamma", "--request", "../beta.request"): "anybody can forge",
        ("enrol", "../x", "--request", "../beta.request", "--allow-weak-params"): "no station name",
        ("enrol", "gamma", "--request", "nowhere"): "cannot be read",
        ("enrol", "gamma", "--request", "zktrace.toml"): "request: ",
        ("enrol", "gamma", "--request", "../beta.pub"): "request: ",
        ("credential", "request", "--key", "../beta.key", "--offer", "x", "--out", "r"): "not an offer",
        ("credential", "request", "--key", "../beta.pub", "--offer", OFFER, "--out", "r"): "secret key",
        ("credential", "request", "--key", "../beta.key", "--offer", OFFER, "--out", "../beta.pub"): (
            "exists"
        ),
        ("revoke", "gamma", "--reason", "x"): "no station",
        ("revoke", "alpha", "--reason", ""): "reason",
        ("log", "prove", "9"): "no entry 9",
        ("stations", "--workspace", ".."): "is no workspace",
        ("init", "."): "is a workspace already",
        ("init", "new", "--budget", "much"): "a budget is a number",
        ("init", "new", "--budget", "1e999999999"): "a budget is a number",
        ("init", "new", "--budget", "1/0"): "a budget is a number",
        ("init", "new", "--budget", "0"): "between 0 and 1",
        ("init", "new", "--carrier", "sound"): "no carrier 'sound'",
    }
    for arguments, why in cases.items():
        code, facts = ask(capsys, *arguments)
        assert (code, facts["ok"]) == (2, False), arguments
        assert why in str(facts["message"])
    assert not (inside / "new").exists()
    assert ask(capsys, "log", "verify")[1]["size"] == 2


@pytest.mark.parametrize(("text", "exact"), [("0.001", "1/1000"), ("1e-3", "1/1000"), ("1/3", "1/3")])
def test_a_budget_is_the_number_that_was_written(
    here: Path, capsys: pytest.CaptureFixture[str], text: str, exact: str
) -> None:
    assert ask(capsys, "init", "ws", "--budget", text, "--carrier", "weight")[1]["budget"] == exact


def test_a_changed_key_or_log_is_noticed(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    enrol(capsys, "alpha")
    _, head = ask(capsys, "log", "head")
    Home.create(inside.parent / "other", title="other", carriers=["weight"])
    other = (inside.parent / "other" / "secrets" / "code.key").read_bytes()
    mine = (inside / "secrets" / "code.key").read_bytes()
    (inside / "secrets" / "code.key").write_bytes(other)
    assert ask(capsys, "log", "verify")[0] == 1
    assert ask(capsys, "enrol", "beta", "--request", "../beta.request", "--allow-weak-params")[0] == 1
    (inside / "secrets" / "code.key").write_bytes(mine)
    assert ask(capsys, "log", "verify", "--head", str(head["head"]))[0] == 0
    (inside.parent / "other" / "registry.db").replace(inside / "registry.db")
    code, facts = ask(capsys, "log", "verify", "--head", str(head["head"]))
    assert (code, facts["error"]) == (1, "InvalidLog")


def test_a_database_password_is_not_printed(here: Path) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "zktrace", "--debug", "init", "ws"),
            *("--carrier", "weight", "--database", "postgresql://anna:hunter2@localhost:1/name"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert ran.returncode == 2
    assert "postgresql://localhost/name" in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr
