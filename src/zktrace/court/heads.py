"""The judge's head, and what links others to it.

Of two heads one extends the other if an exported registry or a consistency proof shows it. Where neither was
given nothing speaks against the evidence: the judge cannot tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from zktrace.court.judgement import Minutes
from zktrace.errors import CannotTell
from zktrace.primitives import merkle
from zktrace.registry.log import Extension, Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The judge's head, and what links others to it."""

    own: Head
    before: Head | None = None  # witnessed before the suspect was known
    export: Sequence[bytes] | None = None
    extensions: Sequence[Extension] = ()
    others: Sequence[Head] = ()  # further ones that somebody cosigned: of the same log, or it has two faces

    def link(self, old: Head, news: Sequence[Head], minutes: Minutes, *, what: str) -> str:
        """What shows that one of `news` extends `old`: a rejection if it shows the contrary."""
        if self.export is not None:
            if not under(self.export, old):
                minutes.reject(f"the exported registry does not extend {what}, {old.to_text()}")
            return "the exported registry"
        for new in news:
            if old.size == new.size:
                minutes.reject(f"{what} is {old.to_text()}, the other of this size {new.to_text()}: two logs")
            for each in self.extensions:
                if (each.old, each.new) == (old.size, new.size):
                    each.verify(old, new)
                    return "a consistency proof"
        raise CannotTell(
            f"{what} has {old.size} entries, and that the log of {news[-1].size} extends it is not shown: "
            f"give a consistency proof (zktrace log prove --since {old.to_text()}) or an exported registry"
        )


def under(export: Sequence[bytes], head: Head) -> bool:
    """Whether a log has this head, or had it."""
    if head.size > len(export):
        return False
    return merkle.root([merkle.leaf_hash(each) for each in export[: head.size]]) == head.root
