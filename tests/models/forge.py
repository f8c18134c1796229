"""Model files made by hand: honest ones without torch, and every kind of dishonest one."""

import io
import json
import resource
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLE = {
    "conv.weight": np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2),
    "bn.weight": np.array([1.5, -2.25], dtype=np.float64),
    "bn.num_batches_tracked": np.array(7, dtype=np.int64),
    "mask": np.array([True, False, True]),
    "half": np.array([[0.5], [-0.125]], dtype=np.float16),
    "bytes": np.arange(5, dtype=np.uint8),
    "empty": np.zeros((0, 3), dtype=np.int16),
}


def safetensors(header: object, data: bytes = b"", *, size: int | None = None) -> bytes:
    """A safetensors file with any header: an object, or the text itself."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[Any], start: int, stop: int) -> dict[str, Any]:
    """One line of a safetensors header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def npy(header: str, data: bytes = b"", *, version: int = 1, size: int | None = None) -> bytes:
    """An npy array with any header."""
    text = header.encode("latin-1")
    length = len(text) if size is None else size
    return (
        b"\x93NUMPY" + bytes([version, 0]) + length.to_bytes(2 if version == 1 else 4, "little") + text + data
    )


def npy_header(descr: str, shape: str, *, fortran: bool = False) -> str:
    """The header that numpy would write."""
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


def stored_zip(members: Mapping[str, bytes], *, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npz(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """What numpy.savez writes."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


# -- pickles, opcode by opcode


def glob(module: str, name: str) -> bytes:
    """GLOBAL."""
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def text(value: str) -> bytes:
    """BINUNICODE."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def integer(value: int) -> bytes:
    """LONG1."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def tup(*parts: bytes) -> bytes:
    """A tuple."""
    return b"(" + b"".join(parts) + b"t"


def mapping(items: Mapping[str, bytes]) -> bytes:
    """A dict with text keys."""
    return b"}(" + b"".join(text(name) + value for name, value in items.items()) + b"u"


ORDERED_DICT = glob("collections", "OrderedDict") + b")R"


def storage(key: str, count: int, kind: str = "FloatStorage", module: str = "torch") -> bytes:
    """A storage of the archive."""
    return tup(text("storage"), glob(module, kind), text(key), text("cpu"), integer(count)) + b"Q"


def tensor(
    store: bytes,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    offset: int = 0,
    hooks: bytes = ORDERED_DICT,
) -> bytes:
    """A tensor over a storage."""
    sizes, steps = tup(*map(integer, shape)), tup(*map(integer, strides))
    arguments = tup(store, integer(offset), sizes, steps, b"\x89", hooks)
    return glob("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def pickle_of(value: bytes) -> bytes:
    """A whole pickle."""
    return b"\x80\x02" + value + b"."


def checkpoint(pickle: bytes, storages: Mapping[str, bytes], **more: bytes) -> bytes:
    """A torch zip file."""
    members = {"archive/data.pkl": pickle, "archive/byteorder": b"little"}
    members |= {f"archive/{name}": data for name, data in more.items()}
    members |= {f"archive/data/{key}": data for key, data in storages.items()}
    members |= {"archive/version": b"3\n"}
    return stored_zip(members)


def simple_checkpoint(count: int = 6) -> bytes:
    """One float tensor `w` = 0, 1, 2, ..."""
    data = np.arange(count, dtype="<f4").tobytes()
    return checkpoint(pickle_of(mapping({"w": tensor(storage("0", count), (count,), (1,))})), {"0": data})


# -- memory


@contextmanager
def scarce_memory(spare: int = 256 << 20) -> Iterator[None]:
    """Allocations beyond `spare` bytes raise MemoryError in this process while the block runs."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
