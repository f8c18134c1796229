"""Named parameter sets of the xLPN credential and its Sigma-protocol."""

from dataclasses import dataclass
from typing import Final

from zktrace.errors import UnknownParameters
from zktrace.primitives.encoding import Reader, short


@dataclass(frozen=True, slots=True, kw_only=True)
class XLPNParams:
    """Exact LPN: y = A s + e over F2 with wt(e) = weight."""

    name: str  # written into every key and proof
    length: int  # m, samples
    secret: int  # l, secret bits
    weight: int  # exact weight of e
    rounds: int  # r, parallel repetitions of the Sigma-protocol
    secure: bool  # false for the sets that exist for tests only

    def __post_init__(self) -> None:
        if self.length % 64 or self.secret % 8 or not 0 < 2 * self.weight <= self.length or self.rounds < 1:
            raise ValueError(f"inconsistent xLPN parameters {self.name}")
        if self.length & (self.length - 1) or self.length > 1 << 16:
            raise ValueError(f"{self.name}: the length must be a power of two up to 65536")

    @property
    def vector_bytes(self) -> int:
        """Bytes of an m-bit vector."""
        return self.length // 8

    @property
    def secret_bytes(self) -> int:
        """Bytes of an l-bit vector."""
        return self.secret // 8


DEFAULT: Final = XLPNParams(
    name="xlpn-1024-512-128", length=1024, secret=512, weight=128, rounds=331, secure=True
)
SMALL: Final = XLPNParams(name="test-128-64-16", length=128, secret=64, weight=16, rounds=48, secure=False)
SHORT: Final = XLPNParams(
    name="test-1024-512-16r", length=1024, secret=512, weight=128, rounds=16, secure=False
)

_SETS: Final = {params.name: params for params in (DEFAULT, SMALL, SHORT)}


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


def read(reader: Reader) -> XLPNParams:
    """The parameter set that `encode` wrote, or the reader's error."""
    name = reader.short("the parameter set").decode("ascii", errors="backslashreplace")
    try:
        return by_name(name)
    except UnknownParameters as error:
        raise reader.fail(str(error)) from None
