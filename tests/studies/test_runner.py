"""The runner of studies: what has a row is not done again, whatever ended the last run."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from zktrace.cli.app import run
from zktrace.cli.studying import carry_out
from zktrace.errors import InputError, TrialsFailed
from zktrace.studies.rows import Rows
from zktrace.studies.runner import Prerequisite, Progress, Trial, estimate, run_study


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file that is made once; `folder` gets one more line whenever it is."""

    folder: Path
    key: str = "made"
    broken: bool = False
    guess: ClassVar[float] = 100.0

    def ready(self) -> bool:
        return (self.folder / self.key).exists()

    def make(self, report: Progress) -> None:
        if self.broken:
            raise InputError("cannot be made")
        note(self.folder / "made.txt", self.key)
        (self.folder / self.key).touch()


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Trials that write down that they were done, and by whom."""

    name: str
    folder: Path
    numbers: tuple[int, ...]
    needs: tuple[Prerequisite, ...] = ()
    study: str = "numbers"
    patient: bool = True  # its trials can only be told when all it needs is there
    guess: ClassVar[float] = 30.0

    @property
    def size(self) -> int:
        return len(self.numbers)

    def trials(self, report: Progress) -> Iterator[Trial]:
        if self.patient and not all(each.ready() for each in self.needs):
            raise AssertionError("asked for its trials too early")
        for number in self.numbers:
            facts = {"study": self.study, "batch": self.name, "number": number}
            yield Trial(facts=facts, outcome=partial(self.outcome, number))

    def outcome(self, number: int) -> dict[str, Any] | None:
        note(self.folder / "done.txt", f"{self.name} {number}")
        if number < 0:
            raise {-1: ValueError, -2: InputError}[number]("negative")
        if number == 666:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 999:
            parent = os.getppid()
            while os.getppid() == parent:  # until whoever started us is killed
                time.sleep(0.05)
        if number == 0:
            return None
        return {"pid": os.getpid(), "nice": os.nice(0), "threads": torch.get_num_threads()}


def note(path: Path, line: str) -> None:
    with open(path, "a") as handle:
        handle.write(line + "\n")


def noted(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines()) if path.exists() else []


def done(folder: Path) -> list[str]:
    return noted(folder / "done.txt")


def test_rows_are_made_once_and_say_how_long_they_took(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    few, more = (Numbers(name="a", folder=tmp_path, numbers=tuple(range(1, n))) for n in (3, 5))
    assert len(run_study([few], rows).made) == 2
    second = run_study([more, more], rows)  # named twice, done once
    assert [row.trial["number"] for row in second.made] == [3, 4]
    assert (second.there, second.failures) == (2, [])
    assert done(tmp_path) == ["a 1", "a 2", "a 3", "a 4"]
    assert all(row.origin["seconds"] >= 0 and "commit" in row.origin for row in rows.read())
    assert {row.outcome["pid"] for row in rows.read()} == {os.getpid()}  # one batch: in this process


def test_the_same_trial_in_two_batches_is_done_once(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Alias(Numbers):
        def trials(self, report: Progress) -> Iterator[Trial]:
            return Numbers(name="a", folder=self.folder, numbers=self.numbers).trials(report)

    batches = [
        kind(name=name, folder=tmp_path, numbers=(1, 2)) for kind, name in ((Numbers, "a"), (Alias, "b"))
    ]
    assert len(run_study(batches, Rows(tmp_path / "rows.jsonl"), workers=1).made) == 2
    assert done(tmp_path) == ["a 1", "a 2"]


def test_two_workers_take_a_batch_each_and_are_modest(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    batches = [Numbers(name=name, folder=tmp_path, numbers=(1, 2, 3)) for name in "abcd"]
    ran = run_study(batches, rows, workers=2)
    assert len(ran.made) == len(rows.read()) == 12
    by_batch = {
        name: {row.outcome["pid"] for row in ran.made if row.trial["batch"] == name} for name in "abcd"
    }
    assert all(len(each) == 1 for each in by_batch.values())  # a batch stays where it is
    assert os.getpid() not in set.union(*by_batch.values())
    assert {row.outcome["threads"] for row in ran.made} == {1}
    assert {row.outcome["nice"] for row in ran.made} == {min(19, os.nice(0) + 10)}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_is_told_and_the_rest_is_done(workers: int, tmp_path: Path) -> None:
    batches = [Numbers(name=name, folder=tmp_path, numbers=(1, -1, -2, 0, 2)) for name in "ab"]
    rows = Rows(tmp_path / "rows.jsonl")
    ran = run_study(batches, rows, workers=workers)
    assert len(ran.made) == 4  # and none of the trial that had nothing to try
    messages = sorted(each.message for each in ran.failures)
    assert messages == ["ValueError: negative"] * 2 + ["negative"] * 2
    traces = {each.message: each.trace for each in ran.failures}
    assert "in outcome" in traces["ValueError: negative"]
    assert traces["negative"] == ""  # of ours: the message says all
    again = run_study(batches, rows, workers=workers)
    assert (len(again.made), again.there, len(again.failures)) == (0, 4, 4)


def test_a_worker_that_dies_is_one_failed_trial(tmp_path: Path) -> None:
    batches = [
        Numbers(name=name, folder=tmp_path, numbers=(1, last, 2)) for name, last in (("a", 666), ("b", 3))
    ]
    ran = run_study(batches, Rows(tmp_path / "rows.jsonl"), workers=2)
    assert sorted(row.trial["number"] for row in ran.made) == [1, 1, 2, 2, 3]
    assert [each.message for each in ran.failures] == ["a worker process died"]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_batches_need_is_made_once_and_beforehand(workers: int, tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    need, broken = Made(folder=tmp_path), Made(folder=tmp_path, key="broken", broken=True)
    batches = [Numbers(name=name, folder=tmp_path, numbers=(1,), needs=(need,)) for name in "abc"]
    bad = Numbers(name="d", folder=tmp_path, numbers=(1, 2), needs=(need, broken))
    ran = run_study([*batches, bad], rows, workers=workers)
    assert len(ran.made) == 3
    assert [(each.name, each.message) for each in ran.failures] == [("broken", "cannot be made")]
    run_study(batches, rows, workers=workers)
    assert noted(tmp_path / "made.txt") == ["made"]


def test_nothing_is_made_for_batches_whose_rows_are_there(tmp_path: Path) -> None:
    rows, need = Rows(tmp_path / "rows.jsonl"), Made(folder=tmp_path)
    batch = Numbers(name="a", folder=tmp_path, numbers=(1, 2), needs=(need,), patient=False)
    for number in (1, 2):
        rows.add({"study": "numbers", "batch": "a", "number": number}, {})
    ran = run_study([batch], rows)
    assert (ran.made, ran.there, ran.failures) == ([], 2, [])
    assert (estimate([batch], rows).trials, estimate([batch], rows).seconds) == (0, 0)
    assert not need.ready()
    more = Numbers(name="a", folder=tmp_path, numbers=(1, 2, 3), needs=(need,), patient=False)
    assert (estimate([more], rows).trials, estimate([more], rows).seconds) == (1, 100 + 10)
    assert len(run_study([more], rows).made) == 1
    assert need.ready()


def test_a_dry_run_counts_by_rows_or_else_by_guess(tmp_path: Path) -> None:
    rows, need = Rows(tmp_path / "rows.jsonl"), Made(folder=tmp_path)
    first = Numbers(name="a", folder=tmp_path, numbers=(1, 2, 3))
    second = Numbers(name="b", folder=tmp_path, numbers=(1, 2), needs=(need,))
    found = estimate([first, second, first], rows)
    assert (found.trials, found.seconds) == (5, 30 + 100 + 30)
    rows.add({"study": "numbers", "batch": "a", "number": 1}, {}, 7.0)
    rows.add({"study": "others"}, {}, 1000.0)
    rows.add({"study": "numbers", "batch": "old"}, {})  # made before rows said how long they took
    found = estimate([first, second], rows)
    assert (found.trials, found.seconds) == (4, 2 * 7 + 100 + 2 * 7)
    assert done(tmp_path) == []


def test_a_study_that_is_killed_goes_on(tmp_path: Path) -> None:
    """With workers, in the middle of trials: no line is cut, nothing is done again but what was under way."""
    script = (
        "import sys; from pathlib import Path; from test_runner import Numbers; "
        "from zktrace.studies.rows import Rows; from zktrace.studies.runner import run_study\n"
        "if __name__ == '__main__':\n"
        " folder = Path(sys.argv[1])\n"
        " batches = [Numbers(name=name, folder=folder, numbers=(1, 2, 999, 3)) for name in 'ab']\n"
        " run_study(batches, Rows(folder / 'rows.jsonl'), workers=2)\n"
    )
    (tmp_path / "main.py").write_text(script)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    study = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py"), str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    rows = Rows(tmp_path / "rows.jsonl")
    try:
        while (len(rows.done()) < 4 or len(done(tmp_path)) < 6) and study.poll() is None:
            time.sleep(0.1)
    finally:
        study.kill()
        study.wait()
    assert len(rows.read()) == 4
    batches = [Numbers(name=name, folder=tmp_path, numbers=(1, 2, 3)) for name in "ab"]
    ran = run_study(batches, rows, workers=1)
    assert (len(ran.made), ran.there) == (2, 4)
    assert [line for line in done(tmp_path) if "999" not in line] == [
        f"{n} {k}" for n in "ab" for k in (1, 2, 3)
    ]


def _adds(path: Path, name: str) -> None:
    rows = Rows(path)
    for number in range(30):
        rows.add({"number": number}, {"by": name, "padding": "x" * 5000})


def test_two_processes_write_whole_lines_and_no_trial_twice(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=_adds, args=(path, name)) for name in "ab"]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert [each.exitcode for each in both] == [0, 0]
    assert sorted(row.trial["number"] for row in Rows(path).read()) == list(range(30))


def test_the_command_tells_failures_and_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    good = Numbers(name="a", folder=tmp_path, numbers=(1, 2))
    bad = Numbers(name="b", folder=tmp_path, numbers=(-1, *range(10, 13)))
    carry_out([good, bad], out, workers=2, dry_run=True, as_json=False)
    assert capsys.readouterr().out == "6 trials are left: about 0 minutes on idle processors\n"
    assert not out.exists()
    carry_out([good], out, workers=1, dry_run=False, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"ok": True, "new": 2, "there": 0}
    with pytest.raises(
        TrialsFailed, match=r"^1 failed \(3 new rows in .*, 2 were there\): b, trial [0-9a-f]+: Val"
    ):
        carry_out([good, bad], out, workers=1, dry_run=False, as_json=False)
    assert "Traceback" in capsys.readouterr().err
    assert TrialsFailed.exit_code == 2


def test_a_study_command_knows_what_it_would_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--out", str(tmp_path / "rows.jsonl"), "--work", str(tmp_path / "work"), "--json", "--dry-run"]
    assert run(["study", "federation", "--preset", "study", "--seed", "42", "--seed", "43", *given]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trials"] == 2 * 2 * 2
    assert 8 * 60 < told["seconds"] < 8 * 240
    assert not (tmp_path / "work").exists()
