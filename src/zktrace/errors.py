"""Every exception this package raises on purpose.

    Error
    ├── InputError                what was handed in cannot be used        (exit code 2)
    │   ├── MalformedFile         bytes that are not what they claim to be
    │   │   ├── MalformedKey
    │   │   ├── MalformedProof
    │   │   ├── MalformedComponent
    │   │   ├── MalformedModel
    │   │   └── MalformedEvidence
    │   ├── LimitExceeded         a size beyond a declared bound; nothing was allocated
    │   ├── UnknownParameters     a parameter set this version does not have
    │   ├── CannotTell            what was handed in decides neither way
    │   ├── WeakParameters        a parameter set for tests or reproduction, where a strong one is due
    │   └── Refused               a file that would be overwritten, a path that is not there
    │       └── Unavailable       a database or a disk that cannot be had at the moment
    ├── MissingExtra              a package that is not installed, and the extra that brings it (exit code 2)
    ├── Unsupported               what this build of a library cannot do (exit code 2)
    ├── WorkerDied                a process of ours that ended in the middle of a task (exit code 2)
    ├── FederationFailed          a deployment did not come up, or ended without a result (exit code 2)
    ├── Denied                    a request to the service that who asks may not make (exit code 2)
    ├── ServiceFailed             a service that was not reached, or refused (exit code 2)
    ├── TrialsFailed              trials of a study came to no outcome; the others were done (exit code 2)
    ├── Interrupted               ended by Ctrl-C; the message says what is kept (exit code 130)
    └── Rejected                  well formed, examined, and found wanting (exit code 1)
        ├── InvalidProof          names the round and the check that failed
        ├── InvalidLog            a registry whose entries, order or hashes do not hold
        ├── InvalidCertificate    a bound that does not hold, or is about something else
        └── EvidenceRejected      names the judge's step and the two facts that disagree

`except Error` catches all of ours and nothing else. Messages are one line, for a person.
"""

from typing import Final, Self

EXTRAS: Final = {  # packages outside of the light core, by the name they are imported by
    "torch": ("PyTorch", "learn"),
    "sklearn": ("scikit-learn", "learn"),
    "scipy": ("SciPy", "learn"),
    "PIL": ("Pillow", "learn"),
    "flwr": ("Flower", "federation"),
    "httpx": ("HTTPX", "federation"),
    "sqlalchemy": ("SQLAlchemy", "operator"),
    "alembic": ("Alembic", "service"),
    "psycopg": ("psycopg", "postgresql"),
    "matplotlib": ("Matplotlib", "report"),
    "fastapi": ("FastAPI", "service"),
    "uvicorn": ("uvicorn", "service"),
    "jinja2": ("Jinja2", "service"),
    "python_multipart": ("python-multipart", "service"),
}


class Error(Exception):
    """Root of the tree."""

    exit_code = 2


class InputError(Error):
    """What was handed in cannot be used."""


class MalformedFile(InputError):
    """Bytes that are not what they claim to be."""


class MalformedKey(MalformedFile):
    """Not a public or secret credential key of this version."""


class MalformedProof(MalformedFile):
    """Not the canonical encoding of a proof."""


class MalformedComponent(MalformedFile):
    """Not the text of an extracted identity component."""


class MalformedModel(MalformedFile):
    """Not a model file that can be read without executing anything."""


class MalformedEvidence(MalformedFile):
    """Not an evidence file of this version."""


class LimitExceeded(InputError):
    """A size beyond a declared bound. Raised before anything of that size is allocated."""


class UnknownParameters(InputError):
    """A parameter set this version does not have."""


class CannotTell(InputError):
    """What was handed in decides neither way: nothing speaks against it, and something is missing."""


class WeakParameters(InputError):
    """A parameter set for tests or reproduction, where nobody said that such a one will do."""


class MissingExtra(Error):
    """A package that is not installed. The message says how to install the extra that brings it.

    What was handed in is not at fault: nothing that passes over unusable input passes over this.
    """

    def __init__(self, module: str, *, hint: str = "") -> None:
        package, extra = EXTRAS[module]
        super().__init__(f"this needs {package}: pip install 'zktrace[{extra}]'{hint}")
        self.extra = extra

    @classmethod
    def of(cls, error: ModuleNotFoundError, *, hint: str = "") -> Self | None:
        """The same for a failed import; None if no extra brings what is missing."""
        module = (error.name or "").partition(".")[0]
        return cls(module, hint=hint) if module in EXTRAS else None


class Unsupported(Error):
    """What this build of a library cannot do. What was handed in is not at fault."""


class Refused(InputError):
    """An operation on a path that would lose something, or that has nothing to work on."""


class Unavailable(Refused):
    """A database that does not answer, or a disk that takes nothing more: not what was asked is wrong."""


class WorkerDied(Error):
    """A worker process that ended in the middle of a task: killed, or out of memory."""


class FederationFailed(Error):
    """Processes of a federation that did not start, did not answer, or ended without a result."""


class Denied(Error):
    """A request to the service that who asks may not make, or not now; `status` is HTTP's number for it."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ServiceFailed(Error):
    """A service that could not be reached, refused, or answered otherwise than it should."""


class TrialsFailed(Error):
    """Trials of a study that came to no outcome. The others were done, and have their rows."""


class Interrupted(Error):
    """A command that was ended by Ctrl-C. The message says what is kept and how to go on."""

    exit_code = 130


class Rejected(Error):
    """Well formed, examined, and found wanting."""

    exit_code = 1


class InvalidProof(Rejected):
    """A proof that does not verify: which check failed and, where one round did, which (counted from 0)."""

    def __init__(self, *, check: str, reason: str, round: int | None = None) -> None:
        place = check if round is None else f"round {round}, {check}"
        super().__init__(f"{place}: {reason}")
        self.check = check
        self.round = round
        self.reason = reason


class InvalidLog(Rejected):
    """A registry's log that breaks its own rules, or does not have the head it should have."""


class InvalidCertificate(Rejected):
    """A certificate whose inequality does not hold on the arrays it is checked against."""


class EvidenceRejected(Rejected):
    """Evidence that does not hold: which of the judge's steps failed, and what disagrees."""

    def __init__(self, *, step: int, title: str, reason: str) -> None:
        super().__init__(f"step {step}, {title}: {reason}")
        self.step = step
        self.title = title
        self.reason = reason
