"""The report on one suspect: what was found, how sure it is, and how anybody can check it again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.errors import InputError
from zktrace.report import numbers
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
from zktrace.report.svg import (
    Colour,
    Dot,
    Limit,
    Shape,
    dot_plot,
    figure,
    histogram,
    legend,
    mark,
    scatter_plot,
)

ROWS_WITH_NAMES: Final = 40  # more stations than this are drawn as a cloud
HEADLINE_NAMES: Final = 12  # stations in a headline; the table below it has all
DRAWN: Final = 2000  # stations in a plot or table; the highest scores are kept

# word -> (tone of the page, shape beside the headline)
_VERDICTS: Final[dict[str, tuple[Colour, Shape]]] = {
    "certified-attribute": ("blue", "diamond"),
    "certified-tamper": ("purple", "square"),
    "uncertified-lead": ("orange", "triangle"),
    "no-certified-evidence": ("grey", "circle"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StationScore:
    """One station on one carrier."""

    station: str
    score: float  # in the unit of its carrier's section
    named: bool = False
    lead: bool = False
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierSection:
    """What one carrier says. Scores and thresholds share one unit, in which they are comparable."""

    carrier: str
    description: str  # profile, length, rule: a sentence
    unit: str  # for the axis, such as "score / certified threshold"
    scores: tuple[StationScore, ...]  # of those that may be shown, in the order of the roster
    threshold: float | None  # above it a score is certified; None: no certificate was found
    candidate: float | None = None  # above it a score is a lead
    opposite: float | None = None  # a negative number; below it a score is certified as a written opposite
    deviation: float | None = None  # of an innocent's score, which has mean 0; no row decides it
    readout: tuple[float, ...] = ()  # real-valued, one value a position
    readout_unit: str = "projection"
    readout_caption: str = ""  # what the values are and what a mark does to them
    others: int = 0  # stations that were scored and are not shown


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStation:
    """An accusation, and what is proved of the way it was made."""

    station: str
    stage_bound: Fraction  # that its stage names any innocent
    investigation_bound: Fraction  # that any stage of any look does
    evidence: str  # carriers, stage, score: a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRow:
    """One certificate that was asked for."""

    carrier: str
    stage: int  # from 1
    tail: str
    method: str
    threshold: float
    bound: float  # on a false accusation of anybody; rounded up when shown
    allowed: Fraction  # the share of the budget
    passes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """A record of the registry that the case rests on."""

    record: str
    index: int
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryProof:
    """Where the case stands in the append-only log."""

    head: str
    positions: tuple[LogPosition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetState:
    """The ledger of false-accusation probability after this case."""

    total: Fraction
    spent_before: Fraction
    spent_here: Fraction
    remaining: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """A command that repeats a part of the case, and what it shows."""

    purpose: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseReport:
    """Everything a case report shows, as plain values. Drawing it decides nothing."""

    title: str
    suspect: str  # file name
    digest: str
    verdict: str  # certified-attribute, certified-tamper, uncertified-lead, no-certified-evidence
    sentences: tuple[str, ...]  # the first says in plain words what was found
    carriers: tuple[CarrierSection, ...]
    may_be: tuple[str, ...] = ()  # what an absence of evidence can come from
    named: tuple[NamedStation, ...] = ()
    certificates: tuple[CertificateRow, ...] = ()
    registry: RegistryProof | None = None
    budget: BudgetState | None = None
    rechecks: tuple[Recheck, ...] = ()
    not_proved: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # release, times, versions
    note: str = ""  # such as: simulated data
    warning: str = ""  # to whoever holds the page, above everything else

    def __post_init__(self) -> None:
        if self.verdict not in _VERDICTS:
            raise InputError(f"unknown verdict {self.verdict!a}: one of {', '.join(_VERDICTS)}")


def case_html(case: CaseReport) -> str:
    """The whole document."""
    body = join(
        (
            tag("p", case.warning, class_="warning", role="alert") if case.warning else None,
            _verdict(case),
            *(_carrier(each) for each in case.carriers),
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


# ── one carrier ────────────────────────────────────────────────────────────────────────────────────────────


def _carrier(part: CarrierSection) -> Html:
    drawn = _highest(part.scores)
    left_out = len(part.scores) - len(drawn)
    plots = [score_figure(part, drawn, left_out)]
    if part.readout:
        plots.append(_readout(part))
    rows = [
        (name(each.station), numbers.down(each.score), _status(each)) for each in sorted(drawn, key=_by_score)
    ]
    listed = table(
        ("station", part.unit, ""), rows, caption=f"Scores on the {part.carrier} carrier", numeric=(1,)
    )
    return section(
        f"Carrier: {part.carrier}",
        tag("p", part.description),
        tag("div", *plots, class_="plots"),
        tag("details", tag("summary", f"Scores as a table ({len(rows)} rows)"), listed) if rows else None,
    )


def case_figure(case: CaseReport) -> Html:
    """The scores of the first carrier against their thresholds: a case at a glance."""
    part = case.carriers[0]
    drawn = _highest(part.scores)
    return score_figure(part, drawn, len(part.scores) - len(drawn))


def _highest(scores: Sequence[StationScore]) -> list[StationScore]:
    """At most DRAWN of them, the named and the highest, in the order of the roster."""
    if len(scores) <= DRAWN:
        return list(scores)
    order = sorted(range(len(scores)), key=lambda i: (not scores[i].named, *_by_score(scores[i])))
    return [scores[i] for i in sorted(order[:DRAWN])]


def _by_score(each: StationScore) -> tuple[float, str]:
    return (math.inf if math.isnan(each.score) else -each.score, each.station)


def _status(each: StationScore) -> str:
    words = ("named", each.named), ("lead", each.lead and not each.named), ("revoked", each.revoked)
    return ", ".join(word for word, holds in words if holds)


def score_figure(part: CarrierSection, drawn: Sequence[StationScore], left_out: int = 0) -> Html:
    """Scores against thresholds, and beside them how an innocent's score is spread."""
    known = (
        ("certified, opposite", part.opposite, False),
        ("candidate threshold", part.candidate, True),
        ("certified threshold", part.threshold, False),
    )
    limits = [
        Limit(label=label, value=value, dashed=dashed)
        for label, value, dashed in known
        if value is not None and math.isfinite(value)
    ]
    dots = [_dot(each) for each in drawn]
    named = [each.station for each in drawn if each.named]
    told = f"Thresholds and {len(dots)} scores; named: {', '.join(named[:20]) or 'nobody'}."
    title = f"Scores and thresholds, {part.carrier} carrier"
    crowd = len(dots) > ROWS_WITH_NAMES
    if crowd:
        picture = scatter_plot(
            dots,
            title=title,
            description=told,
            x_label="stations",
            y_label=part.unit,
            limits=limits,
        )
    else:
        picture = dot_plot(
            dots, title=title, description=told, x_label=part.unit, limits=limits, law=part.deviation
        )
    keys: list[tuple[str, Colour, Shape | None]] = []
    keys += [("named", "blue", "diamond")] if named else []
    keys += [("lead", "orange", "triangle")] if any(each.lead and not each.named for each in drawn) else []
    keys += [("not named", "grey", "circle")] if any(not (each.named or each.lead) for each in drawn) else []
    return figure(picture, legend(keys) if keys else None, caption=_score_words(part, left_out, crowd=crowd))


