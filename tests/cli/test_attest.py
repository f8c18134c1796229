"""Statements as people meet them: made in a workspace, checked anywhere by the log's line alone."""

import json
from pathlib import Path

import numpy as np
import pytest

from support import seeded
from zktrace.cli.app import run
from zktrace.credentials import SecretKey, by_name
from zktrace.front.workspace import Workspace
from zktrace.models.oms import oms_digest
from zktrace.registry.requests import Request

KEY = SecretKey.generate(by_name("test-128-64-16"), entropy=seeded("alpha"))


class Shell:
    """Runs commands, and keeps what stands where."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.root = root
        self.home = Workspace.create(root / "ws", title="North", carriers=("weight",))
        self.home.enrol("alpha", Request.make(KEY, self.home.offer), allow_weak_params=True)
        kinds = ("weight", "bias", "running_mean", "running_var")
        scale = np.linspace(0.5, 1.5, 256, dtype="f4")
        model = {f"bn{i}.{kind}": scale for i in range(8) for kind in kinds}
        self.home.release(model, carriers=("weight",), length=256)
        self.home.dispatch("alpha", release="r1")
        self.copy = self.home.copy_path("r1", "alpha")

    def __call__(self, *arguments: str | Path, code: int = 0) -> str:
        self._capsys.readouterr()
        assert run([str(each) for each in arguments]) == code, self._capsys.readouterr()
        found = self._capsys.readouterr()
        return (found.out if code == 0 else found.err).strip()

    def operate(self, *arguments: str | Path, code: int = 0) -> str:
        return self(*arguments, "--workspace", self.home.root, code=code)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """From a folder without a workspace."""
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


def test_a_dispatch_is_stated_and_checked_elsewhere(shell: Shell, tmp_path: Path) -> None:
    asked = ("attest", "dispatch", "alpha", "--out", "alpha.json")
    assert "no key to sign" in shell.operate("log", "checkpoint", code=2)
    assert "has signed no checkpoint yet" in shell.operate(*asked, code=2)
    line = shell.operate("log", "key", "--origin", "north.example/gnss")
    shell.operate("log", "checkpoint", "--out", "now.checkpoint")
    assert shell.operate(*asked) == "alpha.json  a copy of r1 for alpha"
    assert "exists already" in shell.operate(*asked, code=2)
    facts = json.loads(shell.operate(*asked, "--force", "--json"))
    assert (facts["kind"], facts["sha256"]) == ("dispatch", oms_digest(shell.copy).hex())

    moved = tmp_path / "elsewhere" / "copy.safetensors"
    moved.parent.mkdir()
    moved.write_bytes(shell.copy.read_bytes())
    said = shell("attest", "check", "alpha.json", "--key", line, "--model", moved).split("\n")
    assert said[0].startswith("a copy of r1 for alpha, entry 3, 2")
    assert said[1] == "a checkpoint of 'north.example/gnss' at 4, cosigned by no trusted witness"
    assert said[2] == f"{moved} is what it is about: {oms_digest(moved).hex()}"
    assert "not checked: that a model is this one" in shell("attest", "check", "alpha.json", "--key", line)
    found = json.loads(shell("attest", "check", "alpha.json", "--key", line, "--json"))
    assert found["predicate"]["station"] == "alpha"
    assert found["entries"][0]["index"] == 3
    assert (found["signed"], found["model"]) == (["north.example/gnss"], None)

    moved.write_bytes(shell.copy.read_bytes()[:-1] + b"\x00")
    said = shell("attest", "check", "alpha.json", "--key", line, "--model", moved, code=1)
    assert said.startswith("rejected: model: its files have the digest")


def test_what_is_not_so_is_one_line_and_an_exit_code(shell: Shell) -> None:
    line = shell.operate("log", "key", "--origin", "north.example/gnss")
    shell.operate("log", "checkpoint", "--out", "now.checkpoint")
    shell.operate("attest", "dispatch", "alpha", "--out", "alpha.json")
    other = shell("witness", "new", "w", "--name", "w.example")
    check = ("attest", "check", "alpha.json")
    assert "0 of the trusted witnesses cosigned it" in shell(
        *check, "--key", line, "--witness", other, code=1
    )
    assert "is no log's" in shell(*check, "--key", other, code=2)
    assert "not a key for notes" in shell(*check, "--key", "x", code=2)
    assert "--key" in shell(*check, code=2)
    whole = json.loads(Path("alpha.json").read_text())
    Path("bent.json").write_text(json.dumps(whole | {"payloadType": "text/plain"}))
    assert "not 1" in shell("attest", "check", "bent.json", "--key", line, code=1)
    Path("bent.json").write_text(json.dumps(whole | {"payload": whole["payload"][4:]}))
    assert "not 1" in shell("attest", "check", "bent.json", "--key", line, code=1)
    Path("bent.json").write_text("no json")
    said = shell("attest", "check", "bent.json", "--key", line, code=2)
    assert said == "error: bent.json: an envelope: not JSON text; a statement (zktrace attest) belongs here"
    assert "signed for no such copy" in shell.operate("attest", "receipt", "alpha", "--out", "r.json", code=2)
    verdict = ("attest", "verdict", "2", "--model", shell.copy, "--out", "v.json")
    assert "entry 2 is no investigation" in shell.operate(*verdict, code=2)
    assert not Path("v.json").exists()


def test_a_verdict_is_stated_about_the_suspect(shell: Shell, tmp_path: Path) -> None:
    case = shell.home.trace(shell.copy, certify=False)
    assert case.named == ()
    line = shell.operate("log", "key", "--origin", "north.example/gnss", "--algorithm", "ml-dsa-44")
    shell.operate("log", "checkpoint", "--out", "now.checkpoint")
    given = ("attest", "verdict", "4", "--model", shell.copy, "--out", "v.json")
    assert shell.operate(*given).endswith(": nobody is named")
    assert "nobody is named, entry 5" in shell("attest", "check", "v.json", "--key", line)
    assert "alpha" not in str(json.loads(shell("attest", "check", "v.json", "--key", line, "--json")))
