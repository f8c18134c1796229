"""The tracing code as docs/spec/code.md prints it: one position after another, in plain Python.

Written from that page and the paper with hashlib, mpmath and the integers of Python; AES is spelled out
below from FIPS 197. It shares nothing with the package. Run as a script it writes tests/vectors/code.json;
existing vectors must not change.
"""

import hashlib
import json
import math
import struct
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import mpmath

from support import seeded

# ── streams ────────────────────────────────────────────────────────────────────────────────────────────────


def shake(domain: str, *parts: bytes, size: int) -> bytes:
    absorbed = b"".join(len(part).to_bytes(8, "big") + part for part in (domain.encode(), *parts))
    return hashlib.shake_256(absorbed).digest(size)


def subkey(use: str, key: bytes, *parts: bytes) -> bytes:
    return shake(f"zkt-key-v1/{use}", key, *parts, size=32)


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


# ── AES-256 (FIPS 197), encryption only ────────────────────────────────────────────────────────────────────


def double(a: int) -> int:
    return (a << 1 ^ (0x11B if a & 0x80 else 0)) & 0xFF


def times(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = double(a), b >> 1
    return product


@lru_cache
def sbox() -> list[int]:
    inverse = [next((b for b in range(256) if times(a, b) == 1), 0) for a in range(256)]
    rotations = [[(b << n | b >> (8 - n)) & 0xFF for n in range(5)] for b in inverse]
    return [r[0] ^ r[1] ^ r[2] ^ r[3] ^ r[4] ^ 0x63 for r in rotations]


@lru_cache
def round_keys(key: bytes) -> list[list[int]]:
    words = [list(key[4 * i : 4 * i + 4]) for i in range(8)]
    constant = 1
    for i in range(8, 60):
        word = words[-1]
        if i % 8 == 0:
            word = [sbox()[b] for b in word[1:] + word[:1]]
            word[0] ^= constant
            constant = double(constant)
        elif i % 8 == 4:
            word = [sbox()[b] for b in word]
        words.append([a ^ b for a, b in zip(words[i - 8], word, strict=True)])
    return [[byte for word in words[4 * i : 4 * i + 4] for byte in word] for i in range(15)]


def aes(key: bytes, block: bytes) -> bytes:
    keys = round_keys(key)
    state = [a ^ b for a, b in zip(block, keys[0], strict=True)]
    for number in range(1, 15):
        state = [sbox()[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]  # SubBytes and ShiftRows
        if number < 14:
            mixed = []
            for column in (state[4 * i : 4 * i + 4] for i in range(4)):
                for i in range(4):
                    a, b, c, d = (column[(i + j) % 4] for j in range(4))
                    mixed.append(double(a) ^ double(b) ^ b ^ c ^ d)
            state = mixed
        state = [a ^ b for a, b in zip(state, keys[number], strict=True)]
    return bytes(state)


# ── the code ───────────────────────────────────────────────────────────────────────────────────────────────


def thresholds(seed: bytes, length: int, colluders: int) -> list[int]:
    """T of every position, with 60 decimal digits where 20 would do."""
    data = shake("zkt-biases-v1", seed, number(colluders), size=8 * length)
    result = []
    with mpmath.workdps(60):
        first = mpmath.asin(mpmath.sqrt(mpmath.mpf(1) / (300 * colluders)))
        for (drawn,) in struct.iter_unpack("<Q", data):
            angle = first + (mpmath.pi / 2 - 2 * first) * (mpmath.mpf(drawn) + 0.5) / 2**64
            result.append(int(mpmath.floor(mpmath.sin(angle) ** 2 * 2**32 + mpmath.mpf(1) / 2)))
    low = math.ceil(Fraction(2**32, 300 * colluders))
    return [min(max(t, low), 2**32 - low) for t in result]


def row(
    key: bytes, label: str, length: int, colluders: int, index: int, claim: tuple[bytes, bytes] = (b"", b"")
) -> list[int]:
    """The bits of one row."""
    biases = subkey("biases", key, label.encode())
    seed = subkey("place", key, label.encode(), number(index))
    own = shake("zkt-row-v1", seed, *claim, size=32)
    data = b"".join(aes(own, counter.to_bytes(16, "big")) for counter in range(-(-4 * length // 16)))
    drawn = [u for (u,) in struct.iter_unpack("<I", data)]
    return [int(u < t) for u, t in zip(drawn, thresholds(biases, length, colluders), strict=False)]


def packed(bits: list[int]) -> bytes:
    text = "".join(map(str, bits)).ljust(-(-len(bits) // 8) * 8, "0")
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


# ── coefficients ───────────────────────────────────────────────────────────────────────────────────────────


def symmetric(word: list[int], t: list[int]) -> list[int]:
    """C with s = 8 of `eq:U-def`."""
    result = []
    for y, threshold in zip(word, t, strict=True):
        p = threshold / 2**32
        result.append((2 * y - 1) * round(256 * (1.0 / math.sqrt(p * (1.0 - p)))))
    return result


def soft(values: list[float], t: list[int]) -> list[int]:
    """C with s = 8 of the soft score; floats are IEEE 754 doubles and `fsum` is correctly rounded."""
    n, p = len(values), [threshold / 2**32 for threshold in t]
    nothing = [0] * n
    if n < 16:
        return nothing
    large = math.frexp(max(abs(value) for value in values))[1]
    small = [math.ldexp(value, -large - 1) for value in values]
    middle = sorted(small)[n // 2]
    centred = [value - middle for value in small]
    distances = sorted(abs(value) for value in centred)
    quartile = distances[3 * n // 4] or math.fsum(distances) / n
    if quartile <= 2.0**-40 * abs(middle):
        return nothing
    scale, power = math.frexp(quartile)
    z = [limited(value, -power) for value in centred]
    tilt, width = [2.0 * q - 1.0 for q in p], [4.0 * q * (1.0 - q) for q in p]
    start = 6.0 * scale / 3.5
    mean, v = [0.0] * n, [start * start] * n
    for _ in range(8):
        r, w = tamed(z, mean, v)
        offset, slope = line(tilt, [m + d for m, d in zip(mean, r, strict=True)], w)
        mean = [offset + slope * x for x in tilt]
        r, w = tamed(z, mean, v)
        noise, spread = line_up(width, [d * d for d in r], [g * g for g in w])
        average = noise + spread * (math.fsum(width) / n)
        if average <= 2.0**-80:
            return nothing
        v = [max(noise + spread * x, 0.3 * average) for x in width]
    r, w = tamed(z, mean, v)
    raw = [d * g for d, g in zip(r, w, strict=True)]
    variance = math.fsum(c * c * (q * (1.0 - q)) for c, q in zip(raw, p, strict=True))
    if variance == 0.0:
        return nothing
    factor = math.sqrt(n / variance)
    return [round(256 * (c * factor)) for c in raw]


def limited(value: float, power: int) -> float:
    try:
        return max(-(2.0**20), min(2.0**20, math.ldexp(value, power)))
    except OverflowError:
        return math.copysign(2.0**20, value)


def tamed(z: list[float], mean: list[float], v: list[float]) -> tuple[list[float], list[float]]:
    residuals, weights = [], []
    for value, centre, variance in zip(z, mean, v, strict=True):
        d, sd = value - centre, math.sqrt(variance)
        keep = abs(d) <= 8.0 * sd
        residuals.append(max(-3.5 * sd, min(3.5 * sd, d)) if keep else 0.0)
        weights.append(1.0 / variance if keep else 0.0)
    return residuals, weights


def line(x: list[float], y: list[float], w: list[float]) -> tuple[float, float]:
    total = math.fsum(w)
    if total == 0.0:
        return 0.0, 0.0
    x_mean = math.fsum(g * a for g, a in zip(w, x, strict=True)) / total
    y_mean = math.fsum(g * b for g, b in zip(w, y, strict=True)) / total
    spread = math.fsum(g * (a - x_mean) * (a - x_mean) for g, a in zip(w, x, strict=True))
    if spread <= 2.0**-40 * total:
        return y_mean, 0.0
    slope = math.fsum(g * (a - x_mean) * (b - y_mean) for g, a, b in zip(w, x, y, strict=True)) / spread
    return y_mean - slope * x_mean, slope


def line_up(x: list[float], y: list[float], w: list[float]) -> tuple[float, float]:
    intercept, slope = line(x, y, w)
    if slope < 0.0:
        return math.fsum(g * b for g, b in zip(w, y, strict=True)) / math.fsum(w), 0.0
    if intercept < 0.0:
        top = math.fsum(g * a * b for g, a, b in zip(w, x, y, strict=True))
        return 0.0, top / math.fsum(g * a * a for g, a in zip(w, x, strict=True))
    return intercept, slope


# ── vectors ────────────────────────────────────────────────────────────────────────────────────────────────


def readout(label: str, length: int) -> list[float]:
    """A readout that needs no random generator: differences of bytes, heavier than a carrier's."""
    data = hashlib.shake_128(b"readout " + label.encode()).digest(4 * length)
    return [(a - b) * (1 + (c > 250) * d) / 128 for a, b, c, d in struct.iter_unpack("4B", data)]


def vector(label: str, length: int, colluders: int) -> dict[str, object]:
    """All bytes of one code."""
    key = seeded(label)(32)
    t = thresholds(subkey("biases", key, label.encode()), length, colluders)
    indices = [0, 1, 2, 1_000_003, 2**40 - 1]
    claim = (seeded(f"nonce {label}")(32), label.encode())
    word = row(key, label, length, colluders, 5)
    values = readout(label, length)

    def summary(numbers: list[int], form: str) -> str:
        return hashlib.sha256(struct.pack(f"<{length}{form}", *numbers)).hexdigest()

    return {
        "label": label,
        "length": length,
        "colluders": colluders,
        "key": key.hex(),
        "key_file": (b"zkt-code-key-v1" + key + subkey("check", key)).hex(),
        "fingerprint": subkey("fingerprint", key, label.encode(), number(length), number(colluders)).hex(),
        "first_thresholds": t[:8],
        "thresholds_sha256": summary(t, "I"),
        "rows": {str(i): packed(row(key, label, length, colluders, i)).hex() for i in indices},
        "row_7_of_the_claim": packed(row(key, label, length, colluders, 7, claim)).hex(),
        "symmetric_of_row_5_sha256": summary(symmetric(word, t), "q"),
        "soft_first": soft(values, t)[:8],
        "soft_sha256": summary(soft(values, t), "q"),
    }


if __name__ == "__main__":
    shapes = [("short", 13, 2), ("weights", 512, 2), ("features", 2048, 3), ("odd length", 777, 20)]
    path = Path(__file__).parents[1] / "vectors" / "code.json"
    path.write_text(json.dumps([vector(*shape) for shape in shapes], indent=1) + "\n")
