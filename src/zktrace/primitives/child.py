"""A child process that is handed one open file, caps what it may use, and answers by another file.

Its parent calls `run`. In the child `answering` goes around the work: it puts the caps in force, and whatever
fails after that ends the child with a code of its own and one line, which the parent turns into the same
error of ours. The child inherits no environment and no other file. What it wrote is hostile again.
"""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from zktrace.errors import (
    Error,
    InputError,
    LimitExceeded,
    MalformedEvidence,
    MalformedModel,
    Refused,
    Unavailable,
)
from zktrace.primitives.text import one_line

EXIT_CODES: Final[dict[type[Error], int]] = {
    MalformedModel: 40,
    LimitExceeded: 41,
    Refused: 42,
    Unavailable: 43,
    MalformedEvidence: 44,
    InputError: 45,
}
MAX_REASON: Final = 600

_ROOT: Final = Path(__file__).parents[1]
# Packages of ours that the child takes as folders: their __init__ would import more than is wanted there.
_BOOT: Final = """
import importlib, json, signal, sys, types
root, folders, paths, seconds, entry, argument = json.loads(sys.argv[1])
signal.alarm(seconds)
for name in folders:
    package = types.ModuleType(name)
    package.__path__ = [root + name.removeprefix("zktrace").replace(".", "/")]
    sys.modules[name] = package
sys.path += paths
importlib.import_module(entry).main(argument)
"""
_KEPT_ENVIRONMENT: Final = ("LD_LIBRARY_PATH",)  # some interpreters do not start without it
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # it may start no other
_LIMIT_SIGNALS: Final = (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL, signal.SIGALRM)
_FAULT: Final = 46  # exit code of a child that met a fault of ours
_GRACE: Final = 5  # seconds
_ERRORS: Final = {code: kind for kind, code in EXIT_CODES.items()}
_OPEN_FILES: Final = 16
FULL: Final = (errno.ENOSPC, errno.EDQUOT)  # a disk that takes nothing more
_TOO_MUCH: Final = (errno.EFBIG, errno.ENOMEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What runs in the child: `main(argument)` of a module, and what that may import.

    The standard library is there always. `folders` are packages of ours that are not initialised; without
    them the package is imported as it is, from `paths`. A child that fails without a word has met a `fault`.
    """

    module: str
    fault: type[Error]
    folders: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def beside_us() -> tuple[str, ...]:
    """Where this process imports from, for a child that needs third-party code as well."""
    return (str(_ROOT.parent), *(str(Path(each).absolute()) for each in sys.path if each))


# -- the parent


def run(errand: Errand, argument: str, *, source: int, target: int, seconds: float) -> None:
    """Run a child to its end, or to the end of its time: `source` is its input, `target` takes its answer."""
    if not sys.executable:
        raise Refused("there is no Python interpreter to read it with")
    ends = int(seconds) + _GRACE  # it ends by itself if this process is gone by then
    given = json.dumps((str(_ROOT), errand.folders, errand.paths, ends, errand.module, argument))
    command = [sys.executable, "-I", "-S", "-B", "-c", _BOOT, given]
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    with subprocess.Popen(  # noqa: S603  (a fixed command: no part of it comes from the file)
        command, stdin=source, stdout=target, stderr=subprocess.PIPE, env=kept | _ONE_THREAD, cwd="/"
    ) as child:
        try:
            code = child.wait(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise LimitExceeded(f"reading it takes longer than {seconds:g} seconds") from error
        finally:
            child.kill()  # whatever ended the waiting; no effect on a child that has ended
        reason = _reason(child)
    if code != 0:
        raise _failure(errand, code, reason)


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


def _failure(errand: Errand, code: int, reason: str) -> Error:
    if code in _ERRORS:
        return _ERRORS[code](reason or "refused without a reason")
    if -code in _LIMIT_SIGNALS:
        return LimitExceeded(
            f"reading it takes more time or space than allowed ({signal.Signals(-code).name})"
        )
    if code == _FAULT:
        return errand.fault(f"a fault of ours: {reason}")
    return errand.fault(f"the child process that reads it failed ({code})")


# -- the child


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What the child may use, of what the system counts."""

    address_bytes: int
    cpu_seconds: int
    answer_bytes: int  # of the file that it fills


def answering(caps: Caps, work: Callable[[], None]) -> None:
    """Put the caps in force and work; end with what went wrong, if anything did."""
    try:
        failure = _attempt(caps, work)
    except Exception as error:
        _end(_FAULT, f"{type(error).__name__}: {error}")
    if failure is not None:
        refuse(type(failure), str(failure))


def _attempt(caps: Caps, work: Callable[[], None]) -> Error | None:
    """What went wrong, if anything did.

    The answer to a MemoryError is made after its handler, when what filled the memory has been released.
    """
    try:
        cap(caps)
        work()
        return None
    except Error as error:
        return next((kind for kind in type(error).__mro__ if kind in EXIT_CODES), Error)(str(error))
    except OSError as error:
        if error.errno not in _TOO_MUCH:
            kind = Unavailable if error.errno in FULL else Refused
            return kind(f"it cannot be read ({(error.strerror or 'unknown').lower()})")
    except MemoryError:
        pass
    return LimitExceeded("reading it takes more memory or disk than allowed")


def cap(caps: Caps) -> None:
    """Address space, processor time, output, descriptors and processes of this process, from now on."""
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_AS, caps.address_bytes)
    _cap(resource.RLIMIT_CPU, caps.cpu_seconds)
    _cap(resource.RLIMIT_FSIZE, caps.answer_bytes)
    _cap(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _cap(resource.RLIMIT_NPROC, 0)


def _cap(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def refuse(kind: type[Error], reason: str) -> NoReturn:
    """End with a reason that the parent turns back into an error."""
    _end(EXIT_CODES.get(kind, _FAULT), reason)


def _end(code: int, reason: str) -> NoReturn:
    os.write(2, one_line(reason, limit=MAX_REASON).encode("ascii", "backslashreplace"))
    sys.exit(code)
