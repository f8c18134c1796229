"""How a command speaks: for a person, or as one JSON object."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from zktrace.errors import Error, InvalidProof

Json = Annotated[bool, typer.Option("--json", help="Print one machine-readable JSON object.")]


def say(text: str) -> None:
    """A line for a person."""
    sys.stdout.write(text + "\n")


def emit(facts: Mapping[str, object], *, as_json: bool, text: str) -> None:
    """The result of a command: `facts` as JSON, or `text`."""
    say(json.dumps(facts, sort_keys=True) if as_json else text)


def complain(error: Error, *, as_json: bool) -> None:
    """One line on the error stream, and with --json the same facts on the output stream."""
    sys.stderr.write(f"{'rejected' if error.exit_code == 1 else 'error'}: {error}\n")
    if as_json:
        facts: dict[str, object] = {"ok": False, "error": type(error).__name__, "message": str(error)}
        if isinstance(error, InvalidProof):
            facts |= {"check": error.check, "round": error.round}
        say(json.dumps(facts, sort_keys=True))
