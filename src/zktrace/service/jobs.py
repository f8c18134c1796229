"""Long work, as rows of a table: claimed by one worker at a time, taken up again if that worker is gone.

A worker holds a job by a lease that it renews. Every claim has a number of its own, and whoever lost its
claim can change nothing any more. Time is the database's. A worker that is gone, or that cannot have what
it needs, leaves its job running: it is taken up when the lease has run out, and given up after a few times
if it got no further in any of them.
"""

import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

from zktrace.errors import Error, Refused
from zktrace.primitives.text import one_line
from zktrace.registry.stores.database import Database, Statements
from zktrace.service.job import ID, JobList, JobRow, Kind, State, job_of

LEASE: Final = 30.0  # seconds
ATTEMPTS: Final = 3  # a job that ended its worker so often at one place is given up
PAUSE: Final = 5.0  # seconds before a job is taken up again that could not have what it needs
KEPT: Final = 24 * 3600.0  # seconds that what stations asked for is listed after it has ended
_SET_BACK: Final = 60.0  # seconds: clocks of one machine do not differ by more unless somebody sets them


class Cancelled(Error):
    """Somebody asked for a running job to stop, and this is a place where it can."""


class Lost(Error):
    """A job that another worker has taken over: this one was thought to be dead."""


class Jobs(JobList):
    """The table, for whoever asks for work and does it."""

    def __init__(self, database: Database, *, lease: float = LEASE) -> None:
        super().__init__(database)
        self._lease = lease

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
                return job_of(known[0])
            now = self._database.now
            rows = change.rows(
                "INSERT INTO zks_jobs (id, kind, subject, state, arguments, asked_by, confirmed_by, created, "
                "changed, share, note, result, attempt, deaths, lease, stopping) VALUES "
                "(:id, :kind, :subject, 'queued', :arguments, :by, :confirmed, "
                f"{now}, {now}, 0, '', '{{}}', 0, 0, 0, 0) RETURNING *",
                id=secrets.token_hex(ID // 2),
                kind=kind,
                subject=subject,
                arguments=json.dumps(dict(arguments), sort_keys=True),
                by=by,
                confirmed=by if confirmed else None,
            )
        return job_of(rows[0])

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
        return job_of(rows[0])

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
        """How far a job is; Cancelled if it is to stop. An investigation that was confirmed never does.

        A job that was interrupted has its share back when it is further than ever before. Workers that
        ended before that are forgotten: the job makes progress.
        """
        with self._database.writing() as change:
            self._put(change, _held(job), note=one_line(note, limit=200))
            change.run(
                "UPDATE zks_jobs SET share = :share, deaths = 0 WHERE id = :id AND share < :share",
                share=min(max(share, 0.0), 1.0),
                id=job.id,
            )
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

    def give_back(self, id: str, attempt: int) -> bool:
        """Let others have a job whose worker was asked to end, and has. It counts for nothing.

        What the worker was doing has to be over: whoever claims the job begins at once.
        """
        with self._database.writing() as change:
            done = change.run(
                "UPDATE zks_jobs SET state = 'queued', note = 'interrupted: it is taken up again', "
                f"changed = {self._database.now} "
                "WHERE id = :id AND attempt = :attempt AND state = 'running'",
                id=id,
                attempt=attempt,
            )
        return bool(done)

    def keep(self, job: JobRow) -> bool:
        """Have a job that is done listed for as long again; False if it is not there any more."""
        with self._database.writing() as change:
            done = change.run(
                f"UPDATE zks_jobs SET changed = {self._database.now} WHERE id = :id AND state = 'done'",
                id=job.id,
            )
        return bool(done)

    def expire(self, *, older: float = KEPT) -> int:
        """Forget what stations asked for and has ended: it is made again when somebody asks."""
        with self._database.writing() as change:
            return change.run(
                "DELETE FROM zks_jobs WHERE kind IN ('copy', 'receipt') "
                f"AND state IN ('done', 'failed', 'cancelled') AND changed < {self._database.now} - :older",
                older=older,
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
        return job_of(rows[0])

    def cancel(self, id: str) -> JobRow:
        """End a job that has not begun; one that runs is asked to stop where nothing is lost."""
        job = self.find(id)
        with self._database.writing() as change:
            done = self._ended(change, job) or self._asked(change, job) or self._ended(change, job)
        now = self.find(id)
        if not done and not now.ended and not now.stoppable:
            raise Refused("this investigation is being paid for: it goes on to its verdict")
        if not done:
            raise Refused(f"the job is {now.state} already")
        return now

    def _ended(self, change: Statements, job: JobRow) -> int:
        """Whether a job was one that nobody is at, nor has begun to pay for, and is no more."""
        return change.run(
            f"UPDATE zks_jobs SET state = 'cancelled', changed = {self._database.now} "
            "WHERE id = :id AND state IN ('queued', 'waiting') AND (confirmed_by IS NULL OR share = 0)",
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
