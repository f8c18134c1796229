"""Before the judge: honest evidence and forged, and a dispute about who holds a credential."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from zktrace.certificates.presence import largest_radius
from zktrace.court import judge
from zktrace.court.judgement import STEPS
from zktrace.credentials import Component, ModelBinding, SecretKey, prove, verify
from zktrace.demo.outcomes import Examined, Outcome
from zktrace.errors import Error, EvidenceRejected
from zktrace.models import ModelState
from zktrace.primitives.canonical import to_json
from zktrace.registry.log import Head

PRESENCE: Final = 2.0**-20  # chance that a model without the mark passes for one with it
_DISPUTE: Final = ("the model holds the codeword of this credential", "the speaker holds its secret key")


def hearings(
    evidence: bytes, *, suspect: ModelState, shared: ModelState, other: ModelState, victim: str
) -> Iterator[Outcome]:
    """Evidence as it was made, then changed in favour of the accused and against a victim."""
    head = Head.from_text(json.loads(evidence)["head"])
    hearing = partial(_hearing, shared=shared)
    yield hearing("honest evidence", evidence, head, suspect, upheld=True)
    for title, change in _FORGERIES.items():
        facts = json.loads(evidence)
        change(facts, victim)
        yield hearing(title, to_json(facts), head, suspect, upheld=False)
    foreign = Head(size=head.size, root=bytes(32))
    yield hearing("another log's head", evidence, foreign, suspect, upheld=False)
    yield hearing("another suspect", evidence, head, other, upheld=False)


def _hearing(
    title: str, evidence: bytes, head: Head, suspect: ModelState, *, shared: ModelState, upheld: bool
) -> Outcome:
    failed: int | None = None
    try:
        named = judge(evidence, head=head, suspect=suspect, shared=shared).named
        said = f"upheld, {', '.join(named)}"
    except Error as error:
        said, failed = f"rejected, {error}", error.step if isinstance(error, EvidenceRejected) else 1
    return Outcome(
        case=f"judge: {title}",
        expected="upheld" if upheld else "rejected",
        happened=said,
        ok=upheld == (failed is None),
        shown=Examined(title="Steps of the judge", steps=tuple(STEPS.values()), failed=failed),
    )


def disputes(
    digest: bytes, component: Component, *, holder: SecretKey, impostor: SecretKey
) -> Iterator[Outcome]:
    """Two say that they hold a credential whose codeword is in a model; one does."""
    binding = ModelBinding(state_digest=digest, component=component)
    radius = largest_radius(component.bits, PRESENCE) or 0
    for title, key in (("the holder", holder), ("an impostor", impostor)):
        holds = key is holder
        try:
            verify(holder.public, binding, prove(key, binding), radius=radius)
            said, accepted = "accepted: it holds the credential, which says nothing of who leaked", True
        except Error as error:
            said, accepted = f"refused, {error}", False
        yield Outcome(
            case=f"credential dispute: {title}",
            expected="accepted" if holds else "refused",
            happened=said,
            ok=accepted == holds,
            shown=Examined(
                title="Steps of the verifier", steps=_DISPUTE, failed=None if accepted else len(_DISPUTE)
            ),
        )


def _rename(facts: dict[str, Any], victim: str) -> None:
    """The victim's name where the accused's was."""
    accused = facts["accused"][0]["station"]
    facts["accused"][0]["station"] = victim
    for stage in facts["findings"]["stages"]:
        for each in stage["named"]:
            each["station"] = victim if each["station"] == accused else each["station"]


def _other_row(facts: dict[str, Any], victim: str) -> None:
    """One bit of the seed of the accused's row."""
    opening = facts["accused"][0]["rows"][0]["opening"]
    opening["seed"] = f"{int(opening['seed'][:2], 16) ^ 1:02x}{opening['seed'][2:]}"


def _other_readout(facts: dict[str, Any], victim: str) -> None:
    """The signs of the first readout values."""
    carrier = facts["carriers"][0]
    carrier["readout"] = f"{int(carrier['readout'][:2], 16) ^ 0x80:02x}{carrier['readout'][2:]}"


def _other_threshold(facts: dict[str, Any], victim: str) -> None:
    """A score of the forger's liking."""
    facts["findings"]["stages"][0]["named"][0]["score"] = "1000000/1"


_FORGERIES: Final[Mapping[str, Callable[[dict[str, Any], str], None]]] = {
    "the victim's name instead of the accused's": _rename,
    "a bit of the row's seed changed": _other_row,
    "a value of the readout changed": _other_readout,
    "a larger score claimed": _other_threshold,
}
