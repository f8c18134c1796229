"""Tables of identity marks, from rows written by hand: every number is where it belongs, and in the words."""

from pathlib import Path
from typing import Any

import pytest

from zktrace.errors import InputError
from zktrace.studies import identity_tables, identity_words
from zktrace.studies.identity_paper import FEATURES, NONIID, STRESSORS, SURVIVAL
from zktrace.studies.rows import Row, Rows
from zktrace.studies.tables import TABLES, rows_of

KINDS = ("attribution", "survival", "noniid", "featurespace", "utility", "stressors")
RESULTS = Path(__file__).parents[2] / "results"


def row(
    *,
    dataset: str = "gnss",
    seed: int = 1,
    variant: str = "",
    attribution: float = 1.0,
    own: float = 0.9,
    accuracy: float = 0.8,
    marked: bool = True,
    never: tuple[int, ...] = (),
    more: dict[str, Any] | None = None,
    **federation: float,
) -> Row:
    """One federation; `more` is what older rows do not have."""
    settings = {"clients": 10, "alpha": 2.0, "participation": 1.0, "rounds": 10} | federation
    preset = {
        "data": {"dataset": dataset},
        "federation": settings,
        "model": {"width": 16},
        "marks": {"lambda_wm": 0.1 if marked else 0.0, "bits": 32},
    }
    what = {"study": "stressors", "variant": variant} if variant else {"study": "federation"}
    outcome = {
        "marked": marked,
        "accuracy": accuracy,
        "never_trained": list(never),
        "marks": {
            "attribution": attribution,
            "self_agreement": own,
            "cross_talk": 0.5,
            "within_radius": round(settings["clients"] * attribution),
            "load": settings["clients"] * 0.0267,
            "predicted": 0.7,
        },
    }
    return Row(trial=what | {"seed": seed, "preset": preset}, outcome=outcome | (more or {}), origin={})


def measured(silhouette: float = 0.5, gamma: float = 1.0, **identity: object) -> dict[str, Any]:
    """What newer rows have."""
    features = {"silhouette": silhouette, "nearest": 0.9, "intra": 3.0, "inter": 12.0}
    return {
        "features": features | {"mean_recall": 0.9, "far_proxy": 0.1},
        "spread": {"gamma": gamma, "beta": 1.0},
        "identity": {"presence": 0.5, "baseline": 0.9, "margins": None} | identity,
    }


def drawn(kind: str, rows: list[Row]) -> list[dict[str, str]]:
    """A table as it is registered, line by line."""
    lines = [
        [each.strip() for each in line.strip("| ").split(" | ")] for line in TABLES[kind](rows).split("\n")
    ]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def said(kind: str, rows: list[Row]) -> str:
    words: str = getattr(identity_words, f"{kind}_words")(rows)
    return words


def test_attribution_has_the_papers_values_beside_ours() -> None:
    margins = {"wanted": 0.15, "least": 0.02, "reached": 0.75}
    rows = [
        row(attribution=0.9, own=0.9, accuracy=0.78, never=(3,), more=measured(attribution_trained=1.0)),
        row(attribution=1.0, own=1.0, accuracy=0.80, seed=2, more=measured(margins=margins)),
        row(marked=False, accuracy=0.1),
        row(variant="median", attribution=0.0),
        row(dataset="cifar10", accuracy=0.65),
    ]
    gnss, cifar = drawn("attribution", rows)
    assert gnss["data"] == "GNSS, simulated"
    assert gnss["seeds"] == "2"
    assert gnss["attribution, % (paper)"] == "95.0 ± 7.1 (98.0 ± 4.0)"
    assert gnss["of who trained, %"] == "100.0 ± 0.0"
    assert gnss["own codeword (paper)"] == "0.95 ± 0.07 (0.96 ± 0.02)"
    assert gnss["proved by `thm:attr`"] == "19/20"
    assert gnss["presence, %"] == "50.0 ± 0.0"
    assert gnss["A2: bits at the margin, %"] == "75.0 (least 0.02 of 0.15)"
    assert gnss["accuracy, % (paper)"] == "79.0 ± 1.4 (93.4 ± 1.0)"
    assert (cifar["attribution, % (paper)"], cifar["presence, %"]) == ("100.0 (100.0 ± 0.0)", "-")
    words = said("attribution", rows)
    assert "Attribution is 95.0 % on simulated GNSS (paper 98.0 %) and 100.0 % on CIFAR-10" in words
    assert "; as in the paper." in words  # within the paper's deviation
    assert "networks have width 16 (paper 64)" in words
    assert words.endswith("1 to 2 seeds (few: the paper has 10).")


