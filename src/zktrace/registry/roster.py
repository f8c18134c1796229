"""Who trains together: names, public keys and codeword length, as the registry has them on record."""

from collections.abc import Sequence
from dataclasses import dataclass

from zktrace.credentials.keys import PublicKey
from zktrace.errors import Refused
from zktrace.registry.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Stations in the order of their rows."""

    names: tuple[str, ...]
    rows: tuple[int, ...]  # their blocks of the public codebook, too
    keys: tuple[PublicKey, ...]
    bits: int  # of an identity codeword


def roster(ledger: Ledger, names: Sequence[str] | None = None) -> Roster:
    """These stations in this order, or by default all that are not revoked."""
    chosen = (
        [name for name in ledger.by_row if ledger.stations[name].revoked is None] if names is None else names
    )
    if not chosen:
        raise Refused("nobody is enrolled, or everybody is revoked: there is no roster")
    return Roster(
        names=tuple(chosen),
        rows=tuple(ledger.station(name).enrolment.row for name in chosen),
        keys=tuple(PublicKey.from_bytes(ledger.station(name).enrolment.public_key) for name in chosen),
        bits=ledger.setup.identity_bits,
    )
