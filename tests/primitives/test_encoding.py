"""Canonical encoding: injective, and read back strictly."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.errors import MalformedKey
from zktrace.primitives.encoding import ByteReader, field, fields, short
from zktrace.primitives.shake import Shake

PARTS = st.lists(st.binary(max_size=6), max_size=4)


@given(PARTS, PARTS)
def test_two_sequences_never_share_an_encoding(one: list[bytes], two: list[bytes]) -> None:
    assert (fields(one) == fields(two)) == (one == two)


def test_a_field_is_its_length_and_its_bytes() -> None:
    assert field(b"abc") == bytes(7) + b"\x03abc"


@given(PARTS)
def test_the_reader_takes_apart_what_short_put_together(parts: list[bytes]) -> None:
    reader = ByteReader(b"MAGIC" + b"".join(map(short, parts)), what="thing", error=MalformedKey)
    reader.expect(b"MAGIC")
    assert [reader.short("part") for _ in parts] == parts
    reader.finish()


def test_the_reader_says_what_is_missing_and_what_is_too_much() -> None:
    with pytest.raises(MalformedKey, match=r"thing: ends inside the seed \(2 bytes left of 3\)"):
        ByteReader(b"ab", what="thing", error=MalformedKey).take(3, "the seed")
    with pytest.raises(MalformedKey, match="thing: 2 bytes after the end"):
        ByteReader(b"ab", what="thing", error=MalformedKey).finish()


@given(PARTS, st.integers(0, 300))
def test_shake_absorbs_its_domain_and_fields(parts: list[bytes], size: int) -> None:
    expected = hashlib.shake_256(field(b"domain") + fields(parts)).digest(size)
    assert Shake("domain", *parts).digest(size) == expected
    assert Shake("domain").fork(*parts).digest(size) == expected


def test_a_fork_leaves_its_origin_alone() -> None:
    origin = Shake("domain", b"a")
    before = origin.digest(32)
    assert origin.fork(b"b").digest(32) != before
    assert origin.digest(32) == before


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(1, 300))
def test_many_forks_at_once_are_those_one_by_one(parts: list[bytes], size: int) -> None:
    origin = Shake("domain", b"a")
    assert origin.fork_digests(size, parts) == b"".join(origin.fork(each).digest(size) for each in parts)
