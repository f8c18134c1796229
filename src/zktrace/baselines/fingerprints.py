"""Words that lie far from each other, by FedTracker's genetic search."""

from typing import Final

import numpy as np

from zktrace.baselines.scale_words import Bits
from zktrace.errors import InputError

POPULATION: Final = 10
GENERATIONS: Final = 50
MUTATION: Final = 0.05  # of the bits
_KEPT: Final = 0.5  # of a generation


def nearest(words: Bits) -> int:
    """The least number of bits in which two of the words differ."""
    apart = (words[:, None, :] != words[None, :, :]).sum(axis=2)
    return int(apart[np.triu_indices(len(words), 1)].min())


def spread_words(rng: np.random.Generator, count: int, bits: int) -> Bits:
    """Different words, none of them all zero, whose nearest two the search has driven apart."""
    if count < 2 or bits < 8:
        raise InputError(f"{count} words of {bits} bits: two of eight at least")
    crowd = [rng.integers(0, 2, (count, bits)).astype(np.uint8) for _ in range(POPULATION)]
    for _ in range(GENERATIONS):
        crowd.sort(key=_fitness, reverse=True)
        parents = crowd[: round(POPULATION * _KEPT)]
        crowd = parents + [_child(rng, parents) for _ in range(POPULATION - len(parents))]
    best = max(crowd, key=_fitness)
    if _fitness(best) <= 0:
        raise InputError(f"no {count} different words of {bits} bits were found")
    return best


def _fitness(words: Bits) -> int:
    return nearest(words) if words.any(axis=1).all() else 0


def _child(rng: np.random.Generator, parents: list[Bits]) -> Bits:
    """Rows of two parents, with some bits turned."""
    mother, father = (parents[int(k)] for k in rng.integers(len(parents), size=2))
    taken = rng.random(len(mother)) < 0.5
    child = np.where(taken[:, None], mother, father)
    return (child ^ (rng.random(child.shape) < MUTATION)).astype(np.uint8)
