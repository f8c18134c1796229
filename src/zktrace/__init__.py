"""ZK-Trace: whose copy of the federated model leaked, with a bound that a judge can re-check.

    home = zktrace.Workspace.create(folder, title="...", budget="1/100")
    alpha = zktrace.Credential.new("alpha")
    home.enrol("alpha", alpha.request(home.setup))
    release = home.release(model)
    copy = home.dispatch("alpha", release)
    case = home.trace(suspect, budget="1/1000")
    zktrace.judge(case.evidence, head=home.head, suspect=suspect)

These names are stable. All else is the inside of the house: it may change, and `docs/api.md` says so.
Nothing is loaded before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from zktrace.court.judgement import Judgement
    from zktrace.court.policy import Policy
    from zktrace.errors import CannotTell, Error, EvidenceRejected, MalformedEvidence
    from zktrace.evidence import Evidence
    from zktrace.front.case import TracedCase
    from zktrace.front.credential import Credential
    from zktrace.front.judging import judge
    from zktrace.front.marked_copy import MarkedCopy
    from zktrace.front.workspace import Workspace
    from zktrace.marking.settings import CopySettings
    from zktrace.readouts.network import Network
    from zktrace.readouts.samples import Pool
    from zktrace.registry.log import Extension, Head
    from zktrace.registry.requests import Request

__version__ = "0.2.0"
__all__ = [
    "CannotTell",
    "CopySettings",
    "Credential",
    "Error",
    "Evidence",
    "EvidenceRejected",
    "Extension",
    "Head",
    "Judgement",
    "MalformedEvidence",
    "MarkedCopy",
    "Network",
    "Policy",
    "Pool",
    "Request",
    "TracedCase",
    "Workspace",
    "judge",
]

_PLACES: Final = {
    "CannotTell": "zktrace.errors",
    "CopySettings": "zktrace.marking.settings",
    "Credential": "zktrace.front.credential",
    "Error": "zktrace.errors",
    "Evidence": "zktrace.evidence",
    "EvidenceRejected": "zktrace.errors",
    "Extension": "zktrace.registry.log",
    "Head": "zktrace.registry.log",
    "Judgement": "zktrace.court.judgement",
    "MalformedEvidence": "zktrace.errors",
    "MarkedCopy": "zktrace.front.marked_copy",
    "Network": "zktrace.readouts.network",
    "Policy": "zktrace.court.policy",
    "Pool": "zktrace.readouts.samples",
    "Request": "zktrace.registry.requests",
    "TracedCase": "zktrace.front.case",
    "Workspace": "zktrace.front.workspace",
    "judge": "zktrace.front.judging",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'zktrace' has no attribute {name!r}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
