"""The judge upholds what holds, says what it did not check, and rejects everything else at the right step."""

from contextlib import suppress
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest

from court.forge import export_of, head_of, places_of, records_of, sealed
from readouts.making import weight_reader
from support import unchecked
from tracing.small import LAYERS, Federation, federation, wild
from zktrace.carriers import planned
from zktrace.certificates.adjudicate import Verdict
from zktrace.codes import soft, sums
from zktrace.court import STEPS, Judgement, Policy, judge
from zktrace.court.scoring import look
from zktrace.errors import EvidenceRejected, InputError, MalformedEvidence
from zktrace.evidence import Evidence, LookClaim, Naming, SeedOpening, Stage
from zktrace.models import ModelState, model_digest
from zktrace.registry.log import Head
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import (
    RELEASE,
    CarrierCode,
    DispatchRecord,
    EnrolmentRecord,
    InvestigationRecord,
    Record,
    ReleaseRecord,
    SetupRecord,
)
from zktrace.tracing import Case

EASY = Policy(min_length=64)


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation()


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    return own.trace((2,))


def uphold(own: Federation, case: Case, **given: object) -> Judgement:
    head = Head.from_text(case.evidence.head)
    return judge(case.evidence.to_bytes(), head=head, policy=EASY, **given)  # type: ignore[arg-type]


def rejected(data: bytes, head: Head, *, policy: Policy = EASY, **given: object) -> EvidenceRejected:
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head, policy=policy, **given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"step {caught.value.step}, {STEPS[caught.value.step]}: ")
    return caught.value


# ── upheld ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("profile", ["informed", "paper"])
@pytest.mark.parametrize("carriers", [("weight",), ("weight", "feature")])
@pytest.mark.parametrize("rows", [(2,), (0, 3)])
def test_what_the_tracer_certifies_is_upheld(
    profile: str, carriers: tuple[str, ...], rows: tuple[int, ...]
) -> None:
    own = federation(profile=profile, carriers=carriers, length=256)
    case = own.trace(rows, carriers=carriers)
    assert case.verdict == Verdict.ATTRIBUTE
    guilty = {f"station-{row}" for row in rows}
    assert set(case.names) == guilty or (profile == "paper" and set(case.names) < guilty)
    found = uphold(own, case)
    assert (found.verdict, found.named) == (case.verdict, case.names)
    assert [step.number for step in found.steps] == list(range(1, 10))
    assert all(step.checked or step.unchecked for step in found.steps)


def test_a_negated_copy_is_upheld_as_tampering() -> None:
    own = federation(profile="paper", length=256)
    case = own.trace((1,), negate=True)
    assert case.verdict == Verdict.TAMPER
    assert uphold(own, case).named == ("station-1",)
    strict = replace(EASY, accept_tamper=False)
    assert rejected(case.evidence.to_bytes(), own.registry.head(), policy=strict).step == 8


def test_later_looks_are_recomputed_without_the_rows_named_before() -> None:
    """Eight averaging colluders at a small code: some are found only after others are taken out."""
    own = federation(stations=10, length=512)
    case = own.trace(range(8), budget=Fraction(1, 1000), seed=5)
    assert case.named[-1].stage >= 2
    assert uphold(own, case).named == case.names


@pytest.mark.parametrize("budget", [Fraction(1, 1000), Fraction(0)])
def test_nobody_accused_is_upheld_and_says_so(budget: Fraction) -> None:
    own = federation()
    values = np.random.default_rng(1).standard_normal(128) if budget else own.copy_readout("weight", (2,))
    case = own.investigate([own.readout("weight", values)], budget=budget)
    found = uphold(own, case)
    assert found.named == ()
    assert any("no row is opened" in fact for step in found.steps for fact in step.unchecked)


def test_what_was_not_given_is_listed_as_not_checked(own: Federation, case: Case) -> None:
    found = {step.number: step for step in uphold(own, case).steps}
    assert any("no suspect" in fact for fact in found[5].unchecked)
    assert any("N = 6 is taken from the record" in fact for fact in found[4].unchecked)
    assert any("A5(a)" in fact for fact in found[9].unchecked)


