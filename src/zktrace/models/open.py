"""A model file of any accepted kind, recognised by its content and read without executing any of it."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models import gguf_file, npz_file, torch_zip, zip_members
from zktrace.models.confined import open_torch
from zktrace.models.gguf_file import read_gguf
from zktrace.models.limits import DEFAULT_LIMITS, Limits, check_count, check_loaded, check_total
from zktrace.models.npz_file import read_npz
from zktrace.models.onnx_file import Beside, read_onnx, seems_onnx
from zktrace.models.safetensors_file import map_file, open_safetensors
from zktrace.models.shards import Shards, check_promised, check_shard, is_json, read_index, shards_of
from zktrace.models.state import LazyTensor, ModelState, Tensor
from zktrace.primitives.files import open_regular
from zktrace.primitives.text import one_line, shown

_STATE_DICT = "load it where you trust it and save its state_dict() with safetensors or torch.save"
_KNOWN = (
    (0, b"\x80\x02\x8a\x0al\xfc\x9c", f"a torch file in the old format without zip; {_STATE_DICT}"),
    (0, b"\x80\x02", f"a bare pickle; {_STATE_DICT}"),
    (0, b"\x80\x03", f"a bare pickle; {_STATE_DICT}"),
    (0, b"\x80\x04", f"a bare pickle; {_STATE_DICT}"),
    (0, b"\x80\x05", f"a bare pickle; {_STATE_DICT}"),
    (0, npz_file.MAGIC, "a single npy array without a name; save it with numpy.savez(file, name=array)"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras?); export its weights with numpy.savez"),
    (0, b"\x1f\x8b", "a gzip file; unpack it first"),
    (0, b"BZh", "a bzip2 file; unpack it first"),
    (0, b"\xfd7zXZ\x00", "an xz file; unpack it first"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard file; unpack it first"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (0, b"zkt-xlpn-", "a key of a station, where a model belongs"),
    (4, b"TFL3", "a TensorFlow Lite file; export its weights with numpy.savez"),
    (257, b"ustar", "a tar archive; unpack it first"),
)
_ONE_FILE = "save it in one file"
_ACCEPTED = (
    "give a safetensors, GGUF or ONNX file, an npz file (numpy.savez), a torch.save of a state_dict, or the "
    "index or the folder of shards"
)


def open_model(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> ModelState:
    """The named tensors of a model file, of the index of a model in shards, or of a folder with one model.

    Hostile files are expected: whatever the bytes are, this returns a state within `limits` or raises
    `MalformedModel`, `LimitExceeded` or `Refused` with one printable line. The state is a view of mapped
    files, which must not change while it is in use; what is quantised in a GGUF file is made on demand.
    """
    try:
        return _open(Path(path), limits)
    except Error as error:
        raise _about(os.fspath(path), error) from error


def _about(place: str, error: Error, *, name: str | None = None) -> Error:
    """The same error, saying of which file it is: by its name, if the folder will be named as well."""
    reason = str(error).removeprefix(f"{place}: ")
    return type(error)(one_line(f"{name or place}: {reason}"))


def _open(path: Path, limits: Limits) -> ModelState:
    if not os.path.isdir(path):
        return _open_file(path, limits)
    found = shards_of(path, limits)
    if len(found.files) > 1:
        return _joined(path, found, limits)
    only = check_shard(path, found.files[0])
    try:
        return _open_file(only, limits)
    except Error as error:
        raise _about(str(only), error, name=only.name) from error


def _open_file(path: Path, limits: Limits) -> ModelState:
    """A whole model, or the index of one."""
    with _mapped(path, limits.max_file_bytes) as (descriptor, data):
        if is_json(data):
            return _joined(path.parent, read_index(data, limits), limits)
        return _read(descriptor, data, limits, _Beside(path.parent, limits))


def _joined(folder: Path, shards: Shards, limits: Limits) -> ModelState:
    """The tensors of all shards together, within the limits of one model."""
    tensors: list[Tensor] = []
    left = limits.max_file_bytes
    for file in shards.files:
        try:
            with _mapped(check_shard(folder, file), left) as (descriptor, data):
                state = _read(descriptor, data, limits, _Beside(folder, limits))
                left -= len(data)
            if shards.promised is not None:
                check_promised(file, state.keys(), shards.promised[file])
        except Error as error:
            raise _about(str(folder / file), error, name=file) from error
        tensors.extend(state.tensors())
        check_count(len(tensors), limits)
    check_total(sum(each.nbytes for each in tensors if not isinstance(each, LazyTensor)), limits)
    return ModelState(tensors)


@contextmanager
def _mapped(path: Path, limit: int) -> Iterator[tuple[int, memoryview]]:
    """A descriptor of a file, open meanwhile, and its bytes, which outlive it."""
    try:
        descriptor = open_regular(path, limit=limit)
    except ValueError as error:  # a NUL or a lone surrogate in it
        raise Refused("not a path that can exist") from error
    try:
        if os.fstat(descriptor).st_size == 0:
            raise MalformedModel("is empty")
        yield descriptor, map_file(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int, data: memoryview, limits: Limits, beside: Beside) -> ModelState:
    if bytes(data[:4]) == zip_members.MAGIC:
        check_loaded(len(data), limits)
        return _read_zip(descriptor, data, limits)
    if bytes(data[:4]) == gguf_file.MAGIC:
        return read_gguf(data, limits)
    if bytes(data[8:9]) == b"{" and not is_json(data):
        return open_safetensors(descriptor, data, limits)
    if seems_onnx(data):
        check_loaded(len(data), limits)
        return read_onnx(data, limits, beside)
    raise MalformedModel(_guess(data))


def read_alone(descriptor: int, data: memoryview, limits: Limits) -> ModelState:
    """The state in the bytes of one file, which its descriptor is of. What refers to others is refused."""
    if is_json(data):
        raise Refused(f"seems to be the index of a model in several files; {_ONE_FILE}")
    return _read(descriptor, data, limits, _nothing_beside)


def _nothing_beside(file: str) -> memoryview:
    raise Refused(f"a part of it is in another file ({shown(file)}); {_ONE_FILE}")


class _Beside:
    """Files in the folder of a model that it refers to, each mapped once, within the limits of one model."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._left = limits.max_file_bytes
        self._more = limits.max_shards
        self._found: dict[str, memoryview] = {}

    def __call__(self, file: str) -> memoryview:
        if file not in self._found:
            self._more -= 1
            if self._more < 0:
                raise LimitExceeded("the model is in more files than the limit allows")
            with _mapped(check_shard(self._folder, file), self._left) as (_, data):
                self._found[file] = data
                self._left -= len(data)
        return self._found[file]


