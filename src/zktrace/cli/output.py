"""How a command speaks: for a person, or as one JSON object."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from zktrace.errors import CannotTell, Error, EvidenceRejected, InvalidProof, Refused
from zktrace.primitives.text import one_line


def say(text: str) -> None:
    """Lines for a person. What cannot be printed (a file name may hold anything) is escaped."""
    lines = (one_line(line, limit=10_000) for line in text.split("\n"))
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write("\n".join(lines).encode(encoding, "backslashreplace").decode(encoding) + "\n")


def emit(facts: Mapping[str, object], *, as_json: bool, text: str) -> None:
    """The result of a command: `facts` as JSON, or `text`."""
    if as_json:
        sys.stdout.write(json.dumps(facts, sort_keys=True) + "\n")  # ASCII, one line, never cut
    else:
        say(text)


def check_free(path: Path, *, force: bool) -> None:
    """Refuse an output before the work, not after it: what exists, unless forced; what a workspace keeps."""
    from zktrace.registry.workspace import keeper_of

    if not force and os.path.lexists(path):
        raise Refused(f"{path}: exists already (--force replaces it)")
    if (home := keeper_of(path)) is not None:
        raise Refused(f"{path}: is for the workspace {home} alone to write (not even --force replaces it)")


def complain(error: Error, *, as_json: bool) -> None:
    """One line on the error stream, and with --json the same facts on the output stream."""
    message = one_line(str(error), limit=2000)
    if sys.stderr is not None:
        kind = {1: "rejected", 130: "interrupted"}.get(error.exit_code, "error")
        kind = "cannot tell" if isinstance(error, CannotTell) else kind
        sys.stderr.write(f"{kind}: {message.encode('ascii', 'backslashreplace').decode()}\n")
    if as_json:
        facts: dict[str, object] = {"ok": False, "error": type(error).__name__, "message": message}
        if isinstance(error, InvalidProof):
            facts |= {"check": error.check, "round": error.round}
        if isinstance(error, EvidenceRejected):
            facts |= {"step": error.step, "title": error.title, "reason": one_line(error.reason, limit=2000)}
        say(json.dumps(facts, sort_keys=True))
