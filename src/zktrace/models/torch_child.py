"""The child process that reads a torch checkpoint: standard input -> safetensors on standard output.

It takes a limits record, caps its own resources, and only then looks at the file. A refusal is one line on
standard error and an exit code of its own; it opens no file and starts nothing.
"""

import errno
import json
import mmap
import os
import resource
import sys
from typing import NoReturn

from zktrace.errors import Error, LimitExceeded, MalformedModel, Refused
from zktrace.models.limits import Limits
from zktrace.models.torch_zip import convert
from zktrace.primitives.text import one_line

EXIT_CODES: dict[type[Error], int] = {MalformedModel: 40, LimitExceeded: 41, Refused: 42}
MAX_REASON = 600

_OPEN_FILES = 16


def main(record: str) -> None:
    """Convert the file on standard input. `record` is a JSON object of the fields of `Limits`."""
    failure = _attempt(Limits(**json.loads(record)))
    if failure is not None:
        refuse(type(failure), str(failure))


def _attempt(limits: Limits) -> Error | None:
    """Convert the file; what went wrong, if anything did.

    The answer to a MemoryError is made after its handler, when what filled the memory has been released.
    """
    try:
        cap_resources(limits, file_bytes=os.fstat(0).st_size)
        source = memoryview(mmap.mmap(0, 0, access=mmap.ACCESS_READ))
        with open(1, "wb", closefd=False) as out:
            convert(source, out, limits)
        return None
    except Error as error:
        return type(error)(str(error))
    except OSError as error:
        if error.errno not in (errno.EFBIG, errno.ENOMEM):
            return Refused(f"the checkpoint cannot be converted ({(error.strerror or 'unknown').lower()})")
    except MemoryError:
        pass
    return LimitExceeded("converting the checkpoint takes more memory or disk than allowed")


def cap_resources(limits: Limits, *, file_bytes: int) -> None:
    """Address space, processor time, output, descriptors and processes of this process, from now on."""
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_AS, limits.child_spare_bytes + 2 * file_bytes)
    _cap(resource.RLIMIT_CPU, limits.child_cpu_seconds)
    _cap(resource.RLIMIT_FSIZE, output_limit(limits))
    _cap(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _cap(resource.RLIMIT_NPROC, 0)


def output_limit(limits: Limits) -> int:
    """The largest file that a child may write."""
    return min(limits.max_total_bytes, 2 * limits.max_loaded_bytes) + limits.max_header_bytes


def _cap(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def refuse(kind: type[Error], reason: str) -> NoReturn:
    """End with a reason that the parent turns back into an error."""
    os.write(2, one_line(reason, limit=MAX_REASON).encode("ascii", "backslashreplace"))
    sys.exit(EXIT_CODES.get(kind, 1))
