"""Prose on a terminal: where lines break, and what is bold."""

import os
import pty
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.cli.app import run
from zktrace.cli.terminal import WIDTH, columns, tell, wrapped

WORDS = st.lists(st.text("abcdefg-/", min_size=1, max_size=30), min_size=1, max_size=60)


@given(WORDS, st.sampled_from(["", "  ", "  - "]))
def test_lines_break_between_words_and_keep_them(words: list[str], start: str) -> None:
    line = start + " ".join(words)
    lines = wrapped(line).split("\n")
    assert " ".join(lines).split() == line.split()
    assert max(map(len, lines)) <= WIDTH


def test_what_fits_stays_as_it_is_and_a_long_word_stays_whole() -> None:
    table = "station      weight\nbravo        494.60\n\nthreshold     88.16"
    assert wrapped(table) == table
    assert wrapped(f"a {'x' * 100} b") == f"a\n{'x' * 100}\nb"
    item = wrapped("  - " + "word " * 30)
    assert item.split("\n")[1].startswith("    word")


def test_a_verdict_is_bold_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert columns() == 60
        tell("CERTIFIED: [red]bravo[/red]'s copy.\x1b[31m", strong=True)
        tell("word " * 30)
        stream.flush()
        seen = os.read(ours, 4096).decode()
        monkeypatch.undo()
    os.close(ours)
    assert seen.startswith("\x1b[1mCERTIFIED: [red]bravo[/red]'s copy.\\x1b[31m\x1b[0m\r\n")
    assert seen.count("\x1b[") == 2
    assert max(len(line) for line in seen.split("\r\n")[1:]) <= 60


def test_nothing_is_bold_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    tell("CERTIFIED: bravo's copy.", strong=True)
    tell("")
    assert capsys.readouterr().out == "CERTIFIED: bravo's copy.\n"


def test_help_breaks_its_paragraphs_at_the_terminal_s_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run(["trace", "--help"]) == 0
    above = capsys.readouterr().out.partition("╭")[0]
    alone = [line for line in above.splitlines() if len(line.split()) == 1]
    assert not alone  # a word that the source's own line break pushed off
