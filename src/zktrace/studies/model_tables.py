"""Tables of networks of many architectures, and of coalitions, drawn from saved rows."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean
from typing import Any, Final

from zktrace.studies.cells import DATASETS
from zktrace.studies.markdown import markdown
from zktrace.studies.rows import Row

NETWORKS: Final = {
    "resnet": "ResNet-18 with BatchNorm",
    "cnn": "plain CNN, no normalisation",
    "groupnorm": "ResNet with GroupNorm",
    "convnext": "after ConvNeXt",
    "vit": "vision transformer",
    "language": "language model, by character",
    "mlp": "scikit-learn MLP",
}
_LEAKS: Final = {  # in the order of columns, and what stands above them
    "as it is": "as it is",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "8 bits": "8 bits",
    "4 bits": "4 bits",
    "half of the weights pruned": "half pruned",
    "100 fine-tuning steps": "fine-tuned",
    "LoRA of rank 8, merged": "LoRA",
    "channels permuted and rescaled": "rewritten",
    "rewritten, then 8 bits": "rewritten, 8 bits",
    "rewritten, then fine-tuned": "rewritten, fine-tuned",
    "stream rotated too": "rotated",
}


def models_table(rows: Iterable[Row]) -> str:
    """By network: what a copy costs; of each change, leaks that named the leaker and nobody else."""
    costs, leaks = defaultdict[str, list[Row]](list), defaultdict[str, list[Row]](list)
    for row in rows:
        if row.trial["study"] == "models":
            (costs if row.trial["part"] == "cost" else leaks)[row.trial["network"]].append(row)
    lines = []
    for name, title in NETWORKS.items():
        if costs[name]:
            one = costs[name][0].outcome
            lines.append(
                (
                    title,
                    f"{one['weights'] / 1e6:.2f} M",
                    str(one["length"]),
                    _measured(one["measure"], one["shared"]),
                    _cost(costs[name]),
                    *(_named(leaks[name], kind) for kind in _LEAKS),
                    _framed(leaks[name]),
                )
            )
    head = (
        "network",
        "weights",
        "code",
        "accuracy or perplexity",
        "cost of a copy",
        *_LEAKS.values(),
        "framed",
    )
    return markdown(head, lines)


def remains_table(rows: Iterable[Row]) -> str:
    """By network: what the shared model measures, and what is left after each change of a copy; means."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    measures = {}
    for row in rows:
        if row.trial["study"] == "models" and row.trial["part"] == "cost":
            measures[row.trial["network"]] = row.outcome["measure"]
        elif row.trial["study"] == "models" and row.trial["part"] == "leak":
            found[row.trial["network"]][row.trial["suspect"]].append(row)
    lines = []
    for name in (each for each in NETWORKS if each in measures and found[each]):
        shared = mean(row.outcome["measured_shared"] for each in found[name].values() for row in each)
        left = [found[name][kind] for kind in _LEAKS]
        cells = [
            _measured(measures[name], mean(row.outcome["measured"] for row in each)) if each else "-"
            for each in left
        ]
        lines.append((NETWORKS[name], _measured(measures[name], shared), *cells))
    return markdown(("network", "shared model", *_LEAKS.values()), lines)


def strengths_table(rows: Iterable[Row]) -> str:
    """By network, type of its numbers and strength: what copies cost, and a leaked one's score."""
    found = defaultdict[tuple[str, str], dict[float, Row]](dict)
    for row in rows:
        if row.trial["study"] == "strengths":
            found[row.trial["network"], row.trial["type"]][row.trial["strength"]] = row
    strengths = sorted({each for some in found.values() for each in some})
    order = sorted(found, key=lambda each: -next(iter(found[each].values())).outcome["dimension"])
    lines = [
        (
            NETWORKS[name],
            kind,
            f"{next(iter(found[name, kind].values())).outcome['dimension'] / 1e6:.2f} M",
            *(_at_strength(found[name, kind].get(each)) for each in strengths),
        )
        for name, kind in order
    ]
    return markdown(
        ("network", "numbers", "weights that carry", *(f"a = {each:g}" for each in strengths)), lines
    )