def _score_words(part: CarrierSection, left_out: int, *, crowd: bool) -> str:
    words = [
        "No certificate was found for this carrier: no score can be certified."
        if part.threshold is None
        else "A station is named only if its score lies beyond the certified threshold."
    ]
    if part.deviation is not None and not crowd:
        words.append(
            "The hill shows how the score of any innocent station is spread, by the law of the code."
        )
    if part.others:
        whose = f"{part.others} other stations" if part.scores else f"the {part.others} stations"
        words.append(f"Not shown: the scores of {whose}, which would give rows away.")
    if left_out:
        words.append(f"{left_out} further stations with lower scores are not drawn.")
    return " ".join(words)


def _dot(each: StationScore) -> Dot:
    if each.named:
        return Dot(label=each.station, value=each.score, strong=True, colour="blue", shape="diamond")
    if each.lead:
        return Dot(label=each.station, value=each.score, strong=True, colour="orange", shape="triangle")
    return Dot(label=each.station, value=each.score)


def _readout(part: CarrierSection) -> Html:
    picture = histogram(
        part.readout,
        title=f"Readout, {part.carrier} carrier",
        description=f"Histogram of {len(part.readout)} values read from the suspect.",
        x_label=part.readout_unit,
    )
    spread = f"How the {len(part.readout)} values read from the suspect are spread (number of positions)."
    words = f"{spread} {part.readout_caption}".rstrip()
    return figure(picture, caption=words)


# ── what stands behind it ──────────────────────────────────────────────────────────────────────────────────


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
