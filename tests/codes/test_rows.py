"""Rows: one and the same from every direction, with exactly the promised law."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from codes import reference
from support import seeded
from zktrace.codes import Code, CodeKey, expand, unpack
from zktrace.codes.rows import INDEX_LIMIT
from zktrace.derivation.promises import Claim, row_key
from zktrace.errors import InputError

KEY = CodeKey.generate(entropy=seeded("rows"))
CODE = Code(key=KEY, label="rows", length=203, colluders=2)
FIRST = CODE.rows(range(300))


@pytest.mark.parametrize("index", [0, 1, 255, INDEX_LIMIT - 1])
@pytest.mark.parametrize("length", [1, 4, 5, 64])
def test_a_row_equals_the_slow_reference(length: int, index: int) -> None:
    code = Code(key=KEY, label="slow", length=length, colluders=2)
    bits = reference.row(KEY.secret, "slow", length, 2, index)
    assert code.rows([index])[0].tobytes() == reference.packed(bits)
    assert unpack(code.rows([index])[0], length).tolist() == bits


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 299), max_size=40))
def test_any_rows_in_any_order(indices: list[int]) -> None:
    assert (CODE.rows(indices) == FIRST[indices]).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 400))
def test_any_range_in_any_blocks(one: int, other: int, block: int) -> None:
    start, stop = sorted((one, other))
    blocks = list(CODE.blocks(start, stop, block))
    assert [len(each) for each in blocks[:-1]] == [block] * (len(blocks) - 1)
    joined = np.concatenate([np.empty((0, CODE.row_bytes), dtype=np.uint8), *blocks])
    assert (joined == FIRST[start:stop]).all()


def test_rows_longer_than_the_buffer() -> None:
    code = Code(key=KEY, label="long", length=150_001, colluders=2)
    blocks = np.concatenate(list(code.blocks(0, 5, 3)))
    assert (blocks == code.rows([4, 3, 2, 1, 0])[::-1]).all()


def test_a_block_that_was_handed_out_is_not_written_again() -> None:
    blocks = CODE.blocks(0, 200, 100)
    first = next(blocks)
    kept = first.copy()
    next(blocks)
    assert (first == kept).all()


def test_the_padding_is_zero() -> None:
    assert CODE.row_bytes == 26
    assert not np.unpackbits(FIRST, axis=1)[:, 203:].any()


def test_the_bits_have_their_biases() -> None:
    """The number of ones in each column against its binomial law, over all columns."""
    code = Code(key=KEY, label="frequencies", length=256, colluders=2)
    count = 20_000
    ones = np.zeros(256)
    for block in code.blocks(0, count, 4096):
        ones += unpack(block, 256).sum(axis=0)
    p = code.biases.probabilities()
    statistic = float((((ones - count * p) ** 2) / (count * p * (1 - p))).sum())
    assert 0.001 < scipy.stats.chi2.sf(statistic, 256) < 0.999


def test_rows_and_columns_are_unrelated() -> None:
    code = Code(key=KEY, label="unrelated", length=512, colluders=2)
    p = code.biases.probabilities()
    standard = (unpack(code.rows(range(400)), 512) - p) / np.sqrt(p * (1 - p))
    across = standard @ standard.T / np.sqrt(512)
    off = across[np.triu_indices(400, 1)]
    assert abs(off.mean()) < 5 / np.sqrt(len(off))
    assert off.var() == pytest.approx(1, abs=0.05)


def test_every_field_of_a_code_changes_its_rows() -> None:
    other_key = CodeKey.generate(entropy=seeded("another"))
    others = [
        Code(key=other_key, label="rows", length=203, colluders=2),
        Code(key=KEY, label="rows2", length=203, colluders=2),
        Code(key=KEY, label="rows", length=203, colluders=3),
    ]
    for other in others:
        assert other.fingerprint != CODE.fingerprint
        assert (other.rows(range(20)) != FIRST[:20]).any(axis=1).all()
    assert Code(key=KEY, label="rows", length=203, colluders=2) == CODE


def test_a_longer_code_begins_with_the_shorter_one() -> None:
    longer = Code(key=KEY, label="rows", length=300, colluders=2)
    assert longer.fingerprint != CODE.fingerprint
    assert (longer.biases.thresholds[:203] == CODE.biases.thresholds).all()
    assert (unpack(longer.rows(range(20)), 300)[:, :203] == unpack(FIRST[:20], 203)).all()


def test_a_row_is_that_of_its_place_and_its_owner() -> None:
    """Neither the operator's seed nor the station's nonce and key make it alone."""
    claims = [Claim(bytes([i]) * 32, b"key") for i in range(6)]
    code = replace(CODE, claims=claims)
    rows = code.rows(range(6))
    assert (rows != FIRST[:6]).any(axis=1).all()
    for at in range(6):
        for other in (Claim(bytes(31) + b"x", b"key"), Claim(claims[at].nonce, b"kez")):
            changed = replace(CODE, claims=[*claims[:at], other, *claims[at + 1 :]]).rows(range(6))
            assert [(a != b).any() for a, b in zip(rows, changed, strict=True)] == [i == at for i in range(6)]
        alone = expand([row_key(code.row_seed(at), claims[at])], code.biases)
        assert (alone[0] == rows[at]).all()
    with pytest.raises(InputError, match="the index of a row"):
        code.rows([6])


def test_a_code_does_not_print_its_key() -> None:
    assert KEY.secret.hex() not in repr(CODE)
    assert repr(KEY.secret) not in repr(CODE)


@pytest.mark.parametrize("index", [-1, INDEX_LIMIT, 0.5, None])
def test_an_index_out_of_range(index: int) -> None:
    with pytest.raises(InputError, match="the index of a row"):
        CODE.rows([0, index])


@pytest.mark.parametrize("arguments", [(-1, 5, 2), (5, 4, 2), (0, INDEX_LIMIT + 1, 2), (0, 5, 0)])
def test_a_range_that_cannot_be(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(InputError):
        CODE.blocks(*arguments)


@pytest.mark.parametrize("wrong", [{"label": ""}, {"length": 0}, {"colluders": 1}])
def test_a_code_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Code(**({"key": KEY, "label": "x", "length": 8, "colluders": 2} | wrong))


def test_bits_that_are_not_packed_so() -> None:
    with pytest.raises(InputError, match="not packed"):
        unpack(FIRST, 210)
