"""Scores of everybody at one look, the decisions of its stages, and the findings they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import NAMES, parts
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
from zktrace.codes import Biases, Code, Coefficients, score_all, soft, symmetric
from zktrace.codes import sums as row_sums
from zktrace.codes.biases import ONE
from zktrace.evidence import CarrierClaim, Findings, LookClaim, Naming, Stage
from zktrace.registry.readouts import readout_digest
from zktrace.tracing.case import CarrierTable, Lead, Named
from zktrace.tracing.readout import Readout


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
    if rule == "certified" and certify:
        return _by_stages(readouts, codes, recipients, level)
    readings = tuple(
        _reading(readout, code, recipients, rule) for readout, code in zip(readouts, codes, strict=True)
    )
    decision = adjudicate(readings, budget=level, rule=rule)
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


def coefficients_of(values: NDArray[np.float64], biases: Biases, rule: Rule) -> Coefficients:
    """What rows are scored with at the first stage."""
    if rule == "paper":
        return symmetric((values > 0).astype(np.uint8), biases)
    return soft(values, biases)


def _reading(readout: Readout, code: Code, recipients: int, rule: Rule) -> CarrierScores:
    coefficients = coefficients_of(readout.values, code.biases, rule)
    return CarrierScores(
        carrier=readout.carrier,
        coefficients=coefficients,
        sums=score_all(code, recipients, coefficients),
        parts=parts(readout.carrier),
    )


def _by_stages(
    readouts: Sequence[Readout], codes: Sequence[Code], recipients: int, level: Fraction
) -> Scored:
    first: dict[str, CarrierScores] = {}

    def source(readout: Readout, code: Code) -> Source:
        def sums(coefficients: Coefficients) -> NDArray[np.int64]:
            found = score_all(code, recipients, coefficients)
            reading = CarrierScores(
                carrier=readout.carrier,
                coefficients=coefficients,
                sums=found,
                parts=parts(readout.carrier),
            )
            first.setdefault(readout.carrier, reading)
            return found

        return Source(
            carrier=readout.carrier,
            values=readout.values,
            biases=code.biases,
            sums=sums,
            rows=code.rows,
            parts=parts(readout.carrier),
        )

    sources = [source(readout, code) for readout, code in zip(readouts, codes, strict=True)]
    found = investigate(sources, budget=level)
    return _scored(found.stages, tuple(first[each.carrier] for each in readouts))


def _scored(stages: tuple[Decision, ...], readings: tuple[CarrierScores, ...]) -> Scored:
    """Everybody named, at the stage that named them first; a stage that names nobody new is the last."""
    verdict = stages[0].verdict
    seen: set[int] = set()
    named = []
    for decision in stages:
        if decision.verdict != verdict:
            break
        fresh = tuple(each for each in decision.named if each.recipient not in seen)
        if not fresh:
            break
        seen |= {each.recipient for each in fresh}
        named.append(fresh)
    return Scored(
        verdict=verdict, stages=tuple(named), leads=stages[0].leads, readings=readings, first=stages[0]
    )


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
    certificates = {each.carrier: each.certificate for each in look if each.certificate is not None}
    return Stage(
        tail=look[0].tail,
        certificates=tuple((each, certificates[each]) for each in NAMES if each in certificates),
        named=tuple(
            Naming(station=stations[each.recipient], carrier=each.carrier, score=each.score) for each in look
        ),
    )


def named(scored: Scored, stations: Sequence[str], alignment: str) -> tuple[Named, ...]:
    """The same for a person."""
    return tuple(
        Named(
            station=stations[each.recipient],
            carrier=each.carrier,
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
    """Whoever is worth a closer look, strongest first."""
    return tuple(
        Lead(
            station=stations[each.recipient],
            carrier=each.carrier,
            tail=each.tail,
            score=each.score,
            threshold=each.threshold,
        )
        for each in scored.leads
    )


def tables(scored: Scored, readouts: Sequence[Readout]) -> tuple[CarrierTable, ...]:
    """The first stage of every carrier."""
    result: list[CarrierTable] = []
    if scored.first is None:
        return ()
    for at, (reading, readout) in enumerate(zip(scored.readings, readouts, strict=True)):
        positive, negative = scored.first.certificates[len(TAILS) * at : len(TAILS) * (at + 1)]
        candidate = candidate_threshold(
            length=len(readout.values),
            recipients=len(reading.sums),
            budget=scored.first.budget,
            tails=len(TAILS),
            carriers=len(readouts),
        )
        result.append(
            CarrierTable(
                carrier=readout.carrier,
                values=readout.values,
                scores=floats(reading.sums, reading.coefficients),
                positive=positive,
                negative=negative,
                candidate=candidate,
            )
        )
    return tuple(result)


def floats(sums: NDArray[np.int64], coefficients: Coefficients) -> NDArray[np.float64]:
    """S of everybody, for people: `Coefficients.score` in 64 bits, which hold it."""
    exact: NDArray[np.int64] = sums * ONE - coefficients.offset
    return exact / float(coefficients.denominator)


def deviations(
    values: NDArray[np.float64], biases: Biases, rows: NDArray[np.uint8], rule: Rule
) -> NDArray[np.float64]:
    """Scores of packed rows in standard deviations of an innocent's: about normal for one (`lem:innoc`)."""
    coefficients = coefficients_of(values, biases, rule)
    p = biases.probabilities()
    c = coefficients.numerators / float(1 << coefficients.scale_bits)
    spread = float(np.sqrt((c * c * p * (1.0 - p)).sum()))
    found = floats(row_sums(rows, coefficients), coefficients)
    return found / spread if spread else np.zeros(len(found))
