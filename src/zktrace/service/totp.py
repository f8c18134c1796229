"""The second factor of an account: six digits that follow from a secret and the time (TOTP, RFC 6238).

Its settings are those that every authenticator knows: SHA-1, six digits, a new code every thirty seconds.
"""

import base64
import hmac
import re
import secrets
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

SECONDS: Final = 30  # of a step
DIGITS: Final = 6
WINDOW: Final = 1  # steps to each side: clocks differ, and people type
ISSUER: Final = "zktrace"  # one word: some authenticators show blanks of it as they are sent
CODE_LIMIT: Final = 20  # characters, with spaces between
_SECRET_BYTES: Final = 20
_CODE: Final = re.compile(f"[0-9]{{{DIGITS}}}", re.ASCII)


def new_secret() -> str:
    """A secret in base32, as authenticators take it."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def address(secret: str, *, name: str) -> str:
    """The otpauth:// address that an authenticator reads, from a QR code or pasted."""
    return _generator(secret).get_provisioning_uri(name, ISSUER)


def code_at(secret: str, step: int) -> str:
    """The code of a step, counted from 1970."""
    return _generator(secret).generate(step * SECONDS).decode()


def step_of(secret: str, code: str, *, now: float, after: int) -> int | None:
    """The step that a code is of, if it is near `now` and later than the step of the last that was taken."""
    plain = "".join(code[:CODE_LIMIT].split())
    given = plain if _CODE.fullmatch(plain) else ""
    present = int(now) // SECONDS
    near = range(max(present - WINDOW, 0), present + WINDOW + 1)
    fits = [step for step in near if hmac.compare_digest(code_at(secret, step), given)]
    return max((step for step in fits if step > after), default=None)


def _generator(secret: str) -> TOTP:
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), SECONDS)  # noqa: S303
