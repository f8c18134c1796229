"""A case in words: who, on what evidence, how sure and on which assumption, and what it does not prove.

A score is linear in a station's row, and suspects can be chosen: published scores add up to a row, rounded
and nameless ones too, and whoever has a row can frame its owner. So a score is told only where the evidence
opens the row it is made of: of stations that are named, on the carriers that named them. Nothing that is told
depends on any other row, leads included, unless the operator asks for all scores.
"""

import os
import shlex
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from zktrace.carriers import IDENTITY
from zktrace.carriers.split import stage_share
from zktrace.certificates.adjudicate import Verdict
from zktrace.primitives.rounding import chance, down, up
from zktrace.primitives.text import copies_of, listing
from zktrace.tracing.case import CarrierTable, Case, Named

ASSUMPTION: Final = (
    "nobody who shaped the suspect knew anything of an innocent station's secret row (assumption A5a)"
)
NOT_PROVED: Final = (
    "that the station itself published the copy: it may have been stolen from it",
    "who trained the model, or whose data it was trained on",
    "that the operator did not do it: whoever holds the code key can write any station's row",
)
SCORES_ARE_SECRETS: Final = (
    "scores and leads of stations that are not named are secrets: whoever collects a few such tables can "
    "frame a station; keep this to yourself"
)
NOTHING_MEANS: Final = (
    "that the suspect was never one of these copies",
    "that it is a copy of another release",
    "that its mark was worn away: by long training, strong compression, or by mixing many copies",
    "that it was disguised in a way that none of the looks undoes",
)
_NO_BOUND: Final = "A lead has no bound on being wrong and must not be used to accuse."
_HEADLINES: Final = {
    Verdict.ATTRIBUTE: "CERTIFIED: {copies}.",
    Verdict.TAMPER: "CERTIFIED TAMPERING: the reverse of {copies}.",
    Verdict.LEAD: "LEAD, nobody is accused.",
    Verdict.NOTHING: "NO EVIDENCE: nobody is named.",
}
_PLAINLY: Final = {
    Verdict.ATTRIBUTE: "{suspect} carries {marks}.",
    Verdict.TAMPER: "{suspect} carries the reverse of {marks}. Whoever made it knew what to reverse.",
    Verdict.LEAD: "Something in {suspect} is unusual, but not so unusual that anybody may be named for it.",
    Verdict.NOTHING: "Nothing in {suspect} matches any station's copy well enough to name anybody.",
}
_UNPAID_LEAD: Final = (
    "Something in {suspect} is unusual, but nothing was spent on this look, so nobody may be named for it."
)


def explain(case: Case, *, all_scores: bool = False) -> str:
    """The verdict, for the operator; the first line is its headline. Lines are as long as they come."""
    lines = [_HEADLINES[case.verdict].format(copies=copies_of(sorted(case.names))), "", plainly(case)]
    lines += [f"  {_on_what(each)}" for each in case.named]
    if all_scores:
        lines += [
            f"  {each.station}: {each.carrier} carrier, {each.tail} tail, score {down(each.score)}, "
            f"threshold {up(each.threshold)}"
            for each in case.leads
        ]
    lines += how_sure(case)
    lines += [f"  {alignment}: {reason}" for alignment, reason in case.failed]
    if case.named:
        lines += ["", "It does not prove", *(f"  - {each}." for each in NOT_PROVED)]
    lines += ["", *score_table(case, all_scores=all_scores)]
    return "\n".join(lines)


def plainly(case: Case, suspect: str = "the suspect") -> str:
    """What was found, in one sentence for anybody."""
    names = sorted(case.names)
    marks = (
        "the secret marks of the copies that were"
        if len(names) > 1
        else "the secret mark of the copy that was"
    )
    unpaid = case.verdict == Verdict.LEAD and not case.investigation.budget
    kind = _UNPAID_LEAD if unpaid else _PLAINLY[case.verdict]
    told = f"{marks} made for {listing(names)} and for no other station" if names else ""
    said = kind.format(suspect=suspect, marks=told)
    return said[0].upper() + said[1:] if suspect[:4] == "the " else said


def _on_what(named: Named) -> str:
    stage = "" if named.stage == 1 else f" at stage {named.stage}, without the rows named before"
    return (
        f"{named.station}: {named.carrier} carrier{_read_how(named.alignment)}, score {down(named.score)}, "
        f"threshold {up(named.certificate.threshold)}{stage}"
    )


def _read_how(alignment: str) -> str:
    return "" if alignment == IDENTITY else f" aligned by {alignment}"


