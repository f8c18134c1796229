"""How often the credential proof repeats its three-move protocol (`cor:rounds`, `lem:afk`). All exact.

The knowledge error is an extraction statement in the random-oracle model. Commitment failures are added at
the reduction's own number of queries; the cost of solving xLPN is a separate matter (`tab:soundness-split`).
"""

from fractions import Fraction

from zktrace.certificates.intervals import Number, exact, log2, upper_float
from zktrace.errors import InputError
from zktrace.primitives.precision import precision

UNIFORM = Fraction(2, 3)  # two answers of three, uniform ternary challenges


def mapped_answers(bits: int = 16, challenges: int = 3) -> Fraction:
    """The chance of the likeliest challenges but one when a `bits`-bit word is reduced modulo `challenges`.

    43691/65536 for 16 bits modulo 3 (`tab:soundness-split`).
    """
    if bits < 1 or not 2 <= challenges <= 1 << bits:
        raise InputError(f"{challenges} challenges from a word of {bits} bits")
    rarest = (1 << bits) // challenges
    return 1 - Fraction(rarest, 1 << bits)


def knowledge_error(*, queries: int, rounds: int, per_round: Fraction = UNIFORM) -> Fraction:
    """(Q + 1) β^r of `lem:afk`; β is 2/3 for uniform challenges, `mapped_answers()` for the mapping."""
    _check(queries, per_round)
    if rounds < 0:
        raise InputError(f"{rounds} rounds")
    return (queries + 1) * per_round**rounds


def knowledge_error_log2(*, queries: int, rounds: int, per_round: Fraction = UNIFORM) -> float:
    """log2 of `knowledge_error`, rounded up."""
    with precision():
        return upper_float(log2(knowledge_error(queries=queries, rounds=rounds, per_round=per_round)))


def rounds_needed(*, queries: int, target: Number, per_round: Fraction = UNIFORM) -> int:
    """The least r with (Q + 1) β^r <= target (`eq:rderiv`)."""
    _check(queries, per_round)
    limit = exact(target, "the target")
    if limit <= 0:
        raise InputError(f"the target must be positive, not {target}")
    rounds, error = 0, Fraction(queries + 1)
    while error > limit:
        rounds, error = rounds + 1, error * per_round
    return rounds


def commitment_collision(*, queries: int, bits: int = 256) -> Fraction:
    """(Q choose 2) 2^-bits: two of Q commitments collide (`ass:commit`)."""
    if queries < 0 or bits < 1:
        raise InputError(f"{queries} queries to a commitment of {bits} bits")
    return Fraction(queries * (queries - 1) // 2, 1 << bits)


def commitment_collision_log2(*, queries: int, bits: int = 256) -> float:
    """log2 of `commitment_collision`, rounded up; two queries at least."""
    if queries < 2:
        raise InputError(f"{queries} queries cannot collide")
    with precision():
        return upper_float(log2(commitment_collision(queries=queries, bits=bits)))


def _check(queries: int, per_round: Fraction) -> None:
    if queries < 0:
        raise InputError(f"{queries} queries")
    if not 0 < per_round < 1:
        raise InputError(f"the error of one round must lie in (0, 1), not {per_round}")
