"""A round's request and answer as Flower records, and back. What comes from a node is read as a stranger's.

    query    ->                          node: station, spec or fault
    train    state, round: number, station, spec
             -> state, update: round, samples, episodes, images, loss, penalty, accuracy
             -> absence: reason

Arrays keep their element types: batch normalisation's counters stay integers. A large array travels by itself
as npy, so that one which several stations share is stored once. Small arrays (a ResNet has a hundred)
travel together as one safetensors block: Flower moves every array by requests of its own, a few milliseconds
each on each of three legs, and they would take most of a round.
"""

import math
from dataclasses import asdict, dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.lib import format as npy
from numpy.typing import NDArray
from safetensors.numpy import save

from zktrace.errors import InputError
from zktrace.federation.client import Absence, Update
from zktrace.learning.arrays import State
from zktrace.learning.training import EpisodicReport
from zktrace.models import DEFAULT_LIMITS
from zktrace.models.safetensors_file import read_safetensors

_STATE, _ROUND, _UPDATE, _ABSENCE, _NODE = "state", "round", "update", "absence", "node"
_SMALL: Final = "small arrays"
_LARGE: Final = 1 << 16  # bytes
_NUMPY: Final = "numpy.ndarray"
_REASON_LIMIT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """What a node says about itself."""

    station: int
    spec: str  # digest of the run it is ready for; empty if there is a fault
    fault: str  # why it cannot take part; empty if it can


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainRequest:
    """Train this state for this round, as this station, in this run."""

    number: int
    station: int
    spec: str
    state: State


class Packer:
    """Turns states into records. A large array of what is shared is packed once; no other is kept."""

    def __init__(self, shared: State | None = None) -> None:
        self._shared = {id(array): array for array in (shared or {}).values()}
        self._packed: dict[int, Array] = {}

    def pack(self, state: State) -> ArrayRecord:
        """The record of a state."""
        small = {name: np.ascontiguousarray(array) for name, array in state.items() if array.nbytes < _LARGE}
        packed = {name: self._array(array) for name, array in state.items() if name not in small}
        shaped = {name: array.reshape(state[name].shape) for name, array in small.items()}
        return ArrayRecord(packed | {_SMALL: Array(np.frombuffer(save(shaped), np.uint8))})

    def _array(self, array: NDArray[Any]) -> Array:
        if id(array) not in self._shared:
            return Array(array)
        if id(array) not in self._packed:
            self._packed[id(array)] = Array(array)
        return self._packed[id(array)]


def unpack(record: ArrayRecord) -> State:
    """The arrays of a record; `InputError` names the one that cannot be read."""
    state: State = {}
    for name, each in record.items():
        try:
            array = _array(each)
        except (InputError, ValueError, TypeError) as error:  # ours, and numpy's of a header
            raise InputError(f"array {_short(name)!a} cannot be read ({_short(str(error))})") from error
        found = _small(array) if name == _SMALL else {name: array}
        if found.keys() & state.keys():
            raise InputError("two arrays have the same name")
        state |= found
    return state


def _small(block: NDArray[Any]) -> State:
    if block.dtype != np.uint8 or block.ndim != 1:
        raise InputError("the small arrays are no block of bytes")
    tensors = read_safetensors(memoryview(block.tobytes()), DEFAULT_LIMITS)
    return {name: np.array(array) for name, array in tensors.items()}


def _array(packed: Array) -> NDArray[Any]:
    if packed.stype != _NUMPY:
        raise InputError("not npy")
    stream = BytesIO(packed.data)
    if npy.read_magic(stream) != (1, 0):
        raise InputError("not npy of version 1.0")
    shape, fortran, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in "fiub":
        raise InputError(f"elements of type {dtype}")
    count, begin = math.prod(shape), stream.tell()
    if count * dtype.itemsize != len(packed.data) - begin:  # before anything of that size is allocated
        raise InputError("length and shape disagree")
    flat = np.frombuffer(packed.data[begin:], dtype) if count else np.empty(0, dtype)
    return np.array(flat.reshape(shape, order="F" if fortran else "C"), order="C")


def request_record(request: TrainRequest, packer: Packer) -> RecordDict:
    """What a station is sent."""
    facts = ConfigRecord({"number": request.number, "station": request.station, "spec": request.spec})
    return RecordDict({_STATE: packer.pack(request.state), _ROUND: facts})


def read_request(content: RecordDict) -> TrainRequest:
    """What a station was sent."""
    facts = _config(content, _ROUND)
    return TrainRequest(
        number=_whole(facts, "number"),
        station=_whole(facts, "station"),
        spec=_text(facts, "spec"),
        state=unpack(_arrays(content)),
    )


def answer_record(answer: Update | Absence) -> RecordDict:
    """What a station sends back. Which station it is, the server knows from whom it asked."""
    if isinstance(answer, Absence):
        return RecordDict({_ABSENCE: ConfigRecord({"reason": answer.reason})})
    numbers = ConfigRecord({"round": answer.round, "samples": answer.samples, **asdict(answer.report)})
    return RecordDict({_STATE: Packer().pack(answer.state), _UPDATE: numbers})


def read_answer(content: RecordDict, *, station: int, number: int) -> Update | Absence:
    """What the node of `station` answered in round `number`. The round it claims is checked later."""
    if _ABSENCE in content:
        reason = _short(_text(_config(content, _ABSENCE), "reason"))
        return Absence(station=station, round=number, reason=reason)
    facts = _config(content, _UPDATE)
    return Update(
        station=station,
        round=_whole(facts, "round"),
        state=unpack(_arrays(content)),
        samples=_whole(facts, "samples"),
        report=EpisodicReport(
            episodes=_whole(facts, "episodes"),
            images=_whole(facts, "images"),
            loss=_number(facts, "loss"),
            penalty=_number(facts, "penalty"),
            accuracy=_number(facts, "accuracy"),
        ),
    )


def introduction_record(introduction: Introduction) -> RecordDict:
    """The answer to a query."""
    return RecordDict({_NODE: ConfigRecord(asdict(introduction))})


def read_introduction(content: RecordDict) -> Introduction:
    """What a node says about itself."""
    facts = _config(content, _NODE)
    return Introduction(
        station=_whole(facts, "station"), spec=_text(facts, "spec"), fault=_short(_text(facts, "fault"))
    )


def _config(content: RecordDict, name: str) -> ConfigRecord:
    record = content.get(name)
    if not isinstance(record, ConfigRecord):
        raise InputError(f"the message has no record {name!r}")
    return record


def _arrays(content: RecordDict) -> ArrayRecord:
    record = content.get(_STATE)
    if not isinstance(record, ArrayRecord):
        raise InputError("the message has no state")
    return record


def _whole(facts: ConfigRecord, key: str) -> int:
    value = facts.get(key)
    if type(value) is not int:
        raise InputError(f"{key!r} of the message is not a whole number")
    return value


def _number(facts: ConfigRecord, key: str) -> float:
    value = facts.get(key)
    if type(value) is not float:
        raise InputError(f"{key!r} of the message is not a number")
    return value


def _text(facts: ConfigRecord, key: str) -> str:
    value = facts.get(key)
    if not isinstance(value, str):
        raise InputError(f"{key!r} of the message is not text")
    return value


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _REASON_LIMIT else line[: _REASON_LIMIT - 3] + "..."
