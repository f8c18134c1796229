"""Ctrl-C on a terminal goes to the whole process group: one line, exit code 130, and nobody left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dispatch.test_trained import place
from federation import small
from primitives.test_processes import heeding
from zktrace.cli.app import run
from zktrace.cli.interrupt import interrupted
from zktrace.federation.flower.runfile import preset_toml

PATIENCE = 120  # seconds, of the test and not of the promise


def endless(folder: Path) -> str:
    """A preset whose rounds never end."""
    (folder / "endless.toml").write_text(preset_toml(small.preset(rounds=100_000)))
    return "endless.toml"


def group(leader: int) -> int:
    """How many processes are in a process group."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found += stat.read_text().rpartition(")")[2].split()[2] == str(leader)
        except OSError:
            continue
    return found


def interrupted_run(
    command: Sequence[str], folder: Path, under_way: Callable[[int], bool], *, code: str | None = None
) -> tuple[int, str, str]:
    """Exit code, output and complaint of a command that is interrupted once it is under way."""
    program = ["-m", "zktrace"] if code is None else ["-c", code]
    child = subprocess.Popen(
        [sys.executable, *program, *command],
        cwd=folder,
        env=os.environ | {"XDG_CACHE_HOME": str(folder.parent / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeding,  # noqa: PLW1509
    )
    try:
        deadline = time.monotonic() + PATIENCE
        while not under_way(child.pid):
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < deadline, "it never began"
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        out, said = child.communicate(timeout=PATIENCE)
        assert "Traceback" not in said, said
        for _ in range(600):  # multiprocessing's own helper goes a moment later
            if not group(child.pid):
                break
            time.sleep(0.1)
        assert group(child.pid) == 0
        return child.returncode, out, said
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def test_training_with_workers(tmp_path: Path) -> None:
    command = ["train", "--preset", endless(tmp_path), "--out", "run", "--workers", "2"]
    code, _, said = interrupted_run(command, tmp_path, lambda _: (tmp_path / "run" / "log.jsonl").exists())
    assert code == 130
    assert said.strip() == f"interrupted: {interrupted(['train'])}"
    assert "--resume" in said
    assert len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) >= 1
    done = len((tmp_path / "run" / "log.jsonl").read_text().splitlines())

    def further(_: int) -> bool:
        return len((tmp_path / "run" / "log.jsonl").read_text().splitlines()) > done

    code, out, _ = interrupted_run([*command, "--resume", "--json"], tmp_path, further)
    assert code == 130
    facts = json.loads(out)
    assert (facts["ok"], facts["error"]) == (False, "Interrupted")


def test_workers_that_have_just_begun(tmp_path: Path) -> None:
    """Their interpreters are still importing: no traceback from there either."""
    command = ["train", "--preset", endless(tmp_path), "--out", "run", "--workers", "2"]
    code, _, said = interrupted_run(command, tmp_path, lambda leader: group(leader) >= 3)
    assert (code, said.strip().startswith("interrupted: ")) == (130, True)


def test_dispatch_of_trained_copies(tmp_path: Path) -> None:
    place(tmp_path, ("feature",), "informed")
    endless_mark = ["--mark", "feature.passes=1000000", "--mark", "feature.beside=32"]
    command = ["dispatch", "--all", "--jobs", "2", *endless_mark]
    code, _, said = interrupted_run(command, tmp_path / "op", lambda leader: group(leader) >= 3)
    assert (code, said.strip()) == (130, f"interrupted: {interrupted(['dispatch'])}")
    assert "the same command makes the others" in said
    assert not list((tmp_path / "op" / "copies" / "r1").glob("*.safetensors"))


def test_distillation(tmp_path: Path) -> None:
    from learning.synthetic import taught
    from zktrace.models import save_model

    save_model(tmp_path / "model.safetensors", taught())
    command = ["attack", "distill", "model.safetensors", "--out", "student", "--epochs", "100000"]
    command += ["--checkpoint", "epochs"]
    code, _, said = interrupted_run(command, tmp_path, lambda _: (tmp_path / "epochs").exists())
    assert (code, said.strip()) == (130, f"interrupted: {interrupted(['attack', 'distill'])}")
    assert "--checkpoint" in said
    assert not (tmp_path / "student").exists()


def test_a_study(tmp_path: Path) -> None:
    command = ["study", "federation", "--out", "rows.jsonl", "--work", "work", "--preset", endless(tmp_path)]
    command += ["--dataset", "gnss"]
    code, _, said = interrupted_run(command, tmp_path, lambda _: any((tmp_path / "work").glob("*/log.jsonl")))
    assert (code, said.strip()) == (130, f"interrupted: {interrupted(['study'])}")


STUCK = """
import sys, time
from pathlib import Path
import zktrace.cli.app as app
def run(arguments):
    Path("begun").touch()
    while True:  # a library that swallows whatever is raised in it
        try:
            time.sleep(600)
        except BaseException:
            pass
app.run = run
from zktrace.cli import main
main()
"""


def test_what_swallows_the_interrupt_is_left_behind(tmp_path: Path) -> None:
    code, _, said = interrupted_run(
        ["model", "show", "x"], tmp_path, lambda _: (tmp_path / "begun").exists(), code=STUCK
    )
    assert (code, said.strip()) == (130, f"interrupted: {interrupted(['model', 'show', 'x'])}")
    assert "written whole or not at all" in said


def test_whoever_ignores_interrupts_is_not_interrupted(tmp_path: Path) -> None:
    """A job in the background of a script has SIGINT ignored, and keeps it so."""
    code = (
        "import signal, os; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import zktrace.cli.app as app\n"
        "app.run = lambda arguments: os.kill(os.getpid(), signal.SIGINT) or 0\n"
        "from zktrace.cli import main\nmain()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_inside_a_program_an_interrupt_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def pressed(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("zktrace.models.open_model", pressed)
    assert run(["model", "show", str(tmp_path / "x")]) == 130
    assert "interrupted: files are written whole" in capsys.readouterr().err