def test_a_mark_of_the_group_stands_beside_ours() -> None:
    def group(seed: int, system: str, accuracy: float, part: str = "marks") -> Row:
        trial = {"study": "baselines", "part": part, "dataset": "gnss", "seed": seed, "system": system}
        preset = {"preset": {"federation": {"clients": 10}}}
        return Row(trial=trial | preset, outcome={"accuracy": accuracy}, origin={})

    rows = [row(), group(1, "fedzkp", 0.78), group(2, "fedzkp", 0.76), group(3, "duw", 0.1)]
    ours, theirs = drawn("attribution", [*rows, group(4, "fedzkp", 0.1, "attacks")])
    assert (ours["system"], theirs["system"]) == ("zk-trace", "fedzkp, of the group")
    assert theirs["seeds"] == "2"
    assert theirs["attribution, % (paper)"] == "10.0: 1 of 10 by construction (10.0)"
    assert theirs["own codeword (paper)"] == theirs["proved by `thm:attr`"] == "-"
    assert theirs["accuracy, % (paper)"] == "77.0 ± 1.4 (93.9 ± 0.4)"
    assert said("attribution", rows) == said("attribution", rows[:1])
    (line,) = drawn("attribution", rows[:1])
    assert line["system"] == "zk-trace"


def test_what_is_lost_is_said_with_its_reason() -> None:
    rows = [row(attribution=0.7, never=(1, 2, 3), seed=seed) for seed in range(10)]
    words = said("attribution", rows)
    assert "less than in the paper on simulated GNSS, where 7.0 stations ever trained" in words
    assert words.endswith("10 seeds, as in the paper.")
    (line,) = drawn("attribution", rows)
    assert line["of who trained, %"] == "-"  # these rows are older, and do not say


def test_survival_goes_by_the_number_of_stations() -> None:
    rows = [
        row(variant="stations-40", clients=40, own=0.69, attribution=0.9, never=(1,)),
        row(own=0.95, more=measured()),
        row(own=0.93, seed=2),
        row(variant="stations-5", clients=5, own=1.0),
        row(variant="alpha-0.5", alpha=0.5, own=0.0),
    ]
    found = {line["stations"]: line for line in drawn("survival", rows)}
    assert list(found) == ["5", "10", "40"]
    assert found["10"]["own codeword (paper)"] == "0.94 ± 0.01 (0.96)"
    assert found["10"]["G as read (paper)"] == "0.90, n = 1 (4.73)"
    assert found["40"]["load"] == "1.07"
    assert found["40"]["attribution, % (paper)"] == "90.0 (87.0 ± 4.0)"
    assert found["40"]["stations that trained"] == "39.0"
    assert found["40"]["p-hat (paper)"] == "0.70 (0.64)"
    words = said("survival", rows)
    assert "on simulated GNSS 1.00 at 5 stations and 0.69 at 40 stations (paper 0.77)" in words
    assert "above the diagnostic p-hat in 2 of 3 cells" in words
    assert "90.0 % on simulated GNSS with 40 stations (paper 87.0 %), of whom 39.0 trained" in words
    assert "Codewords have 32 bits here and 128 in the paper" in words
    for each in rows:
        each.trial["preset"]["marks"]["bits"] = 128
    assert "Codewords have" not in said("survival", rows)


