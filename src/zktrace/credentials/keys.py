"""xLPN keys: y = A s + e with wt(e) fixed (paper, "Credentials" and `eq_watermark_hash`).

A public key is the 32-byte seed of A and the vector y; a secret key is that seed and a 32-byte seed from
which the witness (s, e) is derived. The layouts are in docs/spec/credentials.md.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Self

import numpy as np

from zktrace.credentials import params as parameter_sets
from zktrace.credentials.expand import SEED_BYTES, fixed_weight
from zktrace.credentials.params import XLPNParams
from zktrace.errors import MalformedKey
from zktrace.primitives.encoding import ByteReader
from zktrace.primitives.gf2 import Bits, LinearMap
from zktrace.primitives.shake import Shake

Entropy = Callable[[int], bytes]  # how many bytes -> that many uniform bytes

PUBLIC_MAGIC: Final = b"zkt-xlpn-pub-v1"
SECRET_MAGIC: Final = b"zkt-xlpn-key-v1"
FILE_LIMIT: Final = 16_384  # bytes; no key of any parameter set comes near
CODEWORD_BITS: Final = 128
_DIGEST_BYTES: Final = 32


def _bits(data: bytes) -> Bits:
    return np.frombuffer(data, dtype=np.uint8)


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """The statement (A, y) of a credential."""

    params: XLPNParams
    seed: bytes  # of A
    y: bytes  # packed, m bits

    def __post_init__(self) -> None:
        if len(self.seed) != SEED_BYTES or len(self.y) != self.params.vector_bytes:
            raise MalformedKey("a public key of the wrong size")

    @cached_property
    def matrix(self) -> bytes:
        """A by rows, each row packed: the expanded matrix that the codeword and every proof speak of."""
        return _matrix(self.params, self.seed)

    @cached_property
    def linear_map(self) -> LinearMap:
        """x -> A x."""
        return LinearMap(_bits(self.matrix).reshape(self.params.length, -1))

    def codeword(self, bits: int = CODEWORD_BITS) -> bytes:
        """The public identity codeword w = SHAKE-128(A | y), `bits` bits, packed (unused last bits are 0)."""
        return _codeword(self.params, self.seed, self.y, bits)

    @cached_property
    def fingerprint(self) -> bytes:
        """A short name of the key for people and for the check inside the secret key."""
        return Shake("zkt-xlpn-v1/fingerprint", self.to_bytes()).digest(_DIGEST_BYTES)

    def to_bytes(self) -> bytes:
        """The canonical encoding."""
        return PUBLIC_MAGIC + parameter_sets.encode(self.params) + self.seed + self.y

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The key that `to_bytes` wrote, or MalformedKey."""
        reader = ByteReader(data, what="public key", error=MalformedKey)
        reader.expect(PUBLIC_MAGIC)
        params = parameter_sets.read(reader)
        seed = reader.take(SEED_BYTES, "the matrix seed")
        y = reader.take(params.vector_bytes, "y")
        reader.finish()
        return cls(params=params, seed=seed, y=y)


@lru_cache(maxsize=8)  # a proof and then the codeword ask for that of one key, which has 100 KiB
def _matrix(params: XLPNParams, seed: bytes) -> bytes:
    size = params.length * params.secret_bytes
    return Shake("zkt-xlpn-v1/matrix", params.name.encode(), seed).digest(size)


@lru_cache(maxsize=1024)  # whoever enrols asks for it, and so does every rule on the way
def _codeword(params: XLPNParams, seed: bytes, y: bytes, bits: int) -> bytes:
    size = -(-bits // 8)
    matrix = PublicKey(params=params, seed=seed, y=y).matrix
    word = bytearray(hashlib.shake_128(matrix + y).digest(size))
    word[-1] &= 0xFF << (8 * size - bits) & 0xFF
    return bytes(word)


@dataclass(frozen=True, kw_only=True)
class SecretKey:
    """A credential: the statement's seed and the seed of its witness (s, e). Never printed."""

    params: XLPNParams
    matrix_seed: bytes
    witness_seed: bytes

    def __post_init__(self) -> None:
        if len(self.matrix_seed) != SEED_BYTES or len(self.witness_seed) != SEED_BYTES:
            raise MalformedKey("a secret key of the wrong size")

    def __repr__(self) -> str:
        return f"<SecretKey {self.params.name}>"

    @classmethod
    def generate(
        cls, params: XLPNParams = parameter_sets.DEFAULT, *, entropy: Entropy = secrets.token_bytes
    ) -> Self:
        """A new credential from operating-system randomness."""
        return cls(params=params, matrix_seed=entropy(SEED_BYTES), witness_seed=entropy(SEED_BYTES))

    def _stream(self, part: str) -> Shake:
        return Shake(f"zkt-xlpn-v1/{part}", self.params.name.encode(), self.witness_seed)

    @cached_property
    def s(self) -> Bits:
        """The secret, packed, l bits."""
        return _bits(self._stream("secret").digest(self.params.secret_bytes))

    @cached_property
    def e(self) -> Bits:
        """The error, packed, m bits of exact weight."""
        return fixed_weight(self._stream("error"), self.params.length, self.params.weight)

    @cached_property
    def public(self) -> PublicKey:
        """The statement that this key is the witness of."""
        unfinished = PublicKey(params=self.params, seed=self.matrix_seed, y=bytes(self.params.vector_bytes))
        y = unfinished.linear_map(self.s[None, :])[0] ^ self.e
        public = PublicKey(params=self.params, seed=self.matrix_seed, y=y.tobytes())
        # the expanded matrix depends on the seed alone, so both keys share it
        public.__dict__.update(matrix=unfinished.matrix, linear_map=unfinished.linear_map)
        return public

    def to_bytes(self) -> bytes:
        """The canonical encoding; it ends with the fingerprint of the public key as a check."""
        head = SECRET_MAGIC + parameter_sets.encode(self.params)
        return head + self.matrix_seed + self.witness_seed + self.public.fingerprint

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The key that `to_bytes` wrote, or MalformedKey, also if the check at its end does not hold."""
        reader = ByteReader(data, what="secret key", error=MalformedKey)
        reader.expect(SECRET_MAGIC)
        params = parameter_sets.read(reader)
        matrix_seed = reader.take(SEED_BYTES, "the matrix seed")
        witness_seed = reader.take(SEED_BYTES, "the witness seed")
        check = reader.take(_DIGEST_BYTES, "the check")
        reader.finish()
        key = cls(params=params, matrix_seed=matrix_seed, witness_seed=witness_seed)
        if not secrets.compare_digest(check, key.public.fingerprint):
            raise reader.fail("damaged: its witness does not belong to its public key")
        return key
