"""(3) Openings: the judge makes biases, directions and rows itself, of seeds promised beforehand."""

from typing import Final

from zktrace.codes import draw, expand
from zktrace.court.bench import Bench
from zktrace.credentials import PublicKey
from zktrace.derivation.promises import bias_commitment, direction_seed, row_key
from zktrace.evidence import Accused, CarrierOpening
from zktrace.registry.ledger import claim_of
from zktrace.registry.log import Head, verify_consistency
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import EnrolmentRecord
from zktrace.registry.requests import Request

_NO_DIGEST: Final = bytes(32)


def check_openings(bench: Bench) -> None:
    """Derive what the carriers and each accused rest on, from seeds that the log has promised."""
    _check_past(bench)
    if not bench.evidence.accused:
        bench.minutes.saw("nobody is accused, nothing is opened")
    for each in bench.evidence.carriers:
        _open_carrier(bench, each)
    for accused in bench.evidence.accused:
        _open_accused(bench, accused)


def _check_past(bench: Bench) -> None:
    """The root in the release's record is that of the log just before it."""
    dossier = bench.dossier
    place, head = dossier.places["release"], Head.from_text(bench.evidence.head)
    verify_consistency(Head(size=place, root=dossier.release.root), head, bench.evidence.past)
    bench.minutes.saw(f"the release's directions come from the log of the {place} entries before it")
    if bench.evidence.carriers:
        bench.minutes.left(
            "that the operator did not try entries before the release until its directions suited a suspect "
            "that it foresaw (the shared model itself, rounded for one): it writes the log"
        )


def _open_carrier(bench: Bench, opening: CarrierOpening) -> None:
    carrier, minutes, dossier = opening.carrier, bench.minutes, bench.dossier
    code, layout = dossier.setup.code(carrier), dossier.release.layout(carrier)
    if code is None or layout is None:
        minutes.reject(f"{carrier}: an accusation on a carrier that setup and release do not both have")
    if opening.length != layout.length:
        minutes.reject(
            f"{carrier}: a readout of {opening.length} values for a code of {layout.length} positions"
        )
    claimed = {each.carrier: each.readout for each in bench.evidence.findings.carriers}
    reference = opening.reference_values()
    pairs = (
        ("seed of the biases", bias_commitment(opening.biases, carrier), code.biases),
        (
            "reference readout",
            _NO_DIGEST if reference is None else readout_digest(reference),
            layout.reference,
        ),
        ("readout", readout_digest(opening.values()), claimed[carrier]),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            minutes.reject(
                f"{carrier}: the {what} of the file hashes to {found.hex()}, on record is {wanted.hex()}"
            )
    seed, number = opening.directions, dossier.release.number
    dossier.promise_of_release().verify(number, carrier, seed.seed, seed.others, seed.path)
    bench.biases[carrier] = draw(opening.biases, layout.length, code.colluders, layout.law)
    bench.directions[carrier] = direction_seed(seed.seed, dossier.release.root, carrier)
    minutes.saw(
        f"{carrier}: biases and directions made from the promised seeds; readouts are those on record"
    )


def _open_accused(bench: Bench, accused: Accused) -> None:
    minutes, enrolment = bench.minutes, bench.dossier.enrolments[accused.station]
    public = PublicKey.from_bytes(enrolment.public_key)
    codeword = public.codeword(bench.dossier.setup.identity_bits)
    if codeword != enrolment.codeword:
        minutes.reject(
            f"{accused.station}: enrolled with the codeword {enrolment.codeword.hex()}, "
            f"its public key has {codeword.hex()}"
        )
    promise, offer = bench.dossier.promise_of_place(enrolment.row)
    _check_request(bench, accused, enrolment, offer)
    for row in accused.rows:
        opening = row.opening
        promise.verify(enrolment.row, row.carrier, opening.seed, opening.others, opening.path)
        key = row_key(opening.seed, claim_of(enrolment))
        bench.rows[accused.station, row.carrier] = expand([key], bench.biases[row.carrier]).tobytes()
    minutes.left(
        f"{accused.station}: that the credential {public.fingerprint.hex()} is this station's own, not one "
        "that was enrolled in its name: ask the station for its public key"
    )
    carriers = ", ".join(row.carrier for row in accused.rows)
    minutes.saw(
        f"{accused.station}: codeword of its key; rows made from the seed promised for place {enrolment.row} "
        f"and the station's nonce ({carriers})"
    )


def _check_request(bench: Bench, accused: Accused, enrolment: EnrolmentRecord, offer: bytes) -> None:
    """The nonce is the station's own: whoever holds its key asked with it, for a place of this offer."""
    minutes = bench.minutes
    if not accused.request:
        if bench.policy.require_request:
            minutes.reject(
                f"{accused.station}: its request to enrol is not in the file, and the policy asks for it"
            )
        minutes.left(
            f"{accused.station}: that it drew its nonce itself, its request to enrol is not in the file"
        )
        return
    request = Request(
        offer=offer, nonce=enrolment.nonce, public_key=enrolment.public_key, proof=accused.request
    )
    if request.digest() != enrolment.request:
        minutes.reject(
            f"{accused.station}: the request hashes to {request.digest().hex()}, "
            f"enrolled was {enrolment.request.hex()}"
        )
    request.verify(offer, allow_weak_params=bench.policy.accept_weak_credentials)
    minutes.saw(f"{accused.station}: it asked for this place itself, with this nonce (proof of possession)")
