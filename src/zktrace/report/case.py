"""The report on one suspect: what was found, how sure it is, and how anybody can check it again."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.errors import InputError
from zktrace.report import numbers
from zktrace.report.html import Child, Html, bullets, code, facts, join, name, paragraphs, section, table, tag
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
NAMELESS: Final = ""  # the station of a score whose owner is not said
DRAWN: Final = 2000  # stations in a plot or table; the highest scores are kept

# word -> (headline, tone of the page, shape beside it)
_VERDICTS: Final[dict[str, tuple[str, Colour, Shape]]] = {
    "certified-attribute": ("Certified: the suspect carries the copy of a named station", "blue", "diamond"),
    "certified-tamper": ("Certified: somebody wrote the opposite of a station's row", "purple", "square"),
    "uncertified-lead": ("A lead only: nothing here is certified", "orange", "triangle"),
    "no-certified-evidence": ("No certified evidence", "grey", "circle"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StationScore:
    """One station on one carrier."""

    station: str  # NAMELESS: not said, and the score is rounded
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
    scores: tuple[StationScore, ...]  # in the order of the roster, or sorted where stations are nameless
    threshold: float | None  # above it a score is certified; None: no certificate was found
    candidate: float | None = None  # above it a score is a lead
    opposite: float | None = None  # a negative number; below it a score is certified as a written opposite
    readout: tuple[float, ...] = ()  # real-valued, one value a position
    readout_unit: str = "projection"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedStation:
    """An accusation and the probability of error it is made with."""

    station: str
    bound: Fraction | float  # at most this probability of naming it if it is innocent
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
    allowed: Fraction | float  # the share of the budget
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

    total: float
    spent_before: float
    spent_here: float
    remaining: float


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
    sentences: tuple[str, ...]
    carriers: tuple[CarrierSection, ...]
    named: tuple[NamedStation, ...] = ()
    certificates: tuple[CertificateRow, ...] = ()
    registry: RegistryProof | None = None
    budget: BudgetState | None = None
    rechecks: tuple[Recheck, ...] = ()
    not_proved: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()  # release, times, versions
    note: str = ""  # such as: simulated data

    def __post_init__(self) -> None:
        if self.verdict not in _VERDICTS:
            raise InputError(f"unknown verdict {self.verdict!a}: one of {', '.join(_VERDICTS)}")


def case_html(case: CaseReport) -> str:
    """The whole document."""
    body = join(
        (
            _verdict(case),
            *(_carrier(each) for each in case.carriers),
            _certificates(case.certificates),
            _registry(case.registry),
            _budget(case.budget),
            _rechecks(case.rechecks),
            section("What this does not prove", bullets(case.not_proved)) if case.not_proved else None,
        )
    )
    subtitle = join(("Suspect ", name(case.suspect), ", ", code(case.digest)))
    return page(title=case.title, subtitle=subtitle, body=body)


def _verdict(case: CaseReport) -> Html:
    headline, tone, shape = _VERDICTS[case.verdict]
    sign = tag("svg", mark(shape, 13, 13, colour=tone, size=8), viewBox="0 0 26 26", aria_hidden="true")
    word = tag("p", sign, tag("span", headline), class_="word")
    named = table(
        ("station", "chance of naming it if innocent, at most", "on what evidence"),
        [(name(each.station), numbers.at_most(each.bound, digits=4), each.evidence) for each in case.named],
        caption="Named stations",
        numeric=(1,),
    )
    note = tag("p", case.note, class_="note") if case.note else None
    given = tag("p", "Verdict: ", code(case.verdict))
    extra = facts((key, value) for key, value in case.facts) if case.facts else None
    return tag(
        "section",
        tag("h2", "Verdict"),
        word,
        note,
        paragraphs(case.sentences),
        given,
        named if case.named else None,
        extra,
        class_="verdict",
        style=f"--tone: var(--{tone})",
    )


# ── one carrier ────────────────────────────────────────────────────────────────────────────────────────────


def _carrier(part: CarrierSection) -> Html:
    drawn = _highest(part.scores)
    left_out = len(part.scores) - len(drawn)
    plots = [_scores(part, drawn, left_out)]
    if part.readout:
        plots.append(_readout(part))
    counted = Counter(each for each in drawn if each.station == NAMELESS)
    rows = [
        (
            name(each.station) if each.station != NAMELESS else f"{counted[each]} not named",
            numbers.fixed(each.score) if each.station != NAMELESS else f"about {numbers.fixed(each.score)}",
            _status(each),
        )
        for each in sorted(dict.fromkeys(drawn) if counted else drawn, key=_by_score)
    ]
    listed = table(
        ("station", part.unit, ""), rows, caption=f"Scores on the {part.carrier} carrier", numeric=(1,)
    )
    return section(
        f"Carrier: {part.carrier}",
        tag("p", part.description),
        tag("div", *plots, class_="plots"),
        tag("details", tag("summary", f"Scores as a table ({len(rows)} rows)"), listed),
    )


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


def _scores(part: CarrierSection, drawn: Sequence[StationScore], left_out: int) -> Html:
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
    told = f"{len(part.scores)} stations; named: {', '.join(named[:20]) or 'nobody'}."
    title = f"Scores of all stations, {part.carrier} carrier"
    if len(dots) <= ROWS_WITH_NAMES:
        picture = dot_plot(dots, title=title, description=told, x_label=part.unit, limits=limits)
    else:
        picture = scatter_plot(
            dots,
            title=title,
            description=told,
            x_label="stations",
            y_label=part.unit,
            limits=limits,
        )
    keys: list[tuple[str, Colour, Shape | None]] = [("not named", "grey", "circle")]
    keys += [("named", "blue", "diamond")] if named else []
    keys += [("lead", "orange", "triangle")] if any(each.lead and not each.named for each in drawn) else []
    words = (
        "No certificate was found for this carrier: no score can be certified."
        if part.threshold is None
        else "A station is named only if its score lies beyond the certified threshold."
    )
    if any(each.station == NAMELESS for each in drawn):
        words += " Others are drawn without names, sorted, and rounded: exact scores would give rows away."
    if left_out:
        words += f" {left_out} further stations with lower scores are not drawn."
    return figure(picture, legend(keys), caption=words)


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
    words = (
        f"How the {len(part.readout)} values read from the suspect are spread (number of positions). "
        "A written row pulls them apart into two heaps; without one there is a single heap."
    )
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
                numbers.plain(each.threshold, digits=6),
                numbers.at_most(each.bound, digits=4),
                numbers.plain(each.allowed),
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
        [(each.record, each.index, code(each.digest) if each.digest else "") for each in proof.positions],
        caption="Records this case rests on",
        numeric=(1,),
    )
    return section(
        "Registry",
        tag("p", "The log is append-only; its head fixes every record below. Head:"),
        tag("pre", code(proof.head)),
        shown if proof.positions else None,
    )


def _budget(state: BudgetState | None) -> Html | None:
    if state is None:
        return None
    rows: list[tuple[str, Child]] = [
        ("declared for all cases", numbers.plain(state.total)),
        ("spent before", numbers.plain(state.spent_before)),
        ("spent on this case", numbers.plain(state.spent_here)),
        ("remaining", numbers.plain(state.remaining)),
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
