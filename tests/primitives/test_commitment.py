"""Commitments: bound to every field, to where fields end, to the domain and to the opening."""

import hashlib

import pytest

from zktrace.errors import InputError
from zktrace.primitives.commitment import commit, opens

RHO = bytes(range(32))


def field(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def test_the_value_is_what_the_specification_says() -> None:
    absorbed = field(b"zkt-commitment-v1/thing") + field(RHO) + field(b"a") + field(b"")
    assert commit("thing", RHO, b"a", b"") == hashlib.shake_256(absorbed).digest(32)


def test_another_field_order_boundary_domain_or_opening_is_another_commitment() -> None:
    values = {
        commit("thing", RHO, b"ab", b"c"),
        commit("thing", RHO, b"a", b"bc"),
        commit("thing", RHO, b"c", b"ab"),
        commit("thing", RHO, b"abc"),
        commit("thing", RHO, b"ab", b"c", b""),
        commit("other", RHO, b"ab", b"c"),
        commit("thing", bytes(32), b"ab", b"c"),
    }
    assert len(values) == 7


def test_opening() -> None:
    made = commit("thing", RHO, b"a")
    assert opens(made, "thing", RHO, b"a")
    assert not opens(made, "thing", RHO, b"b")
    assert not opens(made, "thing", bytes(32), b"a")
    assert not opens(made, "other", RHO, b"a")
    assert not opens(made[:-1], "thing", RHO, b"a")
    assert not opens(made, "thing", RHO[:-1], b"a")


@pytest.mark.parametrize("size", [0, 31, 33])
def test_an_opening_has_32_bytes(size: int) -> None:
    with pytest.raises(InputError, match="an opening has 32 bytes"):
        commit("thing", bytes(size))
