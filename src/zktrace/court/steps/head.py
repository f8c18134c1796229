"""(2) Head and inclusion: every record is under the judge's head, and what must be old under an older one."""

from zktrace.court.dossier import Dossier
from zktrace.court.heads import Heads, under
from zktrace.court.judgement import Minutes
from zktrace.errors import CannotTell
from zktrace.evidence import Evidence
from zktrace.registry.log import Head, Inclusion


def check_head(evidence: Evidence, heads: Heads, minutes: Minutes) -> None:
    """The entries of the file are in the log of the judge's head."""
    theirs = Head.from_text(evidence.head)
    for each in evidence.entries:
        Inclusion(index=each.index, size=theirs.size, path=each.path).verify(each.entry, theirs)
    minutes.saw(f"{len(evidence.entries)} entries are in the log of {theirs.size} under the file's head")
    if heads.export is not None and len(heads.export) < heads.own.size:
        raise CannotTell(
            f"the exported registry has {len(heads.export)} entries, the judge's head {heads.own.size}: "
            "give an export that was made under that head or later (zktrace registry export)"
        )
    if heads.export is not None and not under(heads.export, heads.own):
        minutes.reject(
            f"the exported registry of {len(heads.export)} entries is not under the judge's head "
            f"of {heads.own.size}"
        )
    if theirs.size > heads.own.size:
        raise CannotTell(
            f"the evidence is under a head of {theirs.size} entries, the judge's is older and has "
            f"{heads.own.size}: a head at or after the verdict is needed"
        )
    if theirs == heads.own:
        minutes.saw(f"the evidence's head, of {theirs.size} entries, is the judge's")
    else:
        how = heads.link(theirs, (heads.own,), minutes, what="the evidence's head")
        minutes.saw(f"the judge's head of {heads.own.size} entries extends the evidence's, by {how}")
    for other in heads.others:
        _check_other(other, theirs, heads, minutes)


def _check_other(other: Head, theirs: Head, heads: Heads, minutes: Minutes) -> None:
    """A further head is of the same log, as far as that can be told: a rejection if it is not."""
    what = f"the checkpoint of {other.size} entries"
    if other == theirs:
        minutes.saw(f"{what} has the evidence's head")
        return
    older, newer = sorted((other, heads.own), key=lambda each: each.size)
    try:
        how = heads.link(older, (newer,), minutes, what=what if older is other else "the judge's head")
    except CannotTell:
        minutes.left(f"that {what} is of the log of {heads.own.size}: no consistency proof was given")
    else:
        minutes.saw(f"{what} is of the same log, by {how}")


def check_before(evidence: Evidence, dossier: Dossier, heads: Heads, minutes: Minutes) -> None:
    """What must have been promised before there was a suspect lies under the witnessed head."""
    before, theirs, case = heads.before, Head.from_text(evidence.head), dossier.places["investigation"]
    if before is None:
        minutes.left(
            "that rows, release and reference were fixed before the suspect: no earlier head was given"
        )
        return
    if before.size > case:
        minutes.reject(
            f"the earlier head has {before.size} entries, the investigation is entry {case}: "
            "it is not from before the investigation"
        )
    for what, place in dossier.places.items():
        if what not in ("investigation", "verdict") and place >= before.size:
            minutes.reject(f"{what} is entry {place}, the earlier head has {before.size} entries")
    how = heads.link(before, (theirs, heads.own), minutes, what="the earlier head")
    minutes.saw(
        f"setup, release and enrolments are under the earlier head of {before.size} entries, "
        f"which the log extends, by {how}"
    )