def test_an_exported_registry_is_recounted() -> None:
    own = federation()
    own.registry.add(DispatchRecord(station="station-2", release="r1", copy=bytes(32)))
    case = own.trace((2,))
    old = own.registry.head()
    own.trace((3,))
    export = [entry.to_bytes() for entry in own.registry.entries()]
    for head in (old, own.registry.head()):  # the evidence's own head, and one that extends it
        found = judge(case.evidence.to_bytes(), head=head, policy=EASY, export=export)
        facts = " ".join(found.steps[3].checked)
        assert "N = 6 recounted" in facts
        assert "station-2 was sent a copy of r1" in facts
        assert found.steps[3].unchecked == (
            "that station-2 has a copy of r1: no receipt that it signed was given",
        )
    other = [entry.to_bytes() for entry in federation(stations=9).registry.entries()]
    assert rejected(case.evidence.to_bytes(), old, export=other).step == 2


# ── the suspect ─────────────────────────────────────────────────────────────────────────────────────────────


def model(scale: float = 1.0, *, seed: int = 0) -> ModelState:
    rng = np.random.default_rng(seed)
    arrays = {}
    for i, size in enumerate(LAYERS):
        arrays[f"bn{i}.weight"] = (1 + 0.1 * scale * rng.standard_normal(size)).astype(np.float32)
        arrays[f"bn{i}.running_var"] = np.ones(size, dtype=np.float32)
    return ModelState.from_arrays(arrays)


def read(own: Federation, state: ModelState) -> np.ndarray:
    """A reading in which the weight carrier's values are really those of a model."""
    return weight_reader(
        seed=own.seed("weight"),
        length=128,
        layers=LAYERS,
        profile="informed",
        reference=own.references["weight"],
    ).read(state)


def test_a_readout_is_read_again_from_the_suspect(own: Federation, case: Case) -> None:
    state = model()
    values = read(own, state)
    evidence = restated(case.evidence, values)
    log = records_of(own)
    places = places_of(case)
    investigation = log[case.place]
    assert isinstance(investigation, InvestigationRecord)
    log[case.place] = replace(investigation, suspect=model_digest(state))
    data, head, _ = sealed(evidence, log, places)
    # whatever it scores, the readout is the suspect's: the next step is reached
    assert rejected(data, head, suspect=state).step == 6
    assert rejected(data, head, suspect=model(seed=1)).step == 5
    moved = values.copy()
    moved[17] += 1e-6
    data, head, _ = sealed(restated(case.evidence, moved), log, places)
    error = rejected(data, head, suspect=state)
    assert error.step == 5
    assert "position 17" in error.reason


@pytest.mark.parametrize("which", range(6))
def test_a_wild_readout_under_a_forged_log_is_only_rejected(own: Federation, case: Case, which: int) -> None:
    evidence = restated(case.evidence, wild(128)[which])
    log = records_of(own)[: case.verdict_place + 1]
    data, head, _ = sealed(evidence, log, places_of(case))
    assert rejected(data, head).step in (6, 7)
    code = own.code("weight")
    with suppress(InputError):  # later looks at such a readout: coefficients, or one of our errors
        look(wild(128)[which], code.biases, code.rows([1, 2]), by="soft", tail="positive")


def test_nobody_is_named_at_two_stages(own: Federation, case: Case) -> None:
    stages = case.evidence.findings.stages * 2
    twice = unchecked(case.evidence, findings=unchecked(case.evidence.findings, stages=stages))
    with pytest.raises(MalformedEvidence, match="once each"):
        judge(twice.to_bytes(), head=own.registry.head(), policy=EASY)


def restated(evidence: Evidence, values: np.ndarray) -> Evidence:
    """The same claims on another readout."""
    carriers = (replace(evidence.carriers[0], readout=values.astype(">f8").tobytes()),)
    claims = (replace(evidence.findings.carriers[0], readout=readout_digest(values)),)
    looks = (*evidence.findings.looks[:-1], LookClaim(carriers=claims))
    return replace(evidence, carriers=carriers, findings=replace(evidence.findings, looks=looks))


def test_another_suspect_is_refused(own: Federation, case: Case) -> None:
    error = rejected(case.evidence.to_bytes(), own.registry.head(), suspect=model())
    assert error.step == 5
    assert model_digest(model()).hex() in error.reason


# ── substitution ────────────────────────────────────────────────────────────────────────────────────────────


def with_carrier(case: Case, **changes: object) -> Evidence:
    return replace(case.evidence, carriers=(replace(case.evidence.carriers[0], **changes),))  # type: ignore[arg-type]


