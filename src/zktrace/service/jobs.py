"""Long work, as rows of a table: claimed by one worker at a time, taken up again if that worker is gone.

    queued -> running -> done
                      -> failed
                      -> waiting -> queued      an investigation whose plan somebody has to confirm
    queued, waiting -> cancelled; a running job stops where nothing is lost by it

A worker holds a job by a lease that it renews. Every claim has a number of its own, and whoever lost its
claim can change nothing any more. Time is the database's. A worker that is gone, or that cannot have what
it needs, leaves its job running: it is taken up when the lease has run out, and given up after a few times.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from zktrace.errors import Error, InputError, Refused
from zktrace.primitives.text import one_line
from zktrace.registry.stores.database import Database, Statements
from zktrace.service.problems import not_there

State = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
Kind = Literal["trace", "dispatch", "release", "copy", "receipt"]
KINDS: Final[tuple[Kind, ...]] = ("trace", "dispatch", "release", "copy", "receipt")
LEASE: Final = 30.0  # seconds
ATTEMPTS: Final = 3  # a job that ended its worker so often is given up
PAUSE: Final = 5.0  # seconds before a job is taken up again that could not have what it needs
LISTED: Final = 100
_SET_BACK: Final = 60.0  # seconds: clocks of one machine do not differ by more unless somebody sets them
_ENDED: Final = ("done", "failed", "cancelled")
_ID: Final = 32  # characters
_NOT_SHOWN: Final = ("file", "delivery")  # of a result


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
    share: float  # that is done
    note: str
    error: str | None
    attempt: int
    stopping: bool
    arguments: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in _ENDED

    def as_json(self) -> dict[str, object]:
        """For a machine, without the places of files."""
        return {
            "id": self.id,
            "kind": self.kind,
            "state": self.state,
            "asked_by": self.asked_by,
            "confirmed_by": self.confirmed_by,
            "share": self.share,
            "note": self.note,
            "error": self.error,
            "stopping": self.stopping,
            "result": {key: value for key, value in self.result.items() if key not in _NOT_SHOWN},
        }


class Cancelled(Error):
    """Somebody asked for a running job to stop, and this is a place where it can."""


class Lost(Error):
    """A job that another worker has taken over: this one was thought to be dead."""


class Jobs:
    """The table."""

    def __init__(self, database: Database, *, lease: float = LEASE) -> None:
        self._database, self._lease = database, lease

    def files(self) -> set[str]:
        """What was uploaded for jobs and is still wanted: suspects, and what a job that goes on needs."""
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT arguments FROM zks_jobs WHERE kind = 'trace' "
                "OR state IN ('queued', 'running', 'waiting')"
            )
        return {str(json.loads(each["arguments"]).get("file")) for each in rows}

    def add(
        self, kind: Kind, arguments: Mapping[str, Any], *, subject: str, by: str, confirmed: bool = False
    ) -> JobRow:
        """A new job; or the one on this subject that has not ended, if it is of a kind that is shared.

        With `confirmed` whoever asks has confirmed it as well: there is nothing to be planned.
        """
        with self._database.writing() as change:
            self._alone(change)
            known = change.rows(
                "SELECT * FROM zks_jobs WHERE subject = :subject "
                "AND state IN ('queued', 'running', 'waiting')",
                subject=subject,
            )
            if known:
                return _job(known[0])
            now = self._database.now
            rows = change.rows(
                "INSERT INTO zks_jobs (id, kind, subject, state, arguments, asked_by, confirmed_by, created, "
                "changed, share, note, result, attempt, deaths, lease, stopping) VALUES "
                "(:id, :kind, :subject, 'queued', :arguments, :by, :confirmed, "
                f"{now}, {now}, 0, '', '{{}}', 0, 0, 0, 0) RETURNING *",
                id=secrets.token_hex(_ID // 2),
                kind=kind,
                subject=subject,
                arguments=json.dumps(dict(arguments), sort_keys=True),
                by=by,
                confirmed=by if confirmed else None,
            )
        return _job(rows[0])

    def find(self, id: str) -> JobRow:
        """A job by its number."""
        with self._database.reading() as found:
            rows = found.rows("SELECT * FROM zks_jobs WHERE id = :id", id=id[:_ID])
        if not rows:
            raise not_there("there is no such job")
        return _job(rows[0])

    def about(self, suspect: str) -> list[JobRow]:
        """Investigations of a suspect (the digest of its state) that were planned, the youngest first."""
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT * FROM zks_jobs WHERE kind = 'trace' AND result LIKE :suspect ORDER BY created DESC",
                suspect=f'%"suspect": "{suspect}"%',
            )
        return [_job(each) for each in rows]

    def latest(self, subject: str) -> JobRow | None:
        """The youngest job on a subject."""
        with self._database.reading() as found:
            rows = found.rows(
                "SELECT * FROM zks_jobs WHERE subject = :subject ORDER BY created DESC LIMIT 1",
                subject=subject,
            )
        return _job(rows[0]) if rows else None

    def listed(self, *, kinds: tuple[Kind, ...] = KINDS, limit: int = LISTED) -> list[JobRow]:
        """The youngest jobs first."""
        with self._database.reading() as found:
            rows = found.rows("SELECT * FROM zks_jobs ORDER BY created DESC LIMIT :limit", limit=4 * limit)
        return [job for each in rows if (job := _job(each)).kind in kinds][:limit]

    def claim(self, *, lease: float = LEASE) -> JobRow | None:
        """The oldest job that waits for a worker, or whose worker has not been heard of; now it is ours."""
        now = self._database.now
        # a row of the future: the clock was set back since, and the lease would last until it is there again
        gone = f"lease < {now} OR changed > {now} + {_SET_BACK}"
        free = f"state = 'queued' OR (state = 'running' AND ({gone}))"
        with self._database.reading() as found:
            if not found.rows(f"SELECT id FROM zks_jobs WHERE {free} LIMIT 1"):
                return None
        locked = "" if self._database.sqlite else " FOR UPDATE SKIP LOCKED"
        with self._database.writing() as change:
            rows = change.rows(f"SELECT * FROM zks_jobs WHERE {free} ORDER BY created LIMIT 1{locked}")
            if not rows:
                return None
            died = rows[0]["state"] == "running"
            if died and rows[0]["deaths"] + 1 >= ATTEMPTS:
                self._put(
                    change,
                    rows[0],
                    state="failed",
                    error=_given_up(rows[0]["error"]),
                )
                return None
            rows = change.rows(
                "UPDATE zks_jobs SET state = 'running', attempt = attempt + 1, deaths = deaths + :died, "
                f"error = NULL, lease = {self._database.now} + :lease, changed = {self._database.now} "
                "WHERE id = :id RETURNING *",
                lease=lease,
                died=int(died),
                id=rows[0]["id"],
            )
        return _job(rows[0])

    def renew(self, job: JobRow, *, lease: float = LEASE) -> bool:
        """Keep the claim; whether somebody wants the job to stop."""
        with self._database.writing() as change:
            rows = change.rows(
                f"UPDATE zks_jobs SET lease = {self._database.now} + :lease, changed = {self._database.now} "
                "WHERE id = :id AND attempt = :attempt AND state = 'running' RETURNING stopping",
                lease=lease,
                id=job.id,
                attempt=job.attempt,
            )
        if not rows:
            raise Lost(f"the job {job.id} is another worker's now")
        return bool(rows[0]["stopping"])

    def report(self, job: JobRow, *, share: float, note: str) -> None:
        """How far a job is; Cancelled if it is to stop. An investigation that was confirmed never does."""
        with self._database.writing() as change:
            self._put(change, _held(job), share=min(max(share, 0.0), 1.0), note=one_line(note, limit=200))
        if self.renew(job, lease=self._lease) and job.confirmed_by is None:
            raise Cancelled("stopped when it was asked to")

    def let_go(self, job: JobRow, *, error: str, pause: float = PAUSE) -> None:
        """Leave a job that cannot have what it needs just now: somebody takes it up again after a pause.

        It counts like a worker that was killed, so it is not tried for ever.
        """
        with self._database.writing() as change:
            self._put(change, _held(job), error=error, note="interrupted: it is taken up again")
            change.run(
                f"UPDATE zks_jobs SET lease = {self._database.now} + :pause WHERE id = :id",
                pause=pause,
                id=job.id,
            )

    def settle(
        self, job: JobRow, state: State, *, result: Mapping[str, Any] | None = None, error: str | None = None
    ) -> None:
        """A worker's last word on its claim; Cancelled if a plan is not wanted any more."""
        changes: dict[str, object] = {"state": state, "error": error, "note": ""}
        if result is not None:
            changes["result"] = json.dumps({**job.result, **result}, sort_keys=True)
        if state == "done":
            changes["share"] = 1.0
        with self._database.writing() as change:
            self._put(change, _held(job), **changes)
            if state == "waiting":
                (row,) = change.rows("SELECT stopping FROM zks_jobs WHERE id = :id", id=job.id)
                if row["stopping"]:
                    raise Cancelled("stopped when it was asked to")

    def confirm(self, id: str, *, by: str, began: int) -> JobRow:
        """Let an investigation begin whose plan somebody has read. It is confirmed once.

        `began` is the length of the log now: an investigation of the suspect from there on is this one.
        """
        job = self.find(id)
        result = json.dumps({**job.result, "began": began}, sort_keys=True)
        with self._database.writing() as change:
            rows = change.rows(
                "UPDATE zks_jobs SET state = 'queued', confirmed_by = :by, result = :result, deaths = 0, "
                f"changed = {self._database.now} WHERE id = :id AND state = 'waiting' "
                "AND stopping = 0 RETURNING *",
                by=by,
                result=result,
                id=job.id,
            )
        if not rows:
            now = self.find(id)
            who = f"{now.confirmed_by} confirmed it already" if now.confirmed_by else f"it is {now.state}"
            raise Refused(f"this plan does not wait for a confirmation: {who}")
        return _job(rows[0])

    def cancel(self, id: str) -> JobRow:
        """End a job that has not begun; one that runs is asked to stop where nothing is lost."""
        job = self.find(id)
        with self._database.writing() as change:
            done = self._ended(change, job) or self._asked(change, job) or self._ended(change, job)
        now = self.find(id)
        if not done and now.state == "running":
            raise Refused("this investigation is being paid for: it goes on to its verdict")
        if not done:
            raise Refused(f"the job is {now.state} already")
        return now

    def _ended(self, change: Statements, job: JobRow) -> int:
        """Whether a job was one that nobody has begun, and is no more."""
        return change.run(
            f"UPDATE zks_jobs SET state = 'cancelled', changed = {self._database.now} "
            "WHERE id = :id AND state IN ('queued', 'waiting')",
            id=job.id,
        )

    def _asked(self, change: Statements, job: JobRow) -> int:
        """Whether somebody is at it who will see that it is to stop; never at what is being paid for."""
        return change.run(
            "UPDATE zks_jobs SET stopping = 1 WHERE id = :id AND state = 'running' AND confirmed_by IS NULL",
            id=job.id,
        )

    def _put(self, change: Statements, held: Mapping[str, Any], **values: object) -> None:
        """Change a row under its claim."""
        sets = ", ".join(f"{name} = :{name}" for name in values)
        done = change.run(
            f"UPDATE zks_jobs SET {sets}, changed = {self._database.now} "
            "WHERE id = :id AND attempt = :attempt AND state = 'running'",
            id=held["id"],
            attempt=held["attempt"],
            **values,
        )
        if not done:
            raise Lost(f"the job {held['id']} is another worker's now")

    def _alone(self, change: Statements) -> None:
        """One job more at a time, in SQLite by its own lock."""
        if not self._database.sqlite:
            change.run("LOCK TABLE zks_jobs IN SHARE ROW EXCLUSIVE MODE")


def _given_up(error: str | None) -> str:
    """Why a job is not tried any more."""
    if error is None:
        return f"its worker ended {ATTEMPTS} times in the middle of it: too little memory perhaps"
    return one_line(f"given up after {ATTEMPTS} times, the last time: {error}", limit=1000)


def _held(job: JobRow) -> dict[str, Any]:
    return {"id": job.id, "attempt": job.attempt}


def _job(row: Mapping[str, Any]) -> JobRow:
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
