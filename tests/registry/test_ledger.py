"""The rules of the registry, one by one: what may follow what."""

from dataclasses import replace
from fractions import Fraction

import pytest

from registry.reference import facts
from registry.small import (
    BUDGET,
    CUSTODY,
    dispatch,
    investigation,
    release,
    request,
    revocation,
    setup,
    verdict,
)
from support import unchecked
from zktrace.certificates.adjudicate import Verdict as Verdicts
from zktrace.errors import Refused
from zktrace.primitives import merkle
from zktrace.registry.cache import encoded
from zktrace.registry.enrolling import enrolment as enrolment_of
from zktrace.registry.ledger import VERDICTS, Ledger, claim_of, look_alike
from zktrace.registry.records import (
    PLACE,
    RELEASE,
    EnrolmentRecord,
    Entry,
    Record,
    offer_digest,
    record_digest,
)
from zktrace.registry.state import CERTIFIED

AT = "2026-01-31T12:00:00Z"


OFFER = record_digest(setup())


def enrolment(name: str, row: int, key: str | None = None) -> EnrolmentRecord:
    return enrolment_of(name, row, request(key or name, OFFER), bits=setup().identity_bits)


def folded(*records: Record) -> Ledger:
    ledger = Ledger()
    for each in records:
        ledger.apply(Entry(at=AT, record=each))
    return ledger


def begun() -> Ledger:
    """Two stations, one release: entries 0 to 3."""
    ledger = folded(setup(), enrolment("alpha", 0), enrolment("beta", 1))
    ledger.apply(Entry(at=AT, record=release(ledger)))
    return ledger


def refuse(ledger: Ledger, record: Record, why: str) -> None:
    """The record is refused for that reason, and the ledger is as it was."""
    before, columns, twin = facts(ledger), encoded(ledger) if ledger.size else [], ledger.copy()
    for each in (ledger, twin):
        with pytest.raises(Refused, match=why):
            each.apply(Entry(at=AT, record=record))
        assert facts(each) == before
    assert (encoded(ledger) if ledger.size else []) == columns


def test_the_state_after_a_whole_story() -> None:
    ledger = begun()
    made = ledger.release("v1")
    for record in (dispatch("alpha"), dispatch("beta"), revocation("beta"), investigation(2), verdict(7)):
        ledger.apply(Entry(at=AT, record=record))
    assert ledger.size == 9
    assert ledger.setup == setup()
    assert ledger.by_row == ["alpha", "beta"]
    assert [each.enrolment.row for each in ledger.stations.values()] == [0, 1]
    assert ledger.station("beta").revoked == AT
    assert ledger.station("beta").index == 2
    assert ledger.station("alpha").revoked is None
    assert ledger.releases == {"v1": (3, made)}
    assert ledger.claims == [claim_of(ledger.station(name).enrolment) for name in ("alpha", "beta")]
    assert ledger.copies() == {"alpha": 1, "beta": 1}
    assert ledger.investigations == {7: investigation(2)}
    assert ledger.verdicts == {7: (8, verdict(7))}
    assert ledger.spent == Fraction(1, 1000)
    assert ledger.remaining == BUDGET - Fraction(1, 1000)


def test_the_words_of_a_verdict_are_those_of_the_certificates() -> None:
    assert set(VERDICTS) == {str(each) for each in Verdicts}
    assert set(CERTIFIED) == {Verdicts.ATTRIBUTE, Verdicts.TAMPER}


@pytest.mark.parametrize(
    "record", [enrolment("alpha", 0), release(Ledger()), revocation("alpha"), investigation(0)]
)
def test_nothing_comes_before_the_setup(record: Record) -> None:
    refuse(Ledger(), record, "first entry")


def test_an_empty_ledger_has_no_setup() -> None:
    with pytest.raises(Refused, match="empty"):
        _ = Ledger().remaining


def test_there_is_one_setup() -> None:
    refuse(folded(setup()), setup(), "one setup")