def test_skew_and_absence_have_both_denominators() -> None:
    none = measured(attribution_trained=None)
    rows = [
        row(variant="participation-0.3", participation=0.3, attribution=0.9),
        row(variant="alpha-0.1", alpha=0.1, attribution=0.1, never=tuple(range(10)), more=none),
        row(
            variant="alpha-0.1",
            alpha=0.1,
            attribution=0.2,
            never=tuple(range(1, 10)),
            seed=2,
            more=measured(attribution_trained=1.0),
        ),
        row(),
        row(variant="stations-40", clients=40),
        row(variant="alpha-0.2", alpha=0.2, dataset="cifar10"),
    ]
    found = {(line["data"], line["setting"]): line for line in drawn("noniid", rows)}
    assert list(found) == [
        ("GNSS, simulated", "alpha = 0.1, q = 1"),
        ("GNSS, simulated", "alpha = 2, q = 1"),
        ("GNSS, simulated", "alpha = 2, q = 0.3"),
        ("CIFAR-10", "alpha = 0.2, q = 1"),
    ]
    skewed = found["GNSS, simulated", "alpha = 0.1, q = 1"]
    assert skewed["attribution, % (paper)"] == "15.0 ± 7.1 (16.0 ± 12.0)"
    assert skewed["of who trained, % (paper)"] == "100.0, n = 1 (100.0)"
    assert skewed["stations that trained (paper)"] == "0.5 ± 0.7 (0.5)"
    absent = found["GNSS, simulated", "alpha = 2, q = 0.3"]
    assert absent["accuracy, % (paper)"] == "80.0 (90.7 ± 2.2)"
    assert found["CIFAR-10", "alpha = 0.2, q = 1"]["attribution, % (paper)"] == "100.0"
    words = said("noniid", rows)
    assert "trained at all it is 100 % in every setting" in said("noniid", [row()])
    assert "with alpha = 0.1 on simulated GNSS 15.0 % (paper 16.0 %), where 0.5 stations trained" in words
    assert "Of the stations that trained at all it is at least 90.0 % in every setting" in words
    assert "90.0 % on simulated GNSS (paper 98.0 %) with q = 0.3" in words


def both(seed: int, before: float, after: float, **given: Any) -> list[Row]:
    return [
        row(seed=seed, marked=False, more=measured(before), **given),
        row(seed=seed, more=measured(after, gamma=4.0), **given),
    ]


def test_features_are_compared_in_pairs() -> None:
    rows = [*both(1, 0.60, 0.50), *both(2, 0.62, 0.53), *both(3, 0.58, 0.47), row(seed=4, more=measured(0.0))]
    found = {line["metric"]: line for line in drawn("featurespace", rows)}
    silhouette = found["silhouette"]
    assert silhouette["pairs"] == "3"
    assert silhouette["no marks (paper)"] == "0.600 ± 0.020 (0.605 ± 0.027)"
    assert silhouette["marks (paper)"] == "0.500 ± 0.030 (0.556 ± 0.040)"
    assert silhouette["difference"] == "-0.100"
    assert silhouette["p, paired t test"] == "0.0033"  # t = -17.3 with two degrees of freedom
    assert found["deviation of scales, after / before"]["marks (paper)"] == "4.00 ± 0.00 (6.7 to 7.1)"
    assert found["nearest neighbour, leaving one out"]["p, paired t test"] == "1"
    words = said("featurespace", rows)
    assert "the silhouette by -0.100 (significant, p = 0.0033; paper -0.049)" in words
    assert "scales spread 4.0 times as wide as before (paper 6.7 to 7.1), 1.0 times without marks" in words
    assert words.endswith("can move features less; 3 seeds (few: the paper has 10).")
    assert drawn("featurespace", [row(), row(marked=False)]) == []  # older rows
    assert said("featurespace", [row(), row(marked=False)]) == identity_words.NOTHING


def test_utility_is_tested_on_pairs_of_one_seed_and_preset() -> None:
    rows = [
        *(row(seed=seed, marked=False, accuracy=0.80) for seed in (1, 2, 3)),
        *(row(seed=seed, accuracy=0.80 + 0.001 * seed) for seed in (1, 2, 3)),
        row(seed=4, accuracy=0.1),
        row(seed=4, accuracy=0.9, marked=False, rounds=99),
        row(dataset="cifar10", accuracy=0.5),
        row(dataset="cifar10", accuracy=0.6, marked=False),
    ]
    gnss, cifar = drawn("utility", rows)
    assert (gnss["pairs"], gnss["no marks, %"], gnss["marks, %"]) == ("3", "80.00 ± 0.00", "80.20 ± 0.10")
    assert gnss["difference in points (90 % interval)"] == "+0.20 (+0.03 to +0.37)"
    assert gnss["as good"] == "yes (p = 0.0026)"
    assert gnss["the paper's"] == "-0.04 (90 %: -0.585 to +0.505), p = 0.0052"
    assert (cifar["pairs"], cifar["as good"]) == ("1", "one pair: no test")
    words = said("utility", rows)
    assert "On simulated GNSS federations with marks are as good as those without, within 1 points: " in words
    assert "On CIFAR-10 one pair differs by -10.00 points (paper +0.24 points, p = 0.0489): no test." in words
    wide = [*rows, *(row(seed=5, accuracy=0.9 - 0.1 * marked, marked=marked) for marked in (True, False))]
    told = said("utility", wide)
    assert "are not shown to be as good as" in told
    assert (
        "reaches beyond the margin; training is short and networks are small: networks have width 16" in told
    )
    assert "significant" not in told
    tight = [
        row(seed=seed, accuracy=0.8 - marked * (0.002 + 0.0001 * seed), marked=marked)
        for seed in (1, 2, 3)
        for marked in (True, False)
    ]
    assert "The loss is nevertheless significant (paired t test, p = 0.00" in said("utility", tight)


