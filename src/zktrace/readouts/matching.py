"""A suspect's tensors under the shared model's names and shapes, whatever the suspect calls them.

    by name           as it is, without what wrappers add, or with another prefix; matrices may be transposed
    by content        the most alike of as many elements, one to one
    merged or split   q, k and v in one matrix, or one matrix in several, along the first axis
    by sizes          rows are in another order: the sizes of columns are the same (or the reverse)
    by elimination    the only one left of its number of elements

Content is looked at for names that are not found by name, and where what goes by a name is not alike. No row
of the code enters. A wrong match costs a reading and accuses nobody: what is read there is noise.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Final

import numpy as np

from zktrace.errors import InputError
from zktrace.primitives.text import shown
from zktrace.readouts.likeness import (
    ALIKE,
    LEAST,
    Arrangement,
    Array,
    Floats,
    Held,
    Shape,
    best_form,
    forms,
    norms,
    unit,
)
from zktrace.readouts.merging import Budget, merged_at, split_into
from zktrace.readouts.naming import NamePairs
from zktrace.readouts.pairing import Score, pairs

MOST: Final = 4096  # tensors of a suspect whose content is looked at
_SAME_SIZES: Final = 0.9  # correlation of the sizes of rows or columns
_ENOUGH_SIZES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How one tensor is made of the suspect's: parts one below the other, or rows of one part."""

    parts: tuple[tuple[str, Arrangement], ...]
    first: int | None = None  # of the rows of a merged matrix
    shape: Shape

    def array(self, suspect: Mapping[str, Array]) -> Array:
        """The tensor, in the shape that is wanted."""
        made = [form.of(suspect[name]) for name, form in self.parts]
        whole = made[0] if len(made) == 1 else np.concatenate(made)
        if self.first is not None:
            whole = whole[self.first : self.first + self.shape[0]]
        return whole.reshape(self.shape)

    @property
    def stored(self) -> str | None:
        """The suspect's tensor that has the same elements in the same order, if one has."""
        name, form = self.parts[0]
        return name if len(self.parts) == 1 and self.first is None and form.plain else None


