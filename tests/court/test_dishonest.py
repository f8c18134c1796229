"""Operators who log whatever they like: what the judge finds when it looks for itself."""

import hashlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from court.forge import certified_score
from readouts.making import weight_reader
from tracing.small import LAYERS, Federation, federation, layout
from zktrace.carriers import planned
from zktrace.certificates.adjudicate import Verdict
from zktrace.codes import unpack
from zktrace.court import Policy, judge
from zktrace.court.scoring import look, own_certificate
from zktrace.errors import EvidenceRejected
from zktrace.evidence import CarrierClaim, Findings, LookClaim, Naming, Stage
from zktrace.models import ModelState, model_digest
from zktrace.readouts.readout import Readout
from zktrace.readouts.weight import WeightReader
from zktrace.registry.log import Head
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import DispatchRecord, InvestigationRecord, ReleaseRecord, VerdictRecord
from zktrace.tracing import Case, trace
from zktrace.tracing.evidence import assemble

EASY = Policy(min_length=64)
LENGTH = 48
EPS = Fraction(1, 100)


def model(seed: int) -> ModelState:
    rng = np.random.default_rng(seed)
    arrays = {}
    for at, size in enumerate(LAYERS):
        arrays[f"bn{at}.weight"] = rng.normal(1, 0.1, size)
        arrays[f"bn{at}.running_var"] = np.ones(size)
    return ModelState.from_arrays(arrays)


def reader(own: Federation, release: str, reference: np.ndarray | None = None) -> WeightReader:
    return weight_reader(
        seed=own.seed("weight", release),
        length=LENGTH,
        layers=LAYERS,
        profile="informed",
        reference=reference,
    )


def released(own: Federation, shared: ModelState, reference: np.ndarray, name: str = "r2") -> ReleaseRecord:
    return own.add_release(name, model_digest(shared), [layout("weight", "informed", reference)])


def traced(own: Federation, suspect: ModelState, values: np.ndarray, reference: np.ndarray) -> Case:
    return trace(
        own.registry,
        own.custody,
        suspect=model_digest(suspect),
        release="r2",
        readouts=[Readout(carrier="weight", values=values, reference=reference)],
        budget=EPS,
        requests=own.requests.get,
    )


@pytest.fixture
def own() -> Federation:
    return federation(length=LENGTH)


def signs(own: Federation, row: int) -> np.ndarray:
    code = own.code("weight")
    return 2.0 * unpack(code.rows([row])[0], code.length) - 1.0


def exported(own: Federation) -> list[bytes]:
    return [entry.to_bytes() for entry in own.registry.entries()]


def step_of(case: Case, **given: object) -> int:
    policy = replace(EASY, min_length=16)
    with pytest.raises(EvidenceRejected) as caught:
        judge(case.evidence.to_bytes(), head=Head.from_text(case.evidence.head), policy=policy, **given)  # type: ignore[arg-type]
    return caught.value.step


def test_a_readout_within_the_rounding_of_a_float_sum_accuses_nobody(own: Federation) -> None:
    """The shared model itself, and a row written as small as the tolerance."""
    shared = model(1)
    reference = reader(own, "r2").project(shared)
    released(own, shared, reference)
    own.registry.add(DispatchRecord(station="station-3", release="r2", copy=hashlib.sha256(b"copy").digest()))
    values = 4e-10 * float(np.abs(reference).max()) * signs(own, 3)
    case = traced(own, shared, values, reference)
    assert case.names == ("station-3",)
    export = exported(own)
    assert step_of(case, suspect=shared, export=export) == 7
    assert judge(  # without the suspect nobody can know
        case.evidence.to_bytes(),
        head=Head.from_text(case.evidence.head),
        policy=replace(EASY, min_length=16),
        export=export,
    ).named == ("station-3",)


def test_a_row_within_the_rounding_of_the_reference_accuses_nobody(own: Federation) -> None:
    """The suspect is the shared model itself; the reference on record lacks a row in its rounding."""
    shared = model(1)
    projected = reader(own, "r2").project(shared)
    reference = projected - 4e-10 * float(np.abs(projected).max()) * signs(own, 3)
    released(own, shared, reference)
    own.registry.add(DispatchRecord(station="station-3", release="r2", copy=hashlib.sha256(b"copy").digest()))
    case = traced(own, shared, projected - reference, reference)
    assert case.names == ("station-3",)
    assert step_of(case, suspect=shared, shared=shared, export=exported(own)) == 7


def test_a_reference_made_for_the_suspect_is_found_by_an_earlier_head_or_the_shared_model(
    own: Federation,
) -> None:
    before = own.registry.head()
    shared, stranger = model(1), model(2)
    projected = reader(own, "r2").project(stranger)
    reference = projected - 0.1 * signs(own, 3)
    released(own, shared, reference)
    own.registry.add(DispatchRecord(station="station-3", release="r2", copy=hashlib.sha256(b"copy").digest()))
    case = traced(own, stranger, projected - reference, reference)
    assert case.names == ("station-3",)
    export = exported(own)
    assert step_of(case, suspect=stranger, export=export, before=before) == 2
    assert step_of(case, suspect=stranger, before=before) == 2  # an earlier head needs the registry
    assert step_of(case, suspect=stranger, export=export, shared=shared) == 5
    assert step_of(case, suspect=stranger, export=export, shared=stranger) == 5
    other = Head(size=before.size, root=bytes(32))
    assert step_of(case, suspect=stranger, export=export, before=other) == 2