def test_words_say_why_absent_stations_lose_their_words() -> None:
    rows = [
        row(),
        row(variant="participation-0.3", participation=0.3, attribution=0.8),
        row(variant="alpha-0.1", alpha=0.1, attribution=0.1, never=tuple(range(10))),
    ]
    told = said("noniid", rows)
    assert "on simulated GNSS with q = 0.3 a station has about 3 turns in 10 rounds, too few" in told
    assert "(the paper has 100 rounds)" in told
    assert "Where no station trained, accuracy is that of the pre-trained model" in told
    fine = said("noniid", [row(), row(variant="participation-0.3", participation=0.3)])
    assert "turns" not in fine
    assert "pre-trained" not in fine


def test_words_say_why_the_median_costs_little_and_what_g_is() -> None:
    assert "the median costs little" in said("stressors", [row(), row(variant="median", accuracy=0.79)])
    assert "the median costs" not in said("stressors", [row(), row(variant="median", accuracy=0.63)])
    assert "each layer around its own mean" in said("survival", [row()])


def test_stressors_stand_beside_the_federation_as_it_is() -> None:
    rows = [
        row(variant="shift", attribution=0.9, accuracy=0.7),
        row(variant="median", attribution=1.0, accuracy=0.75),
        row(variant="median", dataset="cifar10", own=0.92, accuracy=0.6),
        row(),
    ]
    found = {(line["data"], line["stress"]): line for line in drawn("stressors", rows)}
    assert list(found) == [
        ("GNSS, simulated", "none"),
        ("GNSS, simulated", "coordinate-wise median"),
        ("GNSS, simulated", "receiver shift"),
        ("CIFAR-10", "coordinate-wise median"),
    ]
    assert found["CIFAR-10", "coordinate-wise median"]["own codeword (paper)"] == "0.92 (0.92)"
    assert found["GNSS, simulated", "coordinate-wise median"]["accuracy, % (paper)"] == "75.0 (63.4)"
    assert found["GNSS, simulated", "receiver shift"]["attribution, % (paper)"] == "90.0 (98.0)"
    words = said("stressors", rows)
    assert "Under receiver shift attribution is 90.0 % on simulated GNSS (paper 98.0 %)" in words
    assert "without stress 80.0 %; 1 seed (few: the paper has 10)." in words


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_has_its_words_and_passes_over_other_rows(kind: str) -> None:
    other = [Row(trial={"study": "tracing"}, outcome={}, origin={})]
    assert TABLES[kind] is getattr(identity_tables, f"{kind}_table")
    assert TABLES[kind](other).count("\n") == 1
    assert said(kind, other) == identity_words.NOTHING


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_were_saved_before_are_drawn(kind: str) -> None:
    file = Rows(RESULTS / "federation-desk.jsonl")
    lines = drawn(kind, rows_of(file, kind))
    assert len(lines) == (0 if kind == "featurespace" else 2)


def test_a_table_of_two_studies_takes_rows_of_either(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.jsonl")
    made = row(variant="stations-5", clients=5)
    rows.add(made.trial, made.outcome)
    assert len(drawn("survival", rows_of(rows, "survival"))) == 1
    with pytest.raises(InputError, match="this table is drawn from rows of federation"):
        rows_of(rows, "utility")


def test_the_papers_cells_are_those_of_its_tables() -> None:
    assert [count for dataset, count in SURVIVAL if dataset == "gnss"] == [5, 10, 20, 40]
    assert [count for dataset, count in SURVIVAL if dataset == "cifar10"] == [5, 10, 20, 40, 80, 120]
    assert len(NONIID) == 12
    assert {name for _, name in FEATURES} == {"silhouette", "nearest", "intra", "inter", "mean_recall"}
    assert ("cifar10", "shift") not in STRESSORS
