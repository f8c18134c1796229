"""A guard: what leaves the server carries its station's row, what comes back is freed of all of them."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.codes import unpack
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError, Refused
from zktrace.guarding.broadcasts import HandedList, HandedOut, list_path, model_path
from zktrace.guarding.subspace import NdArrays, check_alike, taken_out
from zktrace.marking.settings import usual_strength
from zktrace.marking.spread import SpreadMark
from zktrace.models import ModelState, Tensor, model_digest, save_model
from zktrace.models.dtypes import BY_NUMPY
from zktrace.primitives.canonical import to_json
from zktrace.primitives.files import write_atomic
from zktrace.registry.forms import NAME_LIMIT
from zktrace.registry.records import BroadcastRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, make_release

CARRIER: Final = "spread"
NAME: Final = "federation"  # of the release that a guard makes
TRANSPORTS: Final = ("float16", "bfloat16")

Made = dict[str, NDArray[Any]]


class Guard:
    """Marks every model that leaves a server, and keeps marks out of what the server keeps.

    One release stands for a whole federation: its shared model is the first one, and suspects of every round
    are read beside that one.
    """

    def __init__(
        self,
        home: Home,
        release: OpenRelease,
        *,
        strength: float | None = None,
        transport: str | None = None,
        keep: bool = False,
    ) -> None:
        """`strength` of marks, in deviations; 0 marks and cleans nothing. What is sent has the types of the
        first model, or real numbers of a `transport` type. With `keep` every shared model stays on the disk.
        """
        layout = release.record.layout(CARRIER)
        if layout is None or not layout.frozen:
            raise Refused(f"the release {release.name} is not guarded: its rows would come back in averages")
        if strength is not None and not 0.0 <= strength <= 1.0:
            raise InputError(f"a strength of {strength}: must lie between 0 and 1")
        if transport not in (None, *TRANSPORTS):
            raise InputError(f"no transport {transport!r}; known: {', '.join(TRANSPORTS)}")
        self.home, self.release = home, release
        self.strength = usual_strength(layout.dimension) if strength is None else strength
        self.transport, self.keep = transport, keep
        self._terms = release.terms(CARRIER)
        self._shared = release.shared
        self._mark = SpreadMark.of(self._terms, self._shared, self.strength or None)

    def __repr__(self) -> str:
        return f"<Guard of {self.release.name}, strength {self.strength:g}>"

    def outgoing(self, station: str, arrays: NdArrays) -> Made:
        """A station's own copy of a shared model; Refused of one that is not enrolled, or revoked."""
        return _in_order(self.copy(station, arrays), arrays)

    def copy(self, station: str, arrays: NdArrays, *, number: int = 0) -> ModelState:
        """The same as a model; `number` of the broadcast enters the dither of types of 16 bits."""
        row = self._row(station)
        check_alike(arrays, self._shared)
        if not self.strength:
            return ModelState(_tensor(name, np.asarray(each)) for name, each in arrays.items())
        code = self.release.code(CARRIER)
        signs = self._mark.signs(unpack(code.rows([row])[0], code.length))
        carrying = {name: np.ascontiguousarray(arrays[name]) for name in self._mark.parts}
        types = {name: self._type(name, each) for name, each in carrying.items()}
        made = self._mark.written(
            {name: (each, types[name], self._dither(name, row, number)) for name, each in carrying.items()},
            signs,
        )
        return ModelState(
            Tensor(name=name, dtype=types[name], shape=carrying[name].shape, data=made[name].data)
            if name in made
            else _tensor(name, np.asarray(each))
            for name, each in arrays.items()
        )

    def _dither(self, name: str, row: int, number: int) -> Stream:
        numbers = (each.to_bytes(8, "big") for each in (row, number))
        return Stream("spread/dither", self._terms.seed, name.encode(), *numbers)

    def _type(self, name: str, array: NDArray[Any]) -> str:
        """What a tensor is sent as."""
        if self.transport is not None:
            return self.transport
        if self._shared.tensor(name).dtype == "float16":
            return "float16"
        return "float64" if array.dtype == np.float64 else "float32"

    def incoming(self, arrays: NdArrays) -> Made:
        """An aggregate as the next shared model: nothing of it lies along the directions of rows."""
        check_alike(arrays, self._shared)
        if not self.strength:
            return {name: np.asarray(each) for name, each in arrays.items()}
        carrying = {name: np.asarray(arrays[name]) for name in self._mark.parts}
        cleaned = taken_out(carrying, self._shared, self._mark.parts, self._mark.blocks)
        return {name: cleaned[name] if name in cleaned else np.asarray(arrays[name]) for name in arrays}

    def broadcast(self, arrays: NdArrays, label: str | None = None) -> "Broadcast":
        """A shared model that is about to be sent; `label` says which round it is, for people: by default
        they are counted."""
        check_alike(arrays, self._shared)
        if label is not None and not 0 < len(label) <= NAME_LIMIT:
            raise InputError(f"a label has 1..{NAME_LIMIT} characters")
        self.release = self.release.at(self.home.registry.ledger())
        return Broadcast(self, arrays, label)

    def _row(self, station: str) -> int:
        ledger = self.home.registry.ledger()
        if ledger.size != self.release.ledger.size:  # somebody enrolled, or was revoked
            self.release = self.release.at(ledger)
        found = self.release.ledger.station(station)
        if found.revoked is not None:
            raise Refused(f"the station {station} is revoked: it gets no further copies")
        return found.enrolment.row


