"""Who asks, and how that is known: password and code, tokens, a station's proof of its credential."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from anyio import CapacityLimiter, to_thread

from zktrace.credentials import MessageBinding, Proof, PublicKey, verify
from zktrace.errors import Denied, Error, InputError, Refused
from zktrace.registry.ledger import Ledger
from zktrace.registry.stores.database import Database, Statements
from zktrace.service.hashing import AT_ONCE, fits, hashed_password
from zktrace.service.problems import NOT_SIGNED_IN
from zktrace.service.signing import login_message
from zktrace.service.totp import new_secret, step_of

Role = Literal["public", "station", "auditor", "operator"]
Kind = Literal["session", "link", "challenge", "invitation"]

ACCOUNTS: Final = ("operator", "auditor")  # roles that sign in with a password
SECONDS: Final[dict[Kind, int]] = {
    "session": 12 * 3600,
    "link": 600,
    "challenge": 120,
    "invitation": 7 * 24 * 3600,
}
TOKEN_LIMIT: Final = 100  # characters
WRONG_CODES: Final = 5  # beside a right password, in so many seconds: then no code is taken for a while
WRONG_SECONDS: Final = 300
_WRONG: Final = "wrong code"  # a kind of row beside the tokens, which opens nothing
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._@-]{0,63}", re.ASCII)
_NO_ACCOUNT: Final[dict[str, Any]] = {
    "role": "",
    "password": "$argon2id$v=19$m=65536,t=3,p=1$AAAAAAAAAAAAAAAAAAAAAA$" + "A" * 43,
    "totp_secret": None,
    "totp_step": 0,
    "now": 1e9,
}
_NO_SECRET: Final = new_secret()  # whoever has no second factor is looked at like the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Whoever makes a request."""

    role: Role
    name: str = ""
    token: str = ""  # of the session; empty for the public

    @property
    def csrf(self) -> str:
        """What forms of this session carry: it follows from the token, and not the other way round."""
        return hashlib.sha256(b"zkt-csrf\0" + self.token.encode()).hexdigest()

    def check_csrf(self, given: str) -> None:
        """Denied unless a form was made for this session."""
        if not self.token or not hmac.compare_digest(given.encode(), self.csrf.encode()):
            raise Denied("this form is not of your session: load the page again", status=403)


