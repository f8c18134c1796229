"""A proof as a value and as bytes. The byte layout is in docs/spec/stern-proof.md.

Rounds are stored by challenge: first all answers to challenge 0 in ascending order of their rounds, then
those to 1, then those to 2. Within a group every answer has the same size, so the challenges determine the
length of the whole and decoding is three reshapes.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from zktrace.credentials import params as parameter_sets
from zktrace.credentials import sparse
from zktrace.credentials.binding import Mode
from zktrace.credentials.expand import SEED_BYTES
from zktrace.credentials.params import XLPNParams
from zktrace.errors import InvalidProof, MalformedProof
from zktrace.primitives.encoding import ByteReader
from zktrace.primitives.gf2 import Bits

MAGIC: Final = b"zkt-stern-v1"
FILE_LIMIT: Final = 1 << 20  # bytes; nine times the largest proof of any parameter set
SALT_BYTES: Final = 32
COMMITMENT_BYTES: Final = 32
TRITS_PER_BYTE: Final = 5
TRIT_BYTE_VALUES: Final = 3**TRITS_PER_BYTE  # 243

_POWERS: Final = 3 ** np.arange(TRITS_PER_BYTE)

Challenges = NDArray[np.uint8]  # (rounds,), values 0, 1, 2


def unpack_trits(packed: Bits, count: int) -> Challenges:
    """The first `count` ternary digits of bytes below 243, least significant digit first."""
    digits = packed[:, None].astype(np.int64) // _POWERS % 3
    return digits.reshape(-1)[:count].astype(np.uint8)


def pack_trits(trits: Challenges) -> bytes:
    """Five ternary digits a byte; the unused digits of the last byte are 0."""
    padded = np.zeros(-(-len(trits) // TRITS_PER_BYTE) * TRITS_PER_BYTE, dtype=np.int64)
    padded[: len(trits)] = trits
    return (padded.reshape(-1, TRITS_PER_BYTE) @ _POWERS).astype(np.uint8).tobytes()


def _columns(table: Bits, *widths: int) -> list[Bits]:
    """`table` cut into adjacent columns of the given widths."""
    return np.split(table, np.cumsum(widths)[:-1], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proof:
    """A non-interactive Stern proof: challenges, unopened commitments, and the answers by challenge.

    The arrays of group c have one row for every round whose challenge is c.
    """

    params: XLPNParams
    mode: Mode
    salt: bytes
    challenges: Challenges
    unopened: Bits  # (rounds, 32), commitment 2 - c of the round: the one its answer does not open
    # challenge 0 opens C0 and C1
    roots: Bits  # seed of kappa_0, kappa_1 and v
    # challenge 1 opens C0 and C2
    kappa0: Bits  # seed of the permutation, key of C0
    kappa2_of_1: Bits  # key of C2
    shifted: Bits  # v + s, the preimage that puts the check's left side into the image of A
    t2: Bits
    # challenge 2 opens C1 and C2
    kappa1: Bits  # seed of t1, key of C1
    kappa2_of_2: Bits  # key of C2
    permuted_error: Bits  # t1 + t2

    def __post_init__(self) -> None:
        """The shapes that the challenges imply; what the arrays say is for `verify` to judge."""
        challenges = self.challenges
        if (
            challenges.shape != (self.params.rounds,)
            or challenges.dtype != np.uint8
            or (challenges > 2).any()
        ):
            raise MalformedProof("a proof has one challenge of 0, 1 or 2 a round")
        if len(self.salt) != SALT_BYTES:
            raise MalformedProof("a salt of the wrong size")
        counts = np.bincount(challenges, minlength=3).tolist()
        seed, vector = SEED_BYTES, self.params.vector_bytes
        shapes = (
            (self.unopened, self.params.rounds, COMMITMENT_BYTES),
            (self.roots, counts[0], seed),
            (self.kappa0, counts[1], seed),
            (self.kappa2_of_1, counts[1], seed),
            (self.shifted, counts[1], self.params.secret_bytes),
            (self.t2, counts[1], vector),
            (self.kappa1, counts[2], seed),
            (self.kappa2_of_2, counts[2], seed),
            (self.permuted_error, counts[2], vector),
        )
        if any(table.shape != (rows, width) or table.dtype != np.uint8 for table, rows, width in shapes):
            raise MalformedProof("a table of the wrong shape in a proof")

    def rounds_of(self, challenge: int) -> NDArray[np.intp]:
        """The rounds with this challenge, ascending."""
        return np.flatnonzero(self.challenges == challenge)

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        code = sparse.encode(self.permuted_error, length=self.params.length, weight=self.params.weight)
        unopened = [self.unopened[self.rounds_of(challenge)] for challenge in range(3)]
        groups = (
            (self.roots, unopened[0]),
            (self.kappa0, self.kappa2_of_1, self.shifted, self.t2, unopened[1]),
            (self.kappa1, self.kappa2_of_2, code, unopened[2]),
        )
        head = MAGIC + parameter_sets.encode(self.params) + bytes([self.mode.value])
        body = b"".join(np.concatenate(columns, axis=1).tobytes() for columns in groups)
        return head + self.salt + pack_trits(self.challenges) + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The proof that `to_bytes` wrote.

        MalformedProof for bytes that are no proof, InvalidProof for an answer of the wrong weight. Nothing is
        hashed or multiplied here, and what is allocated is a small multiple of `data`.
        """
        reader = ByteReader(data, what="proof", error=MalformedProof)
        params, mode = _read_head(reader)
        salt = reader.take(SALT_BYTES, "the salt")
        challenges = _read_challenges(reader, params.rounds)
        widths = _answer_widths(params)
        tables = []
        for challenge, columns in enumerate(widths):
            count = int((challenges == challenge).sum())
            raw = reader.take(count * sum(columns), f"the answers to challenge {challenge}")
            table = np.frombuffer(raw, dtype=np.uint8).reshape(count, sum(columns))
            tables.append(_columns(table, *columns))
        reader.finish()
        (roots, c2), (kappa0, kappa2_of_1, shifted, t2, c1), (kappa1, kappa2_of_2, code, c0) = tables
        unopened = np.empty((params.rounds, COMMITMENT_BYTES), dtype=np.uint8)
        for challenge, commitments in enumerate((c2, c1, c0)):
            unopened[challenges == challenge] = commitments
        return cls(
            params=params,
            mode=mode,
            salt=salt,
            challenges=challenges,
            unopened=unopened,
            roots=roots,
            kappa0=kappa0,
            kappa2_of_1=kappa2_of_1,
            shifted=shifted,
            t2=t2,
            kappa1=kappa1,
            kappa2_of_2=kappa2_of_2,
            permuted_error=_read_errors(code, params, np.flatnonzero(challenges == 2)),
        )


