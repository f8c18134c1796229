"""What only the holder of the code key can derive: codes, openings, direction seeds.

Nothing of it is stored. A subkey is SHAKE-256 of the code key under its own use and the fields that name it,
so an opening that is handed to a judge tells nothing about another one.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self

from zktrace.codes import Code, CodeKey
from zktrace.credentials import PublicKey
from zktrace.errors import InputError, Rejected
from zktrace.primitives.commitment import OPENING_BYTES
from zktrace.primitives.text import shown
from zktrace.registry.bindings import bias_commitment, enrolment_commitment, key_commitment
from zktrace.registry.records import CARRIERS, CarrierCode, Enrolment, Setup

IDENTITY_BITS: Final = 128
SEED_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeShape:
    """The public numbers of a carrier's code."""

    carrier: str
    length: int  # n_t
    colluders: int  # c


DEFAULT_SHAPES: Final = {
    each.carrier: each
    for each in (
        CodeShape(carrier="weight", length=512, colluders=2),
        CodeShape(carrier="feature", length=2048, colluders=3),
        CodeShape(carrier="output", length=2048, colluders=3),
    )
}


def default_shape(carrier: str) -> CodeShape:
    """The code a carrier gets unless told otherwise."""
    if carrier not in DEFAULT_SHAPES:
        raise InputError(f"no carrier {shown(carrier)}; known: {', '.join(DEFAULT_SHAPES)}")
    return DEFAULT_SHAPES[carrier]


@dataclass(frozen=True, kw_only=True)
class Custody:
    """The code key and the shapes of its codes: what the operator keeps and a judge never holds."""

    key: CodeKey
    shapes: tuple[CodeShape, ...]
    _codes: dict[str, Code] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [each.carrier for each in self.shapes]
        if not names or len(set(names)) != len(names) or not set(names) <= set(CARRIERS):
            raise InputError(f"codes are for carriers, each once, of {', '.join(CARRIERS)}")
        codes = {
            each.carrier: Code(key=self.key, label=each.carrier, length=each.length, colluders=each.colluders)
            for each in self.shapes
        }
        object.__setattr__(self, "_codes", codes)

    @classmethod
    def of_setup(cls, key: CodeKey, setup: Setup) -> Self:
        """Custody of the codes of a registry, or Rejected if the key is not the one it committed to."""
        shapes = tuple(
            CodeShape(carrier=each.carrier, length=each.length, colluders=each.colluders)
            for each in setup.carriers
        )
        custody = cls(key=key, shapes=shapes)
        if key_commitment(custody.key_opening(), key.secret) != setup.code_key:
            raise Rejected("the code key is not the one that the registry committed to")
        return custody

    def code(self, carrier: str) -> Code:
        """The code of a carrier. Its biases are drawn once."""
        try:
            return self._codes[carrier]
        except KeyError:
            raise InputError(f"this registry has no code for the carrier {carrier!r}") from None

    def key_opening(self) -> bytes:
        """rho of the commitment to the code key."""
        return self.key.stream("opening/code-key").digest(OPENING_BYTES)

    def bias_opening(self, carrier: str) -> bytes:
        """rho of the commitment to a carrier's biases."""
        return self.key.stream("opening/biases", carrier.encode()).digest(OPENING_BYTES)

    def row_opening(self, carrier: str, row: int) -> bytes:
        """rho of a station's enrolment commitment for one carrier."""
        return self.key.stream("opening/row", carrier.encode(), row.to_bytes(8, "big")).digest(OPENING_BYTES)

    def direction_seed(self, carrier: str, release: str) -> bytes:
        """The seed of the directions a release is read with: one-way, so a reader with it knows no row."""
        return self.key.stream("directions", carrier.encode(), release.encode()).digest(SEED_BYTES)

    def setup(self, *, title: str, budget: Fraction, identity_bits: int = IDENTITY_BITS) -> Setup:
        """The first record of a registry with these codes."""
        carriers = tuple(
            CarrierCode(
                carrier=each.carrier,
                length=each.length,
                colluders=each.colluders,
                biases=bias_commitment(
                    self.bias_opening(each.carrier), each.carrier, self.code(each.carrier).biases
                ),
            )
            for each in self.shapes
        )
        return Setup(
            title=title,
            code_key=key_commitment(self.key_opening(), self.key.secret),
            carriers=carriers,
            identity_bits=identity_bits,
            budget=budget,
        )

    def enrolment(self, setup: Setup, *, station: str, row: int, public: PublicKey) -> Enrolment:
        """The record that gives a station its row."""
        codeword = public.codeword(setup.identity_bits)
        commitments = tuple(
            (each.carrier, self._row_commitment(each.carrier, row, public, codeword))
            for each in setup.carriers
        )
        return Enrolment(
            station=station,
            row=row,
            public_key=public.to_bytes(),
            codeword=codeword,
            commitments=commitments,
        )

    def row(self, carrier: str, row: int) -> bytes:
        """Row `row` of a carrier's code, packed."""
        return self.code(carrier).rows([row]).tobytes()

    def _row_commitment(self, carrier: str, row: int, public: PublicKey, codeword: bytes) -> bytes:
        rho = self.row_opening(carrier, row)
        return enrolment_commitment(rho, carrier, public, codeword, self.row(carrier, row))
