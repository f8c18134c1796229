"""(6) Scores: every claimed score is that of the derived row, stage by stage, exactly."""

from collections.abc import Sequence

import numpy as np

from zktrace.carriers.split import score_shares
from zktrace.court.bench import Bench
from zktrace.court.scoring import StageScore, look
from zktrace.evidence import CertifiedScore, Stage
from zktrace.evidence.figures import down
from zktrace.primitives.gf2 import Bits
from zktrace.readouts.directions import Floats


def check_scores(bench: Bench) -> None:
    """Score every accused again, at the stage, on the carrier and by the score that named it."""
    for number, stage in enumerate(bench.evidence.findings.stages, start=1):
        for each in stage.certificates:
            _check_kind(bench, number, each)
            values = bench.evidence.carrier(each.carrier).values()
            seen = look_at(bench, number, each.carrier, each.by, values)
            bench.stages[number, each.carrier, each.by] = seen
        _check_stage_scores(bench, number, stage)
    if not bench.evidence.findings.stages:
        bench.minutes.saw("nobody is accused, no score is claimed")
        bench.minutes.left("the scores behind a lead or its absence: no row is opened")


def _check_kind(bench: Bench, number: int, named: CertifiedScore) -> None:
    """The score is one of those that the rule and the law of the code have."""
    known = score_shares(bench.biases[named.carrier].vary, bench.rule)
    if named.by not in known:
        bench.minutes.reject(
            f"stage {number}, {named.carrier}: named by {named.by}, scored by {' and '.join(known)}"
        )


def look_at(bench: Bench, number: int, carrier: str, by: str, values: Floats) -> StageScore:
    """What a stage (counted from 1) scores with by one score, on these values of a carrier."""
    stages = bench.evidence.findings.stages
    before = [name for each in stages[: number - 1] for name in each.stations]
    return look(
        values,
        bench.biases[carrier],
        _rows_of(bench, before, carrier),
        by=by,
        tail=stages[number - 1].tail,
    )


def _rows_of(bench: Bench, stations: Sequence[str], carrier: str) -> Bits:
    """The rows already named, in the order of the code, as the tracer takes them out."""
    order = sorted(stations, key=lambda name: bench.dossier.enrolments[name].row)
    rows = [np.frombuffer(bench.rows[name, carrier], dtype=np.uint8) for name in order]
    return np.array(rows, dtype=np.uint8).reshape(len(rows), -(-bench.biases[carrier].length // 8))


def _check_stage_scores(bench: Bench, number: int, stage: Stage) -> None:
    for naming in stage.named:
        row = bench.rows[naming.station, naming.carrier]
        score = bench.stages[number, naming.carrier, naming.by].score(row)
        where = f"stage {number}, {naming.carrier} by {naming.by}"
        if score != naming.score:
            bench.minutes.reject(
                f"{where}: {naming.station} is said to score {float(naming.score):.4f}, "
                f"its row scores {float(score):.4f}"
            )
        bench.minutes.saw(f"{where}: {naming.station} scores {down(score)}")
