"""Arb's working precision, which is global to the process: set here and nowhere else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

from zktrace.errors import InputError

WORKING_BITS = 128
_lock = threading.RLock()


@contextmanager
def precision(bits: int = WORKING_BITS) -> Iterator[None]:
    """Work at `bits` bits inside the block; other threads wait, for the precision is global."""
    if bits < 2:
        raise InputError(f"a working precision of {bits} bits")
    with _lock, ctx.workprec(bits):
        yield