def _at_strength(row: Row | None) -> str:
    """Cost, score as it is and score in four bits."""
    if row is None:
        return "-"
    outcome = row.outcome
    return f"{_cost([row])}; {outcome['score']:.1f}; {outcome['score_4_bits']:.1f}"


def _measured(measure: str, value: float) -> str:
    return f"{100 * value:.1f} %" if measure == "accuracy" else f"{value:.2f}"


def _cost(rows: list[Row]) -> str:
    unit = "points" if rows[0].outcome["measure"] == "accuracy" else "%"
    return f"{mean(row.outcome['mean_cost'] for row in rows):+.2f} {unit}"


def _named(rows: list[Row], kind: str) -> str:
    """Cases upheld by a judge, of all, and the leaker's score in the weakest."""
    found = [row.outcome for row in rows if row.trial["part"] == "leak" and row.trial["suspect"] == kind]
    if not found:
        return "-"
    held = sum(each["caught"] and not each["framed"] and each["judge"] == "upheld" for each in found)
    return f"{held}/{len(found)} ({min(_score(each) for each in found):.1f})"


def _score(outcome: dict[str, Any]) -> float:
    return max(float(each["member"]) for each in outcome["sigma"].values())


def _framed(rows: list[Row]) -> str:
    """Cases that named somebody innocent, of all, leaks and strangers."""
    return f"{sum(row.outcome['framed'] > 0 for row in rows)}/{len(rows)}"


def coalitions_table(rows: Iterable[Row]) -> str:
    """By strategy and size: coalitions all of whose members were named, by what was done afterwards."""
    chosen = [row for row in rows if row.trial["study"] == "coalitions" and "after" in row.trial]
    groups: dict[str, dict[int, dict[str, list[Row]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in chosen:
        groups[row.trial["strategy"]][row.trial["size"]][row.trial["after"]].append(row)
    sizes = sorted({row.trial["size"] for row in chosen})
    after = list(dict.fromkeys(row.trial["after"] for row in chosen))
    lines = [
        (
            strategy,
            *(" · ".join(_whole(found[size][how]) for how in after) for size in sizes),
            f"{_least([row for each in found.values() for some in each.values() for row in some]):.1f}",
            str(
                sum(
                    row.outcome["framed"] for each in found.values() for some in each.values() for row in some
                )
            ),
        )
        for strategy, found in groups.items()
    ]
    head = (
        "strategy",
        *(f"k = {size}: {', '.join(after)}" for size in sizes),
        "weakest score, first stage",
        "framed",
    )
    return markdown(head, lines)


def crowds_table(rows: Iterable[Row]) -> str:
    """Averages of many copies among a thousand."""
    chosen = [row for row in rows if row.trial["study"] == "coalitions" and "length" in row.trial]
    lines = [
        (
            DATASETS.get(row.trial["dataset"], row.trial["dataset"]),
            f"{row.trial['size']} of {row.trial['stations']:,}",
            f"{row.trial['length']:,}",
            _whole([row]),
            f"{row.outcome['caught']}/{row.outcome['of']}",
            str(row.outcome["framed"]),
            str(row.outcome["stages"]),
        )
        for row in sorted(
            chosen, key=lambda row: (row.trial["dataset"], row.trial["size"], row.trial["length"])
        )
    ]
    head = ("data", "colluders", "positions", "coalitions named whole", "colluders named", "framed", "stages")
    return markdown(head, lines)


def _whole(rows: list[Row]) -> str:
    if not rows:
        return "-"
    return f"{sum(row.outcome['whole'] for row in rows)}/{sum(row.outcome['coalitions'] for row in rows)}"


def _least(rows: list[Row]) -> float:
    return min(float(row.outcome["least"]) for row in rows)
