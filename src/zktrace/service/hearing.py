"""Evidence before the judge's page: a child process with capped resources reads and judges the file.

This process sees the bytes only to hash them. Few are heard at a time, and of one sender one.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from anyio import CapacityLimiter, to_thread

from zktrace.court import Policy
from zktrace.errors import Denied, Error, MalformedEvidence
from zktrace.evidence.file import FILE_LIMIT
from zktrace.front.workspace import Workspace
from zktrace.primitives.canonical import from_json, to_json
from zktrace.primitives.child import Errand, beside_us, run
from zktrace.primitives.files import open_regular
from zktrace.registry.log import Extension, Head
from zktrace.report.judgement import Hearing, versions
from zktrace.service import facts
from zktrace.service.hearing_child import ANSWER_LIMIT, Heard
from zktrace.service.problems import NOT_NOW, TOO_OFTEN

AT_ONCE: Final = 2
WAITING: Final = 8  # more are sent away
_SECONDS: Final = 300.0


class Hearings:
    """How many are heard at a time. Who waits for a turn takes no thread."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(AT_ONCE)
        self._senders = set[str]()

    @contextmanager
    def turn(self, sender: str) -> Iterator[None]:
        """The one turn that a sender has, from its upload to the end: Denied while another one lasts."""
        if sender in self._senders:
            raise Denied(
                "a file that came from your address is being examined: wait for it", status=TOO_OFTEN
            )
        self._senders.add(sender)
        try:
            yield
        finally:
            self._senders.discard(sender)

    async def hear(self, home: Workspace, path: Path, *, name: str, head: str) -> Hearing:
        """What the judge makes of an evidence file of this name, under a head that somebody typed."""
        if self._limiter.statistics().tasks_waiting >= WAITING:
            raise Denied("many files are being examined just now: try again in a minute", status=NOT_NOW)
        return await to_thread.run_sync(_heard, home, path, name, Head.from_text(head), limiter=self._limiter)


def _heard(home: Workspace, path: Path, name: str, head: Head) -> Hearing:
    descriptor = open_regular(path, limit=FILE_LIMIT)
    try:
        with open(descriptor, "rb", closefd=False) as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        heard = _asked(descriptor, path.parent, head, [])
        found = _bridge(home, head, heard)
        if found:
            heard = _asked(descriptor, path.parent, head, found)
    finally:
        os.close(descriptor)
    return Hearing(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        evidence=(name, digest),
        head=head.to_text(),
        before=None,
        given=(),
        policy=Policy(),
        outcome=heard.outcome(),
        steps=heard.all_steps(),
        reached=heard.reached,
        versions=versions(),
    )


def _asked(source: int, folder: Path, head: Head, extensions: list[Extension]) -> Heard:
    """What a child says of the file."""
    errand = Errand(module="zktrace.service.hearing_child", paths=beside_us(), fault=MalformedEvidence)
    given = to_json({"head": head.to_text(), "extensions": [each.as_json() for each in extensions]})
    os.lseek(source, 0, os.SEEK_SET)
    with tempfile.TemporaryFile(prefix="zktrace-", dir=folder) as answer:
        run(errand, given.decode(), source=source, target=answer.fileno(), seconds=_SECONDS)
        answer.seek(0)
        data = answer.read(ANSWER_LIMIT + 1)
    return Heard.from_json(from_json(data, what="a hearing"))


def _bridge(home: Workspace, head: Head, heard: Heard) -> list[Extension]:
    """That one head extends the other, if both are of this log. The judge verifies it: it is not believed."""
    try:
        others = [Head.from_text(each) for each in heard.heads]
    except Error:
        return []
    known = [each for each in others if facts.known_head(home.registry, each) and each != head]
    if not known or not facts.known_head(home.registry, head):
        return []
    old, new = sorted((head.size, known[0].size))
    return [facts.extension(home.registry, old, new)]
