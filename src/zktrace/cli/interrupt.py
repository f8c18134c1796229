"""Ctrl-C: the command ends within two seconds and says what is kept and how to go on.

The first one raises KeyboardInterrupt as usual, so that whatever is under way is put away. What then still
holds the process - a library in the middle of a long computation, an interrupt that some callback swallowed -
is left behind by a second Ctrl-C, or after the grace time. Nothing is lost by that: files are written whole,
and the registry's database by transactions.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from zktrace.errors import Interrupted

CODE: Final = 130
GRACE: Final = 1.5  # seconds

_KEPT: Final = {
    "train": "finished epochs and rounds are kept, and the same command with --resume goes on after them",
    "dispatch": "copies that are done are kept and on record, and the same command makes the others",
    "attack distill": "epochs that are done are kept with --checkpoint, and the same command goes on there",
    "study": "rows and checkpoints that are done are kept, and the same command goes on after them",
    "trace": "an investigation that is on record stays paid for (zktrace cases shows it)",
    "demo": "a demo that has ended is kept (--serve shows it), and any other begins again",
}
SERVICE: Final = 15.0  # seconds that a service may take to end: requests and workers come to theirs
_WHOLE: Final = "files are written whole or not at all, and the same command begins again"


def interrupted(arguments: Sequence[str]) -> Interrupted:
    """What is kept of a command that was interrupted, and how to go on."""
    words = " ".join(arguments)
    fitting = (kept for name, kept in _KEPT.items() if f"{words} ".startswith(f"{name} "))
    return Interrupted(next(fitting, _WHOLE))


class Interrupts:
    """What happens on Ctrl-C in the process of one command."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self.told = False
        self._received = False
        self.grace = GRACE

    def install(self) -> None:
        """Listen, unless whoever started us wants Ctrl-C ignored."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._receive)

    def leave(self) -> NoReturn:
        """End the process now, and the processes it started; say what is kept, unless that was said."""
        if not self.told:
            from zktrace.cli.output import complain

            complain(interrupted(self._arguments), as_json="--json" in self._arguments)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        if "multiprocessing" in sys.modules:
            for child in sys.modules["multiprocessing"].active_children():
                child.kill()
        os._exit(CODE)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received:
            self.leave()
        self._received = True
        sys.unraisablehook = lambda _: None  # an interrupt that a callback swallows is no news
        timer = threading.Timer(self.grace, self.leave)
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt


_present = Interrupts([])


def listen(arguments: Sequence[str]) -> Interrupts:
    """The interrupts of this process's one command, installed."""
    global _present  # noqa: PLW0603
    _present = Interrupts(arguments)
    _present.install()
    return _present


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """More grace for a block whose end takes a conversation with another machine, or process."""
    before, _present.grace = _present.grace, seconds
    try:
        yield
    finally:
        _present.grace = before
