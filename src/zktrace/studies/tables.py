"""Tables of the documentation, drawn from saved rows: drawing again never trains again."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from statistics import mean
from typing import Any

from zktrace.errors import InputError, Refused
from zktrace.studies.attack_tables import attacks_carriers_table, attacks_table
from zktrace.studies.baselines_tables import (
    baseline_parameters_table,
    baselines_coalitions_table,
    baselines_table,
    kd_table,
)
from zktrace.studies.carrier_tables import copy_cost_table, kdclass_table, twocarrier_table
from zktrace.studies.cells import DATASETS
from zktrace.studies.computed_tables import (
    finite_guarantees_table,
    secrecy_table,
    soundness_split_table,
)
from zktrace.studies.disguise_tables import disguise_table, stability_table
from zktrace.studies.guard_tables import guard_residues_table, guard_tracing_table, guard_utility_table
from zktrace.studies.identity_tables import (
    attribution_table,
    featurespace_table,
    noniid_table,
    stressors_table,
    survival_table,
    utility_table,
)
from zktrace.studies.insider_tables import insiders_table, steering_table
from zktrace.studies.markdown import markdown
from zktrace.studies.model_tables import (
    coalitions_table,
    crowds_table,
    models_table,
    remains_table,
    strengths_table,
)
from zktrace.studies.rows import Row, Rows
from zktrace.studies.strategy_tables import strategies_table
from zktrace.studies.tracing_tables import (
    certified_audit_table,
    collusion_table,
    isolation_table,
    tracing_table,
)

_PAPER_GNSS = ("98 %", ".96")
_PAPER_FEDERATION = {"gnss": _PAPER_GNSS, "cifar10": ("100 %", ".94"), "recordings": _PAPER_GNSS}


def federation_table(rows: Iterable[Row]) -> str:
    """Attribution, agreement and accuracy with and without marks, by dataset; means over seeds."""
    groups: dict[str, dict[bool, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.trial["study"] == "federation":
            groups[row.trial["preset"]["data"]["dataset"]][row.outcome["marked"]].append(row)
    lines = []
    for dataset, title in DATASETS.items():
        marked, control = groups[dataset][True], groups[dataset][False]
        if not marked or not control:
            continue
        attribution, own = _PAPER_FEDERATION[dataset]
        with_mark, without = (100 * _mean(each, "accuracy") for each in (marked, control))
        half = 100 * mean(row.outcome["accuracy_half_width"] for row in marked)
        lines.append(
            (
                title,
                ", ".join(str(row.trial["seed"]) for row in marked),
                f"{100 * _mark(marked, 'attribution'):.0f} % ({attribution})",
                f"{_mark(marked, 'self_agreement'):.3f} ({own})",
                f"{_mark(marked, 'cross_talk'):.3f} (.50)",
                f"{with_mark:.1f} ± {half:.1f} %",
                f"{without:.1f} %",
                f"{with_mark - without:+.1f} pp",
            )
        )
    head = ("data", "seeds", "attribution", "own codeword", "others", "accuracy", "no marks", "difference")
    return markdown(head, lines)


def _mean(rows: list[Row], name: str) -> float:
    return mean(float(row.outcome[name]) for row in rows)


def _mark(rows: list[Row], name: str) -> float:
    return mean(float(row.outcome["marks"][name]) for row in rows)


def innocents_table(rows: Iterable[Row]) -> str:
    """Suspects of all kinds: how many code keys named somebody innocent, what the budget allows.

    Rows of leaks say more than rows of suspects that nobody was given.
    """
    found = sorted((row for row in rows if row.trial["study"] == "innocents"), key=_innocents_order)
    whole = any("leak" in row.trial for row in found)
    head = ["budget", "profile", "carrier", "data", "suspect", "keys", "named", "rate, 99 %", "at most"]
    if whole:
        head[5:7] = ["leaked", "keys", "innocents named"]
        head += ["guilty named", "later stages", "by alignments"]
    return markdown(head, [_innocents_line(row, whole=whole) for row in found])


def _innocents_order(row: Row) -> tuple[Any, ...]:
    trial = row.trial
    titles = list(DATASETS)
    dataset = titles.index(trial["dataset"]) if trial["dataset"] in titles else len(titles)
    carriers = trial.get("carriers", [trial.get("carrier")])
    order = (-Fraction(trial["level"]), trial["profile"], len(carriers), carriers, dataset)
    return (*order, trial.get("guarded", ""), trial["kind"], _leak_order(trial))


def _leak_order(trial: dict[str, Any]) -> tuple[int, str]:
    leak = trial.get("leak", "")
    return (leak != "nobody", leak)


def _suspect(trial: dict[str, Any]) -> str:
    """What it is; and what was done to it after a guard had freed it."""
    how = trial.get("guarded")
    if how is None:
        return str(trial["kind"])
    return f"{trial['kind']}, guarded" + ("" if how == "nothing" else f", {how}")


def _innocents_line(row: Row, *, whole: bool) -> tuple[str, ...]:
    trial, outcome = row.trial, row.outcome
    line = (
        f"{float(Fraction(trial['level'])):g}",
        trial["profile"],
        "+".join(trial.get("carriers", [trial.get("carrier")])),
        DATASETS.get(trial["dataset"], trial["dataset"]),
        _suspect(trial),
        *([trial.get("leak", "nobody")] if whole else []),
        f"{outcome['keys']:,}",
        str(outcome["namings"]) + ("" if outcome["within"] else " (budget refuted)"),
        f"{100 * outcome['low']:.2f} to {100 * outcome['high']:.2f} %",
        str(outcome["most"]),
    )
    counts = ("caught", "stages", "aligned") if whole else ()
    return (*line, *(str(outcome.get(each, "-")) for each in counts))


def rows_of(file: Rows, kind: str) -> list[Row]:
    """The rows of a file, at least one of them of the study that a table is about."""
    rows = file.read()
    study = _STUDY_OF.get(kind, kind)
    found = sorted({str(row.trial.get("study")) for row in rows})
    if not file.path.exists():
        raise Refused(f"{file.path}: no such file")
    if study not in found and _BESIDE.get(kind) not in found:
        held = f"rows of {', '.join(found)}" if found else "no rows"
        raise InputError(f"{file.path}: holds {held}, and this table is drawn from rows of {study}")
    return rows


_STUDY_OF = {
    "stability": "disguise",
    "crowds": "coalitions",
    "remains": "models",
    "guard-utility": "guard",
    "guard-tracing": "guard",
    "guard-residues": "guard",
    "attacks-carriers": "attacks",
    "attribution": "federation",
    "survival": "federation",
    "noniid": "stressors",
    "featurespace": "federation",
    "utility": "federation",
    "isolation": "tracing",
    "collusion": "tracing",
    "certified-audit": "tracing",
    "strategies": "tracing",
    "twocarrier": "tracing",
    "baselines-coalitions": "baselines",
    "kd": "baselines",
    "copy-cost": "tracing",
    "kdclass": "disguise",
}
_BESIDE = {  # rows that serve too
    "survival": "stressors",
    "noniid": "federation",
    "stressors": "federation",
    "kd": "attacks",
}
TABLES = {
    "federation": federation_table,
    "tracing": tracing_table,
    "disguise": disguise_table,
    "stability": stability_table,
    "innocents": innocents_table,
    "models": models_table,
    "remains": remains_table,
    "strengths": strengths_table,
    "coalitions": coalitions_table,
    "crowds": crowds_table,
    "guard-utility": guard_utility_table,
    "guard-tracing": guard_tracing_table,
    "guard-residues": guard_residues_table,
    "attacks": attacks_table,
    "attacks-carriers": attacks_carriers_table,
    "attribution": attribution_table,
    "survival": survival_table,
    "noniid": noniid_table,
    "featurespace": featurespace_table,
    "utility": utility_table,
    "stressors": stressors_table,
    "insiders": insiders_table,
    "steering": steering_table,
    "isolation": isolation_table,
    "collusion": collusion_table,
    "certified-audit": certified_audit_table,
    "strategies": strategies_table,
    "twocarrier": twocarrier_table,
    "kdclass": kdclass_table,
    "copy-cost": copy_cost_table,
    "baselines": baselines_table,
    "baselines-coalitions": baselines_coalitions_table,
    "kd": kd_table,
    "baseline-parameters": baseline_parameters_table,
    "finite-guarantees": finite_guarantees_table,
    "soundness-split": soundness_split_table,
    "secrecy": secrecy_table,
}
COMPUTED = frozenset({"finite-guarantees", "soundness-split", "secrecy", "baseline-parameters"})  # of no rows
