"""Rows are added, never edited, and say which trial they answer."""

import json
import resource
from pathlib import Path

import pytest

from zktrace.errors import MalformedFile, Refused
from zktrace.studies.rows import Rows, trial_id


def test_rows_come_back_as_they_were_added(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "deep" / "rows.jsonl")
    assert rows.read() == []
    first = rows.add({"seed": 1, "k": 2}, {"named": 3})
    second = rows.add({"seed": 2, "k": 2}, {"named": 1})
    assert rows.read() == [first, second]
    assert rows.done() == {trial_id({"k": 2, "seed": 1}), trial_id({"k": 2, "seed": 2})}
    assert set(first.origin) >= {"commit", "python", "zktrace", "numpy"}


def test_a_line_that_a_killed_writer_left_is_passed_over_and_dropped(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    rows.add({"seed": 1}, {})
    with rows.path.open("ab") as handle:
        handle.write(b'{"trial": {"se')
    assert len(rows.read()) == 1
    rows.add({"seed": 2}, {})
    assert len(rows.read()) == 2


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for text in ("[]\n", json.dumps({"trial": {}}) + "\n", "nonsense\n"):
        path.write_text(text)
        with pytest.raises(MalformedFile, match="no row of a study"):
            Rows(path).read()


def test_a_full_disk_is_told_by_the_file(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    rows.add({"study": "first"}, {})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(Refused, match=r"rows\.jsonl: cannot be written \(file too large\)"):
            rows.add({"study": "x" * 100_000}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [row.trial for row in rows.read()] == [{"study": "first"}]
    rows.add({"study": "third"}, {})
    assert [row.trial["study"] for row in rows.read()] == ["first", "third"]
