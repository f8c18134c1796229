"""A model in several files: which files of a folder it is, and what each of them must hold."""

import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from zktrace.errors import LimitExceeded, MalformedModel, Refused
from zktrace.models.json_objects import json_object
from zktrace.models.limits import Limits, check_count, check_name_length
from zktrace.primitives.text import shown

_MAX_ENTRIES = 65_536  # of a folder that is looked through
_INDEX = ".safetensors.index.json", ".bin.index.json", ".pt.index.json", ".pth.index.json"
_TOGETHER = ".safetensors", ".gguf"  # files of a folder without index that are parts of one model
_ALONE = ".onnx", ".npz", ".pt", ".pth", ".bin"
_PLAIN = re.compile(r"[^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Files of one folder that are a model together; what an index says is in each, if there is one."""

    files: tuple[str, ...]
    promised: Mapping[str, Set[str]] | None = None  # file -> names of its tensors


def is_json(data: memoryview) -> bool:
    """Whether a file begins as a JSON object and cannot be safetensors: its header would be absurdly long."""
    return len(data) > 1 and data[0] == ord("{") and (len(data) < 8 or data[7] != 0)


def read_index(data: memoryview, limits: Limits) -> Shards:
    """The shards that an index file names, all of them plain names of files beside it."""
    if len(data) > limits.max_header_bytes:
        raise LimitExceeded(f"JSON text of {len(data)} bytes, the limit is {limits.max_header_bytes}")
    index = json_object(bytes(data), limits, what="the index of shards").get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
        raise MalformedModel(
            "seems to be JSON text: evidence of a case or a registry's export, where a model or the index "
            "of its shards belongs"
        )
    check_count(len(index), limits)
    for name in index:
        check_name_length(name, limits)
    files = tuple(sorted(set(index.values())))
    _check_number(files, limits)
    promised: dict[str, set[str]] = {file: set() for file in files}
    for name, file in index.items():
        check_plain(file)
        promised[file].add(name)
    return Shards(files=files, promised=promised)


def check_plain(file: str) -> None:
    """Refuse a file named by a model that may lead out of the model's folder."""
    if _PLAIN.fullmatch(file) is None or file in (".", ".."):
        raise MalformedModel(f"names {shown(file)}, which is no plain name of a file beside it")


def shards_of(folder: Path, limits: Limits) -> Shards:
    """What a folder holds, by the suffixes of its files: an index (as the only file), or the shards."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, _MAX_ENTRIES + 1))
    except OSError as error:
        raise Refused(f"cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    if len(names) > _MAX_ENTRIES:
        raise LimitExceeded(f"a folder of more than {_MAX_ENTRIES} files; name the model file inside it")
    for suffix in _INDEX:
        if found := _ending(names, suffix):
            return Shards(files=(_only(found),))
    for suffix in _TOGETHER:
        if found := _ending(names, suffix):
            _check_number(found, limits)
            return Shards(files=tuple(found))
    for suffix in _ALONE:
        if found := _ending(names, suffix):
            return Shards(files=(_only(found),))
    raise Refused("is a directory without model files; name a model file")


def _ending(names: Sequence[str], suffix: str) -> list[str]:
    return [name for name in names if name.lower().endswith(suffix) and not name.startswith(".")]


def _only(found: Sequence[str]) -> str:
    if len(found) > 1:
        raise Refused(f"is a directory with several models ({shown(found[0])}, {shown(found[1])}); name one")
    return found[0]


def _check_number(files: Sequence[str], limits: Limits) -> None:
    if len(files) > limits.max_shards:
        raise LimitExceeded(f"{len(files)} shards, the limit is {limits.max_shards}")


def check_shard(folder: Path, file: str) -> Path:
    """The path of a shard, which must be of this folder and not a link that may lead anywhere."""
    path = folder / file
    if path.is_symlink():
        raise Refused(f"{shown(file)} is a link; copy the model with what its links lead to (cp -rL)")
    return path


def check_promised(file: str, found: Set[str], wanted: Set[str]) -> None:
    """Refuse a shard that does not hold exactly what the index says."""
    if found != wanted:
        name = min(found ^ wanted)
        says = "does not hold" if name in wanted else "holds, unlike what the index says,"
        raise MalformedModel(f"{shown(file)} {says} tensor {shown(name)}")
