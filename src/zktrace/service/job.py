"""A job as it stands, and what can be asked of all of them. Nothing is changed here.

queued -> running -> done
                  -> failed
                  -> waiting -> queued      an investigation whose plan somebody has to confirm
queued, waiting -> cancelled; a running job stops where nothing is lost by it
running -> queued                           given back by a worker that was asked to end
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from zktrace.errors import InputError
from zktrace.registry.stores.database import Database
from zktrace.service.problems import not_there

State = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
Kind = Literal["trace", "dispatch", "release", "copy", "receipt"]
KINDS: Final[tuple[Kind, ...]] = ("trace", "dispatch", "release", "copy", "receipt")
OPEN: Final[tuple[State, ...]] = ("waiting", "running", "queued")  # as lists have them, before what has ended
ENDED: Final[tuple[State, ...]] = ("done", "failed", "cancelled")
LISTED: Final = 100
ID: Final = 32  # characters
_NOT_SHOWN: Final = ("file", "delivery")  # of a result
_TOLD: Final = ("name", "release", "station", "budget")  # of what was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One piece of work as it stands."""

    id: str
    kind: Kind
    subject: str  # what it is about: two jobs on one subject are never wanted at a time
    state: State
    asked_by: str
    confirmed_by: str | None
    created: float
    changed: float
    share: float  # that is done, or was before it was interrupted
    note: str
    error: str | None
    attempt: int
    stopping: bool
    arguments: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ENDED

    @property
    def stoppable(self) -> bool:
        """Whether it can be cancelled. An investigation that was confirmed and has begun goes on."""
        begun = self.state == "running" or self.share > 0
        return not self.ended and not (self.confirmed_by is not None and begun)

    def as_json(self) -> dict[str, object]:
        """For a machine, without the places of files."""
        return {
            "id": self.id,
            "kind": self.kind,
            **{key: self.arguments[key] for key in _TOLD if key in self.arguments},
            "state": self.state,
            "asked_by": self.asked_by,
            "confirmed_by": self.confirmed_by,
            "created": self.created,
            "changed": self.changed,
            "share": self.share,
            "note": self.note,
            "error": self.error,
            "stopping": self.stopping,
            "result": {key: value for key, value in self.result.items() if key not in _NOT_SHOWN},
        }


class JobList:
    """The table, for whoever looks on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def files(self) -> set[str]:
        """What was uploaded for jobs and is still wanted.

        That is what a job needs that has not ended, and suspects of investigations that were confirmed:
        evidence that was lost is rebuilt from them.
        """
        with self._database.reading() as found:
            rows = found.rows(
                f"SELECT arguments FROM zks_jobs WHERE {_among('state', OPEN)} "
                "OR (kind = 'trace' AND confirmed_by IS NOT NULL)"
            )
        return {str(json.loads(each["arguments"]).get("file")) for each in rows}

    def find(self, id: str) -> JobRow:
        """A job by its number."""
        with self._database.reading() as found:
            rows = found.rows("SELECT * FROM zks_jobs WHERE id = :id", id=id[:ID])
        if not rows:
            raise not_there("there is no such job")
        return job_of(rows[0])

    def about(self, suspect: str) -> list[JobRow]:
        """Investigations of a suspect (the digest of its state) that were planned, the youngest first."""
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT * FROM zks_jobs WHERE kind = 'trace' AND result LIKE :suspect ORDER BY created DESC",
                suspect=f'%"suspect": "{suspect}"%',
            )
        return [job_of(each) for each in rows]

    def latest(self, subject: str) -> JobRow | None:
        """The youngest job on a subject."""
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT * FROM zks_jobs WHERE subject = :subject ORDER BY created DESC LIMIT 1",
                subject=subject,
            )
        return job_of(rows[0]) if rows else None

    def listed(
        self,
        *,
        kinds: tuple[Kind, ...] = KINDS,
        states: tuple[State, ...] = (*OPEN, *ENDED),
        start: int = 0,
        limit: int = LISTED,
    ) -> list[JobRow]:
        """A part of the jobs: what waits for somebody, what runs, what is queued, what has ended.

        Of each, the youngest first.
        """
        order = " ".join(f"WHEN '{state}' THEN {at}" for at, state in enumerate(OPEN))
        with self._database.reading() as found:
            rows = found.rows(
                f"SELECT * FROM zks_jobs WHERE {_among('kind', kinds)} AND {_among('state', states)} "
                f"ORDER BY CASE state {order} ELSE {len(OPEN)} END, created DESC, id "
                "LIMIT :limit OFFSET :start",
                limit=limit,
                start=start,
            )
        return [job_of(each) for each in rows]

    def count(self, *, kinds: tuple[Kind, ...] = KINDS, states: tuple[State, ...] = (*OPEN, *ENDED)) -> int:
        """How many there are to be listed."""
        with self._database.reading() as found:
            (row,) = found.rows(
                "SELECT count(*) AS jobs FROM zks_jobs "
                f"WHERE {_among('kind', kinds)} AND {_among('state', states)}"
            )
        return int(row["jobs"])


def job_of(row: Mapping[str, Any]) -> JobRow:
    """A row of the table."""
    if row["kind"] not in KINDS:
        raise InputError(f"a job of the unknown kind {row['kind']!r}: of a later version")
    return JobRow(
        id=row["id"],
        kind=row["kind"],
        subject=row["subject"],
        state=row["state"],
        asked_by=row["asked_by"],
        confirmed_by=row["confirmed_by"],
        created=row["created"],
        changed=row["changed"],
        share=row["share"],
        note=row["note"],
        error=row["error"],
        attempt=row["attempt"],
        stopping=bool(row["stopping"]),
        arguments=json.loads(row["arguments"]),
        result=json.loads(row["result"]),
    )


def _among(column: str, words: Collection[str]) -> str:
    """A condition on a column; the words are constants of ours."""
    return f"{column} IN ({', '.join(repr(each) for each in words)})"
