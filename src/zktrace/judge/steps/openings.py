"""(3) Openings: rows, biases, directions and readouts are those that were committed to."""

from typing import Final

from zktrace.codes import Biases
from zktrace.credentials import PublicKey
from zktrace.evidence import CarrierOpening
from zktrace.judge.bench import Bench
from zktrace.registry.bindings import (
    bias_commitment,
    directions_commitment,
    enrolment_commitment,
    readout_digest,
)

_NO_DIGEST: Final = bytes(32)


def check_openings(bench: Bench) -> None:
    """Open what the carriers and each accused rest on, against the log."""
    if not bench.evidence.accused:
        bench.minutes.saw("nobody is accused, nothing is opened")
    for each in bench.evidence.carriers:
        _open_carrier(bench, each)
    for accused in bench.evidence.accused:
        enrolment = bench.dossier.enrolments[accused.station]
        public = PublicKey.from_bytes(enrolment.public_key)
        codeword = public.codeword(bench.dossier.setup.identity_bits)
        if codeword != enrolment.codeword:
            bench.minutes.reject(
                f"{accused.station}: enrolled with the codeword {enrolment.codeword.hex()}, "
                f"its public key has {codeword.hex()}"
            )
        promised = dict(enrolment.commitments)
        for row in accused.rows:
            made = enrolment_commitment(row.opening, row.carrier, public, codeword, row.row)
            if promised.get(row.carrier) != made:
                bench.minutes.reject(
                    f"{accused.station}: the {row.carrier} row opens {made.hex()}, "
                    f"enrolled was {promised.get(row.carrier, b'').hex() or 'none'}"
                )
        carriers = ", ".join(row.carrier for row in accused.rows)
        bench.minutes.saw(f"{accused.station}: codeword of its key, enrolled row opened ({carriers})")


def _open_carrier(bench: Bench, opening: CarrierOpening) -> None:
    carrier, minutes = opening.carrier, bench.minutes
    code = bench.dossier.setup.code(carrier)
    layout = bench.dossier.release.layout(carrier)
    if code is None or layout is None:
        minutes.reject(f"{carrier}: an accusation on a carrier that setup and release do not both have")
    biases = Biases(thresholds=opening.bias_thresholds(), colluders=code.colluders)
    bench.biases[carrier] = biases
    claimed = {each.carrier: each.readout for each in bench.evidence.findings.carriers}
    reference = opening.reference_values()
    pairs = (
        ("biases", bias_commitment(opening.bias_opening, carrier, biases), code.biases),
        ("directions", directions_commitment(opening.direction_seed, carrier), layout.directions),
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
                f"{carrier}: the {what} of the file hash to {found.hex()}, on record is {wanted.hex()}"
            )
    minutes.saw(f"{carrier}: biases, directions, reference and readout are those on record")
