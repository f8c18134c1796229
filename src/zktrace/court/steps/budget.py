"""(8) Budget and policy: what was spent was on record, and is no more than the judge's policy allows."""

from fractions import Fraction

from zktrace.carriers.split import stage_share
from zktrace.certificates.adjudicate import Verdict
from zktrace.court.bench import Bench


def check_policy(bench: Bench) -> None:
    """Hold the investigation against the setup's budget and the judge's own conditions."""
    _check_given(bench)
    _check_budget(bench)
    _check_kind(bench)


def _check_given(bench: Bench) -> None:
    """What the policy asks for was given, and could be used."""
    policy, suspect, minutes = bench.policy, bench.suspect, bench.minutes
    asked = (
        ("the suspect", policy.require_suspect, suspect.model),  # scores are not the suspect
        ("the shared model", policy.require_shared, suspect.shared),
        ("an exported registry", policy.require_registry, bench.export),
        ("an earlier head", policy.require_before, bench.before),
    )
    for what, required, given in asked:
        if required and given is None:
            minutes.reject(f"the policy asks for {what}, and none was given")
    if policy.min_witnesses and not bench.checkpoints:
        minutes.reject(
            f"the policy asks for {policy.min_witnesses} witnesses of a checkpoint, and none was given"
        )
    if suspect.scores is not None and not policy.accept_scores:
        minutes.reject("a matrix of scores was given, and the policy does not let one stand for the suspect")
    for opening in bench.evidence.carriers:
        if policy.require_readout and opening.carrier not in bench.recomputed:
            minutes.reject(
                f"{opening.carrier}: the policy asks for a readout that this judge made from the suspect, "
                "and it was not recomputed"
            )


def _check_budget(bench: Bench) -> None:
    case, policy, minutes = bench.dossier.investigation, bench.policy, bench.minutes
    findings, setup, total = bench.evidence.findings, bench.dossier.setup, bench.total
    if case.budget > setup.budget:
        minutes.reject(f"the investigation spent {case.budget}, all of them may spend {setup.budget}")
    if case.budget > policy.max_budget:
        minutes.reject(f"the investigation spent {case.budget}, the policy allows {policy.max_budget}")
    if total.upto > policy.max_total_budget:
        minutes.reject(
            f"all investigations up to this one {'spent' if total.recounted else 'may have spent'} "
            f"{total.upto}, the policy allows {policy.max_total_budget}"
            + ("" if total.recounted else " (an exported registry would show what they did spend)")
        )
    if findings.stages and case.budget == 0:
        minutes.reject("stations are named, but the investigation has a budget of 0: it may give leads only")
    shares = [each.share for each in case.looks]
    if sum(shares, Fraction(0)) > 1:
        minutes.reject(f"the looks on record may spend {sum(shares, Fraction(0))} times the budget")
    spent = sum((_spent(bench, number) for number in range(1, len(findings.stages) + 1)), Fraction(0))
    minutes.saw(
        f"the stages that named somebody spent {spent} of {case.budget * bench.look.share}, which is their "
        f"look's share; {len(shares)} looks together may spend {case.budget}; "
        f"the policy allows {policy.max_budget} for one investigation"
    )
    if total.recounted:
        minutes.saw(f"{total.upto} for all investigations up to this one, {policy.max_total_budget} allowed")
    else:
        minutes.left(
            f"what all investigations together spent of the {setup.budget} that the setup declares: "
            "no registry was given"
        )


def _check_kind(bench: Bench) -> None:
    """Rule, verdict, carriers and lengths are such as the policy lets count."""
    case, policy, minutes = bench.dossier.investigation, bench.policy, bench.minutes
    if case.rule not in policy.rules:
        minutes.reject(f"the rule {case.rule} is not one the policy allows ({', '.join(policy.rules)})")
    if bench.evidence.findings.verdict == Verdict.TAMPER and not policy.accept_tamper:
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


def _spent(bench: Bench, stage: int) -> Fraction:
    share = bench.dossier.investigation.budget * bench.look.share
    return share * stage_share(stage, bench.rule)
