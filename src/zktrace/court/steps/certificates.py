"""(7) Certificates: the judge's own thresholds, which everybody named is beyond and nobody was kept from."""

from fractions import Fraction

from zktrace.certificates.certificate import Certificate
from zktrace.court.bench import Bench
from zktrace.court.scoring import StageScore, beyond, compare, own_certificate
from zktrace.court.steps.scores import look_at
from zktrace.evidence import CertifiedScore, Stage
from zktrace.evidence.figures import chance, up


def check_certificates(bench: Bench) -> None:
    """Certify every stage again, and place everybody named beyond it."""
    case, minutes, findings = bench.dossier.investigation, bench.minutes, bench.evidence.findings
    for number, stage in enumerate(findings.stages, start=1):
        for each in stage.certificates:
            carrier, where = each.carrier, f"stage {number}, {each.carrier} by {each.by}"
            seen = bench.stages[number, carrier, each.by]
            own = _certificate(bench, seen, number, each, where)
            compare(each.certificate, own, seen)
            limits = (own.threshold, each.certificate.threshold)
            _check_beyond(bench, seen, stage, each, thresholds=limits, where=where)
            _check_nobody_kept(bench, seen, number, each, own.threshold)
            minutes.saw(
                f"{where}: an innocent among {case.recipients} scores above {up(own.threshold)} "
                f"with probability at most {chance(own.level)}"
            )
            if carrier in bench.read:
                again = look_at(bench, number, carrier, each.by, bench.read[carrier])
                where = f"{where}, read by the judge"
                threshold = _certificate(bench, again, number, each, where).threshold
                _check_beyond(bench, again, stage, each, thresholds=(threshold,), where=where)
                minutes.saw(f"{where}: whoever is named is above {up(threshold)} there too")
    if not findings.stages:
        minutes.saw("nobody is accused, nothing is certified")


def _certificate(
    bench: Bench, seen: StageScore, number: int, named: CertifiedScore, where: str
) -> Certificate:
    """The judge's own, which must pass."""
    case = bench.dossier.investigation
    own = own_certificate(
        seen,
        recipients=case.recipients,
        level=bench.level,
        stage=number,
        carrier=named.carrier,
        carriers=bench.look.carriers,
        by=named.by,
        tail=bench.evidence.findings.stages[number - 1].tail,
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
    named: CertifiedScore,
    *,
    thresholds: tuple[Fraction, ...],
    where: str,
) -> None:
    own = (named.carrier, named.by)
    for naming in (each for each in stage.named if (each.carrier, each.by) == own):
        row = bench.rows[naming.station, naming.carrier]
        for threshold in thresholds:
            if not beyond(seen, row, threshold):
                bench.minutes.reject(
                    f"{where}: {naming.station} scores {float(seen.score(row)):.4f}, "
                    f"not above the threshold {float(threshold):.4f}"
                )


def _check_nobody_kept(
    bench: Bench, seen: StageScore, number: int, named: CertifiedScore, threshold: Fraction
) -> None:
    """A stage names everybody beyond it: whoever is named later was not beyond it.

    Otherwise an operator could choose whom a later stage takes out, and try as often as there are choices.
    """
    later = {name for stage in bench.evidence.findings.stages[number:] for name in stage.stations}
    for accused in bench.evidence.accused:
        if accused.station in later and beyond(seen, bench.rows[accused.station, named.carrier], threshold):
            bench.minutes.reject(
                f"stage {number}, {named.carrier} by {named.by}: {accused.station} is named at a later "
                f"stage, but is beyond the threshold {float(threshold):.4f} at this one"
            )
