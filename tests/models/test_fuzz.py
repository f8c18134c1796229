"""Thousands of damaged files: each opens or raises one of our errors, in little memory.

Every byte of a small file of each kind is changed, every prefix is tried, and seeded splices, insertions and
repetitions follow. `scarce_memory` makes any allocation beyond 256 MiB a failure.
"""

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from models.forge import npz, scarce_memory, simple_checkpoint
from zktrace.errors import Error
from zktrace.models import Limits, ModelState, model_digest, open_model, save_model
from zktrace.models.npz_file import read_npz
from zktrace.models.safetensors_file import read_safetensors
from zktrace.models.torch_zip import convert
from zktrace.models.zip_members import read_directory

LIMITS = Limits()
ARRAYS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "n": np.array(3, dtype=np.int64),
    "m": np.array([True, False]),
}
MASKS = (0x01, 0x02, 0x10, 0x20, 0x80, 0xFF)


def from_safetensors(data: bytes) -> ModelState:
    return read_safetensors(memoryview(data), LIMITS)


def from_npz(data: bytes) -> ModelState:
    view = memoryview(data)
    return read_npz(view, read_directory(view, LIMITS), LIMITS)


def from_torch(data: bytes) -> ModelState:
    out = io.BytesIO()
    convert(memoryview(data), out, LIMITS)
    return from_safetensors(out.getvalue())


def safetensors_file(tmp_path: Path) -> bytes:
    save_model(tmp_path / "seed", ARRAYS, metadata={"by": "somebody"})
    return (tmp_path / "seed").read_bytes()


def npz_file(_: Path) -> bytes:
    return npz(ARRAYS)


def torch_file(_: Path) -> bytes:
    torch = pytest.importorskip("torch")
    buffer = io.BytesIO()
    value = {name: torch.from_numpy(array.copy()) for name, array in ARRAYS.items()}
    torch.save(value | {"t": torch.arange(6.0).view(2, 3).t()}, buffer)
    return buffer.getvalue()


KINDS = [
    pytest.param(safetensors_file, from_safetensors, id="safetensors"),
    pytest.param(npz_file, from_npz, id="npz"),
    pytest.param(torch_file, from_torch, id="torch"),
]


def changed_bytes(data: bytes, masks: tuple[int, ...]) -> Iterator[bytes]:
    for at in range(len(data)):
        for mask in masks:
            yield data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def rearranged(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Cuts, copies, insertions, several flips at once, numbers at their extremes."""
    rng = random.Random(seed)
    extremes = [
        b"\x00",
        b"\xff",
        b"\xff" * 2,
        b"\xff" * 4,
        b"\xff" * 8,
        bytes(8),
        b"\x00\x00\x00\x80",
        b"9" * 20,
    ]
    for _ in range(count):
        a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
        extreme = rng.choice(extremes)
        yield rng.choice(
            [
                data[:a] + data[b:],
                data[:a] + data[b:c] + data[a:],
                data[:a] + data[b:c] + data[a:b] + data[c:],
                data[:a] + rng.randbytes(rng.randrange(1, 40)) + data[a:],
                data[:a] + extreme + data[a + len(extreme) :],
                data[:a] + extreme + data[a + len(extreme) : b] + extreme + data[b + len(extreme) :],
                data + rng.randbytes(rng.randrange(1, 40)),
                data + data[a:b],
            ]
        )


def opened(read: Callable[[bytes], ModelState], data: bytes) -> ModelState | None:
    """The state, used; or None, if it was refused with a proper reason."""
    try:
        state = read(data)
    except Error as error:
        assert str(error).isprintable()
        assert len(str(error)) < 500
        return None
    assert sum(array.nbytes for array in state.values()) <= 4 * len(data)
    return state


@pytest.mark.parametrize(("make", "read"), KINDS)
def test_every_byte_may_be_changed(
    tmp_path: Path, make: Callable[[Path], bytes], read: Callable[[bytes], ModelState]
) -> None:
    data = make(tmp_path)
    digest = model_digest(read(data))
    count = 0
    with scarce_memory():
        for changed in changed_bytes(data, MASKS if len(data) < 1500 else MASKS[-1:]):
            state = opened(read, changed)
            count += 1
            # A zip has checksums: whatever is not refused has not changed.
            if state is not None and read is not from_safetensors:
                assert model_digest(state) == digest
    assert count > 1000


@pytest.mark.parametrize(("make", "read"), KINDS)
def test_every_prefix_is_refused(
    tmp_path: Path, make: Callable[[Path], bytes], read: Callable[[bytes], ModelState]
) -> None:
    data = make(tmp_path)
    with scarce_memory():
        for size in range(len(data)):
            assert opened(read, data[:size]) is None, size


@pytest.mark.parametrize(("make", "read"), KINDS)
def test_everything_may_be_rearranged(
    tmp_path: Path, make: Callable[[Path], bytes], read: Callable[[bytes], ModelState]
) -> None:
    with scarce_memory():
        for changed in rearranged(make(tmp_path), 1000, seed=7):
            opened(read, changed)


def test_the_pickle_may_be_changed_under_a_right_checksum() -> None:
    from models.forge import checkpoint, mapping, pickle_of, storage, tensor

    pickle = pickle_of(
        mapping({"w": tensor(storage("0", 6), (3, 2), (1, 3)), "v": tensor(storage("1", 2), (2,), (1,))})
    )
    storages = {"0": bytes(24), "1": bytes(8)}
    assert opened(from_torch, checkpoint(pickle, storages)) is not None
    with scarce_memory():
        for changed in (*changed_bytes(pickle, MASKS), *rearranged(pickle, 500, seed=8)):
            opened(from_torch, checkpoint(changed, storages))


def test_array_headers_may_be_changed_under_a_right_checksum() -> None:
    from models.forge import npy, npy_header, stored_zip

    array = npy(npy_header("'<f4'", "(2, 3)", fortran=True), bytes(24))
    assert opened(from_npz, stored_zip({"w.npy": array})) is not None
    with scarce_memory():
        for changed in (*changed_bytes(array, MASKS), *rearranged(array, 500, seed=9)):
            opened(from_npz, stored_zip({"w.npy": changed}))


@pytest.mark.parametrize("make", [safetensors_file, npz_file])
def test_damaged_files_on_disk(tmp_path: Path, make: Callable[[Path], bytes]) -> None:
    """The whole way, with the safetensors library: it never says more than one of our errors."""
    data = make(tmp_path)
    path = tmp_path / "m"

    def read(changed: bytes) -> ModelState:
        path.write_bytes(changed)
        return open_model(path)

    with scarce_memory():
        for changed in (*changed_bytes(data[:400], (0xFF,)), *rearranged(data, 300, seed=10)):
            opened(read, changed + data[400:])


def test_damaged_checkpoints_through_the_child(tmp_path: Path) -> None:
    data = simple_checkpoint()
    path = tmp_path / "m"
    cases = [*rearranged(data, 15, seed=11)]
    step = len(data) // 25
    cases += [data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :] for at in range(4, len(data), step)]
    assert len(cases) >= 40

    def read(changed: bytes) -> ModelState:
        path.write_bytes(changed)
        return open_model(path)

    for changed in cases:
        opened(read, changed)


def test_the_memory_guard_bites() -> None:
    with scarce_memory(), pytest.raises(MemoryError):
        bytearray(1 << 30)
