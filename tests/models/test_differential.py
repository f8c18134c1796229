"""Whatever is accepted here means the same to torch and numpy, bit for bit.

Thousands of small files, mutated in their bytes, their members, their names and the contents of members under
right checksums, go through our readers and through `torch.load(weights_only=True)` and
`numpy.load(allow_pickle=False)`. A file that we accept and they read differently, or refuse, is a failure.
"""

import io
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from models import forge
from models.forge import (
    checkpoint,
    integer,
    mapping,
    npy,
    npy_header,
    npz,
    pickle_of,
    scarce_memory,
    storage,
    tensor,
    text,
)
from models.test_fuzz import changed_bytes, from_npz, from_torch, rearranged
from zktrace.errors import Error
from zktrace.models import ModelState

ARRAYS = {
    "bn1.weight": np.arange(1, 7, dtype=np.float32),
    "conv.weight": np.arange(6, dtype=np.float64).reshape(2, 3),
    "n": np.array(3, dtype=np.int64),
    "m": np.array([True, False]),
}


def stored_zip(members: Mapping[str, bytes]) -> bytes:
    """An archive of these members, even if zipfile takes two of their names for the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return forge.stored_zip(members)


Bits = dict[str, tuple[str, tuple[int, ...], bytes]]


def bits(state: Mapping[str, np.ndarray]) -> Bits:
    """Element type, shape and bytes of every array."""
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in state.items()}
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in little.items()}


def ours(state: ModelState) -> Bits:
    return bits({name: np.array(array) for name, array in state.items()})


def by_torch(data: bytes) -> Bits:
    """The state dict that torch finds, unwrapped as ours is."""
    torch = pytest.importorskip("torch")
    value = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    if not all(isinstance(each, torch.Tensor) for each in value.values()):
        value = next(value[key] for key in ("state_dict", "model_state_dict", "model") if key in value)
    return bits({name: each.detach().contiguous().numpy() for name, each in value.items()})


def by_numpy(data: bytes) -> Bits:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return bits({name: file[name] for name in file.files})


class Tally:
    """How many files were accepted, and refused, by us."""

    def __init__(self) -> None:
        self.accepted = self.refused = 0

    def torch(self, data: bytes) -> None:
        self._compare(data, from_torch, by_torch)

    def numpy(self, data: bytes) -> None:
        self._compare(data, from_npz, by_numpy)

    def _compare(self, data: bytes, read: Any, other: Any) -> None:
        try:
            state = read(data)
        except Error:
            self.refused += 1
            return
        self.accepted += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of pickle protocols
            try:
                theirs = other(data)
            except Exception as error:
                raise AssertionError(f"accepted here, refused there: {error!r}\n{data!r}") from error
        assert ours(state) == theirs, data


def torch_members() -> dict[str, bytes]:
    """The members of a file that torch wrote."""
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    value = {name: torch.from_numpy(array.copy()) for name, array in ARRAYS.items()}
    torch.save(value | {"t": torch.arange(6.0).view(2, 3).t(), "w": value["bn1.weight"][1:5:2]}, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def renamed(name: str, rng: random.Random) -> str:
    """The same name in other letters, or another name near it."""
    folder, _, rest = name.partition("/")
    return rng.choice(
        [
            name.upper(),
            f"{folder}/{rest.upper()}",
            f"{folder}/{rest.title()}",
            f"{folder}/{rest.swapcase()}",
            f"{folder}//{rest}",
            f"{folder}/./{rest}",
            f"{folder}/{rest}\x00x",
            f"{folder}/{rest} ",
            f"{folder}\\{rest}",
            f"{folder}/.data/{rest}",
            f"{folder}/data/{rest}",
            f"/{rest}",
            rest or name,
            f"{name}.npy",
            name.removesuffix(".npy"),
            f"{folder}/data/0{rest.removeprefix('data/')}",
        ]
    )


CONTENTS = (b"", b"big", b"little", b"LITTLE", b"3\n", b"3", b"10", b"11", b"0", b"1", b"64", b"99999999999")


def reordered(members: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    names = list(members)
    rng.shuffle(names)
    return {name: members[name] for name in names}


def mutated_members(members: dict[str, bytes], count: int, seed: int) -> Iterator[dict[str, bytes]]:
    """Members renamed, doubled under another name, dropped, exchanged, or with another content."""
    rng = random.Random(seed)
    for _ in range(count):
        made = dict(members)
        for _ in range(rng.choice((1, 1, 2, 3))):
            name = rng.choice(list(made))
            act = rng.randrange(6)
            if act == 0:
                made = {renamed(name, rng) if each == name else each: data for each, data in made.items()}
            elif act == 1:
                made[renamed(name, rng)] = rng.choice([made[name], *CONTENTS])
            elif act == 2 and len(made) > 1:
                del made[name]
            elif act == 3:
                made[name] = rng.choice(CONTENTS)
            elif act == 4:
                other = rng.choice(list(made))
                made[name], made[other] = made[other], made[name]
            else:
                made = reordered(made, rng)
        yield made


def test_torch_reads_the_same_members() -> None:
    members = torch_members()
    tally = Tally()
    tally.torch(stored_zip(members))
    assert tally.accepted == 1
    for made in mutated_members(members, 1500, seed=21):
        tally.torch(stored_zip(made))
    for name in members:
        folder, _, rest = name.partition("/")
        for other in (f"{folder}/{rest.upper()}", f"{folder}/{rest.title()}"):
            for content in (members[name], *CONTENTS):
                moved = {other if each == name else each: data for each, data in members.items()}
                tally.torch(stored_zip(moved | {other: content}))
                tally.torch(stored_zip({other: content} | members))
                tally.torch(stored_zip(members | {other: content}))
    assert min(tally.accepted, tally.refused) > 200


def test_torch_reads_the_same_from_changed_bytes() -> None:
    data = stored_zip(torch_members())
    tally = Tally()
    with scarce_memory():
        for changed in (*changed_bytes(data, (0x10, 0x20)), *rearranged(data, 500, seed=22)):
            tally.torch(changed)
    assert min(tally.accepted, tally.refused) > 20


def small_pickles() -> Iterator[tuple[bytes, dict[str, bytes]]]:
    """Pickles over two storages, as they are and wrapped."""
    storages = {"0": np.arange(6, dtype="<f4").tobytes(), "1": np.arange(3, dtype="<i8").tobytes()}
    state = mapping(
        {
            "w": tensor(storage("0", 6), (3, 2), (1, 3)),
            "v": tensor(storage("1", 3, "LongStorage"), (2,), (1,), offset=1),
            "u": tensor(storage("0", 6), (2, 2), (2, 1), offset=1),
        }
    )
    yield pickle_of(state), storages
    yield pickle_of(mapping({"state_dict": state, "epoch": integer(3), "who": text("me")})), storages


def test_torch_reads_the_same_from_changed_pickles() -> None:
    """Under right checksums: other shapes, strides, offsets, keys, names, opcodes."""
    tally = Tally()
    with scarce_memory():
        for seed, (pickle, storages) in enumerate(small_pickles()):
            tally.torch(checkpoint(pickle, storages))
            changes = (*changed_bytes(pickle, (0x01, 0x02, 0x20)), *rearranged(pickle, 400, seed=23 + seed))
            for changed in changes:
                tally.torch(checkpoint(changed, storages))
    assert min(tally.accepted, tally.refused) > 100


def test_torch_reads_the_same_views() -> None:
    """Random shapes, strides and offsets over a storage, of every element type."""
    rng = random.Random(25)
    kinds = {"FloatStorage": 4, "HalfStorage": 2, "DoubleStorage": 8, "LongStorage": 8, "ByteStorage": 1}
    content = random.Random(26).randbytes(192)
    tally = Tally()
    for _ in range(800):
        kind = rng.choice(list(kinds))
        dims = rng.randrange(4)
        shape = tuple(rng.choice((0, 1, 2, 3)) for _ in range(dims))
        strides = tuple(rng.choice((0, 1, 2, 3, 6)) for _ in range(dims))
        view = tensor(storage("0", 192 // kinds[kind], kind), shape, strides, offset=rng.randrange(24))
        tally.torch(checkpoint(pickle_of(mapping({"w": view})), {"0": content}))
    assert min(tally.accepted, tally.refused) > 100


def numpy_members() -> dict[str, bytes]:
    data = npz(ARRAYS | {"f": np.asfortranarray(ARRAYS["conv.weight"]), "b": np.arange(3, dtype=">i4")})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_numpy_reads_the_same_members() -> None:
    members = numpy_members()
    tally = Tally()
    tally.numpy(stored_zip(members))
    assert tally.accepted == 1
    for made in mutated_members(members, 1500, seed=27):
        tally.numpy(stored_zip(made))
    for name in members:
        for other in (f"{name}.npy", name.upper(), name.removesuffix(".npy"), f"x/{name}", f"{name}/x.npy"):
            tally.numpy(stored_zip(members | {other: members["n.npy"]}))
            tally.numpy(stored_zip({other: members["n.npy"]} | members))
    assert min(tally.accepted, tally.refused) > 100


def test_numpy_reads_the_same_from_changed_bytes() -> None:
    data = npz(ARRAYS)
    tally = Tally()
    with scarce_memory():
        for changed in (*changed_bytes(data, (0x01, 0x40)), *rearranged(data, 500, seed=28)):
            tally.numpy(changed)
    assert min(tally.accepted, tally.refused) > 20


def test_numpy_reads_the_same_array_headers() -> None:
    tally = Tally()
    array = npy(npy_header("'<f4'", "(2, 3)", fortran=True), np.arange(6, dtype="<f4").tobytes())
    with scarce_memory():
        for changed in (*changed_bytes(array, (0x01, 0x02, 0x10)), *rearranged(array, 500, seed=29)):
            tally.numpy(stored_zip({"w.npy": changed}))
    for descr in ("<f4", ">f4", "<f8", "<i2", ">u8", "|b1", "|u1", "<u1", ">b1", "|i1", "<f2"):
        for shape in ("()", "(24,)", "(4, 6)", "(0, 3)", "(2, 3)", "(6,)", "(3, )", "(1, 12)", "(2, 1, 3)"):
            for fortran in (False, True):
                header = npy_header(f"'{descr}'", shape, fortran=fortran)
                tally.numpy(stored_zip({"w.npy": npy(header, bytes(24))}))
                tally.numpy(stored_zip({"w.npy": npy(header, b"\x01\x00" * 12)}))
    assert min(tally.accepted, tally.refused) > 50


def with_extra(kind: int, payload: bytes) -> bytes:
    """An npz whose member `a.npy` has an extra field in the directory."""
    array = npy(npy_header("'|u1'", "(1,)"), b"x")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        member = zipfile.ZipInfo("a.npy")
        member.extra = struct.pack("<HH", kind, len(payload)) + payload
        archive.writestr(member, array)
    return buffer.getvalue()


@pytest.mark.parametrize(("kind", "accepted"), [(0x5455, 1), (0x7875, 1), (0x7075, 0), (0x9901, 0), (0, 0)])
def test_extra_fields_that_could_change_a_member_are_refused(kind: int, accepted: int) -> None:
    """0x7075 holds another name, which newer readers take instead of the member's."""
    tally = Tally()
    name = b"\x01" + struct.pack("<I", zlib.crc32(b"a.npy")) + b"b.npy"
    tally.numpy(with_extra(kind, name))
    assert tally.accepted == accepted