def with_row(case: Case, **changes: object) -> Evidence:
    row = replace(case.evidence.accused[0].rows[0], **changes)  # type: ignore[arg-type]
    return replace(case.evidence, accused=(replace(case.evidence.accused[0], rows=(row,)),))


def test_substituted_openings_are_rejected_at_step_3(own: Federation, case: Case) -> None:
    other = federation(seed="another code key")
    elsewhere = other.trace((2,)).evidence
    there, accused = elsewhere.carriers[0], case.evidence.accused[0]
    another = own.trace((3,)).evidence.accused[0]
    other_release = own.custody.opened(own.registry.ledger().offer(RELEASE, 1).promise, "weight", 1)
    substitutes = [
        with_row(case, opening=another.rows[0].opening),
        with_row(case, opening=replace(accused.rows[0].opening, seed=bytes(32))),
        with_row(case, opening=elsewhere.accused[0].rows[0].opening),
        replace(case.evidence, accused=elsewhere.accused),
        replace(case.evidence, accused=(replace(accused, request=another.request),)),
        replace(case.evidence, accused=(replace(accused, request=elsewhere.accused[0].request),)),
        replace(case.evidence, accused=(replace(accused, request=b""),)),
        with_carrier(case, biases=there.biases),
        with_carrier(case, biases=bytes(32)),
        with_carrier(case, directions=there.directions),
        with_carrier(case, directions=SeedOpening(**asdict(other_release))),
        with_carrier(case, readout=own.trace((3,)).evidence.carriers[0].readout),
        with_carrier(case, readout=bytes(8 * 64), reference=b""),
        with_carrier(case, reference=there.readout[::-1]),
        with_carrier(case, reference=b""),
        replace(case.evidence, past=case.evidence.past[1:]),
        replace(case.evidence, past=(bytes(32), *case.evidence.past[1:])),
    ]
    for evidence in substitutes:
        assert rejected(evidence.to_bytes(), Head.from_text(case.evidence.head)).step == 3


def test_another_log_is_rejected_at_step_2(own: Federation, case: Case) -> None:
    size = Head.from_text(case.evidence.head).size
    other = Head(size=size, root=federation(seed="another code key").registry.head().root)
    assert rejected(case.evidence.to_bytes(), other).step == 2
    stranger = replace(case.evidence, head=other.to_text())
    assert rejected(stranger.to_bytes(), other).step == 2
    entries = case.evidence.entries
    swapped = replace(entries[1], entry=entries[2].entry)
    assert rejected(replace(case.evidence, entries=(entries[0], swapped, *entries[2:])).to_bytes(),
                    Head.from_text(case.evidence.head)).step == 2  # fmt: skip


def test_entries_that_are_not_needed_or_missing_are_rejected_at_step_2(own: Federation, case: Case) -> None:
    log, places = records_of(own)[: case.verdict_place + 1], places_of(case)
    for chosen in ([*places[:-1], 4, places[-1]], [1, *places], places[1:], [places[0], *places[2:]]):
        data, head, _ = sealed(case.evidence, log, chosen)
        assert rejected(data, head).step == 2


# ── a forger who writes the log ─────────────────────────────────────────────────────────────────────────────


def relogged(
    own: Federation, case: Case, changes: dict[int, Record], evidence: Evidence | None = None
) -> tuple[bytes, Head]:
    log = records_of(own)[: case.verdict_place + 1]
    for at, record in changes.items():
        log[at] = record
    data, head, _ = sealed(evidence or case.evidence, log, places_of(case))
    return data, head


def of_kind(own: Federation, kind: type[Record], name: str | None = None) -> tuple[int, Record]:
    for at, record in enumerate(records_of(own)):
        if isinstance(record, kind) and (name is None or getattr(record, "station", None) == name):
            return at, record
    raise AssertionError(kind)


