"""How a carrier is read: one reader for each, the same for operator and judge, found by the carriers' table.

A reader turns a model into its *projections*: what the model says by itself, in one row of numbers. Those of
the shared model are the reference. A *readout* is what projections are beyond a reference, and is scored.
Readers are numpy. Where a carrier is read from what a network says of probes, the table names the function
that lets the network speak, and that one needs torch.

No reader knows anything that depends on a row.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.carriers import PROFILES, Profile, carrier
from zktrace.derivation.streams import Stream
from zktrace.errors import InputError, LimitExceeded
from zktrace.primitives.loading import loaded
from zktrace.readouts.directions import Floats
from zktrace.readouts.network import Network
from zktrace.readouts.samples import Pool
from zktrace.readouts.scales import Arrays

SUM_TOLERANCE: Final = 1e-9  # of the scale: what the order of a float64 sum can move
ALIGNED_TOLERANCE: Final = 1e-6  # the same, through an alignment
NETWORK_TOLERANCE: Final = (
    1e-4  # a float32 network by other kernels: 4e-6 was measured between two of torch's
)
ANCHORS: Final = 2048  # images at most that a suspect is aligned on
_FEWEST: Final = 16
MAX_ANSWERS: Final = 1 << 24  # numbers that a network says of all images together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Terms:
    """What a reader is made of. All of it is on record, or opened against what is."""

    carrier: str
    seed: bytes  # of the directions
    length: int
    profile: Profile
    dimension: int  # coordinates of a direction
    layers: tuple[int, ...] = ()  # sizes, where layers are read
    deviations: tuple[float, ...] = ()  # of their numbers, where they count
    probes: Arrays | None = None  # what a network is asked, where it is at hand
    names: tuple[str, ...] | None = None  # of the shared model's layers; None: any are taken in their order
    shared: Arrays | None = None  # the shared model, where a suspect is read beside it and it is at hand
    network: Network | None = None  # that speaks, if it is none of this package's
    frozen: bool = False  # whether training is kept out of the directions, by a guard

    def __post_init__(self) -> None:
        carrier(self.carrier)
        if self.profile not in PROFILES:
            raise InputError(f"profile {self.profile!r} is not known; it is one of {', '.join(PROFILES)}")
        if self.length < 1 or self.dimension < 1:
            raise InputError(f"{self.carrier}: {self.length} values of {self.dimension} coordinates")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What a release puts on record of its shared model, so that one carrier of its copies can be read."""

    dimension: int
    length: int  # of the code
    layers: tuple[int, ...] = ()
    deviations: tuple[float, ...] = ()  # float32
    probes: dict[str, NDArray[Any]] | None = None


class Reader(ABC):
    """Reads one carrier of models."""

    tolerance: ClassVar[float] = SUM_TOLERANCE  # of projections made again, as a part of the largest
    readout_tolerance: ClassVar[float] = SUM_TOLERANCE  # of a readout made of them, as a part of `scale`
    aligned_tolerance: ClassVar[float] = ALIGNED_TOLERANCE  # the same, through an alignment

    def __init__(self, terms: Terms, reference: Floats | None = None) -> None:
        """`reference`: the shared model's projections; none in the paper's profile or before it is made."""
        self.terms = terms
        self.reference = reference
        self._check_reference()

    @classmethod
    @abstractmethod
    def survey(cls, name: str, shared: Arrays, *, length: int, pool: Pool | None, draws: Stream) -> Survey:
        """What is to be on record of a shared model; `draws` decide which of the pool's images are probes."""

    @classmethod
    def default_length(cls, name: str, shared: Arrays) -> int:
        """Positions of the code of a release that does not say how many."""
        return carrier(name).length

    @abstractmethod
    def project(self, arrays: Arrays) -> Floats:
        """What a model says by itself. Of the shared model it is the reference."""

    def readout(self, projected: Floats, reference: Floats | None) -> Floats:
        """What projections are beyond a reference, as they are scored."""
        if self.terms.profile == "paper":
            return projected
        if reference is None:
            raise InputError("an informed reader needs the shared model's own readout")
        with np.errstate(over="ignore"):
            return finite(projected - reference)

    def scale(self, projected: Floats, readout: Floats, reference: Floats | None) -> float:
        """What an error of the readout is held against."""
        return max(float(np.abs(each).max()) for each in (projected, reference) if each is not None)

    def read(self, arrays: Arrays) -> Floats:
        """The readout of a suspect."""
        return self.readout(self.project(arrays), self.reference)

    def glimpse(self, arrays: Arrays) -> Floats:
        """The readout of a copy that was just made: enough of it to tell whose it is."""
        return self.read(arrays)

    def disguised(self, suspect: Arrays, how: str) -> bool:
        """Whether a suspect may have the disguise that an alignment undoes, as far as its names tell."""
        return True

    def aligned(self, suspect: Arrays, how: str, *, shared: Arrays, pool: Pool | None) -> Floats:
        """What a suspect says once an alignment with the shared model undid its disguise."""
        raise InputError(f"{self.terms.carrier}: there is no alignment {how}")

    def answered(self, scores: NDArray[Any]) -> Floats:
        """The projections of a suspect that was only asked."""
        raise InputError(f"{self.terms.carrier}: is read from a model, not from answers")

    def read_answers(self, scores: NDArray[Any]) -> Floats:
        """The readout of such a one."""
        return self.readout(self.answered(scores), self.reference)

    def remarks(self, arrays: Arrays) -> tuple[str, ...]:
        """What a person should know of how a suspect's parts were found, or were not."""
        return ()

    @property
    def carrying(self) -> dict[str, int]:
        """Tensors that are read and how many of their numbers, where a carrier is in several of them."""
        return {}

    @property
    def projections(self) -> int:
        """How many numbers a model says."""
        return self.terms.length

    def _check_reference(self) -> None:
        if self.reference is None:
            return
        if self.terms.profile == "paper":
            raise InputError("the paper's profile reads a suspect without a reference")
        if self.reference.shape != (self.projections,) or not np.isfinite(self.reference).all():
            raise InputError(
                f"a reference must be {self.projections} finite numbers, not of shape {self.reference.shape}"
            )


