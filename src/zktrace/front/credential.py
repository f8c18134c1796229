"""A station's credential: its key, kept in two files, and what it asks an operator for."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from zktrace.credentials import DEFAULT, PublicKey, SecretKey, XLPNParams, by_name
from zktrace.credentials.keys import FILE_LIMIT
from zktrace.errors import InputError, Refused, WeakParameters
from zktrace.front.given import check_kind
from zktrace.primitives.files import read_bounded, write_atomic
from zktrace.registry.records import SetupRecord, offer_digest
from zktrace.registry.requests import Request, read_offer

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A station's name and its secret key. Nobody but the station holds it."""

    name: str
    key: SecretKey

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(f"{self.name!r} is no station name: up to 64 letters, digits, '.', '_', '-'")

    @classmethod
    def new(cls, name: str, *, params: str | XLPNParams = DEFAULT, allow_weak_params: bool = False) -> Self:
        """A new one. Any other parameter set than the default is weak, and refused unless allowed."""
        chosen = by_name(params) if isinstance(params, str) else params
        check_strong("params", chosen, allowed=allow_weak_params)
        return cls(name=name, key=SecretKey.generate(chosen))

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """The one that `save` wrote: NAME.key."""
        path = Path(file)
        return cls(name=path.stem, key=SecretKey.from_bytes(read_bounded(path, limit=FILE_LIMIT)))

    @property
    def public(self) -> PublicKey:
        """What everybody may know of it."""
        return self.key.public

    def files(self, folder: str | Path) -> tuple[Path, Path]:
        """Where `save` writes: secret key, public key."""
        return Path(folder) / f"{self.name}.key", Path(folder) / f"{self.name}.pub"

    def save(self, folder: str | Path, *, replace: bool = False) -> Path:
        """Write NAME.key (mode 0600) and NAME.pub; the path of the secret key."""
        secret, public = self.files(folder)
        write_atomic(secret, self.key.to_bytes(), secret=True, replace=replace)
        try:
            write_atomic(public, self.public.to_bytes(), replace=replace)
        except Refused:
            if not replace:
                secret.unlink(missing_ok=True)
            raise
        return secret

    def request(self, offer: SetupRecord | str | bytes) -> Request:
        """Ask for a place of an operator's offer: its setup, or the line that `zktrace offer` prints."""
        if isinstance(offer, SetupRecord):
            return Request.make(self.key, offer_digest(offer, offer))
        given = check_kind(offer, (str, bytes), "an offer")
        return Request.make(self.key, read_offer(given) if isinstance(given, str) else given)


def check_strong(what: str, params: XLPNParams, *, allowed: bool) -> None:
    """Refuse a parameter set that is not strong, unless somebody says that it will do."""
    if params.weakness and not allowed:
        raise WeakParameters(f"{what}: {params.name} {params.weakness} (--allow-weak-params)")