class Matched(Mapping[str, Array]):
    """The shared model's names -> the suspect's arrays in the shared shapes, each made when it is asked for.

    `missing` are the names that were not found; `notes` say, for a person, what was found otherwise than by
    its name.
    """

    def __init__(
        self,
        suspect: Mapping[str, Array],
        sources: Mapping[str, Origin],
        *,
        missing: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self._suspect = suspect
        self._sources = dict(sources)
        self.missing = tuple(missing)
        self.notes = tuple(notes)

    def __getitem__(self, name: str) -> Array:
        return self._sources[name].array(self._suspect)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def runs(self, name: str) -> Iterator[Array]:
        """The elements in order as flat arrays: a little at a time where the suspect stores them so."""
        stored = self._sources[name].stored
        return Held(self._suspect, stored).runs() if stored else iter((self[name].reshape(-1),))


def matched(suspect: Mapping[str, Array], shared: Mapping[str, Array], names: Iterable[str]) -> Matched:
    """What the suspect has for these names of the shared model's."""
    wanted = list(dict.fromkeys(names))
    unknown = next((name for name in wanted if name not in shared), None)
    if unknown is not None:
        raise InputError(f"the shared model has no tensor {shown(unknown)}")
    search = _Search(suspect, shared, wanted)
    search.by_name()
    for step in (search.by_content, search.merged, search.split, search.by_sizes, search.by_elimination):
        if search.missing():
            step()
    search.give_back()
    found = {name: search.sources[name] for name in wanted if name in search.sources}
    return Matched(suspect, found, missing=search.missing(), notes=search.notes)


@dataclass(slots=True)
class _Search:
    """Sources found so far, and the suspect's tensors that are still free."""

    suspect: Mapping[str, Array]
    shared: Mapping[str, Array]
    wanted: list[str]
    sources: dict[str, Origin] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _shapes: dict[str, Shape] = field(default_factory=dict)
    _theirs: dict[str, Shape] = field(default_factory=dict)
    _free: dict[str, None] = field(default_factory=dict)
    _looked: list[str] = field(default_factory=list)
    _doubted: dict[str, tuple[str, Arrangement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shapes = {name: Held(self.shared, name).shape for name in self.wanted}
        self._theirs = {name: Held(self.suspect, name).shape for name in self.suspect}
        self._free = dict.fromkeys(self._theirs)

    def missing(self) -> list[str]:
        """Names without a source, in their order."""
        return [name for name in self.wanted if name not in self.sources]

    def _take(self, name: str, source: Origin, note: str = "") -> None:
        self.sources[name] = source
        for theirs, _ in source.parts:
            self._free.pop(theirs, None)
        if note:
            self.notes.append(f"{shown(name)}: {note}")

    def _whole(self, theirs: str, form: Arrangement) -> Origin:
        return Origin(parts=((theirs, form),), shape=form.shape)

    def _forms(self, theirs: str, name: str) -> list[Arrangement]:
        return forms(self._theirs[theirs], self._shapes[name])

    def _candidates(self) -> list[str]:
        """Free tensors whose content is looked at: bounded, whatever the suspect holds."""
        return [name for name in self._looked if name in self._free]

    def by_name(self) -> None:
        """Take what goes by its name; what is not alike is doubted until nothing better is found."""
        naming = NamePairs(self.wanted, self._theirs, lambda theirs, name: bool(self._forms(theirs, name)))
        self.notes += naming.notes
        for name, theirs in naming.pairs.items():
            form, alike = self._forms(theirs, name)[0], 1.0
            if prod(form.shape) >= LEAST:
                held = Held(self.suspect, theirs), Held(self.shared, name)
                form, alike = best_form(self._forms(theirs, name), *held)
            if alike < ALIKE:
                self._doubted[name] = theirs, form
            else:
                self._take(name, self._whole(theirs, form), _how(form))

        large = (each for each in self._free if prod(self._theirs[each]) >= LEAST)
        self._looked = list(islice(large, MOST))

    def give_back(self) -> None:
        """Doubted tensors for which nothing better was found, and that stand for nothing else."""
        for name, (theirs, form) in self._doubted.items():
            if name not in self.sources and theirs in self._free:
                self._take(name, self._whole(theirs, form))

    def by_content(self) -> None:
        """The most alike of as many elements, one to one; then also what stands for another name already."""
        self._pair(_samples, ALIKE, self._candidates(), "by content")
        tied = [name for name in self._theirs if name not in self._free][:MOST]
        self._pair(_samples, ALIKE, tied, "by content, as another tensor")

    def by_sizes(self) -> None:
        """Matrices whose rows, or columns, are in another order."""
        self._pair(_sizes(1), _SAME_SIZES, self._candidates(), "by the sizes of its columns, rows reordered")
        self._pair(_sizes(0), _SAME_SIZES, self._candidates(), "by the sizes of its rows, columns reordered")

    def _pair(self, score: Score, least: float, theirs: list[str], why: str) -> None:
        """Assign tensors of as many elements by a score."""
        left = [name for name in self.missing() if prod(self._shapes[name]) >= LEAST]
        for count in sorted({prod(self._shapes[name]) for name in left}):
            rows = [name for name in left if prod(self._shapes[name]) == count]
            columns = [name for name in theirs if prod(self._theirs[name]) == count]
            shapes = {name: self._shapes[name] for name in rows}
            for name, other, form in pairs(score, self.shared, shapes, self.suspect, columns, least=least):
                note = f"the suspect's {shown(other)} ({why}{', transposed' * (not form.plain)})"
                if self._doubted.get(name, ("", None))[0] == other:
                    note = _how(form)
                self._take(name, self._whole(other, form), note)

    def merged(self) -> None:
        """Rows of a larger matrix of the suspect's."""
        shapes = {name: self._shapes[name] for name in self.missing() if prod(self._shapes[name]) >= LEAST}
        budget = Budget()
        for theirs in self._candidates():
            wanted = [Held(self.shared, name) for name in shapes]
            found = merged_at(Held(self.suspect, theirs), wanted, budget)
            for name, (form, first) in found.items():
                source = Origin(parts=((theirs, form),), first=first, shape=self._shapes[name])
                self._take(name, source, f"rows from {first} of the suspect's {shown(theirs)}{_turned(form)}")
                del shapes[name]

    def split(self) -> None:
        """Matrices that the suspect keeps in several parts."""
        budget = Budget()
        for name in self.missing():
            if prod(self._shapes[name]) >= LEAST:
                theirs = [Held(self.suspect, each) for each in self._candidates()]
                parts = split_into(Held(self.shared, name), theirs, budget)
                if parts:
                    listed = ", ".join(shown(each) for each, _ in parts[:4])
                    source = Origin(parts=tuple(parts), shape=self._shapes[name])
                    self._take(name, source, f"{len(parts)} parts of the suspect's ({listed})")

    def by_elimination(self) -> None:
        """The only one left of its number of elements."""
        left = self.missing()
        for name in left:
            count = prod(self._shapes[name])
            alone = sum(prod(self._shapes[each]) == count for each in left) == 1
            others = [each for each in self._free if prod(self._theirs[each]) == count]
            if alone and len(others) == 1 and name not in self._doubted:
                form = self._forms(others[0], name)[0]
                self._take(
                    name, self._whole(others[0], form), f"the suspect's {shown(others[0])} (no other left)"
                )


def _turned(form: Arrangement) -> str:
    return "" if form.plain else ", transposed"


def _how(form: Arrangement) -> str:
    return "" if form.plain else "stored transposed"


def _samples(held: Held, form: Arrangement) -> Floats:
    return unit(held.sample(form))


def _sizes(axis: int) -> Score:
    def score(held: Held, form: Arrangement) -> Floats:
        length = form.shape[0] if axis == 0 else prod(form.shape[1:])
        sizes = norms(held, form, axis=axis) if length >= _ENOUGH_SIZES else None
        return np.zeros(length) if sizes is None else unit(sizes)

    return score