def test_a_log_that_does_not_fit_is_rejected(own: Federation, case: Case) -> None:
    at_setup, setup = of_kind(own, SetupRecord)
    at_release, release = of_kind(own, ReleaseRecord)
    at_enrolment, enrolment = of_kind(own, EnrolmentRecord, "station-2")
    investigation = records_of(own)[case.place]
    assert isinstance(setup, SetupRecord)
    assert isinstance(release, ReleaseRecord)
    assert isinstance(enrolment, EnrolmentRecord)
    assert isinstance(investigation, InvestigationRecord)
    code, layout = setup.carriers[0], release.layouts[0]
    other = CarrierCode(carrier="weight", colluders=3, biases=code.biases)
    wrong: list[tuple[int, Record, int]] = [
        (at_setup, replace(setup, carriers=(other,)), 3),
        (at_release, replace(release, layouts=(replace(layout, length=256),)), 3),
        (at_setup, replace(setup, carriers=(replace(code, carrier="feature"),)), 3),
        (at_setup, replace(setup, carriers=(replace(code, biases=bytes(32)),)), 3),
        (at_setup, replace(setup, identity_bits=64), 3),
        (at_setup, replace(setup, budget=Fraction(1, 10_000)), 3),  # not what the accused asked for
        (at_setup, replace(setup, places=replace(setup.places, root=bytes(32))), 3),
        (at_setup, replace(setup, releases=replace(setup.releases, root=bytes(32))), 3),
        (at_release, replace(release, name="r2"), 4),
        (at_release, replace(release, number=1), 3),
        (at_release, replace(release, number=7), 3),
        (at_release, replace(release, layouts=(replace(layout, reference=bytes(32)),)), 3),
        (at_release, replace(release, layouts=(replace(layout, profile="paper"),)), 4),
        (at_enrolment, replace(enrolment, codeword=bytes(16)), 3),
        (at_enrolment, replace(enrolment, nonce=bytes(32)), 3),
        (at_enrolment, replace(enrolment, request=bytes(32)), 3),
        (at_enrolment, replace(enrolment, public_key=b"x"), 3),
        (at_enrolment, replace(enrolment, row=6), 3),
        (case.place, replace(investigation, recipients=2), 4),
        (case.place, replace(investigation, recipients=3), 7),
        (
            case.place,
            replace(investigation, carriers=("weight", "feature"), looks=planned(("weight", "feature"))),
            4,
        ),
        (case.place, unchecked(investigation, carriers=("weight", "feature")), 2),  # no look at one of them
        (case.place, unchecked(investigation, looks=()), 2),
        (case.place, replace(investigation, looks=planned(("weight",), [("channels", "weight")])), 7),
        (case.place, replace(investigation, rule="paper"), 4),
        (case.place, replace(investigation, budget=Fraction(1, 500)), 4),
        (case.place, replace(investigation, budget=Fraction(0)), 8),
    ]
    for place, record, step in wrong:
        data, head = relogged(own, case, {place: record})
        assert rejected(data, head).step == step, record


def test_an_order_that_cannot_be_is_rejected_at_step_4(own: Federation, case: Case) -> None:
    log = records_of(own)[: case.verdict_place + 1]
    setup, enrolment, release = (
        of_kind(own, SetupRecord)[0],
        of_kind(own, EnrolmentRecord, "station-2")[0],
        case.place - 1,
    )
    kept = {log[at]: at for at in (setup, enrolment, release, case.place, case.verdict_place)}
    for first, second in (
        (setup, enrolment),
        (release, case.place),
        (enrolment, case.place),
        (case.place, case.verdict_place),
    ):
        order = list(log)
        order[first], order[second] = log[second], log[first]
        places = [order.index(record) for record in kept]
        data, head, _ = sealed(case.evidence, order, places)
        assert rejected(data, head).step == 4


def test_a_number_of_recipients_that_was_not_enrolled_needs_the_export_to_be_seen(own: Federation) -> None:
    """Without the registry a smaller N on record passes; with it the ledger's rules do not hold."""
    fewer = federation(stations=4)
    case = fewer.trace((2,))
    log = records_of(fewer)
    more = [*log[:5], of_kind(own, EnrolmentRecord, "station-4")[1], *log[5:]]
    verdict = replace(more[-1], investigation=case.place + 1)  # type: ignore[type-var]
    places = [0, 3, case.place, case.place + 1, case.place + 2]
    data, head, forged = sealed(case.evidence, [*more[:-1], verdict], places)
    assert judge(data, head=head, policy=EASY).recipients == 4
    assert head == head_of(forged)
    assert rejected(data, head, export=export_of(forged)).step == 4


def stage_of(evidence: Evidence, **changes: object) -> Evidence:
    stage = replace(evidence.findings.stages[0], **changes)  # type: ignore[arg-type]
    return replace(evidence, findings=replace(evidence.findings, stages=(stage,)))


