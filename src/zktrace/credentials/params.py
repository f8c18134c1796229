"""Named parameter sets of the xLPN credential and its Sigma-protocol."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from zktrace.errors import InputError, UnknownParameters
from zktrace.primitives.encoding import ByteReader, short

LENGTH_LIMIT: Final = 1 << 16  # a position and its sort key fit one 64-bit word


class Standing(Enum):
    """What a parameter set is for. The value is the word that people and --json read."""

    STRONG = "strong"
    REPRODUCTION = "reproduction"
    TEST = "test"


_WEAKNESS: Final = {
    Standing.STRONG: "",
    Standing.REPRODUCTION: "is kept to reproduce the paper: a key has about 2^40 witnesses, and "
    "Stern's search finds one in about 2^109 bit operations",
    Standing.TEST: "is a test set: anybody can forge its proofs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class XLPNParams:
    """Exact LPN: y = A s + e over F2 with wt(e) = weight."""

    name: str  # written into every key and proof
    length: int  # m, samples
    secret: int  # l, secret bits
    weight: int  # exact weight of e
    rounds: int  # r, parallel repetitions of the Sigma-protocol
    standing: Standing

    def __post_init__(self) -> None:
        if not 0 < self.secret < self.length or not 0 < 2 * self.weight <= self.length or self.rounds < 1:
            raise InputError(f"inconsistent xLPN parameters {self.name}")
        if self.length % 64 or self.secret % 8 or self.length > LENGTH_LIMIT:
            raise InputError(f"{self.name}: needs a length in words up to {LENGTH_LIMIT}, a secret in bytes")

    @property
    def weakness(self) -> str:
        """Why this set should not be relied on, as the rest of a sentence; empty for a strong one."""
        return _WEAKNESS[self.standing]

    @property
    def vector_bytes(self) -> int:
        """Bytes of an m-bit vector."""
        return self.length // 8

    @property
    def secret_bytes(self) -> int:
        """Bytes of an l-bit vector."""
        return self.secret // 8


DEFAULT: Final = XLPNParams(
    name="xlpn-1280-640-132", length=1280, secret=640, weight=132, rounds=331, standing=Standing.STRONG
)
PAPER: Final = XLPNParams(
    name="xlpn-1024-512-128", length=1024, secret=512, weight=128, rounds=331, standing=Standing.REPRODUCTION
)
SMALL: Final = XLPNParams(
    name="test-128-64-16", length=128, secret=64, weight=16, rounds=48, standing=Standing.TEST
)
SHORT: Final = XLPNParams(
    name="test-1280-640-16r", length=1280, secret=640, weight=132, rounds=16, standing=Standing.TEST
)

_SETS: Final = {params.name: params for params in (DEFAULT, PAPER, SMALL, SHORT)}


def names() -> tuple[str, ...]:
    """The parameter sets of this version, the default first."""
    return tuple(_SETS)


def by_name(name: str) -> XLPNParams:
    """The parameter set called `name`."""
    try:
        return _SETS[name]
    except KeyError:
        raise UnknownParameters(f"unknown parameter set {name!r}; known: {', '.join(_SETS)}") from None


def encode(params: XLPNParams) -> bytes:
    """The parameter set as keys and proofs name it."""
    return short(params.name.encode())


def read(reader: ByteReader) -> XLPNParams:
    """The parameter set that `encode` wrote, or the reader's error."""
    name = reader.short("the parameter set").decode("ascii", errors="backslashreplace")
    try:
        return by_name(name)
    except UnknownParameters as error:
        raise reader.fail(str(error)) from None
