"""A log and its witnesses as people meet them: keys, checkpoints, cosignatures, proofs, forks."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from primitives.test_processes import heeding
from zktrace.cli.app import run


class Shell:
    """Runs commands and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert run(list(arguments)) == code, self._capsys.readouterr()
        found = self._capsys.readouterr()
        return (found.out if code == 0 else found.err).strip()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """From inside a new workspace; its witness is in ../w1."""
    monkeypatch.chdir(tmp_path)
    made = Shell(capsys)
    made("init", "ws", "--carrier", "weight")
    monkeypatch.chdir(tmp_path / "ws")
    vkey = made("log", "key", "--origin", "north.example/gnss")
    witness = made("witness", "new", "../w1", "--name", "w1.example", "--algorithm", "ml-dsa-44")
    made("witness", "watch", "../w1", vkey)
    made("log", "witness", witness)
    policy = f'logs = ["{vkey}"]\nwitnesses = ["{witness}"]\nmin_witnesses = 1\n'
    Path("../policy.toml").write_text(policy)
    return made


def cosigned(shell: Shell, out: str) -> str:
    shell("log", "cosign", "--by", "w1.example", "--request", f"{out}.ask")
    shell("witness", "cosign", "../w1", f"{out}.ask", "--out", f"{out}.said")
    return shell("log", "cosign", "--by", "w1.example", "--answer", f"{out}.said", "--out", out)


def test_the_whole_story_by_files(shell: Shell) -> None:
    assert "nothing cosigned yet" in shell("witness", "heads", "../w1")
    assert "1 entries" in cosigned(shell, "../one")
    shell("reserve", "5")
    assert "2 entries" in cosigned(shell, "../two")
    assert "2 entries" in shell("witness", "heads", "../w1")
    shell("log", "proof", "1", "--out", "../entry.tlog-proof")
    said = shell("log", "check", "../entry.tlog-proof", "--policy", "../policy.toml")
    assert re.fullmatch(
        r"entry 1 is under the checkpoint: reservation, .*\na checkpoint of 'north.example/gnss' at 2, "
        r"cosigned by 'w1.example' \(2.*Z\)\nzkt-head-v1:2:[0-9a-f]{64}",
        said,
    )
    assert "at 1, cosigned" in shell("log", "check", "../one", "--policy", "../policy.toml")
    assert "cannot tell" in shell("log", "compare", "../one", "../two", "--policy", "../policy.toml", code=2)
    head = shell("log", "head")
    assert "zkt-head-v1:2" in head
    since = shell("log", "check", "../one", "--policy", "../policy.toml").split("\n")[-1]
    Path("../grown.json").write_text(shell("log", "prove", "--since", since))
    given = ("--policy", "../policy.toml", "--consistency", "../grown.json")
    assert shell("log", "compare", "../two", "../one", *given) == "one log: 2 entries extend 1"


def test_a_checkpoint_that_nobody_cosigned_does_not_pass(shell: Shell) -> None:
    assert "north.example/gnss, 1 entries" in shell("log", "checkpoint", "--out", "../bare")
    said = shell("log", "check", "../bare", "--policy", "../policy.toml", code=1)
    assert "0 of the trusted witnesses cosigned it (nobody), 1 are needed" in said
    Path("../lax.toml").write_text("min_length = 64\n")
    assert "any checkpoint would do" in shell("log", "check", "../bare", "--policy", "../lax.toml", code=2)


def test_a_fork_is_told_and_kept(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second registry that signs with the same key."""
    cosigned(shell, "../one")
    shell("init", "../again", "--carrier", "weight")
    monkeypatch.chdir(tmp_path / "again")
    Path("secrets/log.keys").write_bytes((tmp_path / "ws/secrets/log.keys").read_bytes())
    os.chmod("secrets/log.keys", 0o600)
    shell(
        "log",
        "witness",
        json.loads(shell("log", "witness", "--workspace", "../ws", "--json"))["witnesses"][0]["key"],
    )
    shell("log", "cosign", "--by", "w1.example", "--request", "../ask", "--old", "1")
    said = shell("witness", "cosign", "../w1", "../ask", "--out", "../said", code=1)
    assert "not cosigned (409)" in said
    assert not Path("../said").exists()
    assert "signed by its log, and against what it signed before" in shell("witness", "heads", "../w1")


def test_options_that_do_not_go_together(shell: Shell) -> None:
    for wrong in (
        ("--request", "../r"),
        ("--answer", "../a"),
        ("--old", "1"),
        ("--by", "w1.example"),
        ("--by", "w1.example", "--answer", "../a", "--request", "../r"),
    ):
        assert "--by" in shell("log", "cosign", *wrong, code=2)
    assert "ed25519 or ml-dsa-44" in shell(
        "witness", "new", "../w2", "--name", "w2", "--algorithm", "rsa", code=2
    )
    assert "exists already" in shell("log", "key", "--origin", "x", code=2)


def test_a_witness_serves_until_it_is_interrupted(shell: Shell) -> None:
    command = [sys.executable, "-m", "zktrace", "witness", "serve", "../w1"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=heeding,  # noqa: PLW1509
    ) as ran:
        try:
            assert ran.stdout is not None
            url = ran.stdout.readline().split()[0]
            known = json.loads(shell("log", "witness", "--json"))["witnesses"][0]["key"]
            shell("log", "witness", known, "--url", url)
            assert "w1.example  cosigned at 2" in shell("log", "cosign", "--out", "../one")
            assert "another process is using this witness" in shell(
                "witness", "cosign", "../w1", "../one", "--out", "../said", code=2
            )
        finally:
            ran.send_signal(signal.SIGINT)
            assert ran.wait(timeout=60) == 130
    assert "1 entries" in shell("witness", "heads", "../w1")
    assert "no: it answered 0" in shell("log", "cosign")
