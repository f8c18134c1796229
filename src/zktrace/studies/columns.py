"""A suspect traced on each carrier alone and on all of them, alignments included: whom each would name.

A suspect that can only be asked, and answers with classes alone, is traced by its answers to triggers.
"""

from typing import Any

from zktrace.attacks.service import answers_of
from zktrace.learning.threads import single_threaded
from zktrace.models import ModelState
from zktrace.readouts.readout import Reading
from zktrace.releases.queries import label_queries_of, picked_labels
from zktrace.studies.ground import CARRIERS, Ground
from zktrace.studies.tracing import BUDGET, sigmas
from zktrace.tracing import Plan, investigate


def columns(
    ground: Ground, suspect: ModelState, members: tuple[int, ...], *, asked: bool = False
) -> dict[str, dict[str, Any]]:
    """By carrier, and `all`: an investigation with the whole budget, of somebody who has these rows."""
    with single_threaded():
        reading = _answers(ground, suspect) if asked else ground.release.read(suspect).remembered()
        carriers = CARRIERS[ground.profile]
        chosen = {each: (each,) for each in carriers} | {"all": carriers}
        return {name: _column(ground, reading, some, members) for name, some in chosen.items()}


def _answers(ground: Ground, suspect: ModelState) -> Reading:
    """As an operator would: triggers go out in a random order, classes come back."""
    inputs, order = label_queries_of(ground.release)
    return ground.release.read_answers(picked_labels(answers_of(suspect, inputs), order, ground.release))


def _column(
    ground: Ground, reading: Reading, carriers: tuple[str, ...], members: tuple[int, ...]
) -> dict[str, Any]:
    """Whom an investigation on some of the carriers names."""
    able = {each.carrier for each in reading.readouts} | {each.carrier for each in reading.further}
    if not able & set(carriers):
        return {"read": False, "named": [], "caught": 0, "framed": 0}
    stations, release = ground.federation.preset.federation.clients, ground.release
    found = investigate(
        Plan.of(reading, release.rule, carriers), release.code, recipients=stations, level=BUDGET
    )
    if all(each.scored is None for each in found.taken):
        return {"read": False, "named": [], "caught": 0, "framed": 0}
    return {
        "read": True,
        "verdict": str(found.verdict),
        "look": found.chosen.look.alignment,
        "named": list(found.named),
        "caught": len(set(found.named) & set(members)),
        "framed": len(set(found.named) - set(members)),
        "sigma": {
            f"{each.look.alignment}": sigmas(each.scored, members, stations)
            for each in found.taken
            if each.scored is not None
        },
    }
