"""The smallest federation that trains: seconds, for the tests of this folder."""

from dataclasses import replace
from pathlib import Path

from support import seeded
from zktrace.federation.spec import RunSpec
from zktrace.learning.presets import Preset, load_preset


def preset(*, rounds: int = 2, clients: int = 3, **marks: float) -> Preset:
    smoke = load_preset("smoke")
    return replace(
        smoke,
        data=replace(smoke.data, samples=600),
        model=replace(smoke.model, width=4),
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, rounds=rounds, clients=clients),
        marks=replace(smoke.marks, **marks),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )


def spec(chosen: Preset | None = None, *, seed: int = 1, cache: Path | None = None) -> RunSpec:
    chosen = chosen or preset()
    draw = seeded("words")
    words = tuple(draw(chosen.marks.bits // 8) for _ in range(chosen.federation.clients))
    return RunSpec(preset=chosen, seed=seed, words=words, cache=cache)
