"""What nobody wants any more goes: uploads that no job is about, and what stations asked for long ago."""

from typing import Final

from zktrace.front.workspace import Workspace
from zktrace.service.jobs import Jobs
from zktrace.service.store import folder
from zktrace.service.uploads import sweep

EVERY: Final = 3600.0  # seconds


def tidy(home: Workspace, jobs: Jobs) -> None:
    """Once, by any worker: several do no harm to each other."""
    sweep(folder(home, "uploads"), jobs.files())
    sweep(folder(home, "judged"), ())
    jobs.expire()