class NetworkReader(Reader):
    """Reads what a network says of probes: a row of numbers for each."""

    tolerance = NETWORK_TOLERANCE
    readout_tolerance = NETWORK_TOLERANCE

    @cached_property
    def probes(self) -> Arrays:
        """What the network is asked."""
        if self.terms.probes is None:
            raise InputError(f"{self.terms.carrier}: is read by the release's probes, and they are not there")
        return self.terms.probes

    @classmethod
    @abstractmethod
    def survey(
        cls,
        name: str,
        shared: Arrays,
        *,
        length: int,
        pool: Pool | None,
        draws: Stream,
        network: Network | None = None,
    ) -> Survey:
        """What is to be on record of a shared model; a network that is none of this package's is given."""


def spoken(name: str, arrays: Arrays, asked: Arrays, network: Network | None = None) -> Floats:
    """What a model's network says of a carrier's probes, a row for each; MissingExtra without torch."""
    speak = loaded(carrier(name).network)
    found: Floats = speak(arrays, asked) if network is None else speak(arrays, asked, network)
    return found


def reader_of(terms: Terms, reference: Floats | None = None) -> Reader:
    """The reader of a carrier, for operator and judge."""
    made: Reader = loaded(carrier(terms.carrier).reader)(terms, reference)
    return made


def survey_of(
    name: str,
    shared: Arrays,
    *,
    length: int | None,
    pool: Pool | None,
    draws: Stream,
    network: Network | None = None,
) -> Survey:
    """What a release puts on record for a carrier; without a length, of the one that suits the model."""
    kind: type[Reader] = loaded(carrier(name).reader)
    chosen = kind.default_length(name, shared) if length is None else length
    if issubclass(kind, NetworkReader):
        return kind.survey(name, shared, length=chosen, pool=pool, draws=draws, network=network)
    return kind.survey(name, shared, length=chosen, pool=pool, draws=draws)


def finite(values: Floats) -> Floats:
    """The same values, none of them beyond what a float holds."""
    if not np.isfinite(values).all():
        raise InputError("the model's numbers are too large to be read")
    return values


def check_inputs(inputs: NDArray[Any], what: str) -> NDArray[np.float32]:
    """Images, or other inputs, that a network can be shown, or InputError."""
    if inputs.ndim < 2 or inputs.dtype != np.float32 or not inputs.size:
        raise InputError(
            f"{what} of shape {inputs.shape} and type {inputs.dtype}: inputs in float32 are needed"
        )
    if not np.isfinite(inputs).all():
        raise InputError(f"{what}: has numbers that are not finite")
    return inputs


def numbered(arrays: Arrays, name: str, count: int) -> NDArray[np.float32]:
    """So many images under a name, or InputError."""
    found = arrays.get(name)
    if found is None or found.ndim < 2 or len(found) != count:
        given = "no" if found is None else f"of shape {found.shape} are"
        raise InputError(f"{name}: {given} images are there, {count} are needed")
    return check_inputs(found, name)


def check_answers(images: int, numbers: int) -> None:
    """Refuse a network that would say too much."""
    if images * numbers > MAX_ANSWERS:
        raise LimitExceeded(
            f"the model gives {numbers} numbers an image: of {images} images, at most {MAX_ANSWERS} are read"
        )


def anchors(pool: Pool, probes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Images of the pool that are no probes, to align a suspect on."""
    rest = np.flatnonzero(pool.others(probes))[:ANCHORS]
    if len(rest) < _FEWEST:
        raise InputError(f"{len(rest)} images of the release are no probes: too few to align features on")
    return np.ascontiguousarray(np.asarray(pool.images)[rest])
