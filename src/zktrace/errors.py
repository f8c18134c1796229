"""Every exception this package raises on purpose.

    Error
    ├── InputError                what was handed in cannot be used        (exit code 2)
    │   ├── MalformedFile         bytes that are not what they claim to be
    │   │   ├── MalformedKey
    │   │   ├── MalformedProof
    │   │   ├── MalformedComponent
    │   │   └── MalformedModel
    │   ├── LimitExceeded         a size beyond a declared bound; nothing was allocated
    │   ├── UnknownParameters     a parameter set this version does not have
    │   └── Refused               a file that would be overwritten, a path that is not there
    └── Rejected                  well formed, examined, and found wanting (exit code 1)
        ├── InvalidProof          names the round and the check that failed
        └── InvalidCertificate    a bound that does not hold, or is about something else

`except Error` catches all of ours and nothing else. Messages are one line, for a person.
"""


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


class LimitExceeded(InputError):
    """A size beyond a declared bound. Raised before anything of that size is allocated."""


class UnknownParameters(InputError):
    """A parameter set this version does not have."""


class Refused(InputError):
    """An operation on a path that would lose something, or that has nothing to work on."""


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


class InvalidCertificate(Rejected):
    """A certificate whose inequality does not hold on the arrays it is checked against."""
