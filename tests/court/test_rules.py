"""The rules of docs/spec/evidence.md, by number: each is broken, and the judge names its step."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from court.forge import certified_score, export_of, places_of, records_of, relogged, renamed, sealed, the
from court.test_checkpoints import POLICY as WATCHED
from court.test_checkpoints import W as WITNESSES
from court.test_checkpoints import note
from court.test_looks import queried
from court.test_readers import NETWORK, PROBES, Bench, saying
from support import unchecked
from tracing.small import Federation, federation, secret_key
from zktrace.carriers import planned
from zktrace.certificates.adjudicate import Verdict
from zktrace.codes import soft
from zktrace.court import STEPS, Policy, judge
from zktrace.court.scoring import StageScore, look, own_certificate
from zktrace.errors import CannotTell, EvidenceRejected, MalformedEvidence
from zktrace.evidence import Evidence, Findings, LookClaim, Naming, SeedOpening, Stage
from zktrace.models import ModelState, model_digest
from zktrace.primitives import merkle
from zktrace.registry.log import Extension, Head
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import (
    PLACE,
    DispatchRecord,
    EnrolmentRecord,
    InvestigationRecord,
    ReleaseRecord,
    SetupRecord,
    VerdictRecord,
    record_digest,
)
from zktrace.registry.signing import Delivery, Receipt
from zktrace.tracing import Case

SPEC = Path(__file__).parents[2] / "docs" / "spec" / "evidence.md"
EASY = Policy(min_length=64)
Given = Mapping[str, object]
Broken = tuple[bytes, Head | None, Given]
STRANGER = ModelState.from_arrays({"said": np.zeros(3)})


def rules() -> list[str]:
    """The numbers that the specification gives its rules, in its order."""
    return re.findall(r"^- (\d\.\d) ", SPEC.read_text(), re.MULTILINE)


@cache
def honest() -> tuple[Federation, Case]:
    own = federation()
    own.registry.add(DispatchRecord(station="station-2", release="r1", copy=bytes(32)))
    return own, own.trace((2,))


def file(changed: Evidence | bytes | None = None, **given: object) -> Broken:
    """The honest case's head with another file, or the honest file given more."""
    case = honest()[1]
    data = case.evidence.to_bytes() if changed is None else changed
    if isinstance(data, Evidence):
        data = data.to_bytes()
    return data, Head.from_text(case.evidence.head), given


def log(*changes: object, evidence: Evidence | None = None, **given: object) -> Broken:
    """The honest case under a forger's log."""
    data, head, _ = relogged(*honest(), *changes, evidence=evidence)  # type: ignore[arg-type]
    return data, head, given


def carrier(**changes: object) -> Evidence:
    evidence = honest()[1].evidence
    return unchecked(evidence, carriers=(unchecked(evidence.carriers[0], **changes),))  # type: ignore[no-any-return]


def findings(**changes: object) -> Evidence:
    evidence = honest()[1].evidence
    return unchecked(evidence, findings=unchecked(evidence.findings, **changes))  # type: ignore[no-any-return]


def stage(**changes: object) -> Evidence:
    evidence = honest()[1].evidence
    return findings(stages=(unchecked(evidence.findings.stages[0], **changes),))


def record(kind: type, **changes: object) -> object:
    return unchecked(the(*honest(), kind), **changes)


def watched(signers: int, *, head: Head, also: Head | None = None, **given: object) -> Given:
    """Checkpoints of heads, so many times cosigned, before a judge who asks for two witnesses."""
    heads = [head] if also is None else [head, also]
    notes = [note(each, *WITNESSES[:signers]) for each in heads]
    return {"checkpoints": notes, "policy": WATCHED, **given}


def receipt(signer: int = 2, **changes: object) -> Receipt:
    """What the accused signed, or somebody in its name."""
    own, case = honest()
    asked = Delivery(
        station="station-2",
        release="r1",
        rounds=(),
        copies=(bytes(32),),
        setup=record_digest(the(own, case, SetupRecord)),
        head=case.evidence.head,
    )
    return Receipt.sign(secret_key(signer), replace(asked, **changes))  # type: ignore[arg-type]


def past() -> list[Extension]:
    """The way from nine entries to the head of the file."""
    head, leaves = file()[1], [merkle.leaf_hash(each) for each in export()]
    return [Extension(old=9, new=head.size, path=tuple(merkle.consistency_proof(leaves, 9)))]


def export() -> list[bytes]:
    own, case = honest()
    return [each.to_bytes() for each in own.registry.entries()][: case.verdict_place + 1]


