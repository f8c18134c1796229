"""Every number that the paper prints in its computed tables comes out again."""

import math

import pytest

from zktrace.studies.computed_tables import (
    FINITE,
    finite_guarantees_table,
    finite_guarantees_words,
    guaranteed,
    secrecy_table,
    soundness_split_table,
    soundness_split_words,
)


@pytest.mark.parametrize(("colluders", "length", "flip", "threshold", "missed"), FINITE)
def test_finite_guarantees_are_the_papers(
    colluders: int, length: int, flip: float, threshold: str, missed: str
) -> None:
    found = guaranteed(colluders, length, flip, "paper")
    assert f"{found.threshold:.4f}" == threshold
    digits = len(missed.partition(".")[2])
    assert f"{math.ceil(found.missed_bound * 10**digits) / 10**digits:.{digits}f}" == missed
    assert [each.size for each in found.per_size] == list(range(1, colluders + 1))
    tight = guaranteed(colluders, length, flip, "tight")
    assert tight.threshold < found.threshold
    assert tight.missed_bound < found.missed_bound


def test_the_table_has_the_papers_rows() -> None:
    table = finite_guarantees_table([])
    assert "| 2 | 512 | 0.04 | 111.0004 (111.0004) | 0.00956 (0.0096) |" in table
    assert "| 3 | 2048 | 0.15 | 214.9809 (214.9809) | 0.00201 (0.00201) |" in table
    assert "9.1e-5 instead of 0.00201" in finite_guarantees_words([])


@pytest.mark.parametrize("number", ["2^-129.623", "2^-129.619", "43691/65536", "331", "330 rounds", "2^-129"])
def test_the_security_quantities_are_the_papers(number: str) -> None:
    _, _, *lines = soundness_split_table([]).splitlines()
    ours = " ".join(line.split(" | ")[1] + line.split(" | ")[2] for line in lines)
    assert number in ours


def test_the_papers_key_set_is_called_what_it_is() -> None:
    assert "about 2^40 witnesses" in soundness_split_words([])
    assert "2^109" in soundness_split_table([])


def test_custody_has_the_papers_artefacts() -> None:
    lines = secrecy_table([]).splitlines()[2:]
    first = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    assert first[:5] == [
        "xLPN witness",
        "recipient's row",
        "full code and biases",
        "projection directions",
        "registry opening",
    ]
