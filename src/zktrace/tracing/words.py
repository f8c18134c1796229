"""A case in words: who, on what evidence, how sure and on which assumption, and what it does not prove.

A score is linear in a station's row, and suspects can be chosen: some dozens of published score tables are
enough to solve for a row and to frame its owner. So numbers are shown of stations that are named, whose rows
the evidence opens anyway; of all others only coarsely, and with a name only to the operator.
"""

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from zktrace.certificates.adjudicate import Verdict
from zktrace.evidence.figures import chance, down, up
from zktrace.registry.records import IDENTITY
from zktrace.tracing.case import CarrierTable, Case, Lead, Named

BIN: Final = 0.25  # of a standard deviation of an innocent's score: what others' scores are rounded to
ASSUMPTION: Final = (
    "nobody who shaped the suspect knew anything of an innocent station's secret row (assumption A5a)"
)
NOT_PROVED: Final = (
    "that the station itself published the copy: it may have been stolen from it",
    "who trained the model, or whose data it was trained on",
    "that the operator did not do it: whoever holds the code key can write any station's row",
)
SCORES_ARE_SECRETS: Final = (
    "scores of stations that are not named are secrets: whoever collects some dozens of such tables can "
    "frame a station; keep this to yourself"
)
_HEADLINES: Final = {
    Verdict.ATTRIBUTE: "CERTIFIED: the suspect carries the row of {names}.",
    Verdict.TAMPER: "CERTIFIED TAMPERING: the suspect carries the opposite of the row of {names}.",
    Verdict.LEAD: "LEAD, nobody is accused: {names} beyond a threshold without a certificate.",
    Verdict.NOTHING: "NO EVIDENCE: no station's score is beyond a threshold.",
}


def explain(case: Case, *, all_scores: bool = False) -> str:
    """The verdict, for the operator."""
    names = case.names or tuple(dict.fromkeys(each.station for each in case.leads))
    lines = [_HEADLINES[case.verdict].format(names=", ".join(names))]
    for each in case.named:
        lines.append(f"  {_on_what(each)}")
    for lead in case.leads:
        lines.append(
            f"  {lead.station}: {lead.carrier} carrier, {lead.tail} tail, "
            f"score {_lead_score(case, lead, all_scores=all_scores)}, threshold {up(lead.threshold)}"
        )
    lines += how_sure(case)
    lines += [f"  {alignment}: {reason}" for alignment, reason in case.failed]
    if case.named:
        lines += ["", "It does not prove", *(f"  - {each}." for each in NOT_PROVED)]
    lines += ["", *score_table(case, all_scores=all_scores)]
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


def score_table(case: Case, *, all_scores: bool = False) -> list[str]:
    """Scores of the first stage of the deciding look, strongest first; of others number and range."""
    if not case.tables:
        return ["nothing could be read"]
    title = "first stage" if case.look.alignment == IDENTITY else case.look.alignment
    named = range(len(case.stations)) if all_scores else named_rows(case)
    order = sorted(named, key=lambda i: -max(_strength(table, i) for table in case.tables))
    others = len(case.stations) - len(order)
    rest = f"{others} not named"
    width = max(len(title), len(rest), *(len(case.stations[i]) for i in order), 0)
    lines = [f"{title:<{width}}" + "".join(f"  {table.carrier:>16}" for table in case.tables)]
    for i in order:
        scores = "".join(f"  {down(float(table.scores[i])):>16}" for table in case.tables)
        lines.append(f"{case.stations[i]:<{width}}{scores}")
    if others:
        ranges = (other_range(table, order) for table in case.tables)
        lines.append(f"{rest:<{width}}" + "".join(f"  {f'{a:.2f} to {b:.2f}':>16}" for a, b in ranges))
    limits = "".join(f"  {up(table.positive.threshold):>16}" for table in case.tables)
    lines.append(f"{'threshold':<{width}}{limits}")
    return lines


def named_rows(case: Case) -> list[int]:
    """The rows of the stations that are named."""
    names = set(case.names)
    return [i for i, station in enumerate(case.stations) if station in names]


def coarse(score: float, length: int) -> float:
    """A score of somebody who is not named, as far as it may be shown."""
    step = BIN * math.sqrt(length)
    return step * round(score / step)


def other_range(table: CarrierTable, named: Sequence[int]) -> tuple[float, float]:
    """Between what bounds the scores of all others lie, rounded outwards."""
    step = BIN * math.sqrt(len(table.values))
    others = np.delete(table.scores, list(named))
    return step * math.floor(others.min() / step), step * math.ceil(others.max() / step)


def judge_command(case: Case, *, evidence: Path, given: Sequence[str | Path]) -> str:
    """What re-checks a case, to be pasted into a shell; `given`: further options and their paths."""
    rest = " ".join(quoted(each) if isinstance(each, Path) else each for each in given)
    return f"zktrace judge {quoted(evidence)} --head {case.evidence.head} {rest}".rstrip()


def quoted(path: Path) -> str:
    """A path as one word of a shell's line, whatever its name is; bash spells what cannot be printed."""
    name = str(path) if not str(path).startswith("-") else f"./{path}"
    if name.isprintable():
        return shlex.quote(name)
    spelled = (
        chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}"
        for byte in os.fsencode(name)
    )
    return f"$'{''.join(spelled)}'"


def _lead_score(case: Case, lead: Lead, *, all_scores: bool) -> str:
    if all_scores:
        return down(lead.score)
    length = next(len(table.values) for table in case.tables if table.carrier == lead.carrier)
    return f"about {coarse(float(lead.score), length):.2f}"


def _strength(table: CarrierTable, i: int) -> float:
    return abs(float(table.scores[i])) / max(float(table.positive.threshold), 1e-9)
