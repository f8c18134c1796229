"""How a budget is divided: one table, which tracer, judge and dispatch ask alike.

A look has its share of an investigation's budget (`Look.share`, on record before anything is scored). That is
divided over stages, then carriers, then the scores of a carrier, then tails. A union bound allows any split
that is fixed beforehand; this one puts most where a suspect is faint:

    the suspect as it is    19/20   all alignments together have the rest; one whose finds may be faint has an
                                    equal part of the 19/20
    the first stage          3/4    stage i after it 1/2^(i + 1): all together at most 1
    faint carriers           9/10   read beside others, in proportion to their parts; the others have the rest
    soft, map                1/2    each, where biases vary; map is asked where soft names nobody new. Under a
                                    fair law soft has all: there a linear channel's likelihood is that score
    the positive tail        9/10   the negative one, tampering, has the rest

The paper's rule keeps to the paper: one stage, equal carriers, one hard score, equal tails.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from zktrace.carriers.table import parts
from zktrace.errors import InputError

AS_IT_IS: Final = Fraction(19, 20)
FIRST_STAGE: Final = Fraction(3, 4)
FAINT: Final = Fraction(9, 10)
POSITIVE: Final = Fraction(9, 10)
HARD, SOFT, MAP = "hard", "soft", "map"
SCORES: Final = (HARD, SOFT, MAP)
_PAPER: Final = "paper"


def stage_share(stage: int, rule: str) -> Fraction:
    """Of a look's level, what the stage of this number has, from 1 on."""
    if rule == _PAPER:
        return Fraction(1)
    return FIRST_STAGE if stage == 1 else (1 - FIRST_STAGE) / 2 ** (stage - 1)


def carrier_share(carrier: str, together: Sequence[str], rule: str) -> Fraction:
    """Of a stage's level, what one of the carriers has that are read together."""
    if carrier not in together:
        raise InputError(f"{carrier} is not one of {', '.join(together)}")
    if rule == _PAPER:
        return Fraction(1, len(together))
    faint = [each for each in together if parts(each) > 1]
    like = [each for each in together if (parts(each) > 1) == (carrier in faint)]
    own = Fraction(parts(carrier), sum(parts(each) for each in like))
    if len(like) == len(together):
        return own
    return own * (FAINT if carrier in faint else 1 - FAINT)


def score_shares(vary: bool, rule: str) -> Mapping[str, Fraction]:
    """Of a carrier's level, what each of its scores has. `vary`: whether the biases of its code do."""
    if rule == _PAPER:
        return {HARD: Fraction(1)}
    return {SOFT: Fraction(1, 2), MAP: Fraction(1, 2)} if vary else {SOFT: Fraction(1)}


def tail_share(tail: str, rule: str) -> Fraction:
    """Of a score's level, what one of its tails has."""
    if rule == _PAPER:
        return Fraction(1, 2)
    return POSITIVE if tail == "positive" else 1 - POSITIVE


def tail_level(
    level: Fraction,
    *,
    stage: int,
    carrier: str,
    together: Sequence[str],
    score: str,
    vary: bool,
    tail: str,
    rule: str,
) -> Fraction:
    """All of it: the level of one tail of one score, of a look's."""
    shares = score_shares(vary, rule)
    if score not in shares:
        raise InputError(f"{carrier} is not scored by {score}: {', '.join(shares)}")
    of_carrier = stage_share(stage, rule) * carrier_share(carrier, together, rule)
    return level * of_carrier * shares[score] * tail_share(tail, rule)