def test_a_score_is_recomputed(own: Federation, case: Case) -> None:
    naming = case.evidence.findings.stages[0].named[0]
    for score in (naming.score + Fraction(1, 1 << 40), -naming.score, Fraction(0)):
        forged = stage_of(case.evidence, named=(replace(naming, score=score),))
        assert rejected(*relogged(own, case, {}, forged)).step == 6


def test_a_certificate_is_recomputed(own: Federation, case: Case) -> None:
    (found,) = case.evidence.findings.stages[0].certificates
    honest = found.certificate
    for changes in (
        {"threshold": honest.threshold / 2},
        {"threshold": case.named[0].score},
        {"recipients": 1},
        {"level": honest.level * 2},
        {"law": "0" * 64},
        {"required": "1.0"},
        {"exponent": ("100.0", "200.0")},
        {"tilt": "nan"},
        {"tilt": "0x1p2000"},
        {"passes": False},
        {"method": "chernoff"},
    ):
        claimed = replace(honest, **changes)  # type: ignore[arg-type]
        forged = stage_of(case.evidence, certificates=(replace(found, certificate=claimed),))
        assert rejected(*relogged(own, case, {}, forged)).step == 7, changes


def test_a_certificate_with_another_tilt_that_holds_is_upheld(own: Federation, case: Case) -> None:
    """What another machine may have found: checked by itself, not by equality."""
    (found,) = case.evidence.findings.stages[0].certificates
    honest = found.certificate
    higher = honest.threshold + (case.named[0].score - honest.threshold) / 2
    from zktrace.certificates.certificate import certify

    coefficients = soft(case.evidence.carriers[0].values(), own.code("weight").biases)
    claimed = certify(coefficients, higher, recipients=6, level=honest.level)
    forged = stage_of(case.evidence, certificates=(replace(found, certificate=claimed),))
    data, head = relogged(own, case, {}, forged)
    assert judge(data, head=head, policy=EASY).named == ("station-2",)


def test_an_innocent_with_its_true_score_is_not_named(own: Federation, case: Case) -> None:
    """The forger opens another station's row, rightly, and claims the score that it has."""
    innocent = 4
    coefficients = soft(case.evidence.carriers[0].values(), own.code("weight").biases)
    total = int(sums(own.code("weight").rows([innocent]), coefficients)[0])
    accused = own.trace((innocent,)).evidence.accused
    named = (Naming(station="station-4", carrier="weight", by="soft", score=coefficients.score(total)),)
    stages = (replace(case.evidence.findings.stages[0], named=named),)
    forged = replace(
        case.evidence,
        accused=accused,
        findings=replace(case.evidence.findings, stages=stages),
    )
    log = records_of(own)[: case.verdict_place + 1]
    places = [0, of_kind(own, EnrolmentRecord, "station-4")[0], *places_of(case)[2:]]
    data, head, _ = sealed(forged, log, places)
    error = rejected(data, head)
    assert error.step == 7
    assert "station-4 scores" in error.reason
    assert "not above the threshold" in error.reason


def test_a_verdict_must_be_what_the_numbers_say(own: Federation, case: Case) -> None:
    log = records_of(own)[: case.verdict_place + 1]
    for change in ({"verdict": "certified-tamper"}, {"named": ("station-3",)}, {"findings": bytes(32)}):
        changed = [*log[:-1], replace(log[-1], **change)]  # type: ignore[arg-type, type-var]
        data, head, _ = sealed(case.evidence, changed, places_of(case), restate=False)
        assert rejected(data, head).step == 9
    tampering = replace(case.evidence, findings=replace(case.evidence.findings, verdict=Verdict.TAMPER))
    assert rejected(*relogged(own, case, {}, tampering)).step == 9
    assert isinstance(case.evidence.findings.stages[0], Stage)


# ── policy ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "policy",
    [
        Policy(min_length=129),
        Policy(min_length=64, max_budget=Fraction(1, 2000)),
        Policy(min_length=64, rules=("paper",)),
        Policy(min_length=64, carriers=("feature",)),
        Policy(min_length=64, require_suspect=True),
        Policy(min_length=64, require_registry=True),
    ],
)
def test_a_policy_that_is_not_met_is_a_rejection_at_step_8(
    own: Federation, case: Case, policy: Policy
) -> None:
    assert rejected(case.evidence.to_bytes(), Head.from_text(case.evidence.head), policy=policy).step == 8
