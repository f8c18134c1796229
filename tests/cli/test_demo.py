"""The command of the demo: what it names exists, and a folder of somebody else is left alone."""

import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import zktrace
from zktrace.cli.app import run
from zktrace.demo.pages import NEXT

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("fastapi", reason="FastAPI is not installed")

from service.test_fetch import free_port
from zktrace.service.desk import Settings
from zktrace.service.store import prepared
from zktrace.service.visitors import Accounts


def test_what_to_do_next_names_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for _, command in NEXT:
        words = [word for word in command.split()[1:] if word.islower() and not word.startswith("-")]
        known = [word for word in words if word not in ("operator", "case.html")]
        assert run([*known, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert all(option in shown for option in command.split() if option.startswith("--"))


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert run(["demo", "--out", str(tmp_path)]) == 2
    assert "not of a demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_port_is_that_of_a_console(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--out", str(tmp_path / "demo"), "--port", "9999"]) == 2
    assert "--serve" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_console_comes_after_a_story_that_was_not_told_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """The story leaves a workspace; what would listen notes what it was given."""
    from zktrace.service import serving

    served = list[tuple[Path, str]]()

    def told(out: Path, seed: int, *, as_json: bool) -> dict[str, object]:
        zktrace.Workspace.create(out / "workspace", title="short", carriers=["spread"], places=4)
        return {"ok": True, "report": "told", "seed": seed}

    def serve(
        home: zktrace.Workspace,
        listening: serving.Listening,
        settings: Settings,
        sockets: Sequence[socket.socket],
        *,
        workers: int,
        ready: Callable[[], None],
    ) -> None:
        assert workers == 1
        assert listening.url == settings.url
        assert [each.getsockname() for each in sockets] == [("127.0.0.1", port)]
        ready()
        served.append((home.root, settings.url))

    monkeypatch.setattr("zktrace.cli.demo._told", told)
    monkeypatch.setattr(serving, "serve", serve)
    port = free_port()
    command = ["demo", "--serve", "--port", str(port), "--out", str(tmp_path / "demo")]
    assert run([*command, *(["--json"] if as_json else [])]) == 0
    assert served == [(tmp_path / "demo" / "workspace", f"http://127.0.0.1:{port}")]
    said = capsys.readouterr().out
    if as_json:
        found = json.loads(said)
        assert (found["ok"], found["seed"], found["account"]) == (True, 42, "demo")
        password = found["password"]
    else:
        password = said.rpartition("password")[2].strip()
    accounts = Accounts(prepared(zktrace.Workspace.open(tmp_path / "demo" / "workspace")))
    assert accounts.signed_in("demo", password).role == "operator"


def test_no_story_is_told_whose_console_has_no_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*given: object, **named: object) -> dict[str, object]:
        raise AssertionError("the story was told")

    monkeypatch.setattr("zktrace.cli.demo._told", told)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["demo", "--serve", "--port", str(port), "--out", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"error: 127.0.0.1, port {port}: cannot be listened on (address already in use)\n"


@pytest.mark.slow
def test_the_whole_demo_ends_as_expected_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert run(["demo", "--out", str(tmp_path / "demo"), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["ok"]
        assert Path(facts["report"]).is_file()
