"""What is measured of a published system in a federation: the parts of `study baselines`."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from statistics import mean
from typing import Any, Final

import numpy as np

from zktrace.attacks.collusion import collude
from zktrace.attacks.flips import KnownBits
from zktrace.attacks.grid import Attack, Equipment
from zktrace.attacks.rewrite import permute, rescale
from zktrace.baselines.triggers import answers_of
from zktrace.errors import InputError
from zktrace.learning.arrays import State
from zktrace.readouts.scales import gather, scale_names
from zktrace.studies.baselines_field import Field, same
from zktrace.studies.binomial import interval
from zktrace.studies.rows import trial_id
from zktrace.studies.runner import Progress

_ATTACK, _REWRITE, _COALITION = 17, 92, 93  # purposes of randomness
_MEASURED: Final = 2  # copies whose accuracy is measured


def _rescaled(state: State, rng: np.random.Generator) -> State:
    return rescale(state, rng, norms=True)


def _permuted(state: State, rng: np.random.Generator) -> State:
    return permute(state, rng)


def _rewritten(state: State, rng: np.random.Generator) -> State:
    return permute(rescale(state, rng, norms=True), rng, features=True)


REWRITES: Final[Mapping[str, Callable[[State, np.random.Generator], State]]] = {
    "rescaled": _rescaled,
    "permuted": _permuted,
    "both, features too": _rewritten,
}


def marks(field: Field) -> dict[str, Any]:
    """The system as it is meant to be used, and a leak that its server did not foresee."""
    result, shared = field.result, field.scheme.read(field.shared)
    started = time.process_time()
    copies = [field.judged(each, [k]) for k, each in enumerate(field.copies)]
    seconds = (time.process_time() - started) / field.stations
    traced = mean(each["first"] == k for k, each in enumerate(copies)) if shared.scores else None
    norm = float(np.linalg.norm(gather(field.shared)))
    moved = [float(np.linalg.norm(gather(each) - gather(field.shared))) / norm for each in field.copies]
    proof = field.scheme.proved(field.leaked, field.unmarked)
    asked = field.scheme.ask(answers_of(field.leaked))
    return {
        "accuracy": result["accuracy"],
        "accuracy_unmarked": field.accuracy(field.unmarked),
        "accuracy_shared": field.accuracy(field.shared),
        "accuracy_copies": mean(field.accuracy(each) for each in field.copies[:_MEASURED]),
        "mark": traced if field.system.names_recipients else shared.mark,
        "shared": field.told(shared, range(field.stations)),
        "copies": copies,
        "moved": mean(moved),
        "training_seconds": float((field.folder / "seconds").read_text()),
        "copy_seconds": seconds,
        "early": field.judged(field.early, [field.member]),
        "rewrites": {
            name: field.judged(rewrite(field.leaked, field.spec.rng(_REWRITE)), [field.member])
            for name, rewrite in REWRITES.items()
        },
        "queries": None if asked is None else field.told(asked, [field.member]),
        "payload": field.scheme.payload(),
        "proof": None if proof is None else asdict(proof),
        "member": field.member,
        "stations": field.stations,
    }


def innocents(field: Field, *, keys: int) -> dict[str, Any]:
    """A model that nobody marked, read with so many keys: whoever is named is innocent."""
    if keys < 1:
        raise InputError(f"{keys} keys: at least one")
    named, claimed, best = 0, 0, list[float]()
    for number in range(keys):
        reading = field.other_keys(number).read(field.unmarked)
        named += bool(reading.named)
        claimed += bool(reading.present)
        best.append(reading.mark)
    low, high = interval(named, keys)
    return {
        "named": named,
        "claimed": claimed,
        "low": low,
        "high": high,
        "mark": mean(best),
        "most": max(best),
    }


def attacks(field: Field, points: Sequence[Attack], *, samples: int) -> dict[str, Any]:
    """Each attack on the leaker's copy: what is read of it then, and how good it still is."""
    return {"attacks": [each.facts() | _attacked(field, each, samples=samples) for each in points]}


def distillation(field: Field, *, epochs: int, samples: int, report: Progress) -> dict[str, Any]:
    """A student of the leaker's copy."""
    return _attacked(
        field, Attack(family="distill", parameters={"epochs": epochs}), samples=samples, report=report
    )


def _attacked(
    field: Field, attack: Attack, *, samples: int, report: Progress = lambda *_: None
) -> dict[str, Any]:
    facts = attack.facts()
    path = field.folder / f"student-{trial_id(facts | {'samples': samples})}.checkpoint"
    suspect = attack(
        field.leaked,
        Equipment(
            rng=field.spec.rng(_ATTACK, int(trial_id(facts), 16)),
            samples=lambda: field.leakers(samples),
            episodes=field.base.preset.episodes,
            bits=_public(field),
            checkpoint=path,
            report=lambda done, of: report(f"epochs of a student, {field.system.name}", done, of),
        ),
    )
    found = field.judged(suspect, [field.member]) | {"accuracy": field.accuracy(suspect)}
    path.unlink(missing_ok=True)
    return found


def _public(field: Field) -> KnownBits | None:
    """What an attacker knows of the mark."""
    word = field.scheme.public()
    if word is None:
        return None
    return KnownBits(
        scales=tuple(scale_names(field.shared)), directions=word.directions, word=word.bits.astype(np.uint8)
    )


def coalitions(
    field: Field, *, sizes: Sequence[int], strategies: Sequence[str], sampled: int
) -> dict[str, Any]:
    """Copies put together. Where everybody holds the same, so does every coalition, and one is read."""
    alike = same(field.copies)
    lines = [
        _coalition(field, size, strategy, sampled, alike=alike)
        for size in sizes
        if size <= field.stations
        for strategy in strategies
    ]
    return {"alike": alike, "coalitions": lines}


def _coalition(field: Field, size: int, strategy: str, sampled: int, *, alike: bool) -> dict[str, Any]:
    rng = field.spec.rng(_COALITION, size, *strategy.encode())
    told = []
    for members in _members(field, size, sampled):
        held = [field.copies[each] for each in members]
        suspect = field.leaked if alike else dict(collude(held, strategy, rng=rng))
        told.append(field.judged(suspect, members))
        if alike:
            break
    return {
        "size": size,
        "strategy": strategy,
        "count": len(told),
        "traced": sum(each["caught"] > 0 and not each["framed"] for each in told),
        "caught": sum(each["caught"] > 0 for each in told),
        "framed": sum(each["framed"] > 0 for each in told),
        "accused": sum(each["framed"] for each in told),
        "mark": mean(each["mark"] for each in told),
    }


def _members(field: Field, size: int, sampled: int) -> list[tuple[int, ...]]:
    """Coalitions of a size, the same for every strategy and system."""
    every = list(combinations(range(field.stations), size))
    chosen = field.base.rng(_COALITION, size).permutation(len(every))[:sampled]
    return [every[int(each)] for each in np.sort(chosen)]
