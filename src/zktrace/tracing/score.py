"""Scores of everybody at one look, the decisions of its stages, and the findings they make."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from zktrace.carriers import NAMES
from zktrace.carriers.split import SCORES, carrier_share, score_shares
from zktrace.certificates.adjudicate import (
    TAILS,
    CarrierScores,
    Decision,
    Exceedance,
    Rule,
    Verdict,
    adjudicate,
)
from zktrace.certificates.lengths import candidate_threshold
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import Code, score_all
from zktrace.codes.readings import coefficients_of, floats
from zktrace.evidence import CarrierClaim, CertifiedScore, Findings, LookClaim, Naming, Stage
from zktrace.evidence.findings import ACCUSED_LIMIT, WORK_LIMIT, judges_work
from zktrace.readouts.readout import Readout
from zktrace.registry.readouts import readout_digest
from zktrace.tracing.case import CarrierTable, Lead, Named


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """What the stages of one look say."""

    verdict: Verdict
    stages: tuple[tuple[Exceedance, ...], ...]  # who was named for the first time at each
    leads: tuple[Exceedance, ...]
    readings: tuple[CarrierScores, ...]  # of the first stage
    first: Decision | None  # none if nothing could be read


NO_SCORES: Final = Scored(verdict=Verdict.NOTHING, stages=(), leads=(), readings=(), first=None)


def score(
    readouts: Sequence[Readout],
    codes: Sequence[Code],
    *,
    recipients: int,
    level: Fraction,
    rule: Rule,
    certify: bool,
) -> Scored:
    """Score rows 0..recipients-1 on every carrier. Without `certify` nobody is named: leads only."""
    together = [each.carrier for each in readouts]
    parts = [carrier_share(each, together, rule) for each in together]
    if rule == "certified" and certify:
        return _by_stages(readouts, codes, parts, recipients, level)
    readings = tuple(
        reading
        for readout, code, part in zip(readouts, codes, parts, strict=True)
        for reading in _readings(readout, code, recipients, rule, part)
    )
    decision = adjudicate(readings, level=level, rule=rule)
    if certify:
        return _scored((decision,), readings)
    leads = (*decision.named, *decision.leads)
    return Scored(
        verdict=Verdict.LEAD if leads else Verdict.NOTHING,
        stages=(),
        leads=leads,
        readings=readings,
        first=decision,
    )


def _readings(
    readout: Readout, code: Code, recipients: int, rule: Rule, part: Fraction
) -> Iterator[CarrierScores]:
    for by, share in score_shares(code.biases.vary, rule).items():
        coefficients = coefficients_of(readout.values, code.biases, by)
        yield CarrierScores(
            carrier=readout.carrier,
            coefficients=coefficients,
            sums=score_all(code, recipients, coefficients),
            by=by,
            share=part * share,
        )


def _by_stages(
    readouts: Sequence[Readout],
    codes: Sequence[Code],
    parts: Sequence[Fraction],
    recipients: int,
    level: Fraction,
) -> Scored:
    def source(readout: Readout, code: Code, part: Fraction) -> Source:
        return Source(
            carrier=readout.carrier,
            values=readout.values,
            biases=code.biases,
            sums=lambda coefficients: score_all(code, recipients, coefficients),
            rows=code.rows,
            share=part,
        )

    found = investigate(list(map(source, readouts, codes, parts)), level=level)
    return _scored(found.stages, found.first)


def _scored(stages: tuple[Decision, ...], readings: tuple[CarrierScores, ...]) -> Scored:
    """Everybody named, at the stage that named them first; a stage that names nobody new is the last.

    A verdict that no judge would read is no verdict. It names no more than may be accused at once, the
    strongest first, and has no more stages than a judge takes on: the bound holds for whoever is named.
    """
    verdict = stages[0].verdict
    lengths = {each.carrier: each.coefficients.biases.length for each in readings}
    seen: set[int] = set()
    named: list[tuple[Exceedance, ...]] = []
    for decision in stages:
        if decision.verdict != verdict or len(seen) == ACCUSED_LIMIT:
            break
        new = dict.fromkeys(each.recipient for each in decision.named if each.recipient not in seen)
        chosen = set(list(new)[: ACCUSED_LIMIT - len(seen)])
        fresh = tuple(each for each in decision.named if each.recipient in chosen)
        if not fresh or judges_work(_effort([*named, fresh], lengths)) > WORK_LIMIT:
            break
        seen |= chosen
        named.append(fresh)
    return Scored(
        verdict=verdict, stages=tuple(named), leads=stages[0].leads, readings=readings, first=stages[0]
    )


def _effort(
    stages: Sequence[tuple[Exceedance, ...]], lengths: Mapping[str, int]
) -> Iterator[tuple[list[int], int]]:
    """Of each stage the lengths of the codes that name, once a score, and how many it names."""
    for stage in stages:
        scores = dict.fromkeys((each.carrier, each.by) for each in stage)
        yield [lengths[carrier] for carrier, _ in scores], len({each.recipient for each in stage})


def findings(
    scored: Scored, looks: Sequence[Sequence[Readout]], stations: Sequence[str], level: Fraction
) -> Findings:
    """What is claimed, in the names of stations. `looks` are the readouts of those that were taken."""
    return Findings(
        verdict=scored.verdict,
        level=level,
        looks=tuple(_read(each) for each in looks),
        stages=tuple(_stage(each, stations) for each in scored.stages),
    )


def _read(readouts: Sequence[Readout]) -> LookClaim:
    return LookClaim(
        carriers=tuple(
            CarrierClaim(carrier=each.carrier, readout=readout_digest(each.values)) for each in readouts
        )
    )


def _stage(look: tuple[Exceedance, ...], stations: Sequence[str]) -> Stage:
    found = {(each.carrier, each.by): each.certificate for each in look if each.certificate is not None}
    order = [(carrier, by) for carrier in NAMES for by in SCORES if (carrier, by) in found]
    return Stage(
        tail=look[0].tail,
        certificates=tuple(
            CertifiedScore(carrier=carrier, by=by, certificate=found[carrier, by]) for carrier, by in order
        ),
        named=tuple(
            Naming(station=stations[each.recipient], carrier=each.carrier, by=each.by, score=each.score)
            for each in look
        ),
    )


def named(scored: Scored, stations: Sequence[str], alignment: str) -> tuple[Named, ...]:
    """The same for a person."""
    return tuple(
        Named(
            station=stations[each.recipient],
            carrier=each.carrier,
            by=each.by,
            tail=each.tail,
            alignment=alignment,
            stage=stage,
            score=each.score,
            certificate=each.certificate,
        )
        for stage, found in enumerate(scored.stages, start=1)
        for each in found
        if each.certificate is not None
    )


def leads(scored: Scored, stations: Sequence[str]) -> tuple[Lead, ...]:
    """Whoever is worth a closer look, strongest first, once a carrier and tail."""
    strongest: dict[tuple[int, str, str], Exceedance] = {}
    for each in scored.leads:
        strongest.setdefault((each.recipient, each.carrier, each.tail), each)
    return tuple(
        Lead(
            station=stations[each.recipient],
            carrier=each.carrier,
            tail=each.tail,
            score=each.score,
            threshold=each.threshold,
        )
        for each in strongest.values()
    )


def tables(scored: Scored, readouts: Sequence[Readout]) -> tuple[CarrierTable, ...]:
    """The first stage of every carrier, by the score that named there, or else by its first one."""
    if scored.first is None:
        return ()
    made = scored.first.certificates
    limits = [made[len(TAILS) * at : len(TAILS) * (at + 1)] for at in range(len(scored.readings))]
    named = {(each.carrier, each.by) for each in (scored.stages[0] if scored.stages else ())}
    result: list[CarrierTable] = []
    for readout in readouts:
        own = [at for at, each in enumerate(scored.readings) if each.carrier == readout.carrier]
        at = next((at for at in own if (readout.carrier, scored.readings[at].by) in named), own[0])
        reading, (positive, negative) = scored.readings[at], limits[at]
        candidate = candidate_threshold(
            length=len(readout.values),
            recipients=len(reading.sums),
            level=scored.first.level,
            tails=len(TAILS),
            carriers=len(readouts),
        )
        result.append(
            CarrierTable(
                carrier=readout.carrier,
                by=reading.by,
                values=readout.values,
                scores=floats(reading.sums, reading.coefficients),
                positive=positive,
                negative=negative,
                candidate=candidate,
            )
        )
    return tuple(result)