PUBLIC: Final = Visitor(role="public")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who signs in with a password, and perhaps a code."""

    name: str
    role: str
    second_factor: bool


class Accounts:
    """Operators and auditors."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, role: str, password: str, *, replace: bool = False) -> None:
        """A new account; with `replace` a known one gets a new role and password, and is signed out.

        Its second factor stays: whoever may give passwords out does not take that away by the way.
        """
        if role not in ACCOUNTS:
            raise InputError(f"{role!r} is no role of an account: {' or '.join(ACCOUNTS)}")
        if not _NAME.fullmatch(name):
            raise InputError(f"{name!r} is no account name: up to 64 letters, digits, '.', '_', '@', '-'")
        hashed = hashed_password(password)
        with self._database.writing() as change:
            known = change.rows("SELECT name FROM zks_accounts WHERE name = :name", name=name)
            if known and not replace:
                raise Refused(f"an account {name} exists already (--force gives it a new password)")
            _sign_out(change, name)
            change.run(
                "INSERT INTO zks_accounts (name, role, password, created) "
                f"VALUES (:name, :role, :password, {self._database.now}) ON CONFLICT (name) DO UPDATE "
                "SET role = excluded.role, password = excluded.password, created = excluded.created",
                name=name,
                role=role,
                password=hashed,
            )

    def remove(self, name: str) -> None:
        """Take an account away and sign it out."""
        with self._database.writing() as change:
            if not change.run("DELETE FROM zks_accounts WHERE name = :name", name=name):
                raise Refused(f"there is no account {name}")
            _sign_out(change, name)

    def listed(self) -> list[Account]:
        """All of them, by name."""
        with self._database.reading() as found:
            rows = found.rows("SELECT name, role, totp_secret FROM zks_accounts ORDER BY name")
        return [
            Account(name=each["name"], role=each["role"], second_factor=each["totp_secret"] is not None)
            for each in rows
        ]

    def protected(self, name: str) -> bool:
        """Whether an account asks for a code as well; Refused if there is none of this name."""
        found = next((each for each in self.listed() if each.name == name), None)
        if found is None:
            raise Refused(f"there is no account {name}")
        return found.second_factor

    def check_unprotected(self, name: str) -> None:
        """Refused for an account that has a second factor, which is not replaced by the way."""
        if self.protected(name):
            raise Refused(f"{name} has a second factor already (--off takes it away)")

    def step_now(self, secret: str, code: str) -> int:
        """The step that a code of a secret is of; InputError if it is not one of now."""
        with self._database.reading() as found:
            (clock,) = found.rows(f"SELECT {self._database.now} AS now")
        step = step_of(secret, code, now=clock["now"], after=0)
        if step is None:
            raise InputError("this is not the code of now: is the time right, here and on the other device?")
        return step

    def protect(self, name: str, secret: str, code: str) -> None:
        """From now on the account asks for codes of this secret as well; `code` shows that somebody has it.

        The account is signed out: whoever is in came by the password alone.
        """
        self.check_unprotected(name)
        step = self.step_now(secret, code)
        with self._database.writing() as change:
            done = change.run(
                "UPDATE zks_accounts SET totp_secret = :secret, totp_step = :step "
                "WHERE name = :name AND totp_secret IS NULL",
                name=name,
                secret=secret,
                step=step,
            )
            if not done:
                raise Refused(f"the account {name} was just changed: begin again")
            _sign_out(change, name)

    def unprotect(self, name: str) -> None:
        """The password alone is enough again."""
        if not self.protected(name):
            raise Refused(f"{name} has no second factor")
        with self._database.writing() as change:
            change.run("UPDATE zks_accounts SET totp_secret = NULL WHERE name = :name", name=name)

    def signed_in(self, name: str, password: str, code: str = "") -> Visitor:
        """Whose password it is, and whose code where the account asks for one; else Denied.

        The answer and the time it takes are the same for an unknown name, a wrong password and a wrong code.
        Time is the database's, as everywhere: services on several machines take the same codes, each once.
        """
        with self._database.reading() as found:
            rows = found.rows(
                f"SELECT role, password, totp_secret, totp_step, {self._database.now} AS now "
                "FROM zks_accounts WHERE name = :name",
                name=name[:100],
            )
        row = rows[0] if rows else _NO_ACCOUNT
        secret = row["totp_secret"]
        right = fits(password, row["password"])
        step = step_of(secret or _NO_SECRET, code, now=row["now"], after=row["totp_step"])
        if not rows or not right or (secret is not None and not self._taken(name, row["role"], secret, step)):
            raise Denied("the name, the password or the code is wrong", status=NOT_SIGNED_IN)
        return Visitor(role=row["role"], name=name)

    def _taken(self, name: str, role: str, secret: str, step: int | None) -> bool:
        """Whether a code is taken now: of two who have the same one, the first.

        None is where too many were wrong lately, whoever sent them: who has the password gets few guesses.
        """
        with self._database.writing() as change:
            change.run(
                "UPDATE zks_accounts SET totp_step = totp_step WHERE name = :name", name=name
            )  # a lock
            (wrong,) = change.rows(
                "SELECT count(*) AS codes FROM zks_tokens "
                f"WHERE kind = :kind AND name = :name AND expires > {self._database.now}",
                kind=_WRONG,
                name=name,
            )
            if wrong["codes"] >= WRONG_CODES:
                return False
            if step is not None:
                return (
                    change.run(
                        "UPDATE zks_accounts SET totp_step = :step "
                        "WHERE name = :name AND totp_secret = :secret AND totp_step < :step",
                        name=name,
                        secret=secret,
                        step=step,
                    )
                    == 1
                )
            change.run(
                "INSERT INTO zks_tokens (digest, kind, role, name, expires) "
                f"VALUES (:digest, :kind, :role, :name, {self._database.now} + :seconds)",
                digest=secrets.token_hex(32),
                kind=_WRONG,
                role=role,
                name=name,
                seconds=WRONG_SECONDS,
            )
        return False


