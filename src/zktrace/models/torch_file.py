"""torch checkpoints (zip format), read by a child process with capped resources.

The child gets the file as its standard input and a nameless temporary file as its standard output; it has no
third-party code on its path and no environment. What it writes is hostile again, and is read like any other
safetensors file.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models.limits import Limits
from zktrace.models.safetensors_file import map_file, open_safetensors
from zktrace.models.state import ModelState
from zktrace.models.torch_child import EXIT_CODES, MAX_REASON
from zktrace.primitives.text import one_line

_ROOT = Path(__file__).parents[1]
# Registers the two packages by their folders instead of importing them: their __init__ would bring numpy, and
# neither site-packages nor an editable install needs to be found under `-I -S`.
_BOOT = """
import sys, types
for name, folder in (("zktrace", sys.argv[1]), ("zktrace.models", sys.argv[1] + "/models")):
    package = types.ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package
from zktrace.models.torch_child import main
main(sys.argv[2])
"""
_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH",)  # some interpreters do not start without it
_LIMIT_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL)
_ERRORS = {code: kind for kind, code in EXIT_CODES.items()}


def open_torch(descriptor: int, limits: Limits) -> ModelState:
    """The state dict in a torch checkpoint, without unpickling it."""
    try:
        with tempfile.TemporaryFile(prefix="zktrace-") as converted:
            _convert(descriptor, converted.fileno(), limits)
            if os.fstat(converted.fileno()).st_size == 0:
                raise MalformedModel("the child process wrote nothing")
            return open_safetensors(converted.fileno(), map_file(converted.fileno()), limits)
    except OSError as error:
        raise Refused(f"cannot be converted ({(error.strerror or 'unknown reason').lower()})") from error


def _convert(source: int, target: int, limits: Limits) -> None:
    """Run the child to its end, or to the end of its time."""
    if not sys.executable:
        raise Refused("there is no Python interpreter to read a torch checkpoint with")
    command = [sys.executable, "-I", "-S", "-B", "-c", _BOOT, str(_ROOT), json.dumps(asdict(limits))]
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    with subprocess.Popen(  # noqa: S603  (a fixed command: no part of it comes from the file)
        command, stdin=source, stdout=target, stderr=subprocess.PIPE, env=environment, cwd="/"
    ) as child:
        try:
            code = child.wait(timeout=limits.child_wall_seconds)
        except subprocess.TimeoutExpired as error:
            raise LimitExceeded(
                f"reading it takes longer than {limits.child_wall_seconds} seconds"
            ) from error
        finally:
            child.kill()  # whatever ended the waiting; no effect on a child that has ended
        reason = _reason(child)
    if code != 0:
        raise _failure(code, reason)


def _reason(child: subprocess.Popen[bytes]) -> str:
    """What the child said last: bounded, and never waited for."""
    if child.stderr is None:
        return ""
    os.set_blocking(child.stderr.fileno(), False)
    try:
        said = os.read(child.stderr.fileno(), MAX_REASON)
    except BlockingIOError:
        return ""
    return one_line(said.decode("ascii", "backslashreplace"))


def _failure(code: int, reason: str) -> Error:
    if code in _ERRORS:
        return _ERRORS[code](reason or "refused without a reason")
    if -code in _LIMIT_SIGNALS:
        return LimitExceeded(
            f"reading it takes more time or space than allowed ({signal.Signals(-code).name})"
        )
    return MalformedModel(f"the child process that reads it failed ({code}): {reason[-200:]}")