def _read_zip(descriptor: int, data: memoryview, limits: Limits) -> ModelState:
    directory = zip_members.read_directory(data, limits)
    names = [entry.name for entry in directory.entries]
    inside = {name.partition("/")[2] for name in names}
    if names and all(name.endswith(npz_file.SUFFIX) for name in names):
        return read_npz(data, directory, limits)
    if "constants.pkl" in inside or any(name.startswith("code/") for name in inside):
        raise MalformedModel(f"seems to be a TorchScript archive, which holds code; {_STATE_DICT}")
    if torch_zip.has_pickle(names):
        return open_torch(descriptor, limits)
    raise MalformedModel(
        f"a zip archive that is neither npz nor a torch checkpoint{_hint(names)}; {_ACCEPTED}"
    )


def _hint(names: Iterable[str]) -> str:
    if any(name.endswith(".h5") for name in names):
        return " (Keras?)"
    if any(name.endswith(npz_file.SUFFIX) for name in names):
        return " (it has arrays, but not only arrays)"
    return ""


def _guess(data: memoryview) -> str:
    """What a file that cannot be read seems to be, and what to do about it."""
    for at, magic, what in _KNOWN:
        if bytes(data[at : at + len(magic)]) == magic:
            return f"seems to be {what}"
    return f"not a model file that is known here; {_ACCEPTED}"