@pytest.mark.parametrize("name", ["Alpha", "ALPHA", "a1pha", "aIpha", "aipha"])
def test_a_name_that_looks_like_an_enrolled_one_is_refused(name: str) -> None:
    other = enrolment(name, 2, "another")
    refuse(begun(), other, f"a station alpha is enrolled already, and {name} looks like it")
    refuse(begun(), release(begun(), "V1"), "a release v1 exists already, and V1 looks like it")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Station-1", "station_l", True),
        ("stati0n.I", "station-1", True),
        ("barn", "bam", True),
        ("vvest", "west", True),
        ("a.b", "a-b", True),
        ("station-1", "station-10", False),
        ("station1", "station-1", False),
        ("alpha", "alphA2", False),
        ("s5", "ss", False),
    ],
)
def test_what_looks_alike(one: str, other: str, alike: bool) -> None:
    assert (look_alike(one) == look_alike(other)) is alike


@pytest.mark.parametrize("row", [0, 1, 3])
def test_rows_are_given_in_order(row: int) -> None:
    refuse(begun(), enrolment("gamma", row), "the next row is 2")


def test_a_name_is_enrolled_once_even_if_it_was_revoked() -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=revocation("alpha")))
    again = enrolment("alpha", 2, "another")
    refuse(ledger, again, "enrolled already")


def test_a_credential_is_enrolled_once() -> None:
    twin = enrolment("gamma", 2, "alpha")
    refuse(begun(), twin, "enrolled already, for alpha")


def test_a_place_was_promised_before_somebody_gets_it() -> None:
    ledger = begun()
    for row in range(2, 8):
        ledger.apply(Entry(at=AT, record=enrolment(f"station-{row}", row)))
    refuse(ledger, enrolment("gamma", 8), "promised for 8 stations")
    refuse(ledger, CUSTODY.reservation(PLACE, 9, 2), "the next place to promise is 8")
    refuse(ledger, CUSTODY.reservation(PLACE, 7, 2), "the next place to promise is 8")
    ledger.apply(Entry(at=AT, record=CUSTODY.reservation(PLACE, 8, 2)))
    offer = ledger.offer(PLACE, 8)
    assert (offer.index, offer.digest) == (10, offer_digest(ledger.setup, CUSTODY.reservation(PLACE, 8, 2)))
    assert ledger.offer(PLACE, 7).index == 0
    ledger.apply(Entry(at=AT, record=enrolment("gamma", 8)))


def test_an_offer_is_of_one_setup() -> None:
    """Else a request made under one setup would fit a second one, with biases chosen for its nonce."""
    other = replace(setup(), carriers=(replace(setup().carriers[0], biases=bytes(32)), setup().carriers[1]))
    further = CUSTODY.reservation(PLACE, 8, 2)
    offers = {folded(each, further).offer(PLACE, 8).digest for each in (setup(), other)}
    assert len(offers) == 2


def test_releases_are_numbered_and_their_seeds_promised() -> None:
    ledger = begun()
    refuse(ledger, release(ledger, "v2", number=2), "number 1, not 2")
    refuse(ledger, release(ledger, "v2", number=0), "number 1, not 0")
    for number in range(1, 4):
        ledger.apply(Entry(at=AT, record=release(ledger, f"v{number + 1}")))
    refuse(ledger, release(ledger, "v5"), "promised for 4 releases")
    ledger.apply(Entry(at=AT, record=CUSTODY.reservation(RELEASE, 4, 1)))
    ledger.apply(Entry(at=AT, record=release(ledger, "v5")))


def test_a_release_comes_from_the_log_just_before_it() -> None:
    ledger = begun()
    made = release(ledger, "v2")
    refuse(ledger, replace(made, root=bytes(32)), "grown since")
    ledger.apply(Entry(at=AT, record=dispatch("alpha")))
    refuse(ledger, made, "grown since")
    entries = [entry_bytes(each) for each in (setup(), enrolment("alpha", 0), enrolment("beta", 1))]
    first = ledger.release("v1")
    assert first.root == merkle.root([merkle.leaf_hash(each) for each in entries])
    entries += [entry_bytes(first), entry_bytes(dispatch("alpha"))]
    assert ledger.root == merkle.root([merkle.leaf_hash(each) for each in entries])


