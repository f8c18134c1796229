"""From a traced case to its report: the same numbers in plain values. Nothing is decided here."""

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

from zktrace.certificates.certificate import Certificate
from zktrace.evidence.figures import down, up
from zktrace.registry.ledger import Ledger
from zktrace.report.case import (
    NAMELESS,
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
from zktrace.tracing.case import CarrierTable, Case, Named
from zktrace.tracing.words import (
    ASSUMPTION,
    NOT_PROVED,
    SCORES_ARE_SECRETS,
    coarse,
    how_sure,
    judge_command,
    named_rows,
)

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

    Without `all_scores` those who are not named have no name in it and coarse scores, leads included.
    """
    looks = ledger.investigations.items()
    before = sum((each.budget for place, each in looks if place < case.place), start=Fraction(0))
    total = ledger.setup.budget
    spent = case.investigation.budget
    return CaseReport(
        title=f"Case {case.place}: {ledger.setup.title}",
        suspect=suspect.name,
        digest=case.investigation.suspect.hex(),
        verdict=str(case.verdict),
        sentences=_paragraphs(how_sure(case)),
        carriers=tuple(_carrier(case, table, ledger, all_scores=all_scores) for table in case.tables),
        named=tuple(_named(each) for each in case.named),
        certificates=_certificates(case),
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
            total=float(total),
            spent_before=float(before),
            spent_here=float(spent),
            remaining=float(total - before - spent),
        ),
        rechecks=_rechecks(case, given or ("--suspect", Path(suspect.name)), evidence),
        not_proved=tuple(f"{each[0].upper()}{each[1:]}." for each in NOT_PROVED) if case.named else (),
        facts=(
            ("release", case.investigation.release),
            ("stations scored", str(case.investigation.recipients)),
            ("rule", f"{case.investigation.rule}: {_RULES[case.investigation.rule]}"),
            ("assumption", f"{ASSUMPTION[0].upper()}{ASSUMPTION[1:]}."),
        ),
        note=" ".join((*([note] if note else []), *([_KEEP] if all_scores else []))),
    )


def _paragraphs(lines: list[str]) -> tuple[str, ...]:
    """Lines between empty ones run together."""
    joined = "\n".join(line.strip() for line in lines).split("\n\n")
    return tuple(" ".join(part.split("\n")) for part in joined if part.strip())


def _carrier(case: Case, table: CarrierTable, ledger: Ledger, *, all_scores: bool) -> CarrierSection:
    named, leads = ({each.station for each in group} for group in (case.named, case.leads))
    scores = [
        StationScore(
            station=station,
            score=float(score),
            named=station in named,
            lead=station in leads,
            revoked=ledger.station(station).revoked is not None,
        )
        for station, score in zip(case.stations, table.scores, strict=True)
        if all_scores or station in named
    ]
    if not all_scores:
        others = set(range(len(case.stations))) - set(named_rows(case))
        seen = sorted((coarse(float(table.scores[i]), len(table.values)) for i in others), reverse=True)
        scores += [StationScore(station=NAMELESS, score=score) for score in seen]
    positive, negative = table.positive, table.negative
    return CarrierSection(
        carrier=table.carrier,
        description=f"Scores of the first stage at {len(table.values)} positions.",
        unit="score",
        scores=tuple(scores),
        threshold=float(positive.threshold) if positive.passes else None,
        candidate=table.candidate,
        opposite=-float(negative.threshold) if negative.passes else None,
        readout=tuple(float(value) for value in table.values),
    )


def _named(each: Named) -> NamedStation:
    look = "first stage" if each.stage == 1 else f"stage {each.stage}, without the rows named before"
    look += "" if each.alignment == "identity" else f", aligned by {each.alignment}"
    limit = up(each.certificate.threshold)
    words = f"{each.carrier} carrier, {look}: score {down(each.score)}, threshold {limit}"
    return NamedStation(station=each.station, bound=each.bound, evidence=words)


def _certificates(case: Case) -> tuple[CertificateRow, ...]:
    first = [
        (1, table.carrier, tail, certificate)
        for table in case.tables
        for tail, certificate in (("positive", table.positive), ("negative", table.negative))
    ]
    later = {
        (each.stage, each.carrier): (each.stage, each.carrier, str(each.tail), each.certificate)
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
        allowed=found.budget,
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
