"""(2) Head and inclusion: every record is under the judge's head, and what must be old under an older one."""

from collections.abc import Sequence

from zktrace.evidence import Evidence
from zktrace.judge.dossier import Dossier
from zktrace.judge.judgement import Minutes
from zktrace.primitives import merkle
from zktrace.registry.log import Head, Inclusion


def check_head(evidence: Evidence, head: Head, export: Sequence[bytes] | None, minutes: Minutes) -> None:
    """The entries of the file are in the log of the judge's head."""
    theirs = Head.from_text(evidence.head)
    if export is not None:
        leaves = [merkle.leaf_hash(each) for each in export]
        for name, wanted in (("the judge's", head), ("the evidence's", theirs)):
            if wanted.size > len(leaves) or merkle.root(leaves[: wanted.size]) != wanted.root:
                minutes.reject(f"the exported registry of {len(leaves)} entries is not under {name} head")
        if theirs.size > head.size:
            minutes.reject(f"the evidence needs a log of {theirs.size} entries, the head has {head.size}")
        minutes.saw(f"the exported registry extends the evidence's head ({theirs.size} entries)")
    elif theirs != head:
        minutes.reject(
            f"the evidence is under the head {theirs.to_text()}, the judge's is {head.to_text()} "
            "(an exported registry would show whether one extends the other)"
        )
    for each in evidence.entries:
        Inclusion(index=each.index, size=theirs.size, path=each.path).verify(each.entry, theirs)
    minutes.saw(f"{len(evidence.entries)} entries are in the log of {theirs.size} under the head")


def check_before(
    dossier: Dossier, before: Head | None, export: Sequence[bytes] | None, minutes: Minutes
) -> None:
    """What must have been promised before there was a suspect lies under the witnessed head."""
    if before is None:
        minutes.left(
            "that rows, release and reference were fixed before the suspect: no earlier head was given"
        )
        return
    if export is None:
        minutes.reject("an earlier head can only be compared with an exported registry, and none was given")
    if (
        before.size > len(export)
        or merkle.root([merkle.leaf_hash(x) for x in export[: before.size]]) != before.root
    ):
        minutes.reject(f"the exported registry does not extend the earlier head {before.to_text()}")
    for what, place in dossier.places.items():
        if what not in ("investigation", "verdict") and place >= before.size:
            minutes.reject(f"{what} is entry {place}, the earlier head has {before.size} entries")
    minutes.saw(f"setup, release and enrolments are under the earlier head of {before.size} entries")