def another_codeword() -> Broken:
    return log(record(EnrolmentRecord, codeword=bytes(16)))


def other_order() -> Broken:
    """The setup is not the first entry."""
    own, case = honest()
    entries, places = records_of(own)[: case.verdict_place + 1], places_of(case)
    entries[0], entries[1] = entries[1], entries[0]
    data, head, _ = sealed(case.evidence, entries, [1, *places[1:]])
    return data, head, {}


def two_readings(said: np.ndarray, **given: object) -> Broken:
    bench = Bench(lambda values, reference: values + reference + said)
    return bench.data, bench.head, {"suspect": bench.suspect, **NETWORK, **given}


def another_reference() -> Broken:
    """The release's shared model says something else than the reference on record."""
    bench = Bench(lambda values, reference: values + reference, shared=np.ones(128))
    return bench.data, bench.head, {"suspect": bench.suspect, "shared": bench.shared, **NETWORK}


def hidden_row() -> Broken:
    """A row within the tolerance of a network: the suspect says nothing but the reference."""
    own = federation(carriers=("feature",))
    case = own.investigate([own.readout("feature", 5e-5 * own.copy_readout("feature", (2,)))])
    suspect = saying(own.references["feature"])
    layout = replace(own.release.layouts[0], probes=model_digest(PROBES))
    data, head, _ = relogged(
        own,
        case,
        replace(own.release, layouts=(layout,)),
        replace(the(own, case, InvestigationRecord), suspect=model_digest(suspect)),
    )
    return data, head, {"suspect": suspect, "probes": [PROBES]}


def staged(case: Case, own: Federation, number: int, taken: list[str], name: str) -> Stage:
    """A stage that names one station, with the numbers that it has there."""
    code = own.code("weight")
    rows = {name: own.row("weight", own.registry.ledger().station(name).enrolment.row) for name in case.names}
    out = (
        np.array([np.frombuffer(rows[each], np.uint8) for each in taken])
        if taken
        else np.empty((0, 0), np.uint8)
    )
    values = case.evidence.carriers[0].values()
    seen = look(values, code.biases, out, by="soft", tail="positive")
    made = own_certificate(
        seen,
        recipients=6,
        level=case.evidence.findings.level,
        stage=number,
        carrier="weight",
        carriers=["weight"],
        by="soft",
        tail="positive",
        rule="certified",
    )
    named = (Naming(station=name, carrier="weight", by="soft", score=seen.score(rows[name])),)
    return Stage(tail="positive", certificates=(certified_score(made),), named=named)


def kept_for_later() -> Broken:
    """Two colluders who are both beyond the first stage; one of them is named at a second one only."""
    own = federation(length=256)
    case = own.trace((0, 1))
    first, second = case.names
    assert len(case.evidence.findings.stages) == 1
    stages = (staged(case, own, 1, [], first), staged(case, own, 2, [first], second))
    forged = replace(case.evidence, findings=replace(case.evidence.findings, stages=stages))
    data, head, _ = relogged(own, case, evidence=forged)
    return data, head, {}


def below_the_threshold() -> Broken:
    """A readout so faint in the row that it scores below; everything else is honest."""
    own, case = honest()
    values = case.evidence.carriers[0].values()
    weak = 0.1 * values + np.random.default_rng(5).standard_normal(len(values))
    found = soft(weak, own.code("weight").biases)
    score = StageScore(coefficients=found).score(own.row("weight", 2))
    claims = (replace(case.evidence.findings.carriers[0], readout=readout_digest(weak)),)
    naming = (replace(case.evidence.findings.stages[0].named[0], score=score),)
    own_one = own_certificate(
        StageScore(coefficients=found),
        recipients=6,
        level=case.evidence.findings.level,
        stage=1,
        carrier="weight",
        carriers=["weight"],
        by="soft",
        tail="positive",
        rule="certified",
    )
    stages = (
        replace(case.evidence.findings.stages[0], named=naming, certificates=(certified_score(own_one),)),
    )
    forged = replace(
        carrier(readout=weak.astype(">f8").tobytes()),
        findings=replace(case.evidence.findings, looks=(LookClaim(carriers=claims),), stages=stages),
    )
    return log(evidence=forged)


def overspent() -> Broken:
    """An investigation that spends more than the setup allows all of them: no ledger would take it."""
    own = federation(budget=Fraction(1, 2000))
    case = own.trace((2,), budget=Fraction(1, 2000))
    spent = replace(the(own, case, InvestigationRecord), budget=Fraction(1, 1000))
    forged = replace(case.evidence, findings=restated_level(own, case, Fraction(1, 1000)))
    data, head, _ = relogged(own, case, spent, evidence=forged)
    return data, head, {}


