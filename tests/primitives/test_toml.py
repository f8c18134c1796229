"""Settings in TOML: one line that names file and key for whatever is wrong."""

from fractions import Fraction

import pytest

from zktrace.errors import InputError, MalformedFile
from zktrace.primitives.exact import exact_number
from zktrace.primitives.toml import check_keys, check_whole, parse_toml, value_of


def test_a_file_is_read_as_it_is_written() -> None:
    assert parse_toml(b"a = 1\n[b]\nc = 0.5", "f") == {"a": 1, "b": {"c": 0.5}}
    assert parse_toml("a = 0.1", "f", number=exact_number) == {"a": Fraction(1, 10)}
    assert parse_toml("# nothing is said", "f") == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "f: is empty"),
        (b" \n\t", "f: is empty"),
        (b"\xff\xfe", "f: not TOML, nor any text"),
        (b"a = ", r"f: not TOML \("),
        (b"a = 1\na = 2", r"f: not TOML \("),
        (b"a = " + b"[" * 100_000, "f: not TOML"),
    ],
)
def test_what_is_no_toml_is_malformed(data: bytes, words: str) -> None:
    with pytest.raises(MalformedFile, match=words):
        parse_toml(data, "f")


def test_a_reason_is_told_only_where_it_may_be() -> None:
    text = "a = 'hunter2' 'hunter2'"
    with pytest.raises(MalformedFile) as told:
        parse_toml(text, "f", reasons=False)
    assert str(told.value) == "f: not TOML"


def test_a_number_that_cannot_be_read_is_told_with_its_file() -> None:
    with pytest.raises(InputError, match="f: a number such as"):
        parse_toml("a = 1e-999999999", "f", number=exact_number)


def test_keys_are_known_and_whole() -> None:
    check_keys("f", {"a": 1}, ("a", "b"))
    check_whole("f", {"a": 1, "b": 2}, ("a", "b"), advice="copy one")
    with pytest.raises(InputError, match=r"f: unknown key 's\.c'; known here: a, b"):
        check_keys("f", ("a", "c"), ("b", "a"), under="s.")
    with pytest.raises(InputError, match=r"f: missing keys 's\.a', 's\.b'; copy one"):
        check_whole("f", (), ("b", "a"), advice="copy one", under="s.")


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (float, 0.5, 0.5),
        (Fraction, Fraction(1, 3), Fraction(1, 3)),
        (str, "x", "x"),
        (bool, True, True),
        (tuple[str, ...], ["x", "y"], ("x", "y")),
    ],
)
def test_values_have_their_kind(kind: object, value: object, found: object) -> None:
    assert value_of("f", "k", kind, value) == found
    assert type(value_of("f", "k", kind, value)) is type(found)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.0),
        (float, True),
        (float, "1"),
        (Fraction, 1),
        (str, 1),
        (bool, 1),
        (tuple[str, ...], "x"),
        (tuple[str, ...], ["x", 1]),
        (int, "x" * 1000),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: object, value: object) -> None:
    with pytest.raises(InputError, match=r"f: k must be .*, not ") as told:
        value_of("f", "k", kind, value)
    assert len(str(told.value)) < 120
