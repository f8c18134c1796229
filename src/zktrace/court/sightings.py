"""Heads that a judge has from checkpoints: opened under its policy, found to be of one log."""

from collections.abc import Sequence
from dataclasses import dataclass

from zktrace.court.judgement import Minutes
from zktrace.court.policy import Policy
from zktrace.errors import InputError, InvalidProof
from zktrace.registry.log import SIZE_LIMIT, Head
from zktrace.transparency.trust import TrustedCheckpoint, check_one_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What a judge brought to say which log is meant: a typed head, or checkpoints in its place."""

    head: Head | None = None
    checkpoints: Sequence[bytes] = ()
    before: Head | None = None  # witnessed before the suspect was known
    before_checkpoint: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighted:
    """The heads that came of it."""

    own: Head
    before: Head | None
    others: tuple[Head, ...]  # further heads of checkpoints, which must be of the same log


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """All that was brought, with signatures verified."""

    brought: Brought
    opened: tuple[TrustedCheckpoint, ...]
    early: TrustedCheckpoint | None

    def heads(self, minutes: Minutes) -> Sighted:
        """The largest checkpoint is the judge's head, unless one was typed; two logs are a rejection."""
        every = [*self.opened, *([] if self.early is None else [self.early])]
        origins = {each.checkpoint.origin for each in every}
        if len(origins) > 1:
            minutes.reject(f"the checkpoints are of {len(origins)} logs: {', '.join(sorted(origins))}")
        check_one_log(every)
        for each in every:
            minutes.saw(f"{each}")
        heads = sorted({_head(each) for each in self.opened}, key=lambda each: each.size)
        own = self.brought.head or heads[-1]
        return Sighted(
            own=own,
            before=self.brought.before if self.early is None else _head(self.early),
            others=tuple(each for each in heads if each != own),
        )


def sightings(brought: Brought, policy: Policy, minutes: Minutes) -> Sightings:
    """Open all checkpoints. What is no checkpoint is unusable; one that too few signed is a rejection."""
    if brought.head is None and not brought.checkpoints:
        raise InputError("a judge needs a head of the log, or a checkpoint")
    if brought.before is not None and brought.before_checkpoint is not None:
        raise InputError("an earlier head is typed, or it comes from a checkpoint; both were given")
    early = brought.before_checkpoint
    return Sightings(
        brought=brought,
        opened=tuple(_opened(each, policy, minutes) for each in brought.checkpoints),
        early=None if early is None else _opened(early, policy, minutes),
    )


def _opened(data: bytes, policy: Policy, minutes: Minutes) -> TrustedCheckpoint:
    try:
        opened = policy.trust.open(data)
    except InvalidProof as error:
        with minutes.step(2):
            raise error from None
    if opened.checkpoint.size > SIZE_LIMIT:
        raise InputError(f"{opened}: more entries than any registry has")
    return opened


def _head(opened: TrustedCheckpoint) -> Head:
    return Head(size=opened.checkpoint.size, root=opened.checkpoint.root)