def restated_level(own: Federation, case: Case, level: Fraction) -> Findings:
    """The findings as they would be at another level."""
    other = federation(budget=Fraction(1, 2)).trace((2,), budget=level)
    assert other.names == case.names
    return other.evidence.findings


def accused(**changes: object) -> Evidence:
    evidence = honest()[1].evidence
    return replace(evidence, accused=(replace(evidence.accused[0], **changes),))  # type: ignore[arg-type]


def opened(name: str, place: int, **changes: object) -> Evidence:
    """Another seed in the place of the accused's, with the proof that it has."""
    own, case = honest()
    found = own.custody.opened(own.registry.ledger().offer(PLACE, place).promise, name, place)
    opening = SeedOpening(seed=found.seed, others=found.others, path=found.path)
    row = replace(case.evidence.accused[0].rows[0], opening=replace(opening, **changes))  # type: ignore[arg-type]
    return accused(rows=(row,))


def two_by_the_paper() -> Broken:
    """Two colluders beyond the threshold: the paper's rule names the larger score alone."""
    own = federation(length=256, profile="paper")
    case = own.trace((0, 1))
    (name,) = case.names
    other = next(each for each in ("station-0", "station-1") if each != name)
    row = own.registry.ledger().station(other).enrolment.row
    alone = own.trace((row,)).evidence
    values, code = case.evidence.carriers[0].values(), own.code("weight")
    seen = look(values, code.biases, code.rows([]), by="hard", tail="positive")
    score = seen.score(own.row("weight", row))
    stage = case.evidence.findings.stages[0]
    named = (*stage.named, replace(stage.named[0], station=other, score=score))
    forged = replace(
        case.evidence,
        accused=(*case.evidence.accused, *alone.accused),
        findings=replace(case.evidence.findings, stages=(replace(stage, named=named),)),
    )
    log = records_of(own)[: case.verdict_place + 1]
    places = sorted({*places_of(case), own.registry.ledger().station(other).index})
    data, head, _ = sealed(forged, log, places)
    return data, head, {}


def unpaid() -> Broken:
    return log(record(InvestigationRecord, budget=Fraction(0)))


def scores_for_a_suspect() -> Broken:
    own, case, scores = queried()
    strict = replace(EASY, require_suspect=True)
    return case.evidence.to_bytes(), own.registry.head(), {"scores": scores, "policy": strict}


def policy(**changes: object) -> Broken:
    return file(policy=replace(EASY, **changes))  # type: ignore[arg-type]


def with_path(node: bytes) -> Evidence:
    evidence = honest()[1].evidence
    entry = evidence.entries[0]
    return replace(evidence, entries=(replace(entry, path=(node, *entry.path[1:])), *evidence.entries[1:]))


def with_entry(place: int) -> Broken:
    own, case = honest()
    places = places_of(case)
    data, head, _ = sealed(
        case.evidence, records_of(own)[: case.verdict_place + 1], [*places[:-1], place, places[-1]]
    )
    return data, head, {}


def coded(**changes: object) -> object:
    setup = the(*honest(), SetupRecord)
    return replace(setup, carriers=(replace(setup.carriers[0], **changes),))  # type: ignore[arg-type]


def laid_out(**changes: object) -> object:
    release = the(*honest(), ReleaseRecord)
    return replace(release, layouts=(replace(release.layouts[0], **changes),))  # type: ignore[arg-type]


def certified(**changes: object) -> object:
    (found,) = honest()[1].evidence.findings.stages[0].certificates
    return (replace(found, certificate=replace(found.certificate, **changes)),)  # type: ignore[arg-type]


def by_another_score() -> Broken:
    """A score of the paper's rule claims to name under the other one."""
    (found,) = honest()[1].evidence.findings.stages[0].certificates
    (naming,) = honest()[1].evidence.findings.stages[0].named
    changed = {"certificates": (replace(found, by="hard"),), "named": (replace(naming, by="hard"),)}
    return log(evidence=stage(**changed))


def misrecorded(**changes: object) -> Broken:
    own, case = honest()
    entries = records_of(own)[: case.verdict_place + 1]
    entries[-1] = replace(entries[-1], **changes)  # type: ignore[arg-type]
    data, head, _ = sealed(case.evidence, entries, places_of(case), restate=False)
    return data, head, {}


def recounted(change: object) -> Broken:
    data, head, entries = relogged(*honest(), change)  # type: ignore[arg-type]
    return data, head, {"export": export_of(entries)}


