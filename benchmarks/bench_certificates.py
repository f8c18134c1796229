"""How long does a certificate take, and how much sharper is the exact tail?"""

import sys
import time
from pathlib import Path

from timing import Row, at_least, at_most, median_ms, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from certificates.test_tail import chernoff_by_mpmath  # the second implementation that the tests trust
from zktrace.certificates.certificate import certify, smallest_threshold
from zktrace.certificates.finite import TracingCode, finite_guarantee
from zktrace.certificates.lengths import candidate_threshold
from zktrace.codes import Code, CodeKey, Coefficients, symmetric, unpack


def word_of(length: int, colluders: int) -> Coefficients:
    """Coefficients of a recipient's own row, read without an error."""
    code = Code(key=CodeKey.generate(entropy=bytes), label="bench", length=length, colluders=colluders)
    return symmetric(unpack(code.rows([0]), length)[0], code.biases)


def certificate_rows() -> list[Row]:
    """One certificate at 2048 positions, by both methods, and by mpmath's intervals."""
    coefficients = word_of(2048, 3)
    request = {"recipients": 10, "level": 5e-4}
    found = smallest_threshold(coefficients, method="chernoff", **request)
    arb = median_ms(lambda: certify(coefficients, found.threshold, method="chernoff", **request))
    tilt = float.fromhex(found.tilt)
    start = time.perf_counter()
    chernoff_by_mpmath(coefficients, found.threshold, tilt)
    mpmath = 1e3 * (time.perf_counter() - start)
    return [
        at_most("Chernoff certificate, 2048 positions", arb, "ms", 20),
        Row(name="the same exponent by mpmath.iv", value=mpmath, unit="ms"),
        at_least("ratio", mpmath / arb, "x", 10),
        at_most(
            "exact tail, smallest threshold, 2048 positions",
            median_ms(lambda: smallest_threshold(coefficients, **request), repeat=7),
            "ms",
            250,
        ),
        Row(
            name="exact tail, smallest threshold, 512 positions",
            value=median_ms(lambda: smallest_threshold(word_of(512, 2), **request), repeat=7),
            unit="ms",
        ),
    ]


def finite_rows() -> list[Row]:
    """Both rows of the table of finite guarantees, by both methods."""
    start = time.perf_counter()
    for colluders, length, flip in ((2, 512, 0.04), (3, 2048, 0.15)):
        for method in ("tight", "paper"):
            code = TracingCode(design=colluders, length=length, bias_bits=None if method == "paper" else 32)
            finite_guarantee(code=code, recipients=10, level=1e-3, flip=flip, method=method)
    return [at_most("table of finite guarantees, both methods", time.perf_counter() - start, "s", 5)]


def threshold_rows() -> list[Row]:
    """Thresholds of one recipient's row, N = 10, one tail of a two-tailed level of 10^-3."""
    rows = []
    for length, colluders in ((512, 2), (2048, 3)):
        coefficients = word_of(length, colluders)
        for method in ("exact", "chernoff"):
            found = smallest_threshold(coefficients, recipients=10, level=5e-4, method=method)
            rows.append(Row(name=f"threshold, n = {length}, {method}", value=float(found.threshold), unit=""))
        z = candidate_threshold(length=length, recipients=10, level=1e-3, tails=2)
        rows.append(Row(name=f"threshold, n = {length}, the paper's candidate", value=z, unit=""))
    return rows


if __name__ == "__main__":
    report("certificates", certificate_rows() + finite_rows() + threshold_rows())
