"""Operators who would like to choose a row, biases or directions that frame somebody: none is theirs.

Each construction once made an innocent certified on a suspect that has nothing to do with it, upheld by the
strictest policy.
"""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from court.forge import places_of, records_of, sealed
from support import seeded
from tracing.small import Federation, federation, request, secret_key
from zktrace.codes import draw, expand, unpack
from zktrace.court import Policy, judge
from zktrace.derivation.promises import Claim, row_key, seed_commitment
from zktrace.errors import EvidenceRejected, InvalidProof
from zktrace.evidence import SeedOpening
from zktrace.registry.enrolling import enrolment
from zktrace.registry.log import Head
from zktrace.registry.offers import promised
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    EnrolmentRecord,
    ReleaseRecord,
    SetupRecord,
    VerdictRecord,
    offer_digest,
    record_digest,
)
from zktrace.registry.registry import Registry
from zktrace.registry.requests import Request
from zktrace.registry.stores.memory import MemoryStore
from zktrace.tracing import Case

EASY = Policy(min_length=64)


@pytest.fixture(scope="module")
def own() -> Federation:
    return federation()


@pytest.fixture(scope="module")
def case(own: Federation) -> Case:
    return own.trace((2,))


def refused(data: bytes, own: Federation, head: object = None) -> EvidenceRejected:
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head or own.registry.head(), policy=EASY)  # type: ignore[arg-type]
    return caught.value


def test_a_row_that_was_made_by_hand_has_no_place_in_the_file(own: Federation, case: Case) -> None:
    """Biases and rows are no fields of the evidence; whoever wants another row needs another seed."""
    text = case.evidence.to_bytes().decode()
    assert not {"thresholds", '"row":'} & set(text.split(","))
    accused = case.evidence.accused[0]
    for seed in (bytes(32), own.code("weight").row_seed(3)):
        opening = replace(accused.rows[0].opening, seed=seed)
        rows = (replace(accused.rows[0], opening=opening),)
        forged = replace(case.evidence, accused=(replace(accused, rows=rows),))
        error = refused(forged.to_bytes(), own)
        assert (error.step, "not the one that was promised" in error.reason) == (3, True)


def test_a_nonce_that_the_operator_drew_is_not_the_stations(own: Federation, case: Case) -> None:
    """It tries nonces until the row fits, and logs the best: it cannot prove that the station asked so."""
    log = records_of(own)[: case.verdict_place + 1]
    at = next(
        i for i, each in enumerate(log) if isinstance(each, EnrolmentRecord) and each.station == "station-2"
    )
    offer = own.requests["station-2"].offer
    drawn = seeded("the operator's best nonce")(32)
    copied = replace(own.requests["station-2"], nonce=drawn)  # with the proof of another nonce
    own_key = Request.make(secret_key(9), offer, nonce=drawn)  # or of another key
    stolen = replace(own_key, public_key=own.requests["station-2"].public_key)
    for forged in (copied, stolen):
        log[at] = enrolment("station-2", 2, forged, bits=128)
        accused = (replace(case.evidence.accused[0], request=forged.proof),)
        data, head, _ = sealed(replace(case.evidence, accused=accused), log, places_of(case))
        assert refused(data, own, head).step == 3
        with pytest.raises(InvalidProof):
            forged.verify(offer)


def test_seeds_that_were_tried_before_the_nonce_was_drawn_frame_nobody() -> None:
    """The operator promises the best of 4,000 seeds for a place; the station's nonce makes it any seed."""
    biases = draw(seeded("biases")(32), 512, 2)
    target = np.random.default_rng(0).standard_normal(512)
    p = biases.probabilities()

    def score(key: bytes) -> float:
        bits = unpack(expand([key], biases)[0], 512)
        return float(target @ (bits - p) / np.sqrt((target**2 * p * (1 - p)).sum()))

    public = secret_key(0).public.to_bytes()
    guessed = Claim(bytes(32), public)  # what the operator takes the station's nonce to be
    seeds = [seeded(f"seed {i}")(32) for i in range(4000)]
    best = max(seeds, key=lambda seed: score(row_key(seed, guessed)))
    assert score(row_key(best, guessed)) > 3
    real = [score(row_key(best, Claim(seeded(f"nonce {i}")(32), public))) for i in range(300)]
    assert abs(np.mean(real)) < 4 / np.sqrt(300)
    assert 0.8 < np.std(real) < 1.2


def test_a_seed_opens_one_place_of_one_carrier_and_nothing_else() -> None:
    seed = seeded("a seed")(32)
    made = {
        seed_commitment(kind, seed, place, carrier)
        for kind in ("place", "release")
        for place in (0, 1)
        for carrier in ("weight", "feature")
    }
    assert len(made) == 8


def test_no_name_of_a_release_moves_its_directions() -> None:
    """Among 1,840 names one was found whose directions made the unmarked model match a chosen station."""
    clock = datetime(2026, 1, 31, 12, tzinfo=UTC)
    seeds, rows = set(), set()
    for name in ("r2", "spring", "a-model-of-the-federation", *(f"try-{i}" for i in range(20))):
        own = federation(registry=Registry(MemoryStore(), clock=lambda: clock))
        own.add_release(name, bytes(32), own.release.layouts)
        seeds.add(own.seed("weight", name))
        rows.add(own.row("weight", 3))
    assert len(seeds) == len(rows) == 1


