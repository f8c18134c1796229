"""A case as plain values for a machine. What is told of whom: `zktrace.report.words`."""

from zktrace.report.words import ASSUMPTION, NOT_PROVED, shown_rows, shown_tables, stage_bound
from zktrace.tracing.case import Case, Lead, Named

__all__ = ["case_facts"]


def case_facts(case: Case, *, all_scores: bool = False) -> dict[str, object]:
    """Everything but files. Without `all_scores` nothing in it depends on the row of a station not named."""
    tables = shown_tables(case, all_scores=all_scores)
    return {
        "verdict": str(case.verdict),
        "named": [_named(case, each) for each in case.named],
        "leads": [_lead(each) for each in case.leads] if all_scores else None,  # None: not shown
        "scores": {
            table.carrier: {
                case.stations[i]: float(table.scores[i])
                for i in shown_rows(case, table.carrier, all_scores=all_scores)
            }
            for table in tables
        },
        "others": len(case.stations) - len(case.names),
        "thresholds": {table.carrier: float(table.positive.threshold) for table in tables},
        "looks": [each.as_json() for each in case.investigation.looks],
        "taken": len(case.evidence.findings.looks),
        "decided": case.look.alignment if tables else None,
        "not_aligned": dict(case.failed),
        "budget": str(case.investigation.budget),
        "recipients": case.investigation.recipients,
        "suspect": case.investigation.suspect.hex(),
        "release": case.investigation.release,
        "investigation": case.place,
        "assumption": ASSUMPTION,
        "not_proved": list(NOT_PROVED),
        "head": case.evidence.head,
    }


def _named(case: Case, each: Named) -> dict[str, object]:
    return {
        "station": each.station,
        "carrier": each.carrier,
        "tail": each.tail,
        "alignment": each.alignment,
        "stage": each.stage,
        "score": float(each.score),
        "threshold": float(each.certificate.threshold),
        "stage_bound": str(stage_bound(case, each.stage)),  # that this stage names any innocent
        "investigation_bound": str(case.investigation.budget),  # that any stage of any look does
    }


def _lead(each: Lead) -> dict[str, object]:
    return {
        "station": each.station,
        "carrier": each.carrier,
        "tail": each.tail,
        "score": float(each.score),
        "threshold": float(each.threshold),
    }
