"""Canonical JSON: one text for a value, and a reader that takes no other."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.canonical import fraction_text, from_json, read_fraction, to_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_value_comes_back_and_its_text_is_ascii_without_spaces_or_line_ends(value: object) -> None:
    data = to_json(value)
    assert from_json(data, what="it") == value
    assert data.isascii()
    assert b"\n" not in data
    assert json.loads(data) == value


@given(VALUES, VALUES)
def test_equal_text_means_equal_value(one: object, two: object) -> None:
    assert (to_json(one) == to_json(two)) == (repr_of(one) == repr_of(two))


def repr_of(value: object) -> object:
    """Tells 1 from True, and forgets the order of keys."""
    if isinstance(value, dict):
        return {key: repr_of(each) for key, each in value.items()}
    return [repr_of(each) for each in value] if isinstance(value, list) else (type(value), value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b' {"a":1}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
        b"1.0",
        b"1e3",
        b"-0",
        b"01",
        b"NaN",
        b"Infinity",
        b"9223372036854775808",
        b"1" * 5000,
        '"ä"'.encode(),
        b'"\\u0061"',
        b'"\\u00E4"',
        b'"\\ud800"',
        b'"\\/"',
        b"\xff",
        b"\xef\xbb\xbf1",
        "1".encode("utf-16"),
        b"[" * 40 + b"]" * 40,
        b"[" * 100_000 + b"]" * 100_000,
        b"tru\x00e",
    ],
)
def test_any_other_text_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFile, match="it: "):
        from_json(data, what="it")


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = from_json(data, what="it")
    except MalformedFile:
        return
    assert to_json(value) == data


@pytest.mark.parametrize("value", [1.5, float("nan"), b"a", {1: 2}, 2**63, -(2**63), "\ud800", {"a": {1}}])
def test_what_has_no_canonical_form_is_an_error(value: object) -> None:
    with pytest.raises(InputError, match=r"."):
        to_json(value)


@given(st.fractions())
def test_fractions_come_back(value: Fraction) -> None:
    assert read_fraction(fraction_text(value), what="it") == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "1/0", "2/4", "-0/1", "0/2", "+1/2", "1/-2", " 1/2", "1/2 ", "01/2", "1/02", "1/2/3"),
        *("½/1", "1e1/2", "1_0/3", "0.5", "1" * 2000 + "/3", None, 1, "--1/2"),
    ],
)
def test_other_texts_are_no_fractions(text: object) -> None:
    with pytest.raises(MalformedFile, match="it: not a fraction"):
        read_fraction(text, what="it")
