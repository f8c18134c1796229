"""Model files that a child process with capped resources reads: no parser sees a byte of them here.

The child writes what it read as a safetensors file without a name, in one plain form; that is read here as
hostile as any other. What a file costs to read, it costs the child.
"""

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from zktrace.errors import Error, MalformedModel, Refused, Unavailable
from zktrace.models.limits import DEFAULT_LIMITS, Limits, extra_seconds
from zktrace.models.safetensors_file import map_file, open_safetensors
from zktrace.models.state import ModelState
from zktrace.primitives.child import FULL, Errand, beside_us, run
from zktrace.primitives.files import open_regular
from zktrace.primitives.text import one_line


def open_confined(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> ModelState:
    """The named tensors of one model file of any accepted kind, as `open_model` would give them.

    What the child writes lies in the folder of the file, without a name, as long as the state is in use. A
    file that refers to others is refused: none but this one is opened.
    """
    place = Path(path)
    errand = _errand("any_child", paths=beside_us())
    try:
        source = open_regular(place, limit=limits.max_file_bytes)
        try:
            return _answered(errand, source, limits, folder=place.parent)
        finally:
            os.close(source)
    except Error as error:
        reason = str(error).removeprefix(f"{place}: ")
        raise type(error)(one_line(f"{place}: {reason}")) from error


def open_torch(source: int, limits: Limits) -> ModelState:
    """The state dict in an open torch checkpoint, without unpickling it."""
    return _answered(_errand("torch_child"), source, limits)


def _errand(module: str, paths: tuple[str, ...] = ()) -> Errand:
    folders = ("zktrace", "zktrace.models")
    return Errand(module=f"zktrace.models.{module}", folders=folders, paths=paths, fault=MalformedModel)


def _answered(errand: Errand, source: int, limits: Limits, *, folder: Path | None = None) -> ModelState:
    """The state that a child found in an open file."""
    wall = limits.child_wall_seconds + extra_seconds(os.fstat(source).st_size)
    try:
        with tempfile.TemporaryFile(prefix="zktrace-", dir=folder) as answer:
            run(errand, json.dumps(asdict(limits)), source=source, target=answer.fileno(), seconds=wall)
            if os.fstat(answer.fileno()).st_size == 0:
                raise MalformedModel("the child process wrote nothing")
            return open_safetensors(answer.fileno(), map_file(answer.fileno()), limits)
    except OSError as error:
        kind = Unavailable if error.errno in FULL else Refused
        raise kind(f"cannot be converted ({(error.strerror or 'unknown reason').lower()})") from error
