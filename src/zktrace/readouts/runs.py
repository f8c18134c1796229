"""The training run that a model file came from, as the `spec.json` beside it tells. Needs no torch."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from zktrace.errors import MalformedFile, Refused
from zktrace.primitives.files import read_bounded

MODEL: Final = "model.safetensors"
SPEC: Final = "spec.json"
_LIMIT: Final = 1 << 24
_NAMES_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What of a run decides how its identity marks are read."""

    spec: Path
    stations: tuple[str, ...]  # names in the order of the roster; none: it had only numbers
    rows: tuple[int, ...]  # of the registry, their blocks of the codebook; none: 0, 1, 2 ...
    clients: int
    bits: int  # of a codeword
    raw: bool
    marked: bool
    words: str  # SHA-256 of all codewords, in order

    @classmethod
    def beside(cls, model: Path) -> Self | None:
        """The run whose shared model this file is; None for any other file."""
        path = model.parent / SPEC
        if model.name != MODEL or not path.is_file():
            return None
        try:
            found = json.loads(read_bounded(path, limit=_LIMIT))
            return cls._read(path, found)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, MalformedFile):
            return None  # somebody else's spec.json

    @classmethod
    def _read(cls, path: Path, found: dict[str, Any]) -> Self:
        marks, federation = found["preset"]["marks"], found["preset"]["federation"]
        stations, rows = found.get("stations", []), found.get("rows", [])
        if not all(isinstance(each, str) for each in stations) or len(stations) > _NAMES_LIMIT:
            raise MalformedFile(f"{path}: names must be texts")
        return cls(
            spec=path,
            stations=tuple(stations),
            rows=tuple(int(each) for each in rows),
            clients=int(federation["clients"]),
            bits=int(marks["bits"]),
            raw=bool(marks["raw"]),
            marked=float(marks["lambda_wm"]) > 0,
            words=str(found["words"]),
        )

    def check_bits(self, bits: int, whose: str) -> None:
        """Refuse to read or record this run's marks as codewords of another length."""
        if self.marked and bits != self.bits:
            raise Refused(
                f"{self.spec.parent / MODEL}: trained with codewords of {self.bits} bits, {whose} "
                f"{bits} (train --workspace takes keys, names and bits from the registry)"
            )

    def trained_with(self, words: Sequence[bytes]) -> bool:
        """Whether these packed codewords, in this order, are the run's."""
        return hashlib.sha256(b"".join(words)).hexdigest() == self.words
