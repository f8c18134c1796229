"""What a carrier of a suspect reads, before anything is known of any row."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from zktrace.errors import InputError
from zktrace.readouts.directions import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readout:
    """One carrier's values of a suspect, and the shared model's own that were taken off them."""

    carrier: str
    values: Floats
    reference: Floats | None  # none in the paper profile; of the output carrier scores, row after row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempt:
    """A carrier that is read through an alignment, if the suspect as it is names nobody.

    `read` may raise InputError: this suspect cannot be aligned. Like every reading it knows no row.
    """

    carrier: str
    alignment: str
    read: Callable[[], Readout]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reading:
    """What is scored at once, what only if that certifies nobody, and what could not be read, and why."""

    readouts: tuple[Readout, ...]
    further: tuple[Attempt, ...] = ()
    left: tuple[tuple[str, str], ...] = ()  # (carrier, reason)
    remarks: tuple[tuple[str, str], ...] = ()  # (carrier, how a part was found otherwise than by its name)

    def remembered(self) -> "Reading":
        """The same with every alignment found now, or why it cannot be, so that many may ask."""
        return replace(self, further=tuple(replace(each, read=_once(each)) for each in self.further))


def _once(attempt: Attempt) -> Callable[[], Readout]:
    try:
        found = attempt.read()
    except InputError as error:
        reason = str(error)

        def refused() -> Readout:
            raise InputError(reason)

        return refused
    return lambda: found
