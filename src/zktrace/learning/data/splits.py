"""Which samples train, which validate, which test."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from zktrace.errors import InputError
from zktrace.learning.arrays import Indices
from zktrace.learning.data.streams import generator

PAPER: Final = (8, 1, 1)  # parts of ten


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Three disjoint sets of sample numbers, each in ascending order."""

    train: Indices
    validation: Indices
    test: Indices

    def __post_init__(self) -> None:
        together = np.concatenate((self.train, self.validation, self.test))
        if len(np.unique(together)) != len(together):
            raise InputError("a sample stands in two parts of the split")

    def parts(self) -> dict[str, Indices]:
        """By name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


def split_samples(count: int, *, seed: int, parts: tuple[int, int, int] = PAPER) -> Split:
    """A sample-level split by one permutation, no regard to labels; test and validation round down."""
    whole = sum(parts)
    if count < 1 or min(parts) < 0 or parts[0] < 1:
        raise InputError(f"{count} samples cannot be split {':'.join(map(str, parts))}")
    order = generator(seed, "split").permutation(count).astype(np.int64)
    test = count * parts[2] // whole
    validation = count * parts[1] // whole
    return Split(
        train=np.sort(order[test + validation :]),
        validation=np.sort(order[test : test + validation]),
        test=np.sort(order[:test]),
    )
