"""How fast are biases, rows and scores of a million recipients, beside unpacking and multiplying?

The plain way to score is `unpackbits(rows) @ C`. It is measured on 20,000 rows and scaled up: in integers, as
the scores are defined; in float64, which is exact too; and tuned, with blocks that fit a cache, in integers
and in float32 by BLAS (exact only while every partial sum stays below 2^24). The promised ratio is to the
first of them; the others are printed beside it. `ZKTRACE_BENCH_ROWS` sets another number of rows.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timing import Row, at_least, at_most, median_ms, report
from zktrace.codes import Code, CodeKey, RowCache, draw, score_all, soft, sums, symmetric, unpack
from zktrace.codes.strategies import linear_channel

LENGTH, COLLUDERS = 2048, 3
ROWS = int(os.environ.get("ZKTRACE_BENCH_ROWS", "1000000"))
CODE = Code(key=CodeKey(secret=bytes(32)), label="benchmark", length=LENGTH, colluders=COLLUDERS)


def seconds(call: Callable[[], object]) -> float:
    """One run."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def plain(rows: NDArray[np.uint8], weights: NDArray[np.generic], block: int) -> NDArray[np.generic]:
    """Unpack and multiply as anyone would write it, `block` rows at a time."""
    parts = [np.unpackbits(rows[i : i + block], axis=1) @ weights for i in range(0, len(rows), block)]
    return np.concatenate(parts)


def plain_seconds(rows: NDArray[np.uint8], weights: NDArray[np.generic], block: int) -> float:
    """For all rows, scaled up from the first 20,000."""
    part = rows[:20_000]
    return median_ms(lambda: plain(part, weights, block), repeat=3, warm_up=1) / 1e3 * ROWS / len(part)


def making_rows() -> list[Row]:
    """Biases, and rows thrown away as they are made."""
    number = iter(range(10**6))
    drawing = median_ms(lambda: draw(next(number).to_bytes(32, "big"), LENGTH, COLLUDERS))
    part = min(100_000, ROWS)

    def make(count: int) -> None:
        for _ in CODE.blocks(0, count):
            pass

    make(1000)
    return [
        at_most(f"draw {LENGTH} biases", drawing, "ms", 100),
        Row(name=f"make {part} rows of {LENGTH}", value=seconds(lambda: make(part)), unit="s"),
        at_most(f"make {ROWS} rows of {LENGTH}", seconds(lambda: make(ROWS)), "s", 30),
    ]


def scoring() -> list[Row]:
    """One word against all rows of a mapped cache."""
    rng = np.random.default_rng(0)
    coefficients = symmetric(rng.integers(0, 2, LENGTH), CODE.biases)
    readout = linear_channel(unpack(CODE.rows(range(5)), LENGTH), 0.3, rng)
    exact = coefficients.numerators
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        building = seconds(lambda: RowCache.build(path, CODE, ROWS))
        cache = RowCache.open(path, CODE)
        rows = cache.rows
        assert (plain(rows[:5000], exact, 512) == sums(rows[:5000], coefficients)).all()
        fast = median_ms(lambda: sums(cache.rows, coefficients), repeat=5, warm_up=1) / 1e3
        single = median_ms(lambda: sums(cache.rows, coefficients, threads=1), repeat=5, warm_up=1) / 1e3
        slow = {
            "integers, 20,000 rows at once": plain_seconds(rows, exact, 20_000),
            "integers, 512 rows at once": plain_seconds(rows, exact, 512),
            "float64, 20,000 rows at once": plain_seconds(rows, exact.astype(np.float64), 20_000),
            "float32, 512 rows at once": plain_seconds(rows, exact.astype(np.float32), 512),
        }
        flying = seconds(lambda: score_all(CODE, ROWS, coefficients))
    plainest = slow["integers, 20,000 rows at once"]
    return [
        Row(name="build the cache", value=building, unit="s"),
        at_most(f"score {ROWS} rows", fast, "s", 1.0),
        Row(name="the same, one thread", value=single, unit="s"),
        *(Row(name=f"unpack and multiply, {name}", value=value, unit="s") for name, value in slow.items()),
        at_least("ratio to the first of these", plainest / fast, "x", 10),
        at_least("the same, one thread", plainest / single, "x", 10),
        Row(name="ratio to the best of these", value=min(slow.values()) / fast, unit="x"),
        Row(name="score without a cache", value=flying, unit="s"),
        Row(name="soft coefficients", value=median_ms(lambda: soft(readout, CODE.biases)), unit="ms"),
    ]


if __name__ == "__main__":
    report("codes", making_rows() + scoring())
