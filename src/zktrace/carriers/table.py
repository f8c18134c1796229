"""What a carrier is, as data: no room compares a carrier's name where this table has an answer.

weight    bits are projections of the BatchNorm scales, written in closed form
feature   bits are projections of features of secret probes, written by training the last stage
output    bits are directions of the class scores of secret probes: what a student copies too
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from zktrace.errors import InputError
from zktrace.primitives.text import shown

Profile = Literal["informed", "paper"]
PROFILES: Final[tuple[Profile, Profile]] = ("informed", "paper")
IDENTITY: Final = "identity"  # a suspect as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """One place where copies carry their rows."""

    name: str
    length: int  # n_t of its code unless told otherwise
    colluders: int  # c of its code
    parts: int = 1  # of a look's budget, beside the parts of the others: a faint carrier has more
    alignments: tuple[str, ...] = ()  # how a suspect may be read beside as it is
    profiles: tuple[Profile, ...] = PROFILES
    trained: bool = True  # whether an informed copy is trained
    network: bool = True  # whether reading takes the network and the release's probes
    answers: bool = False  # whether it is read from class scores: also of a suspect that can only be asked
    reads: str  # what a reading is, for a person


_ALL: Final = (
    Carrier(
        name="weight",
        length=512,
        colluders=2,
        alignments=("channels",),
        trained=False,
        network=False,
        reads="Each is the sum of all BatchNorm scales along a secret direction.",
    ),
    Carrier(
        name="feature",
        length=2048,
        colluders=3,
        alignments=("procrustes", "ridge"),
        reads="Each is what the network makes of a secret probe image, along a secret direction.",
    ),
    Carrier(
        name="output",
        length=2048,
        colluders=3,
        parts=8,
        profiles=("informed",),
        answers=True,
        reads="Each is what the model answers to a few secret probe images, along a secret direction.",
    ),
)
CARRIERS: Final = {each.name: each for each in _ALL}
NAMES: Final = tuple(CARRIERS)
ALIGNMENTS: Final[dict[str, tuple[str, ...]]] = {  # how a suspect may be read, and on which carriers
    IDENTITY: NAMES,
    **{how: tuple(x.name for x in _ALL if how in x.alignments) for each in _ALL for how in each.alignments},
}


def carrier(name: str) -> Carrier:
    """The carrier of a name, or InputError."""
    try:
        return CARRIERS[name]
    except KeyError:
        raise InputError(f"no carrier {shown(name)}; known: {', '.join(NAMES)}") from None


def parts(name: str) -> int:
    """A carrier's parts of a look's budget."""
    return carrier(name).parts


def needs_training(names: Iterable[str], profile: str) -> bool:
    """Whether copies that carry these are trained. In the paper's profile all are."""
    return profile == "paper" or any(carrier(each).trained for each in names)
