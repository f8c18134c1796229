"""What leaves the operator says nothing of a station that is not named.

Rounded and nameless scores add up: whoever sees some reports on suspects of their own making solves for a row
and frames its owner. So two investigations that differ in nothing but the rows of stations that are not named
are told in the very same words, on the terminal, in JSON and in a report.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tracing.small import Federation, federation
from zktrace.certificates.adjudicate import Verdict
from zktrace.report.case import case_html
from zktrace.report.facts import case_facts
from zktrace.report.tracing import report_of
from zktrace.report.words import SCORES_ARE_SECRETS, explain
from zktrace.tracing import Case, Lead


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation(stations=12, carriers=("weight", "feature"))


def told(case: Case, own: Federation, *, all_scores: bool = False) -> dict[str, str]:
    """A case as it is told, by everything that tells it."""
    page = report_of(
        case,
        own.registry.ledger(),
        suspect=Path("suspect.safetensors"),
        evidence=Path("case.zkt.json"),
        all_scores=all_scores,
    )
    return {
        "terminal": explain(case, all_scores=all_scores),
        "json": json.dumps(case_facts(case, all_scores=all_scores), sort_keys=True),
        "report": case_html(page),
    }


def with_other_rows(case: Case, seed: int) -> Case:
    """The same case, had the stations that are not named been given other rows.

    Those decide their scores, who of them is a lead and by how much, and which look gave the leads.
    """
    rng = np.random.default_rng(seed)
    others = [i for i, station in enumerate(case.stations) if station not in case.names]
    tables = []
    for table in case.tables:
        scores = table.scores.copy()
        scores[others] = np.sqrt(len(table.values)) * rng.standard_normal(len(others))
        tables.append(replace(table, scores=scores))
    leads = tuple(
        replace(
            each, station=case.stations[int(rng.choice(others))], score=each.score + seed, tail="negative"
        )
        for each in case.leads
    )
    if leads:
        leads += (replace(leads[0], station=case.stations[others[0]]),)
        tables.reverse()
    look = replace(case.look, alignment="channels" if leads else case.look.alignment)
    return replace(case, tables=tuple(tables), leads=leads, look=look)


def leak(own: Federation) -> Case:
    return own.trace((3,))


def two(own: Federation) -> Case:
    return own.trace((2, 9), carriers=("weight", "feature"))


def tampering(own: Federation) -> Case:
    return own.trace((5,), negate=True)


def lead(own: Federation) -> Case:
    return federation(stations=12).trace((4,), budget=Fraction(0))


def nothing(own: Federation) -> Case:
    noise = np.random.default_rng(0).standard_normal(128)
    return own.investigate([own.readout("weight", noise)])


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (leak, Verdict.ATTRIBUTE),
        (two, Verdict.ATTRIBUTE),
        (tampering, Verdict.TAMPER),
        (lead, Verdict.LEAD),
        (nothing, Verdict.NOTHING),
    ],
)
def test_other_rows_of_those_who_are_not_named_change_no_byte(
    own: Federation, make: Callable[[Federation], Case], verdict: Verdict
) -> None:
    case = make(own)
    assert case.verdict == verdict
    honest, all_told = told(case, own), told(case, own, all_scores=True)
    unnamed = set(case.stations) - set(case.names)
    assert not any(re.search(rf"{name}\b", text) for name in unnamed for text in honest.values())
    for seed in (1, 2, 3):
        other = with_other_rows(case, seed)
        assert told(other, own) == honest
        full = told(other, own, all_scores=True)
        assert all(full[face] != all_told[face] for face in full)  # the rows do differ


def test_a_score_is_told_only_where_the_evidence_opens_the_row(own: Federation) -> None:
    """Named on the weight carrier: what the row of the feature carrier scores would give that row away."""
    weight = own.readout("weight", own.copy_readout("weight", (3,)))
    feature = own.readout("feature", np.random.default_rng(1).standard_normal(128))
    case = own.investigate([weight, feature])
    assert case.names == ("station-3",)
    assert [each.carrier for each in case.evidence.carriers] == ["weight"]
    facts = case_facts(case)
    assert facts["scores"] == {"weight": {"station-3": float(case.tables[0].scores[3])}, "feature": {}}
    rows = case.evidence.accused[0].rows
    assert [each.carrier for each in rows] == ["weight"]
    assert f"{case.tables[1].scores[3]:.1f}" not in explain(case)


def test_what_shows_everything_warns(own: Federation) -> None:
    case = own.trace((3,))
    quiet, loud = told(case, own), told(case, own, all_scores=True)
    warning = SCORES_ARE_SECRETS[1:]
    assert warning not in quiet["report"]
    assert f'<p class="warning" role="alert">S{warning}.</p>' in loud["report"]
    assert all(name in text for name in case.stations for text in loud.values())


def test_a_lead_is_for_the_operator_who_asks(own: Federation) -> None:
    case = lead(own)
    (found,) = case.leads
    assert isinstance(found, Lead)
    assert case_facts(case)["leads"] is None
    assert "--all-scores" in explain(case)
    assert f"{found.station}: weight carrier" in explain(case, all_scores=True)
    assert case_facts(case, all_scores=True)["leads"] == [
        {
            "station": found.station,
            "carrier": "weight",
            "tail": "positive",
            "score": float(found.score),
            "threshold": float(found.threshold),
        }
    ]