def unsent() -> Broken:
    own = federation()
    case = own.trace((2,))
    return (
        case.evidence.to_bytes(),
        own.registry.head(),
        {"export": [each.to_bytes() for each in own.registry.entries()]},
    )


def after_an_unpaid_look() -> Broken:
    """A paid investigation that comes after one without a budget."""
    own, case = honest()
    entries = records_of(own)[: case.verdict_place + 1]
    free = replace(the(own, case, InvestigationRecord), budget=Fraction(0))
    verdict = replace(entries[-1], investigation=case.place + 1)  # type: ignore[call-arg]
    forged = [*entries[: case.place], free, entries[case.place], verdict]
    places = [each + (each >= case.place) for each in places_of(case)]
    data, head, final = sealed(case.evidence, forged, places)
    judge(data, head=head, policy=EASY)  # which no file shows by itself
    return data, head, {"export": export_of(final)}


BREAKERS: dict[str, tuple[Callable[[], Broken], ...]] = {
    "1.1": (lambda: file(honest()[1].evidence.to_bytes() + b"\n"), lambda: file(b"{}")),
    "1.2": (
        lambda: file(unchecked(honest()[1].evidence, accused=())),
        lambda: file(unchecked(honest()[1].evidence, carriers=())),
    ),
    "1.3": (lambda: file(findings(stages=honest()[1].evidence.findings.stages * 200)),),
    "2.1": (
        lambda: (*file()[:1], Head(size=file()[1].size, root=bytes(32)), {}),
        lambda: file(export=[b"x"] * file()[1].size),
    ),
    "2.2": (lambda: file(with_path(bytes(32))),),
    "2.3": (lambda: with_entry(4), lambda: log(record(InvestigationRecord, looks=()))),
    "2.4": (
        lambda: file(export=export(), before=file()[1]),
        lambda: file(export=export(), before=Head(size=3, root=bytes(32))),
        lambda: file(export=export(), before=Head(size=honest()[1].place, root=bytes(32))),
    ),
    "2.5": (
        lambda: (file()[0], file()[1], watched(1, head=file()[1])),
        lambda: (file()[0], None, watched(2, head=Head(size=file()[1].size, root=bytes(32)))),
        lambda: (
            file()[0],
            None,
            watched(2, head=file()[1], also=Head(size=9, root=bytes(32)), extensions=past()),
        ),
    ),
    "3.1": (another_codeword,),
    "3.2": (
        lambda: log(record(EnrolmentRecord, nonce=bytes(32))),
        lambda: log(record(EnrolmentRecord, request=bytes(32))),
        lambda: log(record(SetupRecord, budget=Fraction(1, 3))),
        lambda: file(accused(request=b"")),
    ),
    "3.3": (
        lambda: log(coded(biases=bytes(32))),
        lambda: file(carrier(biases=bytes(32))),
    ),
    "3.4": (lambda: file(opened("weight", 3)), lambda: file(opened("weight", 2, seed=bytes(32)))),
    "3.5": (
        lambda: log(record(ReleaseRecord, number=1)),
        lambda: file(replace(honest()[1].evidence, past=())),
    ),
    "3.6": (
        lambda: log(laid_out(reference=hashlib.sha256(b"").digest())),
        lambda: file(carrier(reference=b"")),
    ),
    "3.7": (
        lambda: file(carrier(readout=np.ones(128).astype(">f8").tobytes())),
        lambda: log(laid_out(length=256)),
    ),
    "4.1": (
        lambda: log(
            record(EnrolmentRecord, station="<b>"), evidence=renamed(honest()[1], {"station-2": "<b>"})
        ),
        lambda: log(record(ReleaseRecord, name="r 1")),
    ),
    "4.2": (other_order, lambda: log(record(VerdictRecord, investigation=2))),
    "4.3": (
        lambda: log(record(InvestigationRecord, recipients=2)),
        lambda: log(record(InvestigationRecord, recipients=99)),
    ),
    "4.4": (
        lambda: log(evidence=findings(looks=honest()[1].evidence.findings.looks * 2)),
        lambda: log(
            record(InvestigationRecord, looks=planned(("weight", "feature")), carriers=("weight", "feature"))
        ),
    ),
    "4.5": (
        lambda: log(record(InvestigationRecord, release="r7")),
        lambda: log(record(InvestigationRecord, rule="paper")),
    ),
    "4.6": (lambda: log(laid_out(profile="paper")),),
    "4.7": (lambda: log(evidence=findings(level=Fraction(1, 7))),),
    "4.8": (
        lambda: recounted(record(InvestigationRecord, recipients=4)),
        unsent,
        after_an_unpaid_look,
    ),
    "4.9": (
        lambda: policy(require_receipt=True),
        lambda: file(receipts=[receipt(signer=3)]),
        lambda: file(receipts=[receipt(setup=bytes(32))]),
        lambda: file(receipts=[receipt(head=Head(size=4, root=bytes(32)).to_text())], export=export()),
        lambda: file(
            policy=replace(EASY, require_receipt=True),
            receipts=[receipt(copies=(b"1" * 32,))],
            export=export(),
        ),  # for a copy that nobody has on record
    ),
    "5.1": (lambda: file(suspect=STRANGER), lambda: file(scores=np.zeros((128, 4)))),
    "5.2": (lambda: file(shared=STRANGER), lambda: file(probes=[STRANGER])),
    "5.3": (another_reference,),
    "5.4": (lambda: two_readings(np.eye(128)[7]),),
    "6.1": (
        lambda: log(
            evidence=stage(
                named=(Naming(station="station-2", carrier="weight", by="soft", score=Fraction(99)),)
            )
        ),
    ),
    "6.2": (by_another_score,),
    "7.1": (lambda: log(evidence=stage(certificates=certified(recipients=1))),),
    "7.2": (below_the_threshold,),
    "7.3": (kept_for_later,),
    "7.4": (hidden_row,),
    "8.1": (overspent,),
    "8.2": (unpaid,),
    "8.3": (lambda: policy(max_budget=Fraction(1, 2000)),),
    "8.4": (lambda: policy(max_total_budget=Fraction(1, 3)),),
    "8.5": (
        lambda: policy(require_suspect=True),
        lambda: policy(require_shared=True),
        lambda: policy(require_registry=True),
        lambda: policy(require_before=True),
        lambda: policy(witnesses=WATCHED.witnesses, min_witnesses=1),
        scores_for_a_suspect,
    ),
    "8.6": (lambda: policy(require_readout=True),),
    "8.7": (
        lambda: policy(rules=("paper",)),
        lambda: policy(carriers=("feature",)),
        lambda: policy(min_length=129),
    ),
    "9.1": (lambda: log(evidence=findings(verdict=Verdict.TAMPER)), two_by_the_paper),
    "9.2": (lambda: misrecorded(findings=bytes(32)), lambda: misrecorded(named=("station-3",))),
}


