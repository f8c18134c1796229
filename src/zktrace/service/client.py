"""A station's side of the service: signing in with its credential, fetching its copy, signing for it."""

import base64
import http.client
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self
from urllib.parse import quote, urlsplit

from zktrace.credentials import MessageBinding, SecretKey, prove
from zktrace.errors import Error, Refused, ServiceFailed
from zktrace.front.credential import Credential
from zktrace.front.receipts import sign
from zktrace.models import model_digest, open_model
from zktrace.primitives.text import one_line
from zktrace.registry.signing import FILE_LIMIT as SIGNED_LIMIT
from zktrace.registry.signing import Delivery, Receipt
from zktrace.service.address import address_of
from zktrace.service.signing import login_message

ANSWER_LIMIT: Final = 1 << 20  # bytes of an answer that is no file
PIECE: Final = 1 << 18
ATTEMPTS: Final = 5  # connections without a byte between them, before a download is given up
ASKED: Final = 5  # times that a copy is asked for, if the service takes it away before it is fetched
TIMEOUT: Final = 60.0
_WAIT: Final = 0.5
Progress = Callable[[str, float], None]


class _Gone(ServiceFailed):
    """The copy is not there any more: whoever asks for it has it made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service, and who we are to it."""

    url: str
    token: str = ""
    station: str = ""  # by which name we signed in
    authority: Path | None = None  # certificates that are trusted, in place of the machine's

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", address_of(self.url))

    @classmethod
    def signed_in(cls, url: str, credential: Credential, *, authority: Path | None = None) -> Self:
        """Sign in by a challenge. What is signed names the address that we meant."""
        service = cls(url=url.rstrip("/"), authority=authority)
        challenge = str(service.call("POST", "/api/v1/challenges").get("challenge", ""))
        message = login_message(url=service.url, station=credential.name, challenge=challenge)
        proof = prove(credential.key, MessageBinding.of(message)).to_bytes()
        found = service.call(
            "POST",
            "/api/v1/login/station",
            {
                "station": credential.name,
                "challenge": challenge,
                "proof": base64.b64encode(proof).decode(),
            },
        )
        token = str(found.get("token", ""))
        return cls(url=service.url, token=token, station=credential.name, authority=authority)

    def join(self, credential: Credential, invitation: str) -> dict[str, Any]:
        """Enrol with a credential at whoever invited us."""
        offer = str(self.call("GET", "/api/v1/offer").get("offer", ""))
        request = credential.request(offer).to_bytes().decode()
        return self.call("POST", "/api/v1/enrolments", {"invitation": invitation, "request": request})

    def link(self) -> str:
        """An address that signs a browser in, once."""
        return str(self.call("POST", "/api/v1/links").get("link", ""))

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """One question and its answer; ServiceFailed with what the service says, if it refuses."""
        return self._json(method, path, b"" if body is None else json.dumps(body).encode())

    def _json(self, method: str, path: str, data: bytes) -> dict[str, Any]:
        return self._object(self._bytes(method, path, data, limit=ANSWER_LIMIT))

    def _bytes(self, method: str, path: str, data: bytes, *, limit: int) -> bytes:
        """An answer as it came, ServiceFailed if it is a refusal."""
        with self._asked(method, path, data, {"content-type": "application/json"}) as answer:
            text = answer.read(limit + 1)
        if len(text) > limit:
            raise ServiceFailed(f"{self.url}: an answer of more than {limit} bytes")
        if answer.status >= 400:
            said = self._object(text).get("detail", answer.status)
            raise ServiceFailed(f"{self.url}: {one_line(str(said), limit=500)}")
        return text

    def _object(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ServiceFailed(f"{self.url}: answers, and not as a zktrace service does")
        return found

    def fetch(
        self,
        release: str,
        path: Path,
        *,
        replace: bool = False,
        progress: Progress = lambda what, share: None,
    ) -> bytes:
        """Our own copy of a release, as a file; its digest is the one on record when this returns.

        What an interrupted download left beside it (NAME.part) is gone on with. A service keeps copies for
        a while only: one that is gone is asked for again.
        """
        where = f"/api/v1/copies/{quote(release, safe='')}"
        part = path.with_name(f"{path.name}.part")
        for left in reversed(range(ASKED)):
            digest, size = self._made(where, progress)
            try:
                self._download(f"{where}/file", part, digest, size, progress)
                break
            except _Gone:
                if not left:
                    raise
        found = self._checked(part, digest)
        if os.path.lexists(path) and not replace:
            raise Refused(f"{path}: exists already (--force replaces it)")
        os.replace(part, path)
        return found

    def _made(self, where: str, progress: Progress) -> tuple[str, int]:
        """Have our copy made ready; its digest and size."""
        state = self.call("POST", where)
        while state.get("state") in ("queued", "running"):
            progress("making", float(state.get("share", 0)))
            time.sleep(_WAIT)
            state = self.call("GET", where)
        if state.get("state") != "done":
            raise ServiceFailed(f"{self.url}: {one_line(str(state.get('error') or 'the copy was not made'))}")
        digest, size = str(state.get("digest")), state.get("bytes")
        if not isinstance(size, int) or size < 1:
            raise ServiceFailed(f"{self.url}: says no size of the copy")
        return digest, size

    def sign(self, key: SecretKey, release: str, path: Path) -> tuple[Receipt, int]:
        """Sign for our copy, which lies at a path, and send the receipt; it, and the entry that it has now.

        What the service asks us to sign for has to be this very copy of this release, and nothing else.
        """
        return self.sign_all(key, release, [path])

    def sign_all(
        self,
        key: SecretKey,
        release: str,
        copies: Sequence[Path],
        unseen: Sequence[bytes] = (),
        *,
        rounds: bool = False,
    ) -> tuple[Receipt, int]:
        """The same for all that came: copies, or digests that we wrote down; of rounds, if it is guarded."""
        where = f"/api/v1/copies/{quote(release, safe='')}/delivery"
        text = self._listed(where) if rounds else self._bytes("GET", where, b"", limit=SIGNED_LIMIT)
        asked = Delivery.from_bytes(text)
        self._check_ours(asked, release, rounds=rounds)
        receipt = sign(key, asked, copies, unseen=unseen)
        answer = self._json("POST", "/api/v1/receipts", receipt.to_bytes())
        while answer.get("state") in ("queued", "running"):
            time.sleep(_WAIT)
            answer = self.call("GET", f"/api/v1/receipts/{quote(str(answer.get('job')), safe='')}")
        entry = answer.get("entry")
        if not isinstance(entry, int):
            said = answer.get("error") or "does not say where the receipt stands in the log"
            raise ServiceFailed(f"{self.url}: {one_line(str(said), limit=500)}")
        return receipt, entry

    def _check_ours(self, asked: Delivery, release: str, *, rounds: bool) -> None:
        """Refused unless we are asked to sign for what we asked for: as ourselves, of that release."""
        ours, theirs = (self.station, release, rounds), (asked.station, asked.release, bool(asked.rounds))
        if ours != theirs:
            told = f"{_said(*theirs)}, and not {_said(*ours)}"
            raise Refused(f"{self.url}: asks for a signature {told}: nothing is signed")

    def _listed(self, where: str) -> bytes:
        """The rounds that we are asked to sign for, once the service has listed them."""
        self.call("POST", where)
        while True:
            text = self._bytes("GET", f"{where}?rounds=1", b"", limit=SIGNED_LIMIT)
            if self._object(text).get("state") not in ("queued", "running"):
                return text
            time.sleep(_WAIT)

    def _checked(self, part: Path, digest: str) -> bytes:
        """The digest of what came, if it is the one that was announced; anything else is not kept."""
        try:
            found = model_digest(open_model(part))
        except Error as error:
            part.unlink(missing_ok=True)
            raise ServiceFailed(f"{self.url}: what came is no model, and is not kept ({error})") from error
        if found.hex() != digest:
            part.unlink(missing_ok=True)
            raise ServiceFailed(f"{self.url}: sent a model of digest {found.hex()}, announced was {digest}")
        return found

    def _download(self, where: str, part: Path, digest: str, size: int, progress: Progress) -> None:
        """Pieces, until the file is whole. A connection that breaks is made again where it broke."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        idle = 0
        with open(os.open(part, flags, 0o600), "ab") as handle:
            while (have := os.fstat(handle.fileno()).st_size) < size:
                try:
                    self._pieces(where, handle, digest, have, size, progress)
                except (OSError, http.client.HTTPException) as error:
                    if os.fstat(handle.fileno()).st_size > have:
                        idle = 0
                        continue
                    idle += 1
                    if idle >= ATTEMPTS:
                        raise ServiceFailed(
                            f"{self.url}: the connection broke at {have} of {size} bytes ({error}); "
                            "the same command goes on there"
                        ) from error
                    time.sleep(_WAIT * idle)

    def _pieces(  # noqa: PLR0917
        self, where: str, handle: BinaryIO, digest: str, have: int, size: int, progress: Progress
    ) -> None:
        headers = {"range": f"bytes={have}-", "if-range": f'"{digest}"'}
        with self._asked("GET", where, b"", headers) as answer:
            self._keep(answer, handle, have, size, progress)

    def _keep(
        self,
        answer: http.client.HTTPResponse,
        handle: BinaryIO,
        have: int,
        size: int,
        progress: Progress,
    ) -> None:
        if answer.status == 200 and have:
            handle.truncate(0)  # it is another copy now: begin again
            have = 0
        elif answer.status == 404:
            raise _Gone(
                f"{self.url}: the copy was taken away {ASKED} times; the same command goes on at {have} bytes"
            )
        elif answer.status not in (200, 206):
            raise ServiceFailed(f"{self.url}: answers {answer.status} where the copy should be")
        while piece := answer.read(PIECE):
            if have + len(piece) > size:
                raise ServiceFailed(f"{self.url}: sends more than the {size} bytes it announced")
            handle.write(piece)
            handle.flush()
            have += len(piece)
            progress("fetching", have / size)

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer, as long as the block reads it."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            trusted = None if self.authority is None else str(self.authority)
            context = ssl.create_default_context(cafile=trusted)
            connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
        sent = dict(headers) | ({"authorization": f"Bearer {self.token}"} if self.token else {})
        try:
            connection.request(method, path, body=body or None, headers=sent)
            answer = connection.getresponse()
            yield answer
            answer.close()
        except ssl.SSLCertVerificationError as error:
            said = f"{self.url}: its certificate is not trusted ({error.verify_message})"
            raise ServiceFailed(said) from error
        except (OSError, http.client.HTTPException) as error:
            if path.endswith("/file"):
                raise
            raise ServiceFailed(f"{self.url}: cannot be reached ({error})") from error
        finally:
            connection.close()


def _said(station: str, release: str, rounds: bool) -> str:
    """What a station signs for, in words."""
    who = f"of {station}" if station else "of nobody who signed in"
    return f"{who} for {'rounds' if rounds else 'copies'} of {release}"
