"""Real CRPA recordings: .npy arrays of 4 x 1024 complex64, listed by split files, rendered as simulated ones.

A folder holds any of `train.csv`, `val.csv` and `test.csv`. Each has a header line with at least the columns
`file` (path of an array, relative to the folder) and `label` (name of a class); other columns are ignored.
Nothing is unpickled, and nothing outside the folder is opened.
"""

import csv
import hashlib
import io
import itertools
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, LimitExceeded, MalformedFile, Refused
from zktrace.learning.data.dataset import Dataset
from zktrace.learning.data.gnss.render import SIZE, render
from zktrace.learning.data.gnss.timebase import ELEMENTS, KEPT, Complexes
from zktrace.learning.data.splits import Split
from zktrace.primitives.files import read_bounded
from zktrace.primitives.text import shown

SPLIT_FILES: Final = ("train.csv", "val.csv", "test.csv")
ROW_LIMIT: Final = 500_000
_CSV_LIMIT: Final = 1 << 27
_BYTES: Final = ELEMENTS * KEPT * 8
_HEADER_LIMIT: Final = 4096
_HEADER: Final = re.compile(  # what numpy.save writes, version 1.0; nothing is evaluated
    rb"\x93NUMPY\x01\x00(?P<size>..)\{'descr': '(?P<descr>[<>|=][a-zA-Z][0-9]{0,3})', "
    rb"'fortran_order': (?P<fortran>True|False), 'shape': \((?P<shape>[0-9, ]{0,200})\), \} *\n",
    re.DOTALL,
)
_LABEL_LIMIT: Final = 64
_BATCH: Final = 256

Row = tuple[str, str]  # file, label


def load_recordings(
    folder: Path, *, class_names: Sequence[str] | None = None, full_scale: float = 1.0
) -> Dataset:
    """All recordings of the split files. Classes are the labels in alphabetical order unless given."""
    if not folder.is_dir():
        raise Refused(f"{folder}: no such folder")
    if not (0 < full_scale < float("inf")):
        raise InputError(f"full scale {full_scale:g}: must be positive")
    present = [name for name in SPLIT_FILES if (folder / name).exists()]
    if not present:
        raise Refused(f"{folder}: holds none of {', '.join(SPLIT_FILES)}")
    parts = {name: _read_split(folder / name) if name in present else [] for name in SPLIT_FILES}
    rows = [row for name in SPLIT_FILES for row in parts[name]]
    _check_rows(folder, rows)
    names = tuple(sorted({label for _, label in rows})) if class_names is None else tuple(class_names)
    number = {name: index for index, name in enumerate(names)}
    unknown = {label for _, label in rows} - set(names)
    if unknown:
        raise MalformedFile(f"{folder}: label {shown(min(unknown))} is none of {', '.join(names)}")
    ends = np.cumsum([0, *(len(parts[name]) for name in SPLIT_FILES)])
    train, validation, test = (np.arange(a, b, dtype=np.int64) for a, b in itertools.pairwise(ends))
    return Dataset(
        name="recordings",
        images=_render_all(folder, rows, full_scale),
        labels=np.array([number[label] for _, label in rows], np.int64),
        class_names=names,
        note=f"CRPA recordings ({', '.join(present)})",
        split=Split(train=train, validation=validation, test=test),
    )


def listing_digest(folder: Path) -> str:
    """SHA-256 of the split files: what tells a set of recordings from others, wherever it lies."""
    found = hashlib.sha256()
    for name in SPLIT_FILES:
        if (folder / name).exists():
            listed = hashlib.sha256(read_bounded(folder / name, limit=_CSV_LIMIT))
            found.update(name.encode() + listed.digest())
    return found.hexdigest()


def read_recording(path: Path, *, full_scale: float = 1.0) -> Complexes:
    """One array of 4 x 1024 complex64 with components between -1 and 1 (after division by `full_scale`)."""
    data = read_bounded(path, limit=_BYTES + _HEADER_LIMIT)
    header = _HEADER.match(data)
    if header is None or 10 + int.from_bytes(header["size"], "little") != header.end():
        raise MalformedFile(f"{path}: is no .npy array of a plain type")
    if header["descr"] != b"<c8" or header["shape"] != b"%d, %d" % (ELEMENTS, KEPT):
        found = f"{header['descr'].decode()} ({header['shape'].decode()})"
        raise MalformedFile(f"{path}: {found}, must be complex64 <c8 ({ELEMENTS}, {KEPT})")
    body = data[header.end() :]
    if len(body) != _BYTES:
        raise MalformedFile(f"{path}: {len(body)} bytes of samples, must be {_BYTES} (truncated?)")
    order: Literal["F", "C"] = "F" if header["fortran"] == b"True" else "C"
    array = np.frombuffer(body, "<c8").reshape((ELEMENTS, KEPT), order=order)
    scaled = np.ascontiguousarray(array.astype(np.complex64) / np.float32(full_scale))
    largest = float(np.abs(scaled.view(np.float32)).max())
    if not largest <= 1:  # NaN fails too
        raise MalformedFile(
            f"{path}: component {largest:g} beyond full scale 1 (say which full scale the files have)"
        )
    return scaled


def _read_split(path: Path) -> list[Row]:
    try:
        text = read_bounded(path, limit=_CSV_LIMIT).decode("utf-8-sig")
        lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        columns = lines.fieldnames or []
        if not {"file", "label"} <= set(columns):
            raise MalformedFile(f"{path}: the first line must name the columns file and label")
        rows: list[Row] = []
        for line in lines:
            if len(rows) >= ROW_LIMIT:
                raise LimitExceeded(f"{path}: more than {ROW_LIMIT} rows")
            rows.append(_row(path, lines.line_num, line.get("file"), line.get("label")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise MalformedFile(f"{path}: is no CSV text") from error
    return rows


def _row(path: Path, number: int, file: str | None, label: str | None) -> Row:
    if not file or not label:
        raise MalformedFile(f"{path}: line {number} lacks a file or a label")
    label = label.strip()
    if not 0 < len(label) <= _LABEL_LIMIT or not label.isprintable():
        raise MalformedFile(f"{path}: line {number} has no usable label")
    plain = PurePosixPath(file)
    if plain.is_absolute() or ".." in plain.parts or not file.isprintable() or "\\" in file:
        raise MalformedFile(f"{path}: line {number} names a file outside the folder")
    return str(plain), label


def _check_rows(folder: Path, rows: list[Row]) -> None:
    if not rows:
        raise MalformedFile(f"{folder}: the split files list nothing")
    if len(rows) > ROW_LIMIT:
        raise LimitExceeded(f"{folder}: {len(rows)} recordings, the limit is {ROW_LIMIT}")
    seen: set[str] = set()
    for file, _ in rows:
        if file in seen:
            raise MalformedFile(f"{folder}: {shown(file)} is listed twice")
        seen.add(file)


def _render_all(folder: Path, rows: list[Row], full_scale: float) -> NDArray[np.float32]:
    images = np.empty((len(rows), ELEMENTS, SIZE, SIZE), np.float32)
    root = folder.resolve()
    for start in range(0, len(rows), _BATCH):
        part = rows[start : start + _BATCH]
        batch = np.stack([read_recording(_inside(root, file), full_scale=full_scale) for file, _ in part])
        images[start : start + len(part)] = render(batch)
    return images


def _inside(root: Path, file: str) -> Path:
    """The path of a listed file, links followed; it must not lead out of the folder."""
    try:
        path = (root / file).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise Refused(f"{root / file}: cannot be followed") from error
    if not path.is_relative_to(root):
        raise MalformedFile(f"{root / file}: leads outside the folder")
    return path
