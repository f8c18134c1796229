"""The child process that reads a model file of any kind: standard input -> safetensors on standard output.

It has numpy and safetensors, and reads by the same functions as whoever opens a file without a child.
"""

from typing import IO

from zktrace.errors import LimitExceeded
from zktrace.models.limits import Limits, check_loaded
from zktrace.models.open import read_alone
from zktrace.models.saving import write_plain
from zktrace.models.torch_child import output_limit, rewriting
from zktrace.models.torch_zip import convert, is_checkpoint


def main(argument: str) -> None:
    """Read the file on standard input. `argument` is a JSON object of the fields of `Limits`."""
    rewriting(argument, rewrite)


def rewrite(source: memoryview, out: IO[bytes], limits: Limits) -> None:
    """Write the state of one model file, to which nothing else belongs, as a safetensors file."""
    if is_checkpoint(source, limits):
        check_loaded(len(source), limits)
        convert(source, out, limits)
        return
    state = read_alone(0, source, limits)
    most = output_limit(limits, file_bytes=len(source))
    if state.nbytes > most:  # what is quantised takes its full room here
        raise LimitExceeded(
            f"its tensors take {state.nbytes} bytes when they are unpacked, the limit is {most}"
        )
    write_plain(state, out)
