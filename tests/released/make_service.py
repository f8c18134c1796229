"""Writes what the service keeps in the database, of the version that its tables have, as SQL for any one.

    PYTHONPATH=src:tests python tests/released/make_service.py

Run by hand, once a version of the tables, and never by the suite: a sample that is there is never replaced.
It works on a copy of the operator's workspace in 0.2.0/light, whose folder is `WORKSPACE` in what is written.
"""

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import zktrace
from released.service_sample import HERE, LIGHT, PASSWORD, SUSPECT
from zktrace.service import visitors
from zktrace.service.asking import investigation
from zktrace.service.desk import FrontDesk, Settings
from zktrace.service.jobs import Jobs
from zktrace.service.migrations import VERSION
from zktrace.service.store import folder, prepared
from zktrace.service.visitors import Visitor
from zktrace.service.worker import do

OUT = HERE / f"service-{VERSION}.sql"
CENTURY = 100 * 366 * 24 * 3600


def accounts(desk: FrontDesk) -> None:
    """An operator and an auditor; a session and a link that last for long, and a session that has expired."""
    for role in visitors.ACCOUNTS:
        desk.accounts.add(f"an-{role}", role, PASSWORD)
    operator, auditor = (Visitor(role=role, name=f"an-{role}") for role in ("operator", "auditor"))
    token(desk, "session", operator, CENTURY)
    token(desk, "link", auditor, CENTURY)
    token(desk, "session", auditor, -1)


def token(desk: FrontDesk, kind: visitors.Kind, visitor: Visitor, seconds: int) -> None:
    """A token that everybody can know: the words for what it is."""
    words = f"{'a' if seconds > 0 else 'an-expired'}-{kind}-of-{visitor.name}"
    with (
        patch.dict(visitors.SECONDS, {kind: seconds}),
        patch.object(visitors.secrets, "token_urlsafe", lambda _: words),
    ):
        desk.tokens.issue(kind, visitor)


def jobs(home: zktrace.Workspace, desk: FrontDesk) -> None:
    """One in every state: a plan that waits, a job whose worker is gone, one that nobody has begun."""
    upload = folder(home, "uploads") / "suspect"
    shutil.copyfile(SUSPECT, upload)
    investigation(desk, upload, release="r1", budget="1/1000", name="a leak", by="an-operator")
    desk.jobs.add("copy", {"release": "r1", "station": "alpha"}, subject="copy:r1:alpha", by="alpha")
    desk.jobs.add("copy", {"release": "none", "station": "carol"}, subject="copy:none:carol", by="carol")
    while (job := desk.jobs.claim()) is not None:
        do(home, desk.jobs, job)
    desk.jobs.add("copy", {"release": "r1", "station": "carol"}, subject="copy:r1:carol", by="carol")
    desk.jobs.claim(lease=-1)
    gone = desk.jobs.add("dispatch", {"release": "r2", "stations": ["alpha"]}, subject="x", by="an-operator")
    desk.jobs.cancel(gone.id)
    asked = {"release": "r2", "stations": ["alpha"]}
    desk.jobs.add("dispatch", asked, subject="dispatch:r2", by="an-operator")
    states = sorted(each.state for each in Jobs(prepared(home)).listed())
    sys.stdout.write(f"{OUT.name}: jobs {', '.join(states)}\n")


def dumped(path: Path) -> Iterator[str]:
    """The statements that make the service's tables again, and what is in them."""
    with sqlite3.connect(path) as connection:
        yield from (each for each in connection.iterdump() if "zks_" in each.partition("(")[0])


def main() -> int:
    if OUT.exists():
        sys.stderr.write(f"{OUT.name} is there already, and what was released stays as it is\n")
        return 2
    with tempfile.TemporaryDirectory() as place:
        root = shutil.copytree(LIGHT, Path(place) / "light")
        for each in (root, *root.rglob("*")):
            each.chmod(0o700 if each.is_dir() else 0o600)
        home = zktrace.Workspace.open(root)
        desk = FrontDesk.of(home, Settings(url="http://testserver"))
        accounts(desk)
        jobs(home, desk)
        text = "\n".join(dumped(root / "registry.db")).replace(str(root), "WORKSPACE")
    OUT.write_text(f"{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
