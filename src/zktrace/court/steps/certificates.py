"""(7) Certificates: the judge's own thresholds, which everybody named is beyond and nobody was kept from."""

from fractions import Fraction

from zktrace.certificates.certificate import Certificate
from zktrace.court.bench import Bench
from zktrace.court.scoring import StageScore, beyond, compare, own_certificate
from zktrace.court.steps.scores import look_at
from zktrace.evidence import Stage
from zktrace.evidence.figures import chance, up


def check_certificates(bench: Bench) -> None:
    """Certify every stage again, and place everybody named beyond it."""
    case, minutes, findings = bench.dossier.investigation, bench.minutes, bench.evidence.findings
    for number, stage in enumerate(findings.stages, start=1):
        for carrier, claimed in stage.certificates:
            seen, where = bench.stages[number, carrier], f"stage {number}, {carrier}"
            own = _certificate(bench, seen, number, carrier, where)
            compare(claimed, own, seen)
            limits = (own.threshold, claimed.threshold)
            _check_beyond(bench, seen, stage, carrier, thresholds=limits, where=where)
            _check_nobody_kept(bench, seen, number, carrier, own.threshold)
            minutes.saw(
                f"{where}: an innocent among {case.recipients} scores above {up(own.threshold)} "
                f"with probability at most {chance(own.level)}"
            )
            if carrier in bench.read:
                again, where = (
                    look_at(bench, number, carrier, bench.read[carrier]),
                    f"{where}, read by the judge",
                )
                threshold = _certificate(bench, again, number, carrier, where).threshold
                _check_beyond(bench, again, stage, carrier, thresholds=(threshold,), where=where)
                minutes.saw(f"{where}: whoever is named is above {up(threshold)} there too")
    if not findings.stages:
        minutes.saw("nobody is accused, nothing is certified")


def _certificate(bench: Bench, seen: StageScore, number: int, carrier: str, where: str) -> Certificate:
    """The judge's own, which must pass."""
    case = bench.dossier.investigation
    own = own_certificate(
        seen,
        recipients=case.recipients,
        level=bench.level,
        stage=number,
        carrier=carrier,
        carriers=bench.look.carriers,
        rule=bench.rule,
    )
    if not own.passes:
        bench.minutes.reject(
            f"{where}: the exponent {own.exponent[0]} does not reach the required {own.required}"
        )
    return own


def _check_beyond(
    bench: Bench,
    seen: StageScore,
    stage: Stage,
    carrier: str,
    *,
    thresholds: tuple[Fraction, ...],
    where: str,
) -> None:
    for naming in (each for each in stage.named if each.carrier == carrier):
        row = bench.rows[naming.station, carrier]
        for threshold in thresholds:
            if not beyond(seen, row, threshold):
                bench.minutes.reject(
                    f"{where}: {naming.station} scores {float(seen.score(row)):.4f}, "
                    f"not above the threshold {float(threshold):.4f}"
                )


def _check_nobody_kept(
    bench: Bench, seen: StageScore, number: int, carrier: str, threshold: Fraction
) -> None:
    """A stage names everybody beyond it: whoever is named later was not beyond it.

    Otherwise an operator could choose whom a later stage takes out, and try as often as there are choices.
    """
    later = {name for stage in bench.evidence.findings.stages[number:] for name in stage.stations}
    for accused in bench.evidence.accused:
        if accused.station in later and beyond(seen, bench.rows[accused.station, carrier], threshold):
            bench.minutes.reject(
                f"stage {number}, {carrier}: {accused.station} is named at a later stage, but is beyond "
                f"the threshold {float(threshold):.4f} at this one"
            )
