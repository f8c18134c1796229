"""A log of texts that can be signed at any size, honestly or with another history."""

from dataclasses import dataclass, field

from zktrace.primitives import merkle
from zktrace.transparency.checkpoint import LogCheckpoint
from zktrace.transparency.keys import Kind, Signer
from zktrace.transparency.note import Note
from zktrace.transparency.proof import LogProof
from zktrace.transparency.request import AddCheckpoint

ORIGIN = "log.example/north"


def key(kind: Kind = Kind.NOTE, *, name: str = ORIGIN, number: int = 1) -> Signer:
    """The same in every run."""
    return Signer(name=name, kind=kind, seed=bytes([number]) * 32)


@dataclass
class Log:
    signer: Signer = field(default_factory=key)
    history: str = "one"

    def entry(self, index: int) -> bytes:
        return f"{self.history} {index}".encode()

    def leaves(self, size: int) -> list[bytes]:
        return [merkle.leaf_hash(self.entry(index)) for index in range(size)]

    def checkpoint(self, size: int) -> LogCheckpoint:
        return LogCheckpoint(origin=self.signer.name, size=size, root=merkle.root(self.leaves(size)))

    def note(self, size: int, *cosigners: Signer, at: int = 1000) -> Note:
        text = self.checkpoint(size).to_text()
        return Note(text=text, signatures=tuple(each.sign(text, at=at) for each in (self.signer, *cosigners)))

    def path(self, old: int, new: int) -> tuple[bytes, ...]:
        return tuple(merkle.consistency_proof(self.leaves(new), old))

    def request(self, old: int, new: int, *cosigners: Signer) -> AddCheckpoint:
        return AddCheckpoint(
            old=old, path=self.path(old, new), checkpoint=self.note(new, *cosigners).to_bytes()
        )

    def proof(self, index: int, size: int, *cosigners: Signer) -> LogProof:
        return LogProof(
            index=index,
            path=tuple(merkle.inclusion_proof(self.leaves(size), index)),
            checkpoint=self.note(size, *cosigners).to_bytes(),
            extra=self.entry(index),
        )