def test_honest_evidence_is_upheld_with_everything_given(own: Federation) -> None:
    shared = model(1)
    reference = reader(own, "r2").project(shared)
    released(own, shared, reference)
    own.registry.add(DispatchRecord(station="station-3", release="r2", copy=hashlib.sha256(b"copy").digest()))
    before = own.registry.head()
    directions = reader(own, "r2").directions.block(0, LENGTH)
    from zktrace.readouts.scales import centred, gather

    columns = centred(directions, LAYERS)
    gamma = gather(shared) + np.linalg.lstsq(columns, 0.2 * signs(own, 3), rcond=None)[0]
    suspect = ModelState.from_arrays(
        {name: shared[name] for name in shared if "var" in name}
        | {f"bn{at}.weight": part for at, part in enumerate(np.split(gamma, [LAYERS[0]]))}
    )
    case = traced(own, suspect, reader(own, "r2", reference).read(suspect), reference)
    found = judge(
        case.evidence.to_bytes(),
        head=Head.from_text(case.evidence.head),
        policy=Policy(
            min_length=16,
            require_suspect=True,
            require_shared=True,
            require_registry=True,
            require_before=True,
        ),
        suspect=suspect,
        shared=shared,
        export=exported(own),
        before=before,
    )
    assert found.named == ("station-3",)
    for name in ("suspect", "shared", "export", "before"):
        given = {"suspect": suspect, "shared": shared, "export": exported(own), "before": before}
        given[name] = None
        if name == "export":
            given["before"] = None
        policy = Policy(
            min_length=16,
            require_suspect=True,
            require_shared=True,
            require_registry=True,
            require_before=True,
        )
        with pytest.raises(EvidenceRejected) as caught:
            judge(
                case.evidence.to_bytes(),
                head=Head.from_text(case.evidence.head),
                policy=policy,
                **given,  # type: ignore[arg-type]
            )
        assert caught.value.step == 8


def test_an_accused_without_a_copy_on_record_is_not_accused(own: Federation) -> None:
    shared = model(1)
    reference = reader(own, "r2").project(shared)
    released(own, shared, reference)
    case = traced(own, shared, 0.1 * signs(own, 3), reference)
    export = exported(own)
    assert step_of(case, export=export) == 4
    lenient = replace(EASY, min_length=16, require_dispatch=False)
    head = Head.from_text(case.evidence.head)
    found = judge(case.evidence.to_bytes(), head=head, policy=lenient, export=export)
    assert any("no copy of r2" in each for step in found.steps for each in step.unchecked)


def test_nobody_is_kept_for_a_later_look() -> None:
    """Two colluders beyond the first look; the operator names one there and the other at a second look."""
    own = federation(length=256)
    values = own.copy_readout("weight", (0, 1), noise=0.05)
    readout, code, eps = own.readout("weight", values), own.code("weight"), Fraction(1, 1000)
    place = own.registry.add(
        InvestigationRecord(
            suspect=hashlib.sha256(b"suspect").digest(),
            release="r1",
            carriers=("weight",),
            looks=planned(("weight",)),
            rule="certified",
            budget=eps,
            recipients=6,
        )
    )

    def stage(number: int, taken: list[int], who: int) -> Stage:
        rows = code.rows(taken)
        seen = look(values, code.biases, rows, by="soft", tail="positive")
        made = own_certificate(
            seen,
            recipients=6,
            level=eps,
            stage=number,
            carrier="weight",
            carriers=["weight"],
            by="soft",
            tail="positive",
            rule="certified",
        )
        score = seen.score(code.rows([who]).tobytes())
        named = (Naming(station=f"station-{who}", carrier="weight", by="soft", score=score),)
        return Stage(tail="positive", certificates=(certified_score(made),), named=named)

    findings = Findings(
        verdict=Verdict.ATTRIBUTE,
        level=eps,
        looks=(
            LookClaim(
                carriers=(CarrierClaim(carrier="weight", readout=readout_digest(values)),),
            ),
        ),
        stages=(stage(1, [], 0), stage(2, [0], 1)),
    )
    verdict_place = own.registry.add(
        VerdictRecord(
            investigation=place,
            verdict="certified-attribute",
            named=findings.stations,
            findings=findings.digest(),
        )
    )
    evidence = assemble(
        own.registry.snapshot(),
        own.custody,
        release="r1",
        readouts=[readout],
        findings=findings,
        places=(place, verdict_place),
        requests=own.requests.get,
    )
    with pytest.raises(EvidenceRejected, match="named at a later stage") as caught:
        judge(evidence.to_bytes(), head=Head.from_text(evidence.head), policy=EASY)
    assert caught.value.step == 7
