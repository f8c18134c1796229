"""A recipient that erases its own row (the paper's own-row erasure, `sub:stressors`).

What an insider knows is what it is handed:

    copy    its own copy. Not the shared model: whoever has that may leak it, and needs no erasure.
    row     its own row on every carrier, as the paper assumes; nobody else's, and no bias of the code.
    pen     how copies are made, as writer and reader along some directions. Two levels of knowledge:
            `directions`  the operator's own directions and probes, as the paper's hinge needs both.
            `row`         directions and probes that the insider drew, as the operator's are secret.
    rng     its coins.

    negation    writes the opposite of its row
    fresh       writes a row of coins instead
    hybrid      the opposite on some carriers, coins on the others; the paper turns the weights' row
    replacement the opposite, and coins after it, with half of the episodes each. Where marks add up, the
                opposite alone leaves a faint but clean rest of the row, of either sign, and coins alone leave
                the row beside them
    adaptive    the hybrid in steps. After each it reads its own row along the pen's directions, and leaves a
                carrier alone once its score there is below a limit. It reads raw values: the shared model's
                part stays in them, and carriers that are read beside the shared model cannot be read at all.

An insider that knows nothing but its copy can make it worse everywhere: train on, add noise, round, or keep
the largest singular directions of every matrix (`low_rank`).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError
from zktrace.learning.arrays import Arrays, State

Model = TypeVar("Model")  # whatever a pen writes to
Word = NDArray[np.uint8]
Own = Mapping[str, Word]  # by carrier
Values = Mapping[str, NDArray[np.float64]]  # by carrier, one a position

ONCE: Final = ("negation", "fresh", "hybrid")
REPLACEMENT: Final = "replacement"
ERASURES: Final = (*ONCE, REPLACEMENT)
ADAPTIVE: Final = "adaptive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long an insider writes, and how strongly."""

    episodes: int  # of training, where a carrier is trained
    factor: float = 1.0  # beside the mark of a copy, where a carrier is written by its size

    def __post_init__(self) -> None:
        if self.episodes < 1 or not 0.0 < self.factor < np.inf:
            raise InputError(f"{self.episodes} episodes at a factor of {self.factor}: both must be positive")

    def part(self, steps: int) -> "Effort":
        """One step of so many."""
        return Effort(episodes=max(1, self.episodes // steps), factor=self.factor / steps)


class Pen(Protocol[Model]):
    """How copies are made, along directions that are the operator's or the insider's own."""

    def write(self, state: Model, words: Own, effort: Effort, rng: np.random.Generator) -> Model:
        """A model with these words in it."""

    def read(self, state: Model) -> Values:
        """What a model says along the directions, where that can be read without the shared model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When an adaptive insider stops."""

    steps: int = 8  # at most
    limit: float = 2.0  # deviations of its own score

    def __post_init__(self) -> None:
        if self.steps < 1 or not np.isfinite(self.limit):
            raise InputError(f"{self.steps} steps down to {self.limit} deviations")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Erased(Generic[Model]):
    """What an insider leaks, and in how many steps it was made."""

    state: Model
    steps: int


def negated(row: Word) -> Word:
    """The opposite bits (`lem:tamper-feature`: the score changes its sign)."""
    return (1 - _bits(row)).astype(np.uint8)


def fresh(row: Word, rng: np.random.Generator) -> Word:
    """Coins, as many as a row has bits: the insider knows no bias."""
    return rng.integers(0, 2, len(_bits(row)), dtype=np.uint8)


def words(kind: str, row: Own, turned: Container[str], rng: np.random.Generator) -> dict[str, Word]:
    """What one writing puts on each carrier. The hybrid turns those in `turned`, and draws the others."""
    if kind not in ONCE:
        raise InputError(f"no erasure {kind!r}; known: {', '.join(ERASURES)}")
    return {
        name: negated(bits)
        if kind == "negation" or (kind == "hybrid" and name in turned)
        else fresh(bits, rng)
        for name, bits in row.items()
    }


def erase(
    copy: Model,
    row: Own,
    pen: Pen[Model],
    *,
    kind: str,
    effort: Effort,
    turned: Container[str] = (),
    rng: np.random.Generator,
) -> Erased[Model]:
    """Write other words over one's own: once, or twice for a replacement."""
    if kind != REPLACEMENT:
        return Erased(state=pen.write(copy, words(kind, row, turned, rng), effort, rng), steps=1)
    half = replace(effort, episodes=max(1, effort.episodes // 2))
    without = pen.write(copy, words("negation", row, (), rng), half, rng)
    return Erased(state=pen.write(without, words("fresh", row, (), rng), half, rng), steps=2)


def erase_adaptively(
    copy: Model,
    row: Own,
    pen: Pen[Model],
    *,
    effort: Effort,
    turned: Container[str] = (),
    stopping: StoppingRule | None = None,
    rng: np.random.Generator,
) -> Erased[Model]:
    """The hybrid in steps, each carrier until its own score is below the limit.

    What cannot be read is written in every step that takes place.
    """
    wanted, stop = words("hybrid", row, turned, rng), stopping or StoppingRule()
    state, left = copy, dict(wanted)
    for step in range(1, stop.steps + 1):
        state = pen.write(state, left, effort.part(stop.steps), rng)
        scores = {name: own_score(values, row[name]) for name, values in pen.read(state).items()}
        if scores and all(score < stop.limit for score in scores.values()):
            return Erased(state=state, steps=step)
        left = {name: word for name, word in wanted.items() if scores.get(name, np.inf) >= stop.limit}
    return Erased(state=state, steps=stop.steps)


def own_score(values: NDArray[np.float64], row: Word) -> float:
    """How well values agree with one's own row, in deviations of what coins would give."""
    bits = _bits(row)
    if values.shape != bits.shape:
        raise InputError(f"{values.size} values for a row of {bits.size} bits")
    about = values - values.mean()
    size = float(np.linalg.norm(about))
    return float(about @ (2.0 * bits - 1.0)) / size if size else 0.0


def low_rank(state: Arrays, *, kept: float) -> State:
    """Every matrix by its largest singular directions alone: a part `kept` of them, and the others gone.

    A convolution is a matrix of its filters. Vectors and counters stay.
    """
    if not 0.0 < kept <= 1.0:
        raise InputError(f"a part of {kept} of the directions: must lie above 0 and at most at 1")
    made: State = {}
    for name, array in state.items():
        if array.ndim < 2 or array.dtype.kind != "f":
            made[name] = array
            continue
        left, sizes, right = np.linalg.svd(
            array.reshape(len(array), -1).astype(np.float64), full_matrices=False
        )
        most = max(1, round(kept * len(sizes)))
        found = (left[:, :most] * sizes[:most]) @ right[:most]
        made[name] = found.reshape(array.shape).astype(array.dtype)
    return made


def _bits(row: Word) -> Word:
    if row.ndim != 1 or not row.size or not np.isin(row, (0, 1)).all():
        raise InputError("a row is bits, 0 and 1, one at a position")
    return row
