"""Tables of the paper that no training enters: finite guarantees, soundness, custody.

What is a number is computed anew, by the bounds that `zktrace bounds` has. What is prose says how this system
differs.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Final

from zktrace.certificates.finite import FiniteGuarantee, TracingCode, finite_guarantee
from zktrace.certificates.moments import Method
from zktrace.certificates.rounds import (
    commitment_collision_log2,
    knowledge_error_log2,
    mapped_answers,
    rounds_needed,
)
from zktrace.credentials.hardness import Instance
from zktrace.credentials.params import DEFAULT, PAPER, XLPNParams
from zktrace.primitives.rounding import at_most
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

RECIPIENTS: Final = 10
LEVEL: Final = Fraction(1, 1000)
QUERIES: Final = 1 << 64
TARGET: Final = Fraction(1, 1 << 129)
# tab:finite-guarantees: colluders, positions, flip rate; threshold, bound on missing everybody
FINITE: Final = (
    (2, 512, Fraction(4, 100), "111.0004", "0.0096"),
    (3, 2048, Fraction(15, 100), "214.9809", "0.00201"),
)


@cache
def guaranteed(colluders: int, length: int, flip: Fraction, method: Method) -> FiniteGuarantee:
    """A row of the paper's table, by its own panels or by rigorous integration over the biases in use."""
    code = TracingCode(design=colluders, length=length, bias_bits=None if method == "paper" else 32)
    return finite_guarantee(code=code, recipients=RECIPIENTS, level=LEVEL, flip=flip, method=method)


def finite_guarantees_table(_rows: Iterable[Row]) -> str:
    """`tab:finite-guarantees`: both rows, recomputed in two ways."""
    lines = []
    for colluders, length, flip, threshold, missed in FINITE:
        same, tight = (guaranteed(colluders, length, flip, method) for method in ("paper", "tight"))
        lines.append(
            (
                str(colluders),
                str(length),
                f"{float(flip):g}",
                f"{at_most(same.threshold, digits=7)} ({threshold})",
                f"{at_most(same.missed_bound)} ({missed})",
                at_most(tight.threshold, digits=7),
                at_most(tight.missed_bound),
            )
        )
    head = (
        "colluders",
        "positions",
        "flip rate",
        "threshold (paper)",
        "missed (paper)",
        "threshold, integrated",
        "missed, integrated",
    )
    return markdown(head, lines)


def finite_guarantees_words(_rows: Iterable[Row]) -> str:
    """What integration gains over panels."""
    told = []
    for colluders, length, flip, _, missed in FINITE:
        tight = guaranteed(colluders, length, flip, "tight")
        told.append(f"{at_most(tight.missed_bound)} instead of {missed} for {colluders} colluders")
    return (
        "Both rows of the paper are found again, with its own 4096 panels. Integrated rigorously over the "
        f"biases that are in use, the bound on missing every colluder is {' and '.join(told)}. The flip "
        "rates are stipulated, here as there: no measurement enters."
    )


def soundness_split_table(_rows: Iterable[Row]) -> str:
    """`tab:soundness-split`: every quantity with its number here."""
    rounds = DEFAULT.rounds
    mapped = mapped_answers()
    lines = (
        (
            "ideal knowledge error",
            "(Q+1)(2/3)^r: an extraction statement",
            f"2^{knowledge_error_log2(queries=QUERIES, rounds=rounds):.3f} at r = {rounds}, Q = 2^64 "
            f"({rounds_needed(queries=QUERIES, target=TARGET)} rounds reach 2^-129)",
            "2^-129.623; 330 rounds",
        ),
        (
            "16-bit words modulo three",
            f"2/3 becomes {mapped.numerator}/{mapped.denominator}",
            f"2^{knowledge_error_log2(queries=QUERIES, rounds=rounds, per_round=mapped):.3f}; not used here: "
            "challenges are drawn uniformly",
            "2^-129.619; 43691/65536",
        ),
        (
            "commitments collide",
            "counted at the queries of the whole reduction",
            f"2^{commitment_collision_log2(queries=QUERIES):.1f} for 2^64 queries, 256 bits",
            "(Q choose 2) 2^-256",
        ),
        (
            "a witness is found",
            "estimated work, not a chance of forgery",
            f"{_work(DEFAULT)}; the paper's set: {_work(PAPER)}",
            "not 2^-128",
        ),
        (
            "an innocent is named",
            "certified tail under A5(a)",
            "at most the budget of all investigations, 1/100 by default; the log debits it",
            "the tail's budget",
        ),
        (
            "everybody guilty is missed",
            "finite bound under A5(b)",
            "see the finite guarantees; not part of a verdict",
            "eq:finite-completeness",
        ),
    )
    return markdown(("quantity", "means", "here", "paper"), lines)


def _instance(params: XLPNParams) -> Instance:
    return Instance(length=params.length, secret=params.secret, weight=params.weight)


def _work(params: XLPNParams) -> str:
    """Stern's attack, rounded down."""
    return f"2^{int(_instance(params).stern.bits)} by Stern's attack"


def soundness_split_words(_rows: Iterable[Row]) -> str:
    """Where the numbers differ."""
    many = round(_instance(PAPER).log2_witnesses)
    return (
        "The paper's calibration of 331 rounds holds and is in use. Its key set does not keep what it is "
        f"taken for: a key of {PAPER.name} has about 2^{many} witnesses, each as good as its holder's, and "
        f"is found by less work than 2^128; so keys here are of {DEFAULT.name}, unless somebody asks for the "
        "other."
    )


_CUSTODY: Final = (
    (
        "xLPN witness",
        "client",
        "station, in a file only its owner reads",
        "credential impersonation",
        "the same",
    ),
    (
        "recipient's row",
        "tracer; recipient can estimate it",
        "operator; made of a promised seed and the station's own nonce; opened for the accused alone",
        "own-row removal",
        "the same, and measured (study insiders)",
    ),
    (
        "full code and biases",
        "tracer",
        "operator: one code key; seeds are promised by a Merkle root before rows are made",
        "innocent rows may no longer be independent",
        "the same: no verdict holds after it",
    ),
    (
        "projection directions",
        "public",
        "identity: public; tracing: secret, from a promised seed and the log up to the release",
        "targeted edits of a carrier",
        "the same; an accused sees those of its case",
    ),
    (
        "registry opening",
        "judge and tracer",
        "in the evidence file, for a judge; all else stays under commitments in a log",
        "integrity rests on binding",
        "the same; rows of others are not in the file",
    ),
    (
        "proof of delivery",
        "none: honest tracer",
        "a receipt that the station signs with its credential (`credential prove --message`)",
        "-",
        "without it a verdict says whose copy it is, not who was given it",
    ),
)


def secrecy_table(_rows: Iterable[Row]) -> str:
    """`tab:secrecy`: who keeps what, in the paper and here."""
    head = ("artefact", "custody, paper", "custody, here", "if disclosed, paper", "if disclosed, here")
    return markdown(head, _CUSTODY)


def secrecy_words(_rows: Iterable[Row]) -> str:
    """What differs."""
    return (
        "Three things differ from the paper: rows, biases and directions come from seeds that were promised "
        "beforehand and that no side chose alone; directions of tracing marks are secret; and a station can "
        "sign for its copy. The premise is the paper's: the operator keeps its key and looks on the record."
    )
