"""The report on one suspect: what was found, how sure it is, and how anybody can check it again."""

from collections.abc import Sequence
from typing import Final

from zktrace.report import numbers
from zktrace.report.case_scores import carrier_section
from zktrace.report.case_values import BudgetState, CaseReport, CertificateRow, Recheck, RegistryProof
from zktrace.report.html import (
    Child,
    Html,
    bullets,
    code,
    digest,
    facts,
    join,
    name,
    paragraphs,
    section,
    table,
    tag,
)
from zktrace.report.page import page
from zktrace.report.svg import Colour, Shape, mark

HEADLINE_NAMES: Final = 12  # stations in a headline; the table below it has all

# word -> (tone of the page, shape beside the headline)
_VERDICTS: Final[dict[str, tuple[Colour, Shape]]] = {
    "certified-attribute": ("blue", "diamond"),
    "certified-tamper": ("purple", "square"),
    "uncertified-lead": ("orange", "triangle"),
    "no-certified-evidence": ("grey", "circle"),
}


def case_html(case: CaseReport) -> str:
    """The whole document."""
    body = join(
        (
            tag("p", case.warning, class_="warning", role="alert") if case.warning else None,
            _verdict(case),
            *(carrier_section(each) for each in case.carriers),
            _certificates(case.certificates),
            _registry(case.registry),
            _budget(case.budget),
            _rechecks(case.rechecks),
            section("What this does not prove", bullets(case.not_proved)) if case.not_proved else None,
            _appendix(case),
        )
    )
    subtitle = join(("Suspect ", name(case.suspect), ", ", digest(case.digest)))
    return page(title=case.title, subtitle=subtitle, body=body)


def _verdict(case: CaseReport) -> Html:
    tone, shape = _VERDICTS[case.verdict]
    sign = tag("svg", mark(shape, 13, 13, colour=tone, size=8), viewBox="0 0 26 26", aria_hidden="true")
    word = tag("p", sign, tag("span", headline(case)), class_="word")
    named = table(
        ("station", "this stage names any innocent, at most", "the whole investigation, at most", "evidence"),
        [
            (
                name(each.station),
                numbers.chance(each.stage_bound),
                numbers.chance(each.investigation_bound),
                each.evidence,
            )
            for each in case.named
        ],
        caption="Named stations, and the probability with which the way they were named names an innocent",
        numeric=(1, 2),
    )
    note = tag("p", case.note, class_="note") if case.note else None
    given = tag("p", "Verdict on record: ", code(case.verdict))
    extra = facts((key, value) for key, value in case.facts) if case.facts else None
    return tag(
        "section",
        tag("h2", "Verdict"),
        word,
        note,
        paragraphs(case.sentences),
        bullets(f"{each}." for each in case.may_be) if case.may_be else None,
        given,
        named if case.named else None,
        extra,
        class_="verdict",
        style=f"--tone: var(--{tone})",
    )


def headline(case: CaseReport) -> Html:
    """The verdict in a few words, with the names of those it is about."""
    stations = sorted({each.station for each in case.named})
    match case.verdict:
        case "certified-attribute":
            return join(("Certified: ", _copies(stations)))
        case "certified-tamper":
            return join(("Certified tampering: the reverse of ", _copies(stations)))
        case "uncertified-lead":
            return join(("A lead only: nobody is accused",))
        case _:
            return join(("No evidence: nobody is named",))


def _copies(stations: Sequence[str]) -> Html:
    if len(stations) <= 1:
        return join((name(stations[0]), "'s copy") if stations else ("a station's copy",))
    shown = [name(each) for each in stations[:HEADLINE_NAMES]]
    rest = len(stations) - len(shown)
    last: Child = f"{rest} more, listed below" if rest else shown.pop()
    listed = [part for each in shown for part in (", ", each)][1:]
    return join(("the copies of ", *listed, " and ", last))


def _certificates(rows: Sequence[CertificateRow]) -> Html | None:
    if not rows:
        return None
    shown = table(
        ("carrier", "stage", "tail", "method", "threshold", "bound, at most", "allowed", ""),
        [
            (
                each.carrier,
                each.stage,
                each.tail,
                each.method,
                numbers.up(each.threshold),
                numbers.at_most(each.bound),
                numbers.chance(each.allowed),
                "passes" if each.passes else "fails",
            )
            for each in rows
        ],
        caption="Every certificate that was asked for; bounds are rounded up",
        numeric=(1, 4, 5, 6),
    )
    words = (
        "A certificate bounds the probability that any station without a part in the suspect scores beyond "
        "the threshold. It is computed with interval arithmetic from the readout and the law of the code."
    )
    return section("Certificates", tag("p", words), shown)


def _registry(proof: RegistryProof | None) -> Html | None:
    if proof is None:
        return None
    shown = table(
        ("record", "position in the log", "digest"),
        [(each.record, each.index, digest(each.digest) if each.digest else "") for each in proof.positions],
        caption="Records this case rests on",
        numeric=(1,),
    )
    return section(
        "Registry",
        tag("p", "The log is append-only; its head fixes every record below. Head: ", digest(proof.head)),
        shown if proof.positions else None,
    )


def _budget(state: BudgetState | None) -> Html | None:
    if state is None:
        return None
    rows: list[tuple[str, Child]] = [
        ("declared for all cases", numbers.chance(state.total)),
        ("spent before", numbers.chance(state.spent_before)),
        ("spent on this case", numbers.chance(state.spent_here)),
        ("remaining", numbers.chance(state.remaining)),
    ]
    words = (
        "Declared in advance: the probability of ever naming an innocent station, over all investigations."
    )
    return section("False-accusation budget", tag("p", words), facts(rows))


def _rechecks(steps: Sequence[Recheck]) -> Html | None:
    if not steps:
        return None
    shown = (join((tag("p", each.purpose), tag("pre", code(each.command)))) for each in steps)
    return section("How to check this again", *shown)


def _appendix(case: CaseReport) -> Html:
    """What is shortened above, in full: paper has no hover."""
    rows = [("suspect", case.digest)]
    if case.registry is not None:
        rows.append(("head of the log", case.registry.head))
        rows += [(each.record, each.digest) for each in case.registry.positions if each.digest]
    words = "Digests and heads that are shortened above, in full."
    return section(
        "Appendix", tag("p", words), tag("dl", *(_whole(key, value) for key, value in rows), class_="whole")
    )


def _whole(key: str, value: str) -> Html:
    return tag("div", tag("dt", key), tag("dd", code(value)))
