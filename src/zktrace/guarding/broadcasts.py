"""Who got which copy of a broadcast: a list in the release's folder, its Merkle root on record.

    releases/NAME/broadcasts/000012.json       stations in the order of their rows, with the digests of copies
    releases/NAME/models/000012.safetensors    the shared model, where the operator keeps it

The record has the root alone, so a log of many rounds stays small, and a station's copy of a round is proved
by a path from its leaf. Nothing of it is needed to trace a suspect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self

import numpy as np

from zktrace.errors import MalformedFile, Refused
from zktrace.models import ModelState, model_digest, open_model
from zktrace.primitives import merkle
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.fields import Declared, listed, nested, octets, text, whole
from zktrace.primitives.files import read_bounded
from zktrace.readouts.blocks import REALS
from zktrace.registry.forms import NAME_LIMIT, Digest
from zktrace.registry.records import BroadcastRecord
from zktrace.releases import OpenRelease

MOST: Final = 1 << 20  # copies of a broadcast
_LIST_LIMIT: Final = 1 << 28  # bytes
_PATH: Final = 64  # hashes
_PROOF_LIMIT: Final = 1 << 14  # bytes
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOut(Declared):
    """A copy that a station was sent."""

    what: ClassVar = "a copy of a broadcast"
    station: Annotated[str, text(NAME_LIMIT)]
    copy: Digest  # of its state

    @property
    def leaf(self) -> bytes:
        """Of the tree whose root is on record."""
        return merkle.leaf_hash(to_json(self.as_json()))


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedList(Declared):
    """All copies of a broadcast, in the order of stations' rows."""

    what: ClassVar = "a list of copies"
    copies: Annotated[tuple[HandedOut, ...], listed(nested(HandedOut), low=1, high=MOST)]

    @property
    def root(self) -> bytes:
        """What is on record of it."""
        return merkle.root([each.leaf for each in self.copies])


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProof(Declared):
    """That a station was sent a copy: it stands under the root of a broadcast that is on record."""

    what: ClassVar = "a proof of a copy"
    handed: Annotated[HandedOut, nested(HandedOut)]
    index: Annotated[int, whole(0, MOST)]
    path: Annotated[tuple[bytes, ...], listed(octets(32), high=_PATH)]

    def to_bytes(self) -> bytes:
        """Its canonical text."""
        return to_json(self.as_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The proof that `to_bytes` wrote, or MalformedFile."""
        if len(data) > _PROOF_LIMIT:
            raise MalformedFile(f"{cls.what}: {len(data)} bytes, at most {_PROOF_LIMIT} are read")
        return cls.from_json(from_json(data, what=cls.what))

    def holds(self, record: BroadcastRecord) -> bool:
        """Whether the record says so."""
        return merkle.included(self.handed.leaf, self.index, record.copies, self.path, record.root)


def list_path(release: OpenRelease, number: int) -> Path:
    """Where the list of a broadcast lies."""
    return release.folder.path / "broadcasts" / f"{number:06}.json"


def model_path(release: OpenRelease, number: int) -> Path:
    """Where its shared model lies, if it is kept."""
    return release.folder.path / "models" / f"{number:06}.safetensors"


def handed_out(release: OpenRelease, number: int) -> HandedList:
    """Who got which copy, found to be what is on record; Refused if it is not, or not there."""
    records = release.ledger.broadcasts(release.name)
    if not 0 <= number < len(records):
        raise Refused(f"there is no broadcast {number} of {release.name}")
    path = list_path(release, number)
    try:
        found = HandedList.from_json(from_json(read_bounded(path, limit=_LIST_LIMIT), what=str(path)))
    except MalformedFile as error:
        raise Refused(f"{path}: not the list that is on record ({error})") from None
    if found.root != records[number][1].root:
        raise Refused(f"{path}: not the list that is on record")
    return found


def copy_proof(release: OpenRelease, number: int, station: str) -> CopyProof:
    """That a station was sent a copy of a broadcast, or Refused."""
    copies = handed_out(release, number).copies
    for index, each in enumerate(copies):
        if each.station == station:
            path = tuple(merkle.inclusion_proof([one.leaf for one in copies], index))
            return CopyProof(handed=each, index=index, path=path)
    raise Refused(f"{station} was sent no copy of broadcast {number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How well a suspect fits a broadcast. It tells a person when a copy left; it certifies nothing."""

    number: int
    label: str
    distance: float  # root mean square of what its weights differ by from the shared model's, in deviations


def fitting(release: OpenRelease, suspect: ModelState) -> tuple[Fit, ...]:
    """Broadcasts by how well a suspect fits them, the best first.

    A suspect that is the very copy of a list fits that broadcast at distance 0. Of others, shared models that
    are kept can be compared.
    """
    records = release.ledger.broadcasts(release.name)
    digest = model_digest(suspect)
    for number, (_, record) in enumerate(records):
        known = handed_out(release, number).copies if list_path(release, number).exists() else ()
        if any(each.copy == digest for each in known):
            return (Fit(number=number, label=record.label, distance=0.0),)
    found = []
    for number, (_, record) in enumerate(records):
        path = model_path(release, number)
        if path.exists():
            distance = _distance(suspect, open_model(path))
            if distance is not None:
                found.append(Fit(number=number, label=record.label, distance=distance))
    return tuple(sorted(found, key=lambda each: each.distance))


def _distance(suspect: ModelState, shared: ModelState) -> float | None:
    """Over all matrices that both have; None if there are none."""
    squares, many = 0.0, 0
    for tensor in shared.tensors():
        if tensor.dtype not in REALS or len(tensor.shape) < 2 or tensor.name not in suspect:
            continue
        other = suspect.tensor(tensor.name)
        if other.dtype in REALS and other.shape == tensor.shape:
            deviation = float(np.std(tensor.array(), dtype=np.float64)) or 1.0
            squares += sum(_squares(tensor.array(), other.array())) / deviation**2
            many += int(np.prod(tensor.shape))
    return float(np.sqrt(squares / many)) if many else None


def _squares(one: np.ndarray, other: np.ndarray) -> Iterator[float]:
    flat: Sequence[np.ndarray] = (one.reshape(-1), other.reshape(-1))
    for at in range(0, one.size, _CHUNK):
        some, others = (np.nan_to_num(each[at : at + _CHUNK].astype(np.float64)) for each in flat)
        yield float(np.square(some - others).sum())