class Passwords:
    """Who comes with a password waits for a turn, and takes no thread meanwhile: looking at one is long."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(AT_ONCE)

    async def signed_in(self, accounts: Accounts, name: str, password: str, code: str) -> Visitor:
        """Whose they are; else Denied."""
        return await to_thread.run_sync(accounts.signed_in, name, password, code, limiter=self._limiter)


class Tokens:
    """Sessions, one-time links and challenges. Only digests of them are kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def issue(self, kind: Kind, visitor: Visitor) -> str:
        """A new token; what has expired goes meanwhile."""
        token = secrets.token_urlsafe(32)
        with self._database.writing() as change:
            change.run(f"DELETE FROM zks_tokens WHERE expires < {self._database.now}")
            change.run(
                "INSERT INTO zks_tokens (digest, kind, role, name, expires) "
                f"VALUES (:digest, :kind, :role, :name, {self._database.now} + :seconds)",
                digest=_digest(token),
                kind=kind,
                role=visitor.role,
                name=visitor.name,
                seconds=SECONDS[kind],
            )
        return token

    def visitor(self, token: str) -> Visitor:
        """Whose session it is; the public, if it is nobody's."""
        found = self.holder("session", token)
        return PUBLIC if found is None else replace(found, token=token)

    def holder(self, kind: Kind, token: str) -> Visitor | None:
        """Whose token of a kind it is. It stays good."""
        if not token or len(token) > TOKEN_LIMIT:
            return None
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT role, name FROM zks_tokens WHERE digest = :digest AND kind = :kind "
                f"AND expires > {self._database.now}",
                digest=_digest(token),
                kind=kind,
            )
        return Visitor(role=rows[0]["role"], name=rows[0]["name"]) if rows else None

    def take(self, kind: Kind, token: str) -> Visitor:
        """Whose link or challenge it is. It works once."""
        with self._database.writing() as change:
            rows = change.rows(
                "DELETE FROM zks_tokens WHERE digest = :digest AND kind = :kind "
                f"AND expires > {self._database.now} RETURNING role, name",
                digest=_digest(token[:TOKEN_LIMIT]),
                kind=kind,
            )
        if not rows:
            raise Denied(f"this {kind} has expired or was used: ask for a new one", status=NOT_SIGNED_IN)
        return Visitor(role=rows[0]["role"], name=rows[0]["name"])

    def end(self, token: str) -> None:
        """Sign a session out, or take another token away."""
        with self._database.writing() as change:
            change.run("DELETE FROM zks_tokens WHERE digest = :digest", digest=_digest(token))


def station_signed_in(
    ledger: Ledger, tokens: Tokens, *, url: str, station: str, challenge: str, proof: bytes, weak: bool
) -> Visitor:
    """Who holds the credential of a station, shown by its signature of a challenge; else Denied.

    The signature is over this service's own address: one that was made for another is worth nothing here.
    """
    tokens.take("challenge", challenge)
    if station not in ledger.stations:
        raise Denied("the station or its signature is not known here", status=NOT_SIGNED_IN)
    public = PublicKey.from_bytes(ledger.station(station).enrolment.public_key)
    message = login_message(url=url, station=station, challenge=challenge)
    try:
        verify(public, MessageBinding.of(message), Proof.from_bytes(proof), allow_weak_params=weak)
    except Error as error:
        said = f"the signature is not one of {station} for {url} ({error})"
        raise Denied(said, status=NOT_SIGNED_IN) from error
    return Visitor(role="station", name=station)


def _sign_out(change: Statements, name: str) -> None:
    """End all sessions of an account, and links that were not used."""
    change.run("DELETE FROM zks_tokens WHERE name = :name AND role IN ('operator', 'auditor')", name=name)


def _digest(token: str) -> str:
    return hashlib.sha256(b"zkt-token\0" + token.encode("utf-8", "surrogatepass")).hexdigest()
