"""From a traced case to its report: the same numbers in plain values. Nothing is decided here."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

from zktrace.carriers import CARRIERS
from zktrace.certificates.certificate import Certificate
from zktrace.primitives.rounding import down, up
from zktrace.registry.ledger import Ledger
from zktrace.report.case_values import (
    BudgetState,
    CarrierSection,
    CaseReport,
    CertificateRow,
    LogPosition,
    NamedStation,
    Recheck,
    RegistryProof,
    StationScore,
)
from zktrace.report.words import (
    NOT_PROVED,
    NOTHING_MEANS,
    SCORES_ARE_SECRETS,
    how_sure,
    judge_command,
    plainly,
    planned_looks,
    shown_rows,
    shown_tables,
    stage_bound,
)
from zktrace.tracing.case import CarrierTable, Case, Named

_UPWARDS: Final = Context(prec=12, rounding=ROUND_CEILING)
_KEEP: Final = f"{SCORES_ARE_SECRETS[0].upper()}{SCORES_ARE_SECRETS[1:]}."
_RULES: Final = {
    "certified": "soft scores of the difference to the shared model, exact tails",
    "paper": "symmetric scores of the signs, Chernoff's bound",
}


def report_of(
    case: Case,
    ledger: Ledger,
    *,
    suspect: Path,
    evidence: Path,
    note: str = "",
    given: tuple[str | Path, ...] = (),
    all_scores: bool = False,
) -> CaseReport:
    """What the report on a case shows. `ledger` is the registry's after the case, `given` what else a judge
    is given.

    Without `all_scores` nothing in it depends on the row of a station that is not named, leads included.
    """
    tables = shown_tables(case, all_scores=all_scores)
    looks = ledger.investigations.items()
    before = sum((each.budget for place, each in looks if place < case.place), start=Fraction(0))
    total = ledger.setup.budget
    spent = case.investigation.budget
    return CaseReport(
        title=f"Case {case.place}: {ledger.setup.title}",
        suspect=suspect.name,
        digest=case.investigation.suspect.hex(),
        verdict=str(case.verdict),
        sentences=(plainly(case, suspect=f"the file {suspect.name}"), *_sentences(how_sure(case))),
        may_be=() if case.named or case.leads else NOTHING_MEANS,
        carriers=tuple(_carrier(case, table, ledger, all_scores=all_scores) for table in tables),
        named=tuple(_named(case, each) for each in case.named),
        certificates=_certificates(case, tables),
        registry=RegistryProof(
            head=case.evidence.head,
            positions=(
                LogPosition(record="investigation", index=case.place),
                LogPosition(
                    record="verdict", index=case.verdict_place, digest=case.evidence.findings.digest().hex()
                ),
            ),
        ),
        budget=BudgetState(
            total=total, spent_before=before, spent_here=spent, remaining=total - before - spent
        ),
        rechecks=_rechecks(case, given or ("--suspect", Path(suspect.name)), evidence),
        not_proved=tuple(f"{each[0].upper()}{each[1:]}." for each in NOT_PROVED) if case.named else (),
        facts=(
            ("release", case.investigation.release),
            ("stations scored", str(case.investigation.recipients)),
            ("looks on record beforehand, with their shares of the budget", planned_looks(case)),
            ("rule", f"{case.investigation.rule}: {_RULES[case.investigation.rule]}"),
        ),
        note=note,
        warning=_KEEP if all_scores else "",
    )


def _sentences(lines: list[str]) -> tuple[str, ...]:
    """Lines that stand for themselves; what is indented has its own place on the page."""
    return tuple(line for line in lines if line and not line.startswith(" "))


def _carrier(case: Case, table: CarrierTable, ledger: Ledger, *, all_scores: bool) -> CarrierSection:
    named, leads = ({each.station for each in group} for group in (case.named, case.leads))
    shown = shown_rows(case, table.carrier, all_scores=all_scores)
    scores = tuple(
        StationScore(
            station=case.stations[i],
            score=float(table.scores[i]),
            named=case.stations[i] in named,
            lead=case.stations[i] in leads,
            revoked=ledger.station(case.stations[i]).revoked is not None,
        )
        for i in shown
    )
    positive, negative = table.positive, table.negative
    informed = case.investigation.rule == "certified"
    return CarrierSection(
        carrier=table.carrier,
        description=f"Scores of the first stage ({table.by}) at {len(table.values)} positions.",
        unit="score",
        scores=scores,
        threshold=float(positive.threshold) if positive.passes else None,
        candidate=table.candidate,
        opposite=-float(negative.threshold) if negative.passes else None,
        deviation=math.sqrt(len(table.values)),  # scores are made so
        readout=tuple(float(value) for value in table.values),
        readout_unit="change from the shared model" if informed else "value",
        readout_caption=readout_caption(table.carrier, informed=informed),
        others=len(case.stations) - len(shown),
    )


def readout_caption(carrier: str, *, informed: bool) -> str:
    """What the values of a carrier are, and what a mark does to them."""
    known = CARRIERS[carrier]
    what = known.reads
    if known.parts > 1:
        return f"{what} A mark is faint here: it is seen in the scores, not in the shape of this picture."
    if not informed:
        return f"{what} They are read from the suspect alone, whose own values hide the heaps of a mark."
    return (
        f"{what} The mark of one copy pulls them apart into two heaps, marks of several into more; "
        "without a mark there is a single heap about 0."
    )


def _named(case: Case, each: Named) -> NamedStation:
    look = "first stage" if each.stage == 1 else f"stage {each.stage}, without the rows named before"
    look += "" if each.alignment == "identity" else f", aligned by {each.alignment}"
    limit = up(each.certificate.threshold)
    words = f"{each.carrier} carrier, {look}: score {down(each.score)}, threshold {limit}"
    return NamedStation(
        station=each.station,
        stage_bound=stage_bound(case, each.stage),
        investigation_bound=case.investigation.budget,
        evidence=words,
    )


def _certificates(case: Case, tables: Sequence[CarrierTable]) -> tuple[CertificateRow, ...]:
    first = [
        (1, table.carrier, tail, certificate)
        for table in tables
        for tail, certificate in (("positive", table.positive), ("negative", table.negative))
    ]
    later = {
        (each.stage, each.carrier, each.by): (each.stage, each.carrier, str(each.tail), each.certificate)
        for each in case.named
        if each.stage > 1
    }
    return tuple(_certificate(*row) for row in (*first, *later.values()))


def _certificate(stage: int, carrier: str, tail: str, found: Certificate) -> CertificateRow:
    return CertificateRow(
        carrier=carrier,
        stage=stage,
        tail=tail,
        method=found.method,
        threshold=float(found.threshold),
        bound=_bound(found),
        allowed=found.level,
        passes=found.passes,
    )


def _bound(found: Certificate) -> float:
    """N e^-E from the lower end of E, rounded up."""
    exponent = Decimal(found.exponent[0])
    if not exponent.is_finite():
        return 0.0
    small = _UPWARDS.multiply(exponent.copy_negate().exp(_UPWARDS), Decimal("1.00000000001"))
    return min(1.0, float(_UPWARDS.multiply(small, Decimal(found.recipients))))


def _rechecks(case: Case, given: tuple[str | Path, ...], evidence: Path) -> tuple[Recheck, ...]:
    if not case.named:
        return ()
    names = [Path(each.name) if isinstance(each, Path) else each for each in given]
    return (
        Recheck(
            purpose="A judge re-checks every number from the evidence file, the head and the suspect:",
            command=judge_command(case, evidence=Path(evidence.name), given=names),
        ),
        Recheck(purpose="The log is checked from its export:", command="zktrace log verify --export FILE"),
    )
