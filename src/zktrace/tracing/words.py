"""A case in words: who, on what evidence, how sure and on which assumption, and what it does not prove."""

from typing import Final

from zktrace.certificates.adjudicate import Verdict
from zktrace.evidence.figures import chance, down, up
from zktrace.registry.records import IDENTITY
from zktrace.tracing.case import CarrierTable, Case, Named

SHOWN: Final = 12  # stations in a score table
ASSUMPTION: Final = (
    "nobody who shaped the suspect knew anything of an innocent station's secret row (assumption A5a)"
)
NOT_PROVED: Final = (
    "that the station itself published the copy: it may have been stolen from it",
    "who trained the model, or whose data it was trained on",
    "that the operator did not do it: whoever holds the code key can write any station's row",
)
_HEADLINES: Final = {
    Verdict.ATTRIBUTE: "CERTIFIED: the suspect carries the row of {names}.",
    Verdict.TAMPER: "CERTIFIED TAMPERING: the suspect carries the opposite of the row of {names}.",
    Verdict.LEAD: "LEAD, nobody is accused: {names} beyond a threshold without a certificate.",
    Verdict.NOTHING: "NO EVIDENCE: no station's score is beyond a threshold.",
}


def explain(case: Case) -> str:
    """The verdict, for a person."""
    names = case.names or tuple(dict.fromkeys(each.station for each in case.leads))
    lines = [_HEADLINES[case.verdict].format(names=", ".join(names))]
    for each in case.named:
        lines.append(f"  {_on_what(each)}")
    for lead in case.leads:
        lines.append(
            f"  {lead.station}: {lead.carrier} carrier, {lead.tail} tail, score {down(lead.score)}, "
            f"threshold {up(lead.threshold)}"
        )
    lines += how_sure(case)
    lines += [f"  {alignment}: {reason}" for alignment, reason in case.failed]
    if case.named:
        lines += ["", "It does not prove", *(f"  - {each}." for each in NOT_PROVED)]
    lines += ["", *score_table(case)]
    return "\n".join(lines)


def _on_what(named: Named) -> str:
    stage = "" if named.stage == 1 else f" at stage {named.stage}, without the rows named before"
    return (
        f"{named.station}: {named.carrier} carrier{_read_how(named.alignment)}, score {down(named.score)}, "
        f"threshold {up(named.certificate.threshold)}{stage}"
    )


def _read_how(alignment: str) -> str:
    return "" if alignment == IDENTITY else f" aligned by {alignment}"


def _bounds(case: Case) -> list[str]:
    """What each threshold is worth, once for each stage and carrier."""
    stages = {(each.stage, each.carrier): each.bound for each in case.named}
    return [
        f"  stage {stage}, {carrier}: probability that some innocent is beyond the threshold: "
        f"at most {chance(bound)}"
        for (stage, carrier), bound in stages.items()
    ]


def how_sure(case: Case) -> list[str]:
    """How sure, and on which assumption: lines for a person."""
    stations = f"{case.investigation.recipients} stations"
    if case.named:
        lines = [
            *_bounds(case),
            *_declared(case),
            "",
            f"The probability that this investigation names any innocent of {stations} is at most "
            f"{chance(case.investigation.budget)},",
            f"if {ASSUMPTION}.",
        ]
        if case.named[-1].stage > 1:
            lines.append(
                "The second stage and later ones also assume that innocents' rows are independent of the "
                "colluders' rows and the suspect together."
            )
        return lines
    if case.verdict == Verdict.LEAD:
        return [
            "",
            "A lead is where to look next. It has no bound on being wrong and must not be used to accuse.",
        ]
    return [
        "",
        *_declared(case),
        f"All {stations} were scored (thresholds for {chance(case.level)}). It does not mean that no copy "
        "leaked: a mark may have been erased.",
    ]


def _declared(case: Case) -> list[str]:
    """How the budget was divided, where there was more than one way to read the suspect."""
    looks = case.investigation.looks
    if len(looks) < 2:
        return []
    plan = ", ".join(f"{'+'.join(each.carriers)} {each.alignment} {each.share}" for each in looks)
    return [f"  looks on record beforehand and their shares of the budget: {plan}"]


def score_table(case: Case) -> list[str]:
    """Scores of the first stage of the look that decided, the strongest stations first."""
    if not case.tables:
        return ["nothing could be read"]
    order = sorted(
        range(len(case.stations)), key=lambda i: -max(_strength(table, i) for table in case.tables)
    )
    title = "first stage" if case.look.alignment == IDENTITY else case.look.alignment
    width = max(len(title), *(len(case.stations[i]) for i in order[:SHOWN]))
    lines = [f"{title:<{width}}" + "".join(f"  {table.carrier:>10}" for table in case.tables)]
    for i in order[:SHOWN]:
        scores = "".join(f"  {down(float(table.scores[i])):>10}" for table in case.tables)
        lines.append(f"{case.stations[i]:<{width}}{scores}")
    if len(order) > SHOWN:
        lines.append(f"... and {len(order) - SHOWN} more")
    limits = "".join(f"  {up(table.positive.threshold):>10}" for table in case.tables)
    lines.append(f"{'threshold':<{width}}{limits}")
    return lines


def _strength(table: CarrierTable, i: int) -> float:
    return abs(float(table.scores[i])) / max(float(table.positive.threshold), 1e-9)