class Broadcast:
    """The copies of one shared model; on record when it is closed, which is before they leave."""

    def __init__(self, guard: Guard, arrays: NdArrays, label: str | None) -> None:
        self._guard, self._arrays = guard, arrays
        self.number = len(guard.release.ledger.broadcasts(guard.release.name))
        self._label = f"round {self.number + 1}" if label is None else label
        self._digests: dict[str, bytes] = {}

    def outgoing(self, station: str) -> Made:
        """A station's own copy."""
        copy = self._guard.copy(station, self._arrays, number=self.number)
        self._digests[station] = model_digest(copy)
        return _in_order(copy, self._arrays)

    def close(self) -> BroadcastRecord | None:
        """Put it on record; None if nobody was sent anything."""
        release, number = self._guard.release, self.number
        if not self._digests:
            return None
        rows = release.ledger.stations
        order = sorted(self._digests, key=lambda each: rows[each].enrolment.row)
        copies = tuple(HandedOut(station=each, copy=self._digests[each]) for each in order)
        listed = HandedList(copies=copies)
        shared = ModelState(_tensor(name, np.asarray(each)) for name, each in self._arrays.items())
        record = BroadcastRecord(
            release=release.name,
            number=number,
            label=self._label,
            model=model_digest(shared),
            copies=len(copies),
            root=listed.root,
        )
        path = list_path(release, number)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(path, to_json(listed.as_json()), secret=True, replace=True)
        if self._guard.keep:
            kept = model_path(release, number)
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            save_model(kept, shared, secret=True, replace=True)
        self._guard.home.registry.add(record)
        return record


def guard_of(
    home: Home,
    arrays: NdArrays | None = None,
    *,
    name: str = NAME,
    length: int | None = None,
    strength: float | None = None,
    transport: str | None = None,
    keep: bool = False,
) -> Guard:
    """The guard of a release; it is made of the federation's first arrays if there is none of that name.

    A run that goes on gives the arrays it goes on with, or none.
    """
    ledger = home.registry.ledger()
    if name not in ledger.releases:
        if arrays is None:
            raise Refused(f"there is no release {name}: a guard begins with the federation's first arrays")
        lengths: Mapping[str, int] = {} if length is None else {CARRIER: length}
        state = ModelState(_tensor(each, np.asarray(array)) for each, array in arrays.items())
        make_release(home, state, carriers=(CARRIER,), name=name, lengths=lengths, frozen=True)
        ledger = home.registry.ledger()
    release = OpenRelease.of(home, name, ledger=ledger)
    made = Guard(home, release, strength=strength, transport=transport, keep=keep)
    if arrays is not None:
        check_alike(arrays, release.shared)
    return made


def _in_order(state: ModelState, arrays: NdArrays) -> Made:
    """In the order in which arrays came: many frameworks tell them by it."""
    return {name: state[name] for name in arrays}


def _tensor(name: str, array: NDArray[Any]) -> Tensor:
    """An array as it is, without a copy where that can be."""
    dtype = BY_NUMPY.get((array.dtype.kind, array.dtype.itemsize))
    if dtype is None or not array.dtype.isnative or not array.ndim:
        return Tensor.from_array(name, array)
    whole = np.ascontiguousarray(array)
    return Tensor(name=name, dtype=dtype.tag, shape=whole.shape, data=whole.reshape(-1).view(np.uint8).data)
