"""(6) Scores: every claimed score is that of the derived row, stage by stage, exactly."""

from collections.abc import Sequence

import numpy as np

from zktrace.court.bench import Bench
from zktrace.court.scoring import StageScore, look
from zktrace.evidence import Stage
from zktrace.evidence.figures import down
from zktrace.primitives.gf2 import Bits
from zktrace.readouts.directions import Floats


def check_scores(bench: Bench) -> None:
    """Score every accused again, at the stage and on the carrier that named it."""
    for number, stage in enumerate(bench.evidence.findings.stages, start=1):
        for carrier, _ in stage.certificates:
            values = bench.evidence.carrier(carrier).values()
            bench.stages[number, carrier] = look_at(bench, number, carrier, values)
        _check_stage_scores(bench, number, stage)
    if not bench.evidence.findings.stages:
        bench.minutes.saw("nobody is accused, no score is claimed")
        bench.minutes.left("the scores behind a lead or its absence: no row is opened")


def look_at(bench: Bench, number: int, carrier: str, values: Floats) -> StageScore:
    """What a stage (counted from 1) scores with, on these values of a carrier."""
    stages = bench.evidence.findings.stages
    before = [name for each in stages[: number - 1] for name in each.stations]
    return look(
        values,
        bench.biases[carrier],
        _rows_of(bench, before, carrier),
        rule=bench.rule,
        tail=stages[number - 1].tail,
    )


def _rows_of(bench: Bench, stations: Sequence[str], carrier: str) -> Bits:
    """The rows already named, in the order of the code, as the tracer takes them out."""
    order = sorted(stations, key=lambda name: bench.dossier.enrolments[name].row)
    rows = [np.frombuffer(bench.rows[name, carrier], dtype=np.uint8) for name in order]
    return np.array(rows, dtype=np.uint8) if rows else np.empty((0, 0), dtype=np.uint8)


def _check_stage_scores(bench: Bench, number: int, stage: Stage) -> None:
    for naming in stage.named:
        row = bench.rows[naming.station, naming.carrier]
        score = bench.stages[number, naming.carrier].score(row)
        if score != naming.score:
            bench.minutes.reject(
                f"stage {number}, {naming.carrier}: {naming.station} is said to score "
                f"{float(naming.score):.4f}, its row scores {float(score):.4f}"
            )
        bench.minutes.saw(f"stage {number}, {naming.carrier}: {naming.station} scores {down(score)}")