def test_directions_come_from_all_that_was_logged_before(own: Federation) -> None:
    """The operator cannot know them when it promises the seed, nor keep them when the log is another."""
    other = federation(stations=5)
    assert other.custody == own.custody
    assert other.seed("weight") != own.seed("weight")
    assert own.custody.seed("release", "weight", 0) == other.custody.seed("release", "weight", 0)


def test_a_request_for_another_offer_gets_no_place(own: Federation) -> None:
    offer = own.registry.ledger().offer(PLACE, 2).digest
    asked = request(2, offer)
    asked.verify(offer)
    with pytest.raises(InvalidProof, match="it is for the offer"):
        asked.verify(bytes(32))
    with pytest.raises(InvalidProof):
        replace(asked, offer=bytes(32)).verify(bytes(32))


def reserved_late(own: Federation, case: Case, kind: str) -> EvidenceRejected:
    """The case under a log in which the seed of station 2 or of the release was promised after its use."""
    log, places = records_of(own)[: case.verdict_place + 1], places_of(case)
    setup = log[0]
    assert isinstance(setup, SetupRecord)
    at = next(
        place
        for place in places
        if isinstance(log[place], EnrolmentRecord if kind == PLACE else ReleaseRecord)
    )
    tree = setup.places if kind == PLACE else setup.releases
    log[0] = replace(setup, **{f"{kind}s": replace(tree, count=1)})
    number = 2 if kind == PLACE else 1
    late = own.custody.reservation(kind, 1, 4)
    investigation, verdict = log[case.place], log[case.verdict_place]
    assert isinstance(verdict, VerdictRecord)
    log[at] = replace(log[at], number=1) if kind == RELEASE else log[at]
    log[case.place : case.verdict_place + 1] = [
        late,
        investigation,
        replace(verdict, investigation=case.place + 1),
    ]
    asked = request(2, offer_digest(log[0], late if kind == PLACE else log[0]))
    station = next(place for place in places if isinstance(log[place], EnrolmentRecord))
    log[station] = enrolment("station-2", 2, asked, bits=128)
    promise = promised(late, kind, own.custody.carriers)
    opened = own.custody.opened(promise, "weight", number)
    opening = SeedOpening(seed=opened.seed, others=opened.others, path=opened.path)
    evidence, accused = case.evidence, replace(case.evidence.accused[0], request=asked.proof)
    if kind == PLACE:
        accused = replace(accused, rows=(replace(accused.rows[0], opening=opening),))
    else:
        evidence = replace(evidence, carriers=(replace(evidence.carriers[0], directions=opening),))
    places = [*places[:-2], case.place, case.place + 1, case.place + 2]
    data, head, _ = sealed(replace(evidence, accused=(accused,)), log, places)
    return refused(data, own, head)


@pytest.mark.parametrize("kind", [PLACE, RELEASE])
def test_a_seed_is_promised_before_its_use_without_a_registry_too(
    own: Federation, case: Case, kind: str
) -> None:
    """Promised later, it could be the best of many for a row or a log that is known."""
    error = reserved_late(own, case, kind)
    assert (error.step, "was promised later" in error.reason) == (4, True)


def test_releases_before_a_release_have_room_in_the_log(own: Federation, case: Case) -> None:
    """Its number chooses the seed: the judge counts at least what cannot be."""
    made = replace(own.release, number=7)
    log = records_of(own)[: case.verdict_place + 1]
    assert log[7] == own.release
    log[7] = made
    log[0] = replace(log[0], releases=own.custody.tree(RELEASE, 0, 16))  # type: ignore[type-var]
    asked = request(2, record_digest(log[0]))
    log[3] = enrolment("station-2", 2, asked, bits=128)
    promise = promised(log[0], RELEASE, own.custody.carriers)  # type: ignore[arg-type]
    opened = own.custody.opened(promise, "weight", 7)
    opening = SeedOpening(seed=opened.seed, others=opened.others, path=opened.path)
    forged = replace(
        case.evidence,
        accused=(replace(case.evidence.accused[0], request=asked.proof),),
        carriers=(replace(case.evidence.carriers[0], directions=opening),),
    )
    data, head, _ = sealed(forged, log, places_of(case))
    error = refused(data, own, head)
    assert (error.step, "no room for the releases" in error.reason) == (4, True)


def test_what_no_promise_settles_is_said(own: Federation, case: Case) -> None:
    """The operator writes the log before a release, and whose key a name has is not in any file."""
    found = judge(case.evidence.to_bytes(), head=Head.from_text(case.evidence.head), policy=EASY)
    key = secret_key(2).public.fingerprint.hex()
    assert any(f"the credential {key} is this station's own" in fact for fact in found.unchecked)
    assert any("did not try entries before the release" in fact for fact in found.unchecked)
