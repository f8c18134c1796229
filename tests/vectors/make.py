"""Writes credentials.json from docs/spec/*.md alone: standard library, bit by bit, nothing of the package.

    python tests/vectors/make.py

Run it only to add vectors: existing ones must not change.
"""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

SETS = {
    "xlpn-1280-640-132": (1280, 640, 132, 331),
    "xlpn-1024-512-128": (1024, 512, 128, 331),
    "test-128-64-16": (128, 64, 16, 48),
}
MODES = ("credential", "model", "message", "request")
MODEL_DIGEST = bytes(range(32))
MESSAGE = b"known answer"
OFFER, NONCE = bytes(range(32, 64)), bytes(range(64, 96))


def seeded(label: str) -> Callable[[int], bytes]:
    """Stands in for operating-system randomness: every draw goes on where the last ended."""
    position = 0

    def draw(size: int) -> bytes:
        nonlocal position
        position += size
        return hashlib.shake_128(label.encode()).digest(position)[position - size :]

    return draw


def enc(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def shake(size: int, *parts: bytes) -> bytes:
    return hashlib.shake_256(enc(*parts)).digest(size)


def to_bits(data: bytes) -> list[int]:
    return [(byte >> (7 - i)) & 1 for byte in data for i in range(8)]


def to_bytes(bits: list[int]) -> bytes:
    padded = bits + [0] * (-len(bits) % 8)
    return bytes(int("".join(map(str, padded[i : i + 8])), 2) for i in range(0, len(padded), 8))


def xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def permutation(m: int, *source: bytes) -> list[int]:
    block = 0
    while True:
        out = shake(4 * m * (block + 1), *source)[4 * m * block :]
        keys = [int.from_bytes(out[4 * i : 4 * i + 4], "big") for i in range(m)]
        if len(set(keys)) == m:
            return sorted(range(m), key=keys.__getitem__)
        block += 1


def product(matrix: bytes, x: bytes) -> bytes:
    width, wanted = len(x), int.from_bytes(x, "big")
    rows = (int.from_bytes(matrix[at : at + width], "big") for at in range(0, len(matrix), width))
    return to_bytes([(row & wanted).bit_count() & 1 for row in rows])


def elias_fano(bits: list[int], weight: int) -> bytes:
    positions = [i for i, bit in enumerate(bits) if bit]
    low = math.floor(math.log2(len(bits) / weight))
    high = [0] * (weight + math.ceil(len(bits) / 2**low))
    for i, position in enumerate(positions):
        high[(position >> low) + i] = 1
    return to_bytes(high + [(p >> (low - 1 - j)) & 1 for p in positions for j in range(low)])


def vector(params: str, mode: str) -> dict[str, object]:
    """All bytes of one key and one proof."""
    m, l, weight, rounds = SETS[params]
    label = f"{params} {mode}"
    draw, name = seeded(label), params.encode()
    header = bytes([len(name)]) + name

    matrix_seed, witness_seed = draw(32), draw(32)
    matrix = shake(m * l // 8, b"zkt-xlpn-v1/matrix", name, matrix_seed)
    s = shake(l // 8, b"zkt-xlpn-v1/secret", name, witness_seed)
    e = [0] * m
    for position in permutation(m, b"zkt-xlpn-v1/error", name, witness_seed)[:weight]:
        e[position] = 1
    y = xor(product(matrix, s), to_bytes(e))
    public = b"zkt-xlpn-pub-v1" + header + matrix_seed + y
    check = shake(32, b"zkt-xlpn-v1/fingerprint", public)
    codeword = hashlib.shake_128(matrix + y).digest(16)

    about = {
        "credential": [],
        "model": [MODEL_DIGEST, (128).to_bytes(4, "big") + codeword],
        "message": [hashlib.sha256(MESSAGE).digest()],
        "request": [OFFER, NONCE],
    }[mode]
    ctx = enc(b"zkt-stern-v1/" + mode.encode(), *about, matrix, y)
    seeds = shake(32 + 64 * rounds, b"zkt-stern-v1/seeds", name, witness_seed, draw(32), ctx)
    salt, roots, thirds = seeds[:32], seeds[32 : 32 + 32 * rounds], seeds[32 + 32 * rounds :]

    def h(size: int, use: str, data: bytes) -> bytes:
        return shake(size, f"zkt-stern-v1/{use}".encode(), name, salt, data)

    answers, sent = [], []
    for k in range(rounds):
        at, root, kappa2 = k.to_bytes(4, "big"), roots[32 * k : 32 * k + 32], thirds[32 * k : 32 * k + 32]
        expanded = h(64 + l // 8, "root", at + root)
        kappa0, kappa1, v = expanded[:32], expanded[32:64], expanded[64:]
        pi = permutation(m, b"zkt-stern-v1/permutation", name, salt, at + kappa0)
        t1 = h(m // 8, "mask", at + kappa1)
        f = [0] * m
        for j, bit in enumerate(to_bits(t1)):
            f[pi[j]] = bit
        t0 = xor(product(matrix, v), to_bytes(f))
        moved = [e[pi[j]] for j in range(m)]
        t2 = xor(t1, to_bytes(moved))
        opened = ((kappa0, t0), (kappa1, t1), (kappa2, t2))
        c = [h(32, "commitment", at + bytes([j]) + kappa + t) for j, (kappa, t) in enumerate(opened)]
        sent += c
        to_two = kappa1 + kappa2 + elias_fano(moved, weight) + c[0]
        answers.append((root + c[2], kappa0 + kappa2 + xor(v, s) + t2 + c[1], to_two))
    stream = shake(10 * rounds, b"zkt-stern-v1/challenge", name, salt, b"".join(sent), ctx)
    challenges = [byte // 3**i % 3 for byte in stream if byte < 243 for i in range(5)][:rounds]
    padded = challenges + [0] * (-rounds % 5)
    packed = bytes(sum(padded[at + i] * 3**i for i in range(5)) for at in range(0, len(padded), 5))
    body = b"".join(
        answers[k][challenge] for challenge in range(3) for k in range(rounds) if challenges[k] == challenge
    )
    proof = b"zkt-stern-v1" + header + bytes([MODES.index(mode)]) + salt + packed + body
    return {
        "label": label,
        "params": params,
        "mode": mode,
        "secret_key": (b"zkt-xlpn-key-v1" + header + matrix_seed + witness_seed + check).hex(),
        "public_key": public.hex(),
        "codeword": codeword.hex(),
        "proof_bytes": len(proof),
        "proof_sha256": hashlib.sha256(proof).hexdigest(),
    }


if __name__ == "__main__":
    vectors = [vector(params, mode) for params in SETS for mode in MODES]
    (Path(__file__).parent / "credentials.json").write_text(json.dumps(vectors, indent=1) + "\n")
