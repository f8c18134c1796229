"""An investigation: on record before it looks, paid for, everybody scored, nobody framed."""

import os
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from readouts.making import weight_reader
from tracing.small import SUSPECT, Federation, add_station, federation, wild
from zktrace.carriers import planned
from zktrace.certificates.adjudicate import Verdict
from zktrace.errors import InputError, InvalidLog, Refused
from zktrace.readouts.identity import IdentityCodebook
from zktrace.readouts.readout import Readout
from zktrace.readouts.scales import centred
from zktrace.registry.records import InvestigationRecord, RevocationRecord, VerdictRecord
from zktrace.report.words import explain, quoted, stage_bound
from zktrace.tracing import investigation as tracing_module
from zktrace.tracing.protocol import _confirm


def kinds(own: Federation) -> list[str]:
    return [entry.record.kind for entry in own.registry.entries()]


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("profile", ["informed", "paper"])
def test_every_single_copy_is_isolated(row: int, profile: str) -> None:
    case = federation(profile=profile, length=192).trace((row,))
    assert case.verdict == Verdict.ATTRIBUTE
    assert case.names == (f"station-{row}",)
    (table,) = case.tables
    assert int(np.argmax(table.scores)) == row
    assert table.scores[row] > float(table.positive.threshold)


def test_the_look_is_on_record_before_anything_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    own = federation()
    seen: list[object] = []
    honest = tracing_module.score

    def watched(*args: object, **options: object) -> object:
        seen.append(own.registry.entries()[-1].record)
        return honest(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tracing_module, "score", watched)
    case = own.trace((1,))
    expected = InvestigationRecord(
        suspect=SUSPECT,
        release="r1",
        carriers=("weight",),
        rule="certified",
        budget=Fraction(1, 1000),
        recipients=6,
        looks=planned(("weight",)),
    )
    assert seen == [expected]
    verdict = own.registry.entries()[-1].record
    assert isinstance(verdict, VerdictRecord)
    assert verdict.investigation == case.place
    assert verdict.named == ("station-1",)
    assert verdict.findings == case.evidence.findings.digest()


def test_a_failure_while_scoring_has_spent_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    own = federation()

    def broken(*args: object, **options: object) -> object:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(tracing_module, "score", broken)
    with pytest.raises(RuntimeError):
        own.trace((1,))
    assert own.registry.ledger().spent == Fraction(1, 1000)
    assert kinds(own)[-1] == "investigation"


def test_an_overdraft_is_refused_and_leaves_no_trace() -> None:
    own = federation(budget=Fraction(3, 2000))
    own.trace((1,))
    before = kinds(own)
    with pytest.raises(Refused, match="budget"):
        own.trace((1,))
    assert kinds(own) == before


def test_without_a_budget_there_are_only_leads() -> None:
    own = federation(budget=Fraction(1, 10**6))
    case = own.trace((1,), budget=Fraction(0))
    assert case.verdict == Verdict.LEAD
    assert case.named == ()
    assert case.leads[0].station == "station-1"
    assert own.registry.ledger().spent == 0
    record = own.registry.entries()[-1].record
    assert isinstance(record, VerdictRecord)
    assert record.named == ()  # the log does not accuse


def test_a_revoked_station_is_still_scored_and_named() -> None:
    own = federation()
    own.registry.add(RevocationRecord(station="station-2", reason="left"))
    assert own.trace((2,)).names == ("station-2",)


def test_whoever_enrols_meanwhile_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    own = federation(stations=4)
    honest = tracing_module.score

    def meanwhile(*args: object, **options: object) -> object:
        add_station(own.registry, 4)
        return honest(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tracing_module, "score", meanwhile)
    case = own.investigate([own.readout("weight", np.random.default_rng(0).standard_normal(128))])
    assert case.investigation.recipients == len(case.stations) == 4
    assert "station-4" not in case.names


