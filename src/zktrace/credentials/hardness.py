"""How hard it is to find a witness: decoding a random linear code by information sets.

y = A s + e with wt(e) = w hides a word of the random [m, l] code spanned by the columns of A under w errors,
so in the words of coding theory n = m is the length, k = l the dimension. Whoever finds *any* e' of weight w
with y + e' in Im A proves like the station. Up to the Gilbert-Varshamov distance the station's witness is
most likely the only one; above it there are many, and a search ends at the first.

Work is counted in bit operations: additions of n-bit vectors times n. An iteration brings n - k columns to
unit form by the method of the four Russians, then forms and merges lists (Stern). Memory and its access are
free, so figures err on the low side. They are estimates of known attacks, not bounds on all attacks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, lgamma, log, log2
from typing import Final

from zktrace.credentials.params import LENGTH_LIMIT
from zktrace.errors import InputError

_LARGEST_BLOCK: Final = 32  # columns that an elimination takes at once; the best is far below


@dataclass(frozen=True, slots=True, kw_only=True)
class SternWork:
    """Stern's search at its best parameters."""

    bits: float  # log2 of the bit operations
    errors: int  # p, in each half of the information set
    window: int  # l, positions outside of it that must be free of errors


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Exact weight-w decoding of a random [length, secret] code in which one solution was planted."""

    length: int  # n
    secret: int  # k
    weight: int  # w

    def __post_init__(self) -> None:
        if not 0 < self.secret < self.length <= LENGTH_LIMIT:
            raise InputError(f"a secret of {self.secret} bits and a length of {self.length} make no code")
        most = min(self.length // 2, self.length - self.secret)
        if not 0 < self.weight <= most:
            raise InputError(f"the weight must lie in 1..{most}, not {self.weight}")

    @cached_property
    def log2_witnesses(self) -> float:
        """log2 of C(n, w) 2^-(n-k), the number of witnesses expected besides the planted one."""
        return _log2_binomial(self.length, self.weight) - (self.length - self.secret)

    @cached_property
    def solutions(self) -> float:
        """log2 of the solutions that a search can end at, the planted one among them."""
        return log2(1 + 2**self.log2_witnesses) if self.log2_witnesses < 64 else self.log2_witnesses

    @cached_property
    def distance(self) -> int:
        """Gilbert-Varshamov: the largest d with C(n, 0) + ... + C(n, d-1) <= 2^(n-k)."""
        room, term, d = 1 << (self.length - self.secret), 1, 0
        while term <= room:
            room -= term
            term = term * (self.length - d) // (d + 1)
            d += 1
        return d

    @cached_property
    def prange(self) -> float:
        """log2 of the bit operations until an information set is free of errors."""
        hit = _log2_binomial(self.length - self.secret, self.weight)
        return self._repeated(hit, self.solutions) + log2(self._elimination) + log2(self.length)

    @cached_property
    def stern(self) -> SternWork:
        """The least work over p and l, with as many solutions as there are."""
        return self._best_stern(self.solutions)

    @cached_property
    def stern_one_solution(self) -> SternWork:
        """The same counted as if the planted witness were the only one, as the paper's figure is."""
        return self._best_stern(0)

    def stern_bits(self, errors: int, window: int, solutions: float) -> float:
        """Work with p errors in each half of the information set and none in a window of l positions.

        Two lists of L = C(k/2, p) sums are made; on the window L^2/2^l pairs agree.
        """
        redundancy = self.length - self.secret
        half = _log2_binomial(self.secret // 2, errors)
        hit = _log2_binomial(redundancy - window, self.weight - 2 * errors) + 2 * half
        iteration = _log2_sum(log2(self._elimination), 1 + half, 2 * half - window)
        return self._repeated(hit, solutions) + iteration + log2(self.length)

    def _best_stern(self, solutions: float) -> SternWork:
        best = SternWork(bits=inf, errors=0, window=0)
        for errors in range(min(self.weight, self.secret) // 2 + 1):
            half = _log2_binomial(self.secret // 2, errors)
            if half > best.bits:
                break  # from here on making one list costs more than all of the best
            # more than 2 log2(L) positions cannot thin out the pairs any further
            most = min(ceil(2 * half), self.length - self.secret - (self.weight - 2 * errors))
            if most < 0:
                continue

            def work(window: int, errors: int = errors) -> float:
                return self.stern_bits(errors, window, solutions)

            window = _least_of_convex(work, most)
            if work(window) < best.bits:
                best = SternWork(bits=work(window), errors=errors, window=window)
        return best

    def _repeated(self, hit: float, solutions: float) -> float:
        """log2 of the iterations until one of the solutions is hit, given log2 of the patterns that hit."""
        return max(0.0, _log2_binomial(self.length, self.weight) - hit - solutions)

    @cached_property
    def _elimination(self) -> int:
        """Vector additions of one Gaussian elimination, blocks of r columns by tables of 2^r sums."""
        rows = self.length - self.secret
        return min(
            (r * r + (1 << r) + max(0, rows - r)) * -(-self.length // r) for r in range(1, _LARGEST_BLOCK)
        )


def _least_of_convex(function: Callable[[int], float], most: int) -> int:
    """Where a convex function of 0..most is least, by bisection on the sign of its slope.

    Work is convex in the window: -log2 C(N - l, v) is, for its steps log2((N-l)/(N-l-v)) grow with l, and so
    is the log of a sum of exponentials; a maximum with 0 keeps it.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if function(middle + 1) < function(middle):
            low = middle + 1
        else:
            high = middle
    return low


def _log2_binomial(n: int, k: int) -> float:
    if not 0 <= k <= n:
        return -inf
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2)


def _log2_sum(*logs: float) -> float:
    largest = max(logs)
    return largest + log2(sum(2 ** (each - largest) for each in logs))
