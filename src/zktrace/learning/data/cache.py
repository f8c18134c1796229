"""Simulated samples on disk, mapped and not read. A file that is lost or damaged is made again.

The file is in safetensors layout: images, jnr_db, labels, stations. Its name and header carry a digest of all
that decides its content; the header also carries the SHA-256 of the content, checked whenever it is opened.
"""

import hashlib
import json
import math
import mmap
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from zktrace.errors import LimitExceeded, MalformedFile, Refused
from zktrace.learning.arrays import Images
from zktrace.learning.data.gnss.draws import Floats, Ints
from zktrace.learning.data.gnss.render import SIZE
from zktrace.learning.data.gnss.simulator import Progress, Simulator
from zktrace.learning.data.gnss.timebase import ELEMENTS
from zktrace.primitives.files import open_regular, whole_file
from zktrace.primitives.shake import Shake

VERSION: Final = "zkt-gnss-samples-v1"  # raised whenever any sample changes
SAMPLE_LIMIT: Final = 5_000_000
_ALIGN: Final = 64
_CHUNK: Final = 1 << 24
_TENSORS: Final[dict[str, tuple[str, *tuple[int, ...]]]] = {
    "images": ("F32", ELEMENTS, SIZE, SIZE),
    "jnr_db": ("F64",),
    "labels": ("I64",),
    "stations": ("I64",),
}
_SIZES: Final = {"F32": 4, "F64": 8, "I64": 8}
_PIXELS: Final = ELEMENTS * SIZE * SIZE
_SAMPLE_BYTES: Final = 4 * _PIXELS + 3 * 8


def default_folder() -> Path:
    """$XDG_CACHE_HOME/zktrace, or ~/.cache/zktrace."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named and Path(named).is_absolute():
        return Path(named) / "zktrace"
    try:
        return Path.home() / ".cache" / "zktrace"
    except RuntimeError as error:
        raise Refused("no home folder and no XDG_CACHE_HOME: say where the cache is") from error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleRequest:
    """Samples 0..n-1 of a simulator, each with its class and its station."""

    simulator: Simulator
    labels: Ints
    stations: Ints

    def __post_init__(self) -> None:
        if len(self.labels) > SAMPLE_LIMIT:
            raise LimitExceeded(f"{len(self.labels)} samples, the limit of a cache is {SAMPLE_LIMIT}")
        config = self.simulator.config
        if not config.domain_shift and config.receiver_shift is None:  # all stations are alike
            object.__setattr__(self, "stations", np.zeros_like(self.stations))

    @property
    def digest(self) -> str:
        """Of everything that decides a sample, the version of numpy's generators included."""
        facts = {"seed": self.simulator.seed, **asdict(self.simulator.config)}
        numpy = ".".join(np.__version__.split(".")[:2])
        arrays = (
            np.ascontiguousarray(values, dtype="<i8").tobytes() for values in (self.labels, self.stations)
        )
        text = json.dumps(facts, sort_keys=True).encode()
        return Shake("zkt-data-v1/cache", VERSION.encode(), numpy.encode(), text, *arrays).digest(32).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """Where things are in the file of `count` samples."""

    digest: str
    count: int

    def header(self, sha256: str) -> bytes:
        """The safetensors header, padded so that arrays begin at a multiple of 64 bytes."""
        text: dict[str, object] = {
            "__metadata__": {"format": VERSION, "parameters": self.digest, "sha256": sha256}
        }
        at = 0
        for name, (dtype, *shape) in _TENSORS.items():
            size = _SIZES[dtype] * self.count * math.prod(shape)
            text[name] = {"dtype": dtype, "shape": [self.count, *shape], "data_offsets": [at, at + size]}
            at += size
        data = json.dumps(text, separators=(",", ":")).encode()
        data += b" " * (-(len(data) + 8) % _ALIGN)
        return len(data).to_bytes(8, "little") + data

    @property
    def start(self) -> int:
        """Where the arrays begin."""
        return len(self.header("0" * 64))

    @property
    def size(self) -> int:
        """Of the file."""
        return self.start + self.count * _SAMPLE_BYTES

    def arrays(self, path: Path, buffer: mmap.mmap) -> "SampleCache":
        """Views of the four arrays."""
        n, at = self.count, self.start
        images = np.frombuffer(buffer, np.float32, n * _PIXELS, at)
        at += images.nbytes
        return SampleCache(
            path=path,
            images=images.reshape(n, ELEMENTS, SIZE, SIZE),
            jnr_db=np.frombuffer(buffer, np.float64, n, at),
            labels=np.frombuffer(buffer, np.int64, n, at + 8 * n),
            stations=np.frombuffer(buffer, np.int64, n, at + 16 * n),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleCache:
    """Samples 0..n-1 of a simulator, read-only."""

    path: Path
    images: Images
    jnr_db: Floats
    labels: Ints
    stations: Ints


def cached(
    folder: Path, request: SampleRequest, *, workers: int = 1, progress: Progress | None = None
) -> SampleCache:
    """From the folder if a sound file is there; otherwise the file is made, whole or not at all."""
    layout = CacheLayout(digest=request.digest, count=len(request.labels))
    path = folder / f"gnss-{layout.digest[:32]}.safetensors"
    if path.exists():
        try:
            return open_cache(path, layout)
        except MalformedFile:
            pass  # it can be made again, and is
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{path}: cannot be written ({(error.strerror or 'unknown').lower()})") from error
    with whole_file(path, replace=True) as handle:
        _build(handle, path, layout, request, workers, progress)
    return open_cache(path, layout)


def open_cache(path: Path, layout: CacheLayout) -> SampleCache:
    """Map a file; MalformedFile if it is not exactly what `layout` says, to the last bit."""
    with open(open_regular(path, limit=1 << 46), "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        if size != layout.size:
            raise MalformedFile(f"{path}: {size} bytes, {layout.count} samples take {layout.size}")
        mapped = mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ)
    if mapped[: layout.start] != layout.header(_sha256(mapped, layout.start)):
        raise MalformedFile(f"{path}: is damaged, or holds other samples")
    return layout.arrays(path, mapped)


def _sha256(mapped: mmap.mmap, start: int) -> str:
    total = hashlib.sha256()
    with memoryview(mapped) as view:
        for at in range(start, len(view), _CHUNK):
            total.update(view[at : at + _CHUNK])
    return total.hexdigest()


def _build(  # noqa: PLR0917
    handle: BinaryIO,
    path: Path,
    layout: CacheLayout,
    request: SampleRequest,
    workers: int,
    progress: Progress | None,
) -> None:
    os.posix_fallocate(handle.fileno(), 0, layout.size)  # a full disk is noticed here
    mapped = mmap.mmap(handle.fileno(), layout.size)
    arrays = layout.arrays(path, mapped)
    arrays.labels[:] = request.labels
    arrays.stations[:] = request.stations
    request.simulator.fill(
        arrays.images,
        arrays.jnr_db,
        np.arange(layout.count, dtype=np.int64),
        arrays.labels,
        arrays.stations,
        workers=workers,
        progress=progress,
    )
    mapped[: layout.start] = layout.header(_sha256(mapped, layout.start))
    mapped.flush()
