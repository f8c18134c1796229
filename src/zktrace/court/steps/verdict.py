"""(9) Verdict: it is what the numbers say, and the log has the digest of the findings."""

from zktrace.certificates.adjudicate import Verdict
from zktrace.court.bench import Bench
from zktrace.evidence.findings import CERTIFIED


def check_verdict(bench: Bench) -> None:
    """Hold the verdict against the stages and against the log."""
    findings, recorded, minutes = bench.evidence.findings, bench.dossier.verdict, bench.minutes
    tails = {stage.tail for stage in findings.stages}
    if findings.verdict == Verdict.ATTRIBUTE and tails != {"positive"}:
        minutes.reject("the verdict is attribution, and somebody is named on the negative tail")
    if findings.verdict == Verdict.TAMPER and tails != {"negative"}:
        minutes.reject("the verdict is tampering, and somebody is named on the positive tail")
    stages = 1 if bench.rule == "paper" or findings.verdict == Verdict.TAMPER else len(findings.stages)
    if len(findings.stages) > stages:
        minutes.reject(
            f"{len(findings.stages)} stages, the rule {bench.rule} takes one for {findings.verdict}"
        )
    if bench.rule == "paper" and len(findings.stations) > 1:
        minutes.reject(
            f"{', '.join(findings.stations)} are named, the rule paper names the largest score alone"
        )
    if recorded.verdict != findings.verdict:
        minutes.reject(f"the verdict on record is {recorded.verdict}, the findings say {findings.verdict}")
    if recorded.named != findings.stations:
        minutes.reject(
            f"the record names {', '.join(recorded.named) or 'nobody'}, "
            f"the findings {', '.join(findings.stations) or 'nobody'}"
        )
    if recorded.findings != findings.digest():
        minutes.reject(
            f"the findings hash to {findings.digest().hex()}, the record has {recorded.findings.hex()}"
        )
    minutes.saw(f"{findings.verdict}: {', '.join(findings.stations) or 'nobody is named'}, as on record")
    if findings.verdict in CERTIFIED:
        minutes.left("that nobody else was beyond a threshold: no other row is opened")
        minutes.left(
            "that whoever shaped the suspect knew nothing of an innocent's row: an assumption, A5(a); "
            "whoever knows a row, the operator too, can write it"
        )
