"""(8) Budget and policy: what was spent was on record, and is no more than the judge's policy allows."""

from fractions import Fraction

from zktrace.certificates.adjudicate import Verdict
from zktrace.judge.bench import Bench


def check_policy(bench: Bench) -> None:
    """Hold the investigation against the setup's budget and the judge's own conditions."""
    case, policy, minutes = bench.dossier.investigation, bench.policy, bench.minutes
    findings, setup = bench.evidence.findings, bench.dossier.setup
    asked = (
        ("the suspect", policy.require_suspect, bench.suspect.given or None),
        ("the shared model", policy.require_shared, bench.suspect.shared),
        ("an exported registry", policy.require_registry, bench.export),
        ("an earlier head", policy.require_before, bench.before),
    )
    for what, required, given in asked:
        if required and given is None:
            minutes.reject(f"the policy asks for {what}, and none was given")
    if case.budget > setup.budget:
        minutes.reject(f"the investigation spent {case.budget}, all of them may spend {setup.budget}")
    if case.budget > policy.max_budget:
        minutes.reject(f"the investigation spent {case.budget}, the policy allows {policy.max_budget}")
    if findings.stages and case.budget == 0:
        minutes.reject("stations are named, but the investigation has a budget of 0: it may give leads only")
    if case.rule not in policy.rules:
        minutes.reject(f"the rule {case.rule} is not one the policy allows ({', '.join(policy.rules)})")
    if findings.verdict == Verdict.TAMPER and not policy.accept_tamper:
        minutes.reject("the verdict is tampering, and the policy does not let it count")
    for opening in bench.evidence.carriers:
        if opening.carrier not in policy.carriers:
            minutes.reject(
                f"{opening.carrier}: not a carrier the policy allows ({', '.join(policy.carriers)})"
            )
        if opening.length < policy.min_length:
            minutes.reject(
                f"{opening.carrier}: {opening.length} positions, the policy asks for {policy.min_length}"
            )
    shares = [each.share for each in case.looks]
    if sum(shares, Fraction(0)) > 1:
        minutes.reject(f"the looks on record may spend {sum(shares, Fraction(0))} times the budget")
    spent = sum((_spent(bench, number) for number in range(1, len(findings.stages) + 1)), Fraction(0))
    minutes.saw(
        f"the stages that named somebody spent {spent} of {case.budget * bench.look.share}, which is their "
        f"look's share; {len(shares)} looks together may spend {case.budget}; "
        f"the policy allows {policy.max_budget} for one investigation"
    )
    if bench.export is None:
        minutes.left(f"what all investigations together spent of {setup.budget}: no registry was given")


def _spent(bench: Bench, stage: int) -> Fraction:
    share = bench.dossier.investigation.budget * bench.look.share
    return share if bench.rule == "paper" else share / 2**stage
