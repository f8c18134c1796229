"""What a statement says of a model. Each field follows from entries of the log, whose proofs are in it.

    dispatch   which station the copy was made for, of which release
    receipt    which station signed for the copy
    verdict    how the investigation of a suspect ended, and who is named

Nothing else is said: no row, no score, and no station but the one that the entry is about, or that is named.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Final, Self, TypeVar

from zktrace.errors import InvalidProof, MalformedFile
from zktrace.primitives.fields import Declared, fraction, listed, nested, packed, text, whole
from zktrace.primitives.text import listing
from zktrace.registry.forms import NAME_LIMIT, WHOLE_LIMIT, Digest, Name
from zktrace.registry.records import DispatchRecord, Entry, InvestigationRecord, Record, VerdictRecord
from zktrace.registry.signing import COPIES_LIMIT, ReceiptRecord
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.note import NAME_LIMIT as ORIGIN_LIMIT
from zktrace.transparency.note import Note
from zktrace.transparency.proof import FILE_LIMIT, LogProof
from zktrace.transparency.trust import Trust, TrustedCheckpoint

TYPES: Final = (
    "https://zktrace/{}/v1"  # a name, as that of OpenSSF Model Signing: nothing is there to be read
)

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace(Declared):
    """Where an entry stands in which log, and the proof of it."""

    what: ClassVar = "a place in a log"
    origin: Annotated[str, text(ORIGIN_LIMIT)]  # the log's name for itself
    index: Annotated[int, whole(0, WHOLE_LIMIT)]
    at: Annotated[str, text(20)]  # when the entry was made
    proof: Annotated[bytes, packed(1, FILE_LIMIT)]  # a `.tlog-proof` with entry and checkpoint

    @classmethod
    def of(cls, proof: LogProof) -> Self:
        """The place that a proof is about, whether it holds or not."""
        head = LogCheckpoint.from_text(Note.from_bytes(proof.checkpoint).text)
        return cls(origin=head.origin, index=proof.index, at=_entry(proof).at, proof=proof.to_bytes())

    def record(self, kind: type[R]) -> R:
        """What the entry says; InvalidProof if it is of another kind."""
        found = _entry(LogProof.from_bytes(self.proof)).record
        if not isinstance(found, kind):
            raise InvalidProof(
                check="statement", reason=f"its entry is of the kind {found.kind}, not {kind.kind}"
            )
        return found

    def verify(self, trust: Trust) -> TrustedCheckpoint:
        """The checkpoint that the entry is under, if it is to be trusted; else InvalidProof."""
        proof = LogProof.from_bytes(self.proof)
        if LogPlace.of(proof) != self:
            raise InvalidProof(check="statement", reason="it says of its entry what the proof does not")
        return proof.verify(trust)


class Predicate(Declared, ABC):
    """What is said of a model by entries of the log."""

    __slots__ = ()
    kind: ClassVar[str]
    release: str

    @property
    def uri(self) -> str:
        """Its name in a statement."""
        return TYPES.format(self.kind)

    @property
    @abstractmethod
    def headline(self) -> str:
        """What it says, in a few words."""

    @property
    @abstractmethod
    def state(self) -> bytes:
        """The digest of the tensors of the model that it is about, as the log has it."""

    @property
    @abstractmethod
    def places(self) -> tuple[LogPlace, ...]:
        """The entries that it follows from; the first is the one that it tells."""

    @abstractmethod
    def again(self) -> "Predicate":
        """What the entries say, made anew."""

    def verify(self, trust: Trust) -> TrustedCheckpoint:
        """The checkpoint of its entries, if it is to be trusted and they say what this says; else Rejected.

        All of them are under the same one: nothing else would show that they are in one log.
        """
        opened = [each.verify(trust) for each in self.places]
        if len({each.note.text for each in opened}) != 1:
            raise InvalidProof(check="statement", reason="its entries are under two checkpoints")
        if self.again() != self:
            raise InvalidProof(check="statement", reason="it is not what the entries of the log say")
        return opened[0]


class CopyPredicate(Predicate):
    """What one entry says of a station's copy."""

    __slots__ = ()
    station: str
    copy: bytes
    log: LogPlace

    @property
    def state(self) -> bytes:
        """Of the copy."""
        return self.copy

    @property
    def places(self) -> tuple[LogPlace, ...]:
        """The entry."""
        return (self.log,)


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchPredicate(CopyPredicate):
    """A copy was made for a station."""

    kind: ClassVar = "dispatch"
    what: ClassVar = "a dispatch statement"
    station: Name
    release: Name
    copy: Digest  # of its state
    log: Annotated[LogPlace, nested(LogPlace)]

    @classmethod
    def of(cls, log: LogPlace) -> Self:
        """What an entry says."""
        said = log.record(DispatchRecord)
        return cls(station=said.station, release=said.release, copy=said.copy, log=log)

    @property
    def headline(self) -> str:
        """Whose copy."""
        return f"a copy of {self.release} for {self.station}"

    def again(self) -> Predicate:
        """From the entry."""
        return self.of(self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptPredicate(CopyPredicate):
    """A station signed for a copy."""

    kind: ClassVar = "receipt"
    what: ClassVar = "a receipt statement"
    station: Name
    release: Name
    copy: Digest  # of its state: one of those that were signed for
    rounds: Annotated[  # of a guarded release, in which it was sent
        tuple[int, ...], listed(whole(0, WHOLE_LIMIT), high=COPIES_LIMIT)
    ]
    receipt: Digest  # of the station's file, which has its signature
    log: Annotated[LogPlace, nested(LogPlace)]

    @classmethod
    def of(cls, log: LogPlace, copy: bytes) -> Self:
        """What an entry says of one of its copies."""
        said = log.record(ReceiptRecord)
        if copy not in said.copies:
            raise InvalidProof(check="statement", reason=f"the receipt is for no copy {copy.hex()}")
        pairs = zip(said.rounds, said.copies, strict=False)  # there may be no rounds
        return cls(
            station=said.station,
            release=said.release,
            copy=copy,
            rounds=tuple(number for number, each in pairs if each == copy),
            receipt=said.receipt,
            log=log,
        )

    @property
    def headline(self) -> str:
        """Who signed."""
        return f"{self.station} signed for a copy of {self.release}"

    def again(self) -> Predicate:
        """From the entry."""
        return self.of(self.log, self.copy)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPredicate(Predicate):
    """How an investigation ended."""

    kind: ClassVar = "verdict"
    what: ClassVar = "a verdict statement"
    verdict: Name
    named: Annotated[tuple[str, ...], listed(text(NAME_LIMIT), high=4096)]
    release: Name
    suspect: Digest  # of its state
    budget: Annotated[Fraction, fraction()]  # probability of naming an innocent that was spent on it
    findings: Digest  # of those in the evidence, which a judge needs
    log: Annotated[LogPlace, nested(LogPlace)]
    investigation: Annotated[LogPlace, nested(LogPlace)]

    @classmethod
    def of(cls, log: LogPlace, investigation: LogPlace) -> Self:
        """What the two entries say."""
        said, asked = log.record(VerdictRecord), investigation.record(InvestigationRecord)
        if said.investigation != investigation.index:
            raise InvalidProof(check="statement", reason="the verdict is on another investigation")
        return cls(
            verdict=said.verdict,
            named=said.named,
            release=asked.release,
            suspect=asked.suspect,
            budget=asked.budget,
            findings=said.findings,
            log=log,
            investigation=investigation,
        )

    @property
    def headline(self) -> str:
        """How it ended, and for whom."""
        return f"{self.verdict}: {listing(self.named) or 'nobody is named'}"

    @property
    def state(self) -> bytes:
        """Of the suspect."""
        return self.suspect

    @property
    def places(self) -> tuple[LogPlace, ...]:
        """The verdict and its investigation."""
        return self.log, self.investigation

    def again(self) -> Predicate:
        """From the entries."""
        return self.of(self.log, self.investigation)


PREDICATES: Final[dict[str, type[Predicate]]] = {
    TYPES.format(each.kind): each for each in (DispatchPredicate, ReceiptPredicate, VerdictPredicate)
}


def _entry(proof: LogProof) -> Entry:
    if proof.extra is None:
        raise MalformedFile("a place in a log: its proof does not hold the entry")
    return Entry.from_bytes(proof.extra)
