"""The child process that reads a torch checkpoint: standard input -> safetensors on standard output.

The standard library is enough for it. `any_child` is the same for every kind of model file.
"""

import json
import mmap
import os
from collections.abc import Callable
from typing import IO

from zktrace.errors import MalformedModel
from zktrace.models.limits import Limits, extra_seconds
from zktrace.models.torch_zip import convert
from zktrace.primitives.child import Caps, answering

Rewrite = Callable[[memoryview, IO[bytes], Limits], None]


def main(argument: str) -> None:
    """Read the checkpoint on standard input. `argument` is a JSON object of the fields of `Limits`."""
    rewriting(argument, convert)


def rewriting(argument: str, rewrite: Rewrite) -> None:
    """Put the caps for this file in force, and rewrite it."""
    limits = Limits(**json.loads(argument))
    size = os.fstat(0).st_size

    def work() -> None:
        if not size:
            raise MalformedModel("is empty")
        source = memoryview(mmap.mmap(0, size, access=mmap.ACCESS_READ))
        with open(1, "wb", closefd=False) as out:
            rewrite(source, out, limits)

    answering(caps(limits, file_bytes=size), work)


def caps(limits: Limits, *, file_bytes: int) -> Caps:
    """What reading a file of this size may take."""
    return Caps(
        address_bytes=limits.child_spare_bytes + 2 * file_bytes,
        cpu_seconds=limits.child_cpu_seconds + extra_seconds(file_bytes),
        answer_bytes=output_limit(limits, file_bytes=file_bytes),
    )


def output_limit(limits: Limits, *, file_bytes: int) -> int:
    """The largest file that a child may write; there is always room for what is no larger than the file."""
    most = max(2 * limits.max_loaded_bytes, file_bytes)
    return min(limits.max_total_bytes, most) + limits.max_header_bytes