def test_what_cannot_be_investigated_is_refused_before_it_costs_anything() -> None:
    own = federation(carriers=("weight", "feature"))
    values = own.copy_readout("weight", (1,))
    good = own.readout("weight", values)
    wrong = (
        [],
        [replace(good, values=values[:-1])],
        [replace(good, values=np.where(np.arange(128) == 3, np.nan, values))],
        [replace(good, values=values.astype(np.float32))],
        [replace(good, reference=None)],
        [replace(good, reference=values)],
        [Readout(carrier="output", values=values, reference=None)],
        [good, good],
    )
    for readouts in wrong:
        with pytest.raises(InputError):
            own.investigate(readouts)
    for budget in (Fraction(-1, 2), Fraction(1)):
        with pytest.raises(InputError):
            own.investigate([good], budget=budget)
    assert "investigation" not in kinds(own)


def test_carriers_of_different_profiles_are_not_mixed() -> None:
    own = federation(carriers=("weight", "feature"))
    layouts = own.release.layouts
    paper = replace(layouts[1], profile="paper", reference=bytes(32))
    mixed = own.add_release("r2", bytes(32), (layouts[0], paper))
    other = replace(own, release=mixed)
    readouts = [other.readout(each, own.copy_readout(each, (1,))) for each in ("weight", "feature")]
    with pytest.raises(Refused, match="profiles"):
        other.investigate(readouts)


def test_nobody_enrolled_is_refused() -> None:
    own = federation(stations=0)
    with pytest.raises(Refused, match="nobody is enrolled"):
        own.investigate([own.readout("weight", np.random.default_rng(0).standard_normal(128))])


@pytest.mark.parametrize("profile", ["informed", "paper"])
def test_wild_readouts_end_in_a_verdict(profile: str) -> None:
    own = federation(profile=profile, length=64)
    for values in wild(64):
        case = own.investigate([own.readout("weight", values)])
        assert case.verdict in set(Verdict)
        assert np.isfinite(case.tables[0].scores).all()


def test_the_table_of_scores_is_that_of_the_exact_ones() -> None:
    case = federation().trace((1, 3))
    scores = dict(zip(case.stations, case.tables[0].scores.tolist(), strict=True))
    assert all(scores[each.station] == float(each.score) for each in case.named if each.stage == 1)


@pytest.mark.parametrize("profile", ["informed", "paper"])
@pytest.mark.parametrize("victim", range(3))
def test_a_copied_public_mark_frames_nobody(profile: str, victim: int) -> None:
    """A model that carries a victim's identity codeword perfectly says nothing of its secret row."""
    layers = (256, 256, 256)
    own = federation(stations=6, length=256, profile=profile)
    public = own.registry.ledger().stations[f"station-{victim}"].enrolment
    word = np.unpackbits(np.frombuffer(public.codeword, dtype=np.uint8)).astype(np.float64)
    book = IdentityCodebook(stations=6, bits=128, layers=layers)
    block = book.block(victim)
    change = np.linalg.lstsq(block, 0.2 * (2 * word - 1), rcond=None)[0]
    shared = 1 + 0.05 * np.random.default_rng(victim).standard_normal(sum(layers))
    framed = _state(shared + change, layers)
    assert (book.extract(framed)[victim] == word).all()
    blank = weight_reader(
        seed=own.seed("weight"),
        length=256,
        layers=layers,
        profile=profile,  # type: ignore[arg-type]
    )
    values = blank.project(framed)
    if profile == "informed":
        values = values - blank.project(_state(shared, layers))
    case = own.investigate([own.readout("weight", values)])
    assert case.named == ()
    assert case.verdict == Verdict.NOTHING
    assert np.abs(centred(change, layers)).max() > 0


def _state(gamma: np.ndarray, layers: tuple[int, ...]) -> dict[str, np.ndarray]:
    parts = np.split(gamma, np.cumsum(layers)[:-1])
    return {f"bn{i}.weight": part for i, part in enumerate(parts)} | {
        f"bn{i}.running_var": np.ones(size) for i, size in enumerate(layers)
    }