def entry_bytes(record: Record) -> bytes:
    return Entry(at=AT, record=record).to_bytes()


def test_the_codeword_is_the_hash_of_the_public_key() -> None:
    good = enrolment("gamma", 2)
    wrong = bytes([good.codeword[0] ^ 1]) + good.codeword[1:]
    refuse(begun(), replace(good, codeword=wrong), "not that of its public key")
    refuse(begun(), replace(good, codeword=good.codeword[:-1]), "not that of its public key")


def test_a_public_key_can_be_read() -> None:
    refuse(begun(), replace(enrolment("gamma", 2), public_key=b"no key"), "gamma: public key")


@pytest.mark.parametrize("name", [".", "..", "a/b", "a b", "ä", ".hidden", "x" * 65, "a\n", "a\x00"])
def test_names_can_be_file_names(name: str) -> None:
    refuse(begun(), unchecked(enrolment("gamma", 2), station=name), "no station name")
    refuse(begun(), unchecked(release(begun(), "v2"), name=name), "no release name")


def test_a_release_has_a_new_name_and_known_carriers() -> None:
    refuse(begun(), release(begun()), "exists already")
    refuse(begun(), release(begun(), "v2", ("weight", "output")), "output was not set up")


def test_a_dispatch_goes_to_an_enrolled_station() -> None:
    refuse(begun(), dispatch("gamma"), "no station 'gamma'")


def test_a_dispatch_is_of_a_known_release() -> None:
    refuse(begun(), dispatch("alpha", "v2"), "no release 'v2'")


def test_a_revoked_station_gets_no_copy() -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=revocation("alpha")))
    refuse(ledger, dispatch("alpha"), "alpha is revoked")
    ledger.apply(Entry(at=AT, record=dispatch("beta")))


def test_a_station_is_revoked_once() -> None:
    ledger = begun()
    refuse(ledger, revocation("gamma"), "no station")
    ledger.apply(Entry(at=AT, record=revocation("alpha")))
    refuse(ledger, revocation("alpha"), "revoked already")


@pytest.mark.parametrize("recipients", [0, 1, 3])
def test_an_investigation_scores_everybody(recipients: int) -> None:
    refuse(begun(), investigation(recipients), "2 stations are enrolled")


def test_revoked_stations_are_scored_too() -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=revocation("alpha")))
    refuse(ledger, investigation(1), "2 stations are enrolled")
    ledger.apply(Entry(at=AT, record=investigation(2)))


def test_an_investigation_is_of_a_known_release_and_its_carriers() -> None:
    refuse(begun(), investigation(2, release="v2"), "no release")
    refuse(begun(), investigation(2, carriers=("weight", "feature")), "do not carry feature")


def test_the_budget_can_be_spent_to_the_last_and_not_further() -> None:
    ledger = begun()
    for _ in range(10):
        ledger.apply(Entry(at=AT, record=investigation(2, BUDGET / 10)))
    assert ledger.remaining == 0
    refuse(ledger, investigation(2, Fraction(1, 10**12)), "a budget of 1/1000000000000, 0 is left of 1/100")
    ledger.apply(Entry(at=AT, record=investigation(2, Fraction(0))))
    assert ledger.spent == BUDGET


def test_after_an_unpaid_look_nothing_is_paid_for_any_more() -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=investigation(2, BUDGET / 10)))
    ledger.apply(Entry(at=AT, record=investigation(2, Fraction(0))))
    ledger.apply(Entry(at=AT, record=investigation(2, Fraction(0))))
    refuse(ledger, investigation(2, BUDGET / 10), "looked without a budget")
    assert ledger.spent == BUDGET / 10


def test_overdrawing_by_the_smallest_amount_is_refused() -> None:
    refuse(begun(), investigation(2, BUDGET + Fraction(1, 10**30)), "is left of")


