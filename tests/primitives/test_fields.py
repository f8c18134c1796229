"""Declared fields: one text for a value, and nothing of another form gets through."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import pytest

from zktrace.errors import MalformedFile
from zktrace.primitives.fields import (
    Declared,
    Form,
    choice,
    flag,
    fraction,
    listed,
    nested,
    octets,
    packed,
    text,
    whole,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Declared):
    what: ClassVar = "a point"
    at: Annotated[int, whole(0, 9)]
    mark: Annotated[bytes, octets(2)]

    def check(self) -> None:
        if self.at == 7:
            raise MalformedFile("a point: is never at 7")


@dataclass(frozen=True, slots=True, kw_only=True)
class Path(Declared):
    what: ClassVar = "a path"
    points: Annotated[tuple[Point, ...], listed(nested(Point), low=1, high=2)]


def test_an_object_is_read_as_it_was_written() -> None:
    path = Path(points=(Point(at=3, mark=b"\x00\xff"), Point(at=0, mark=b"ab")))
    tree = {"points": [{"at": 3, "mark": "00ff"}, {"at": 0, "mark": "6162"}]}
    assert path.as_json() == tree
    assert Path.from_json(tree) == path


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "a path: must have exactly the fields points"),
        ({"points": [], "more": 1}, "a path: must have exactly the fields points"),
        ({"points": []}, "a path: points: must be a list of 1..2"),
        ({"points": [{"at": 1}]}, "a point: must have exactly the fields at, mark"),
        ({"points": [{"at": 10, "mark": "0000"}]}, "a point: at: must be a whole number in 0..9"),
        ({"points": [{"at": 7, "mark": "0000"}]}, "is never at 7"),
    ],
)
def test_every_message_says_where(value: object, why: str) -> None:
    with pytest.raises(MalformedFile, match=why):
        Path.from_json(value)


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (text(3), ["a", "abc"], ["", "abcd", "a\n", 3, None]),
        (choice(("a", "b")), ["a"], ["c", "", ["a"], None]),
        (flag(), [True, False], [0, 1, "true", None]),
        (whole(-1, 2), [-1, 2], [-2, 3, True, 1.0, "1"]),
        (fraction(), ["1/2", "-3/1"], ["2/4", "1/0", "1", 1, f"{2**65}/1"]),
        (octets(1, 2), ["00", "a0ff"], ["", "A0", "0", "000000", " 0", "0 ", 0]),
        (octets(0, 1), ["", "00"], ["0000"]),
        (packed(1, 3), ["AA==", "AAAA", "//8="], ["", "AAAAAA==", "AB==", "AA", "AA==\n", "A A=", "é===", 7]),
        (listed(whole(0, 1), high=2), [[], [0, 1]], [[2], [0, 0, 0], (0,), None]),
    ],
    ids=["text", "choice", "flag", "whole", "fraction", "octets", "empty", "packed", "listed"],
)
def test_a_form_reads_what_it_writes_and_nothing_else(form: Form[Any], good: list, bad: list) -> None:
    for value in good:
        assert form.write(form.read(value, "it")) == value
    for value in bad:
        with pytest.raises(MalformedFile, match=r"^it: "):
            form.read(value, "it")


def test_a_fraction_is_a_number() -> None:
    assert fraction().read("-1/3", "it") == Fraction(-1, 3)