# ── in words ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_certified_verdict_says_who_on_what_how_sure_and_what_not() -> None:
    text = explain(federation().trace((1, 3)))
    assert text.startswith("CERTIFIED: the copies of station-1 and station-3.\n")
    assert "carries the secret marks of the copies that were made for station-" in text
    for part in ("weight carrier, score", "at most 1/1000 (0.001)", "secret row (assumption A5a)"):
        assert part in text
    assert "It does not prove" in text
    assert "that the station itself published the copy" in text
    assert "threshold" in text.splitlines()[-2]
    assert text.splitlines()[-1].startswith("What 4 other stations scored stays with the operator")
    assert explain(federation().trace((2,))).startswith("CERTIFIED: station-2's copy.\n")


def test_a_lead_accuses_nobody_in_words() -> None:
    text = explain(federation().trace((1,), budget=Fraction(0)))
    assert text.startswith("LEAD, nobody is accused.")
    assert "station-1" not in text
    assert "must not be used to accuse" in text


def test_no_evidence_does_not_say_that_nothing_leaked() -> None:
    own = federation(stations=20)
    case = own.investigate([own.readout("weight", np.random.default_rng(0).standard_normal(128))])
    text = explain(case)
    assert text.startswith("NO EVIDENCE")
    assert "does not mean that no copy leaked" in text
    assert "This clears nobody" in text
    assert "- that it is a copy of another release." in text


def test_the_number_beside_a_name_is_what_is_proved() -> None:
    """Both tails and all carriers of a stage, not the one threshold; and the whole investigation."""
    case = federation(stations=8, carriers=("weight", "feature")).trace(
        (1, 3), carriers=("weight", "feature")
    )
    of_a_tail = Fraction(3, 4) / 2 / 2 * Fraction(9, 10)  # stage, carrier, score, tail
    assert case.named[0].certificate.level == Fraction(1, 1000) * of_a_tail
    assert stage_bound(case, 1) == Fraction(3, 4000)
    assert stage_bound(case, 2) == Fraction(1, 8000)
    text = explain(case)
    assert "  stage 1 names any innocent with probability at most 3/4000 (0.00075)\n" in text
    assert "names any innocent of 8 stations with probability at most 1/1000 (0.001), if" in text
    single = federation(profile="paper", length=512).trace((1,), budget=Fraction(1, 10))
    assert stage_bound(single, 1) == Fraction(1, 10)


@pytest.mark.parametrize(
    "name",
    [
        "plain.zkt",
        "a b",
        "'; rm -rf ~ #",
        "$(id)`id`",
        "-rf",
        "line\nbreak\x1b[31m'\\",
        "\u202egnp",
        "\udcff\udc80",
    ],
)
def test_a_printed_command_is_one_line_that_means_the_file(name: str, tmp_path: Path) -> None:
    word = quoted(Path(name))
    assert word.isprintable()
    said = subprocess.run(
        ["bash", "-c", f"printf '%s' {word}"], capture_output=True, check=True, cwd=tmp_path
    ).stdout
    assert said == os.fsencode(f"./{name}" if name.startswith("-") else name)


def test_nobody_is_named_by_a_cache_that_the_log_contradicts() -> None:
    """Whoever swaps two names in the cache gets no verdict about the wrong one on record."""
    own = federation()
    log = own.registry.known()
    _confirm(log, ["station-1", "station-3"])
    stations = dict(log.ledger.stations)
    first, second = stations["station-1"], stations["station-3"]
    wrong = replace(first.enrolment, row=second.enrolment.row)
    stations["station-1"] = SimpleNamespace(enrolment=wrong, index=first.index)  # type: ignore[assignment]
    swapped = SimpleNamespace(stations=stations, size=log.ledger.size, leaves=log.ledger.leaves)
    with pytest.raises(InvalidLog, match="station-1 is enrolled otherwise"):
        _confirm(replace(log, ledger=swapped), ["station-1"])
