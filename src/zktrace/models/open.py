"""A model file of any accepted kind, recognised by its content and read without executing any of it."""

import os
from collections.abc import Iterable
from pathlib import Path

from zktrace.errors import Error, MalformedModel, Refused
from zktrace.models import npz_file, torch_zip, zip_members
from zktrace.models.limits import DEFAULT_LIMITS, Limits
from zktrace.models.npz_file import read_npz
from zktrace.models.safetensors_file import map_file, open_safetensors
from zktrace.models.state import ModelState
from zktrace.models.torch_file import open_torch
from zktrace.primitives.files import open_regular
from zktrace.primitives.text import one_line

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
    (0, b'{"', "JSON text: evidence of a case or a registry's export, where a model belongs"),
    (0, b"zkt-xlpn-", "a key of a station, where a model belongs"),
    (0, b"GGUF", "a GGUF file; convert it to safetensors"),
    (4, b"TFL3", "a TensorFlow Lite file; export its weights with numpy.savez"),
    (257, b"ustar", "a tar archive; unpack it first"),
)
_ONNX_SECOND_FIELDS = b"\x12\x1a\x22\x2a\x32\x3a\x42"  # protobuf keys of ModelProto's fields 2 to 8
_ACCEPTED = "give a safetensors file, an npz file (numpy.savez) or a torch.save of a state_dict"


def open_model(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> ModelState:
    """The named tensors of a safetensors, npz or torch zip file.

    Hostile files are expected: whatever the bytes are, this returns a state within `limits` or raises
    `MalformedModel`, `LimitExceeded` or `Refused` with one printable line. The state of a safetensors or npz
    file is a view of it: the file must not change while the state is in use.
    """
    try:
        return _open(Path(path), limits)
    except Error as error:
        prefix = f"{os.fspath(path)}: "
        raise type(error)(one_line(prefix + str(error).removeprefix(prefix))) from error


def _open(path: Path, limits: Limits) -> ModelState:
    if os.path.isdir(path):
        raise Refused("is a directory; name the model file inside it")
    try:
        descriptor = open_regular(path, limit=limits.max_file_bytes)
    except ValueError as error:  # a NUL or a lone surrogate in it
        raise Refused("not a path that can exist") from error
    try:
        if os.fstat(descriptor).st_size == 0:
            raise MalformedModel("is empty")
        return _read(descriptor, limits)
    finally:
        os.close(descriptor)


def _read(descriptor: int, limits: Limits) -> ModelState:
    data = map_file(descriptor)
    if bytes(data[:4]) == zip_members.MAGIC:
        return _read_zip(descriptor, data, limits)
    if bytes(data[8:9]) == b"{":
        return open_safetensors(descriptor, data, limits)
    raise MalformedModel(_guess(data))


def _read_zip(descriptor: int, data: memoryview, limits: Limits) -> ModelState:
    directory = zip_members.read_directory(data, limits)
    names = [entry.name for entry in directory.entries]
    inside = {name.partition("/")[2] for name in names}
    if names and all(name.endswith(npz_file.SUFFIX) for name in names):
        return read_npz(data, directory, limits)
    if "constants.pkl" in inside or any(name.startswith("code/") for name in inside):
        raise MalformedModel(f"seems to be a TorchScript archive, which holds code; {_STATE_DICT}")
    if torch_zip.PICKLE in inside:
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
    if len(data) > 2 and data[0] == 0x08 and 0 < data[1] < 0x20 and data[2] in _ONNX_SECOND_FIELDS:
        return "seems to be an ONNX file; export the weights of its initializers with numpy.savez"
    return f"not a model file that is known here; {_ACCEPTED}"
