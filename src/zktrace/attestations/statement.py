"""Statements (in-toto v1) about one model, and the attestation that is one in an envelope with signatures.

What anybody checks, offline and without a workspace:

    (1) keys of the log signed the envelope
    (2) its payload is a statement of a kind that is known here
    (3) its entries are in the log, under a checkpoint of the same keys and of as many witnesses as asked
    (4) it says what the entries say
    (5) the model at hand, if there is one, is the one that it is about
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from zktrace.attestations.predicates import PREDICATES, Predicate
from zktrace.errors import InvalidProof, MalformedFile
from zktrace.models import model_digest, open_model
from zktrace.models.oms import oms_digest
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import choice, octets, table, text
from zktrace.transparency.envelope import IN_TOTO, SignedEnvelope
from zktrace.transparency.keys import Signer, Verifier
from zktrace.transparency.trust import Trust, TrustedCheckpoint

STATEMENT: Final = "https://in-toto.io/Statement/v1"
_FIELDS: Final = ("_type", "predicate", "predicateType", "subject")
_NAME: Final = text(200)
_DIGEST: Final = octets(32)
_KNOWN: Final = choice(tuple(PREDICATES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is said of one model."""

    name: str  # of the model, for a reader: only the digest decides
    digest: bytes  # of its files, as OpenSSF Model Signing has it
    predicate: Predicate

    def __post_init__(self) -> None:
        _NAME.check(self.name, "a statement: name")
        _DIGEST.check(self.digest, "a statement: sha256")

    @classmethod
    def about(cls, model: Path, predicate: Predicate) -> Self:
        """A statement about a model file or folder; Rejected if the predicate is about other tensors."""
        _check_state(model, predicate.state)
        return cls(name=predicate.release, digest=oms_digest(model), predicate=predicate)

    def to_bytes(self) -> bytes:
        """The canonical text."""
        return to_json(
            {
                "_type": STATEMENT,
                "predicate": self.predicate.as_json(),
                "predicateType": self.predicate.uri,
                "subject": [{"digest": {"sha256": self.digest.hex()}, "name": self.name}],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote, or MalformedFile."""
        body = table(from_json(data, what="a statement"), "a statement", _FIELDS)
        if body["_type"] != STATEMENT:
            raise MalformedFile(f"a statement: its _type must be {STATEMENT}")
        kind = PREDICATES[_KNOWN.read(body["predicateType"], "a statement: predicateType")]
        subject = _only(body["subject"])
        digest = table(subject["digest"], "a subject: digest", ("sha256",))["sha256"]
        return cls(
            name=_NAME.read(subject["name"], "a subject: name"),
            digest=_DIGEST.read(digest, "a subject: sha256"),
            predicate=kind.from_json(body["predicate"]),
        )

    def check_model(self, model: Path) -> None:
        """InvalidProof unless a model file or folder is the one that this is about."""
        found = oms_digest(model)
        if found != self.digest:
            raise InvalidProof(
                check="model",
                reason=f"its files have the digest {found.hex()}, the statement is about {self.digest.hex()}",
            )
        _check_state(model, self.predicate.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStatement:
    """A statement that holds, and by whom."""

    statement: Statement
    signed: tuple[str, ...]  # names of the keys that did
    checkpoint: TrustedCheckpoint  # of the log that it follows from


def attest(statement: Statement, signers: Sequence[Signer]) -> bytes:
    """The statement in an envelope with signatures of the log's keys: a file."""
    return SignedEnvelope.sign(IN_TOTO, statement.to_bytes(), signers).to_bytes()


def check_attestation(
    data: bytes,
    *,
    keys: Sequence[Verifier],
    witnesses: Sequence[Verifier] = (),
    model: Path | None = None,
) -> CheckedStatement:
    """The statement in a file, if it holds by these keys of the log; Rejected otherwise.

    Each of `witnesses` must have cosigned the checkpoint, with one of its keys. With `model` that is the one
    it is about.
    """
    names = {each.name for each in witnesses}
    trust = Trust(logs=tuple(keys), witnesses=tuple(witnesses), quorum=len(names))
    envelope = SignedEnvelope.from_bytes(data)
    signed = envelope.verify(keys)  # (1)
    statement = Statement.from_bytes(envelope.payload)  # (2)
    checkpoint = statement.predicate.verify(trust)  # (3), (4)
    if model is not None:
        statement.check_model(model)  # (5)
    by = tuple(dict.fromkeys(each.name for each in signed))
    return CheckedStatement(statement=statement, signed=by, checkpoint=checkpoint)


def _check_state(model: Path, wanted: bytes) -> None:
    found = model_digest(open_model(model))
    if found != wanted:
        raise InvalidProof(
            check="model", reason=f"its tensors have the digest {found.hex()}, the log has {wanted.hex()}"
        )


def _only(subjects: object) -> dict[str, Any]:
    if not isinstance(subjects, list) or len(subjects) != 1:
        raise MalformedFile("a statement: must have one subject")
    return table(subjects[0], "a subject", ("digest", "name"))