def stage_bound(case: Case, stage: int) -> Fraction:
    """At most this is the probability that a stage names any innocent, if none was named before it.

    A look has its share of the budget. Under the rule `certified` the first stage has three quarters of that,
    both tails and all carriers together, and later ones less; under the rule `paper` there is one stage.
    """
    spent = case.investigation.budget * case.look.share
    return spent * stage_share(stage, case.investigation.rule)


def _bounds(case: Case) -> list[str]:
    """What the naming of each stage is worth."""
    return [
        f"  stage {stage} names any innocent with probability at most {chance(stage_bound(case, stage))}"
        for stage in dict.fromkeys(each.stage for each in case.named)
    ]


def how_sure(case: Case) -> list[str]:
    """How sure, and on which assumption: lines for a person."""
    stations = f"{case.investigation.recipients} stations"
    if case.named:
        lines = [
            *_bounds(case),
            *_declared(case),
            "",
            f"The whole investigation names any innocent of {stations} with probability at most "
            f"{chance(case.investigation.budget)}, if {ASSUMPTION}.",
        ]
        if case.named[-1].stage > 1:
            lines.append(
                "The second stage and later ones also assume that innocents' rows are independent of the "
                "colluders' rows and the suspect together."
            )
        return lines
    if case.verdict == Verdict.LEAD:
        return ["", f"Some station's score is beyond a threshold that carries no guarantee. {_NO_BOUND}"]
    return [
        *_declared(case),
        "",
        f"All {stations} were compared with it, with thresholds that any innocent passes with probability at "
        f"most {chance(case.level)}. This clears nobody, and it does not mean that no copy leaked. It may be",
        *(f"  - {each}." for each in NOTHING_MEANS),
    ]


def _declared(case: Case) -> list[str]:
    """How the budget was divided, where there was more than one way to read the suspect."""
    if len(case.investigation.looks) < 2:
        return []
    return [f"  looks on record beforehand and their shares of the budget: {planned_looks(case)}"]


def planned_looks(case: Case) -> str:
    """The plan that was put on record."""
    looks = case.investigation.looks
    return ", ".join(f"{'+'.join(each.carriers)} {each.alignment} {each.share}" for each in looks)


def shown_tables(case: Case, *, all_scores: bool) -> tuple[CarrierTable, ...]:
    """What may be shown of the deciding look. Which look gave a lead depends on somebody's row."""
    return () if case.verdict == Verdict.LEAD and not all_scores else case.tables


def shown_rows(case: Case, carrier: str, *, all_scores: bool) -> list[int]:
    """Whose scores on a carrier may be shown: where the evidence opens the row."""
    if all_scores:
        return list(range(len(case.stations)))
    names = set(case.names) if carrier in case.evidence.findings.naming_carriers else set()
    return [i for i, station in enumerate(case.stations) if station in names]


def score_table(case: Case, *, all_scores: bool = False) -> list[str]:
    """Scores of the first stage of the deciding look that may be shown, strongest first, and thresholds."""
    if not case.tables:
        return ["nothing could be read"]
    others = "" if all_scores else _unsaid(case)
    tables = shown_tables(case, all_scores=all_scores)
    if not tables:
        return [others]
    title = "first stage" if case.look.alignment == IDENTITY else case.look.alignment
    shown = [set(shown_rows(case, table.carrier, all_scores=all_scores)) for table in tables]
    rows = sorted(set().union(*shown))
    order = sorted(rows, key=lambda i: -max(_strength(table, i) for table in tables))
    width = max(len(title), len("threshold"), *(len(case.stations[i]) for i in order))
    lines = [f"{title:<{width}}" + "".join(f"  {table.carrier:>12}" for table in tables)]
    for i in order:
        scores = (
            down(float(table.scores[i])) if i in who else "" for table, who in zip(tables, shown, strict=True)
        )
        lines.append(f"{case.stations[i]:<{width}}{''.join(f'  {score:>12}' for score in scores)}".rstrip())
    limits = "".join(f"  {up(table.positive.threshold):>12}" for table in tables)
    return [*lines, f"{'threshold':<{width}}{limits}", *([others] if others else [])]


def _unsaid(case: Case) -> str:
    """That there is more, for whoever may have it."""
    count = len(case.stations) - len(case.names)
    if case.verdict == Verdict.LEAD:
        return "Which station that is stays with the operator (--all-scores shows it)."
    if not count:
        return ""
    who = "1 other station" if count == 1 else f"{count} other stations"
    return f"What {who} scored stays with the operator (--all-scores shows it)."


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


def _strength(table: CarrierTable, i: int) -> float:
    return abs(float(table.scores[i])) / max(float(table.positive.threshold), 1e-9)
