"""What a carrier is, as data: no room compares a carrier's name where this table has an answer.

spread    bits are directions in all weights of any network, written in closed form
weight    bits are projections of the BatchNorm scales, written in closed form
feature   bits are projections of features of secret probes, written by training the last stage
output    bits are directions of the class scores of secret probes: what a student copies too

Reader, writers and network stand here as text, `module:name`, and are loaded when they are asked for: the
table itself imports none of them, and what is read by numpy alone never loads torch.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from zktrace.errors import InputError
from zktrace.primitives.text import shown

Profile = Literal["informed", "paper"]
Law = Literal["tardos", "fair", "nuida"]
PROFILES: Final[tuple[Profile, Profile]] = ("informed", "paper")
IDENTITY: Final = "identity"  # a suspect as it is
MOST: Final = 16  # carriers
LEAST: Final = 128  # positions of a code that may accuse, unless a judge's policy says otherwise
_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A way to undo a disguise before a suspect is read."""

    name: str
    images: bool = False  # whether it is fitted on images of the release's proxy pool; else on the model
    unlike: bool = False  # whether it also maps a suspect that cannot be read as it is
    like: bool = True  # whether it is for a suspect that can
    faint: bool = False  # whether what it finds may be as faint as what is read of a suspect as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """One place where copies carry their rows."""

    name: str
    reads: str  # what a reading is, for a person
    reader: str  # the `readouts.reader.Reader` of it
    writers: Mapping[str, str]  # by profile: the `marking.writer.Writer` of it
    length: int  # n_t of its code unless a release says otherwise
    colluders: int  # c of its code
    law: Law = "fair"  # of its code's biases in the informed profile; the paper's profile has the paper's
    parts: int = 1  # of a look's share, beside the parts of the others: a faint carrier has more
    alignments: tuple[Alignment, ...] = ()  # how a suspect may be read beside as it is
    trained: bool = True  # whether an informed copy is trained
    setting: str = ""  # of a copy's settings, if one of them says how strongly this carrier is written
    network: str = ""  # if it is read from what a network says of probes: the function that lets it speak
    probes: str = ""  # the file of a release with these probes
    answers: bool = False  # whether it is read from class scores: also of a suspect that can only be asked
    beside: bool = False  # whether it is read beside the shared model itself, not beside numbers kept of it

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(f"{shown(self.name)} is no name of a carrier: up to 32 small letters and digits")
        if self.length < 1 or self.colluders < 2 or self.parts < 1:
            raise InputError(f"{self.name}: its code has a length, 2 colluders or more, and parts")
        if not self.profiles or not set(self.writers) <= set(PROFILES):
            raise InputError(f"{self.name}: writers are by profile, {' or '.join(PROFILES)}")
        for each in (self.reader, *self.writers.values(), *((self.network,) if self.network else ())):
            if len(each.split(":")) != 2 or not all(each.split(":")):
                raise InputError(f"{self.name}: {shown(each)} is not module:name")
        if bool(self.network) != bool(self.probes):
            raise InputError(f"{self.name}: a network is asked by probes, and probes are for a network")

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """In which it can be written."""
        return tuple(each for each in PROFILES if each in self.writers)


_ENTRIES: Final = (
    Carrier(
        name="spread",
        reads="Each is the sum of all weights along a secret direction.",
        reader="zktrace.readouts.spread:SpreadReader",
        writers={"informed": "zktrace.marking.spread:SpreadWriter"},
        length=2048,
        colluders=2,
        alignments=(Alignment(name="channels"), Alignment(name="rotated")),
        trained=False,
        setting="strength",
        beside=True,
    ),
    Carrier(
        name="weight",
        reads="Each is the sum of all BatchNorm scales along a secret direction.",
        reader="zktrace.readouts.weight:WeightReader",
        writers={
            "informed": "zktrace.marking.weight:ScaleWriter",
            "paper": "zktrace.marking.paper:PaperWriter",
        },
        length=512,
        colluders=2,
        alignments=(Alignment(name="channels"), Alignment(name="folded", unlike=True, like=False)),
        trained=False,
        setting="share",
    ),
    Carrier(
        name="feature",
        reads="Each is what the network makes of a secret probe image, along a secret direction.",
        reader="zktrace.readouts.features:FeatureReader",
        writers={
            "informed": "zktrace.marking.last_stage_writer:LastStageWriter",
            "paper": "zktrace.marking.paper:PaperWriter",
        },
        length=2048,
        colluders=3,
        alignments=(
            Alignment(name="procrustes", images=True),
            Alignment(name="ridge", images=True, unlike=True),
        ),
        network="zktrace.learning.answers:features",
        probes="probes.safetensors",
    ),
    Carrier(
        name="output",
        reads="Each is what the model answers to a few secret probe images, along a secret direction.",
        reader="zktrace.readouts.outputs:OutputReader",
        writers={"informed": "zktrace.marking.last_stage_writer:LastStageWriter"},
        length=2048,
        colluders=3,
        parts=8,
        alignments=(Alignment(name="head", faint=True),),
        network="zktrace.learning.answers:probe_scores",
        probes="queries.safetensors",
        answers=True,
    ),
)


_KNOWN: Final = {each.name: each for each in _ENTRIES}
CARRIERS: Final[Mapping[str, Carrier]] = MappingProxyType(_KNOWN)  # those added later too
NAMES: Final = CARRIERS.keys()


def add(entry: Carrier) -> None:
    """One more carrier, for this process: operator and judge each add it before they use it."""
    if entry.name in CARRIERS:
        raise InputError(f"there is a carrier {entry.name} already")
    if len(CARRIERS) == MOST:
        raise InputError(f"there can be {MOST} carriers, no more")
    _KNOWN[entry.name] = entry


def remove(name: str) -> None:
    """Take a carrier out that was added; those of the table stay."""
    if name in {each.name for each in _ENTRIES}:
        raise InputError(f"the carrier {name} is one of the table's own")
    _KNOWN.pop(carrier(name).name)


class _Alignments(Mapping[str, tuple[str, ...]]):
    """How a suspect may be read, and on which carriers."""

    def __getitem__(self, how: str) -> tuple[str, ...]:
        found = tuple(x.name for x in CARRIERS.values() if how in (IDENTITY, *(y.name for y in x.alignments)))
        if not found:
            raise KeyError(how)
        return found

    def __iter__(self) -> Iterator[str]:
        ways = (how.name for each in CARRIERS.values() for how in each.alignments)
        return iter(dict.fromkeys((IDENTITY, *ways)))

    def __len__(self) -> int:
        return len(list(iter(self)))


ALIGNMENTS: Final = _Alignments()


def carrier(name: str) -> Carrier:
    """The carrier of a name, or InputError."""
    try:
        return CARRIERS[name]
    except KeyError:
        raise InputError(f"no carrier {shown(name)}; known: {', '.join(NAMES)}") from None


def parts(name: str) -> int:
    """A carrier's parts of a look's share."""
    return carrier(name).parts


def law_of(name: str, profile: str) -> Law:
    """What the biases of a carrier's code are drawn from."""
    return "tardos" if profile == "paper" else carrier(name).law


def needs_training(names: Iterable[str], profile: str) -> bool:
    """Whether copies that carry these are trained. In the paper's profile all are."""
    return profile == "paper" or any(carrier(each).trained for each in names)