def test_budgets_whose_sum_would_be_an_endless_fraction_are_refused() -> None:
    """Else a hostile log could make every reader add numbers of millions of digits."""
    ledger = begun()
    fine = [investigation(2, Fraction(1, 10**300 + 2 * i + 1)) for i in range(20)]
    for record in fine[:4]:
        ledger.apply(Entry(at=AT, record=record))
    refuse(ledger, fine[4], "too fine a fraction")
    ledger.apply(Entry(at=AT, record=investigation(2, Fraction(1, 1000))))


def concluded(word: str, named: tuple[str, ...] = ("alpha",)) -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=investigation(2)))
    ledger.apply(Entry(at=AT, record=verdict(4, word, named)))


def test_each_verdict_can_be_recorded() -> None:
    concluded("certified-attribute", ("alpha", "beta"))
    concluded("certified-tamper")
    concluded("uncertified-lead")
    concluded("no-certified-evidence", ())


def test_a_verdict_belongs_to_an_open_investigation() -> None:
    ledger = begun()
    refuse(ledger, verdict(4), "entry 4 is no investigation")
    ledger.apply(Entry(at=AT, record=investigation(2)))
    refuse(ledger, verdict(3), "entry 3 is no investigation")
    ledger.apply(Entry(at=AT, record=verdict(4)))
    refuse(ledger, verdict(4), "its verdict already")


@pytest.mark.parametrize(
    ("word", "named", "why"),
    [
        ("guilty", ("alpha",), "'guilty' is no verdict"),
        ("certified-attribute", (), "names somebody"),
        ("certified-attribute", ("alpha", "alpha"), "names a station once"),
        ("certified-attribute", ("gamma",), "no station 'gamma'"),
        ("no-certified-evidence", ("alpha",), "names nobody"),
    ],
)
def test_a_verdict_fits_what_it_says(word: str, named: tuple[str, ...], why: str) -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=investigation(2)))
    refuse(ledger, verdict(4, word, named), why)


def test_a_verdict_names_only_whom_it_scored() -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=investigation(2)))
    ledger.apply(Entry(at=AT, record=enrolment("gamma", 2)))
    refuse(ledger, verdict(4, named=("gamma",)), "enrolled after")


@pytest.mark.parametrize("word", CERTIFIED)
def test_what_was_not_paid_for_is_not_certified(word: str) -> None:
    ledger = begun()
    ledger.apply(Entry(at=AT, record=investigation(2, Fraction(0))))
    refuse(ledger, verdict(4, word), "without a budget")
    ledger.apply(Entry(at=AT, record=verdict(4, "uncertified-lead")))


def test_a_copy_has_a_life_of_its_own() -> None:
    ledger = begun()
    twin = ledger.copy()
    twin.apply(Entry(at=AT, record=enrolment("gamma", 2)))
    assert ledger.by_row == ["alpha", "beta"]
    assert "gamma" not in ledger.stations
    ledger.apply(Entry(at=AT, record=enrolment("delta", 2)))
    assert twin.by_row == ["alpha", "beta", "gamma"]
    assert ledger.by_row == ["alpha", "beta", "delta"]
    refuse(ledger, enrolment("Delta", 3, "gamma"), "Delta looks like it")
    refuse(twin, enrolment("epsilon", 3, "gamma"), "enrolled already, for gamma")


def test_a_copy_stays_as_it_is_while_the_original_goes_on() -> None:
    """After every entry of a story a copy is taken; in the end each is what it was."""
    ledger, kept = Ledger(), []
    story = [setup(), enrolment("alpha", 0), enrolment("beta", 1), release, dispatch("alpha")]
    story += [dispatch("beta"), dispatch("alpha"), revocation("beta"), investigation(2), verdict(8)]
    story += [CUSTODY.reservation(PLACE, 8, 2), investigation(2, Fraction(0))]
    for each in story:
        ledger.apply(Entry(at=AT, record=each(ledger) if callable(each) else each))
        kept.append((ledger.copy(), facts(ledger)))
    assert [len(each.by_row) for each, _ in kept] == [0, 1, *[2] * 10]
    for twin, before in kept:
        assert facts(twin) == before