def test_the_specification_numbers_its_rules_once_and_all_are_broken_here() -> None:
    assert rules() == sorted(set(rules()))
    assert rules() == list(BREAKERS)
    assert {int(rule[0]) for rule in rules()} == set(STEPS)


def test_the_honest_case_is_upheld() -> None:
    data, head, _ = file()
    for given in ({}, {"export": export()}, {"receipts": [receipt()]}):
        assert judge(data, head=head, policy=EASY, **given).named == ("station-2",)  # type: ignore[arg-type]


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("rule", "which"), [(rule, at) for rule, broken in BREAKERS.items() for at in range(len(broken))]
)
def test_a_broken_rule_is_a_failure_in_its_step(rule: str, which: int) -> None:
    data, head, given = BREAKERS[rule][which]()
    with pytest.raises((EvidenceRejected, MalformedEvidence)) as caught:
        judge(data, head=head, **{"policy": EASY, **given})  # type: ignore[arg-type]
    step = caught.value.step if isinstance(caught.value, EvidenceRejected) else 1
    assert step == int(rule[0]), caught.value


def test_what_an_accused_signed_for_counts_as_far_as_the_log_has_it() -> None:
    """Without the registry a receipt alone speaks; with it a copy that was never dispatched is none."""
    data, head, _ = file()
    asks, strange = replace(EASY, require_receipt=True), receipt(copies=(b"1" * 32,))
    alone = judge(data, head=head, policy=asks, receipts=[strange])
    assert "that the receipt of station-2 is on record: no registry was given" in alone.unchecked
    found = judge(data, head=head, policy=EASY, receipts=[strange], export=export())
    said = f"that station-2 was handed what it signed for: no copy {'31' * 32} is on record for it"
    assert said in found.unchecked
    given = {"policy": asks, "receipts": [receipt()], "export": export()}
    assert judge(data, head=head, **given).named == ("station-2",)  # type: ignore[arg-type]


def test_neither_way_is_no_rejection() -> None:
    """The other half of rule 2.1."""
    data, head, _ = file()
    for other in (Head(size=head.size + 1, root=bytes(32)), Head(size=head.size - 1, root=bytes(32))):
        with pytest.raises(CannotTell):
            judge(data, head=other, policy=EASY)
