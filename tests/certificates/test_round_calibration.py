"""Rounds of the credential proof: `cor:rounds` to the printed digit."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.certificates.rounds import (
    UNIFORM,
    commitment_collision,
    commitment_collision_log2,
    knowledge_error,
    knowledge_error_log2,
    mapped_answers,
    rounds_needed,
)
from zktrace.errors import InputError

QUERIES, TARGET = 2**64, Fraction(1, 2**129)


def test_330_rounds_suffice_and_329_do_not() -> None:
    assert rounds_needed(queries=QUERIES, target=TARGET) == 330
    assert (
        knowledge_error(queries=QUERIES, rounds=330) <= TARGET < knowledge_error(queries=QUERIES, rounds=329)
    )


def test_the_mapping_needs_no_more_rounds() -> None:
    assert rounds_needed(queries=QUERIES, target=TARGET, per_round=mapped_answers()) == 330


def test_knowledge_error_at_331_rounds() -> None:
    assert round(knowledge_error_log2(queries=QUERIES, rounds=331), 3) == -129.623
    mapped = knowledge_error_log2(queries=QUERIES, rounds=331, per_round=mapped_answers())
    assert round(mapped, 3) == -129.619


def test_an_interactive_proof_needs_219_rounds_for_128_bits() -> None:
    assert rounds_needed(queries=0, target=Fraction(1, 2**128)) == 219


def test_the_mapping_of_16_bit_words() -> None:
    assert mapped_answers() == Fraction(43691, 65536)


@pytest.mark.parametrize(("bits", "challenges"), [(2, 3), (4, 3), (5, 7), (8, 3), (6, 4)])
def test_the_mapping_against_enumeration(bits: int, challenges: int) -> None:
    count = Counter(word % challenges for word in range(2**bits))
    likeliest = sum(sorted(count.values())[1:])
    assert mapped_answers(bits, challenges) == Fraction(likeliest, 2**bits)


@given(st.integers(0, 2**80), st.integers(0, 200))
def test_rounds_needed_is_the_least(queries: int, bits: int) -> None:
    target = Fraction(1, 2**bits)
    rounds = rounds_needed(queries=queries, target=target)
    assert knowledge_error(queries=queries, rounds=rounds) <= target
    assert rounds == 0 or knowledge_error(queries=queries, rounds=rounds - 1) > target
    closed = math.ceil((bits + math.log2(queries + 1)) / math.log2(1.5) - 1e-9)
    assert abs(rounds - closed) <= 1


def test_commitment_collisions() -> None:
    assert commitment_collision(queries=2) == Fraction(1, 2**256)
    assert commitment_collision(queries=1) == 0
    assert commitment_collision(queries=5, bits=8) == Fraction(10, 256)
    assert commitment_collision_log2(queries=2**64) == pytest.approx(-129)
    assert commitment_collision_log2(queries=2) == -256


@pytest.mark.parametrize(
    "call",
    [
        lambda: rounds_needed(queries=-1, target=TARGET),
        lambda: rounds_needed(queries=1, target=0),
        lambda: rounds_needed(queries=1, target=TARGET, per_round=Fraction(1)),
        lambda: knowledge_error(queries=1, rounds=-1),
        lambda: knowledge_error(queries=1, rounds=1, per_round=-UNIFORM),
        lambda: mapped_answers(1, 3),
        lambda: mapped_answers(0, 1),
        lambda: commitment_collision(queries=-1),
        lambda: commitment_collision_log2(queries=1),
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        call()