def _answer_widths(params: XLPNParams) -> tuple[tuple[int, ...], ...]:
    """Bytes of the columns of each group, the unopened commitment last."""
    code = sparse.coded_bytes(params.length, params.weight)
    return (
        (SEED_BYTES, COMMITMENT_BYTES),
        (SEED_BYTES, SEED_BYTES, params.secret_bytes, params.vector_bytes, COMMITMENT_BYTES),
        (SEED_BYTES, SEED_BYTES, code, COMMITMENT_BYTES),
    )


def _read_head(reader: ByteReader) -> tuple[XLPNParams, Mode]:
    reader.expect(MAGIC)
    params = parameter_sets.read(reader)
    mode = reader.take(1, "the mode")[0]
    if mode not in (known.value for known in Mode):
        raise reader.fail(f"unknown mode {mode}")
    return params, Mode(mode)


def _read_challenges(reader: ByteReader, rounds: int) -> Challenges:
    raw = reader.take(-(-rounds // TRITS_PER_BYTE), "the challenges")
    packed = np.frombuffer(raw, dtype=np.uint8)
    if (packed >= TRIT_BYTE_VALUES).any():
        raise reader.fail("a challenge byte above 242")
    challenges = unpack_trits(packed, rounds)
    if pack_trits(challenges) != raw:
        raise reader.fail("challenges beyond the last round")
    return challenges


def _read_errors(code: Bits, params: XLPNParams, rounds: NDArray[np.intp]) -> Bits:
    vectors, valid = sparse.decode(code, length=params.length, weight=params.weight)
    if not valid.all():
        raise InvalidProof(
            check="weight",
            round=int(rounds[~valid][0]),
            reason=f"the answer is not the code of a vector of weight {params.weight}",
        )
    return vectors
