"""Scores: the fast sums are the double loop's, whatever the block and the thread."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import seeded
from zktrace.codes import (
    Biases,
    Code,
    CodeKey,
    Coefficients,
    RowCache,
    score_all,
    sums,
    symmetric,
    top,
    unpack,
)
from zktrace.codes import scores as scores_module
from zktrace.errors import InputError

KEY = CodeKey.generate(entropy=seeded("scores"))
CODE = Code(key=KEY, label="scores", length=141, colluders=2)
WORD = np.random.default_rng(0).integers(0, 2, 141)


def double_loop(rows: np.ndarray, numerators: list[int]) -> list[int]:
    """L in the integers of Python, one bit after another."""
    result = []
    for row in rows.tolist():
        total = 0
        for position, numerator in enumerate(numerators):
            if row[position // 8] >> (7 - position % 8) & 1:
                total += numerator
        result.append(total)
    return result


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(-(2**24), 2**24), min_size=1, max_size=90),
    st.integers(0, 200),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_sums_are_the_double_loops(
    numerators: list[int], count: int, threads: int, seed: int, tables: bool
) -> None:
    length = len(numerators)
    biases = Biases(thresholds=np.full(length, 2**31), colluders=2)
    coefficients = Coefficients(numerators=np.array(numerators), scale_bits=8, biases=biases)
    rows = np.random.default_rng(seed).integers(0, 256, (count, -(-length // 8)), dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores_module, "_FEW", 1 if tables else 1024)
        found = sums(rows, coefficients, threads=threads)
    assert found.dtype == np.int64
    assert found.tolist() == double_loop(rows, numerators)


def test_blocks_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = CODE.rows(range(700))
    coefficients = symmetric(WORD, CODE.biases)
    wanted = double_loop(rows, coefficients.numerators.tolist())
    for few, tile, block, buffer in [
        (701, 7, 9, 1),
        (1, 7, 100, 1),
        (1, 64, 700, 1 << 20),
        (50, 512, 300, 9_000),
    ]:
        monkeypatch.setattr(scores_module, "_FEW", few)
        monkeypatch.setattr(scores_module, "_TILE", tile)
        monkeypatch.setattr(scores_module, "_BLOCK", block)
        monkeypatch.setattr(scores_module, "_BUFFER", buffer)
        for threads in (1, 2, 3, 7):
            assert sums(rows, coefficients, threads=threads).tolist() == wanted


@pytest.mark.parametrize("few", [1, 1024])
def test_the_largest_sums(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of 2^31 - 1 in one sum, of either sign."""
    monkeypatch.setattr(scores_module, "_FEW", few)
    length = 100
    biases = Biases(thresholds=np.full(length, 2**31), colluders=2)
    sizes = np.full(length, (2**31 - 1) // length)
    for numerators in (sizes, -sizes):
        coefficients = Coefficients(numerators=numerators, scale_bits=0, biases=biases)
        rows = np.full((3, 13), 255, dtype=np.uint8)
        assert sums(rows, coefficients).tolist() == [int(numerators.sum())] * 3


@pytest.mark.parametrize("few", [1, 1024])
@pytest.mark.parametrize("length", [65_472, 100_003])
def test_long_codes(length: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores_module, "_FEW", few)
    biases = Biases(thresholds=np.full(length, 2**31), colluders=2)
    coefficients = Coefficients(numerators=np.full(length, 5), scale_bits=0, biases=biases)
    rows = np.full((2, -(-length // 8)), 255, dtype=np.uint8)
    assert sums(rows, coefficients).tolist() == [5 * length] * 2


def test_rows_need_not_be_contiguous() -> None:
    rows, coefficients = CODE.rows(range(40)), symmetric(WORD, CODE.biases)
    wide = np.zeros((40, 40), dtype=np.uint8)
    wide[:, 3 : 3 + CODE.row_bytes] = rows
    assert (sums(wide[::2, 3 : 3 + CODE.row_bytes], coefficients) == sums(rows, coefficients)[::2]).all()


def test_many_rows_at_once() -> None:
    """The real sizes, against a product of matrices of 64-bit integers."""
    rows, coefficients = CODE.rows(range(5_000)), symmetric(WORD, CODE.biases)
    wanted = unpack(rows, 141).astype(np.int64) @ coefficients.numerators
    for threads in (1, 2):
        assert (sums(rows, coefficients, threads=threads) == wanted).all()


def test_no_coefficients_no_rows() -> None:
    nothing = Coefficients(numerators=np.zeros(141, dtype=int), scale_bits=8, biases=CODE.biases)
    assert sums(CODE.rows(range(9)), nothing).tolist() == [0] * 9
    assert sums(CODE.rows([]), symmetric(WORD, CODE.biases)).tolist() == []


def test_scores_are_the_paper_formula() -> None:
    """Σ (2y - 1)(x - p)/√(p (1 - p)), position by position, up to the rounding of coefficients."""
    rows, p = CODE.rows(range(50)), CODE.biases.probabilities()
    coefficients = symmetric(WORD, CODE.biases)
    bits = unpack(rows, 141)
    slow = [
        sum((2 * y - 1) * (x - q) / (q * (1 - q)) ** 0.5 for x, y, q in zip(row, WORD, p, strict=True))
        for row in bits.astype(int)
    ]
    assert np.abs(coefficients.scores_float(sums(rows, coefficients)) - slow).max() < 141 / 512


def test_all_rows_with_and_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores_module, "_REPORT", 100)
    coefficients = symmetric(WORD, CODE.biases)
    cache = RowCache.build(tmp_path / "rows", CODE, 350)
    seen: list[tuple[int, int]] = []
    made = score_all(CODE, 333, coefficients, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(100, 333), (200, 333), (300, 333), (333, 333)]
    assert made.tolist() == sums(CODE.rows(range(333)), coefficients).tolist()
    assert score_all(CODE, 333, coefficients, cache=cache).tolist() == made.tolist()
    assert score_all(CODE, 0, coefficients).tolist() == []


def test_what_does_not_belong_together(tmp_path: Path) -> None:
    other = Code(key=KEY, label="other", length=141, colluders=2)
    coefficients = symmetric(WORD, CODE.biases)
    cache = RowCache.build(tmp_path / "rows", CODE, 10)
    with pytest.raises(InputError, match="biases of another code"):
        score_all(other, 5, coefficients)
    with pytest.raises(InputError, match="rows of another code"):
        score_all(other, 5, symmetric(WORD, other.biases), cache=cache)
    with pytest.raises(InputError, match="holds 10 rows, 11"):
        score_all(CODE, 11, coefficients, cache=cache)
    with pytest.raises(InputError, match=r"shape \(rows, 18\)"):
        sums(np.zeros((3, 17), dtype=np.uint8), coefficients)
    with pytest.raises(InputError, match="uint8"):
        sums(np.zeros((3, 18)), coefficients)
    with pytest.raises(InputError, match="threads"):
        sums(CODE.rows([0]), coefficients, threads=0)


def test_top_is_best_first_and_ties_keep_their_order() -> None:
    totals = np.array([3, 9, -1, 9, 4])
    assert top(totals, 3).tolist() == [1, 3, 4]
    assert top(totals, 99).tolist() == [1, 3, 4, 0, 2]
    assert top(totals, 0).tolist() == []
