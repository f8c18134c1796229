"""Which tensor of a suspect goes by which name of the shared model's: from names and shapes alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from zktrace.primitives.text import shown
from zktrace.readouts.suspects import common_prefix

Fits = Callable[[str, str], bool]  # (suspect's name, shared name) -> whether one can have the other's shape

_DEPTH: Final = 8  # parts of a prefix
_ROUNDS: Final = 8  # different prefixes in one suspect
_LIKELY: Final = 16  # tensors of a suspect that may stand for one name
_WRAPPERS: Final = frozenset(
    (
        "module",
        "_orig_mod",
        "base_layer",
        "parametrizations",
        "original",
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
    )
)


def unwrapped(name: str) -> str:
    """A name without what training wrappers put into it."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    return ".".join(parts).removesuffix("_orig")


class NamePairs:
    """Shared name -> suspect's name, found step by step; each suspect's tensor stands for one name."""

    def __init__(self, wanted: Iterable[str], found: Iterable[str], fits: Fits) -> None:
        self.pairs: dict[str, str] = {}
        self.notes: list[str] = []
        self._wanted = list(wanted)
        self._free = dict.fromkeys(found)
        self._fits = fits
        self._take((name, name) for name in self._wanted if name in self._free)
        self._without_wrappers()
        for _ in range(_ROUNDS):
            if not self._with_prefix():
                break

    def _left(self) -> list[str]:
        return [name for name in self._wanted if name not in self.pairs]

    def _take(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Keep the pairs whose shapes fit and that nobody has; how many."""
        before = len(self.pairs)
        for name, theirs in pairs:
            if name not in self.pairs and theirs in self._free and self._fits(theirs, name):
                self.pairs[name] = theirs
                del self._free[theirs]
        return len(self.pairs) - before

    def _without_wrappers(self) -> None:
        known = defaultdict(list)
        for theirs in self._free:
            known[unwrapped(theirs)].append(theirs)
        left = ((name, known.get(unwrapped(name), [])) for name in self._left())
        count = self._take((name, theirs[0]) for name, theirs in left if len(theirs) == 1)
        if count:
            self.notes.append(f"{count} tensors under the names that a wrapper gave them")

    def _with_prefix(self) -> int:
        """Take what goes by another prefix, the one that fits most names; how many."""
        left = self._left()
        votes: Counter[tuple[str, str]] = Counter()
        chosen = defaultdict(list)
        for name, theirs, change in self._other_prefixes(left):
            votes[change] += 1
            chosen[change].append((name, theirs))
        if not votes:
            return 0
        change = max(votes, key=lambda each: (votes[each], -len(each[0]), len(each[1]), each))
        if votes[change] < min(2, len(left)):
            return 0  # one alone may be chance; its content will say
        count = self._take(chosen[change])
        old, new = change
        if count:
            self.notes.append(f"{count} tensors with the prefix {shown(new)} in place of {shown(old)}")
        return count

    def _other_prefixes(self, left: list[str]) -> Iterator[tuple[str, str, tuple[str, str]]]:
        """Names, suspect's names that end alike and fit, and the change of prefix (shared's, suspect's)."""
        endings: Mapping[str, list[tuple[str, str]]] = defaultdict(list)
        for theirs in self._free:
            for prefix, rest in _cuts(unwrapped(theirs)):
                endings[rest].append((prefix, theirs))
        common = common_prefix(left)
        for name in left:
            for old, rest in _cuts(name):
                anything = old in ("", common)  # else the suspect has lost a prefix and has no other
                fitting = [
                    (theirs, new)
                    for new, theirs in endings.get(rest, [])[:_LIKELY]
                    if (anything or not new) and self._fits(theirs, name)
                ]
                yield from ((name, theirs, (old, new)) for theirs, new in fitting)


def _cuts(name: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a name into a prefix, which ends with a dot or is empty, and the rest."""
    parts = name.split(".")
    for at in range(min(_DEPTH, len(parts) - 1) + 1):
        yield "".join(f"{part}." for part in parts[:at]), ".".join(parts[at:])
