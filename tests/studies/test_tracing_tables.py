"""Tables of leaked copies and their words, from rows written by hand: every number is where it belongs."""

from typing import Any

import pytest

from zktrace.studies.carrier_tables import copy_cost_table, kdclass_table, twocarrier_table
from zktrace.studies.exhibits import WORDS as EVERY
from zktrace.studies.rows import Row
from zktrace.studies.strategy_tables import strategies_table, strategies_words
from zktrace.studies.tables import TABLES
from zktrace.studies.tracing_figure import leaks, tracing_figure, tracing_figure_words
from zktrace.studies.tracing_rows import Setting, by_setting, leak_rows, rules_of
from zktrace.studies.tracing_tables import (
    certified_audit_table,
    collusion_table,
    isolation_table,
    tracing_table,
)

NAMES = ("isolation", "collusion", "certified-audit", "strategies", "twocarrier", "kdclass", "copy-cost")
WORDS = {name: EVERY[name] for name in NAMES}


def trial(part: str, *, seed: int, carrier: str = "weight", profile: str = "paper", **more: object) -> Any:
    return {
        "study": "tracing",
        "dataset": "gnss",
        "seed": seed,
        "width": 16,
        "stations": 10,
        "carriers": [carrier],
        "profile": profile,
        "settings": {"episodes": 60} if profile == "paper" else {"share": 0.03},
        "part": part,
    } | more


def leak(
    members: list[int],
    named: list[int],
    *,
    carrier: str = "weight",
    normal: list[int] | None = None,
    candidate: list[int] | None = None,
    apart: float = 0.1,
    passes: bool = True,
) -> dict[str, Any]:
    decode: dict[str, Any] = {
        "length": 512,
        "disagreement": apart,
        "unanimous": apart / 2,
        "least_innocent": 0.3,
        "gate": 100.7,
        "certificate": passes,
    }
    if normal is not None:
        decode["beyond"] = {"normal": normal, "candidate": normal if candidate is None else candidate}
    caught = len(set(named) & set(members))
    told: dict[str, Any] = {
        "members": members,
        "named": named,
        "caught": caught,
        "framed": len(named) - caught,
    }
    told["sigma"] = {carrier: {"least_member": 12.0, "greatest_member": 12.0, "greatest_other": 1.5}}
    return told | {"decodes": {carrier: decode}}


def sized(seed: int, leaks: list[dict[str, Any]], **more: Any) -> Row:
    facts = {"size": len(leaks[0]["members"]), "coalitions": len(leaks)}
    return Row(trial=trial("coalitions", seed=seed, **more) | facts, outcome={"leaks": leaks}, origin={})


def cost(seed: int, lost: float, **more: Any) -> Row:
    outcome = {
        "shared": 0.8,
        "copies": [0.8 - lost / 100],
        "mean_cost_pp": lost,
        "worst_cost_pp": lost,
        "recall": {"classes": ["chirp", "noise"], "shared": [0.9, 0.7], "copies": [0.88, 0.7 - lost / 100]},
        "far_proxy": {"shared": 0.2, "copies": 0.21 + lost / 200},
        "load": 0.27,
        "attribution": 0.9 + seed / 100,
    }
    return Row(trial=trial("cost", seed=seed, **more), outcome=outcome, origin={})


ROWS = [
    cost(1, 4.0),
    cost(2, 6.0),
    sized(1, [leak([0], [0], normal=[0], apart=0.1), leak([1], [1], normal=[1, 7], apart=0.2)]),
    sized(2, [leak([0], [0], normal=[0], apart=0.4), leak([1], [], normal=[1], candidate=[], passes=False)]),
    sized(1, [leak([0, 1], [1], normal=[0, 1]), leak([0, 2], [], normal=[2], candidate=[])]),
    sized(2, [leak([0, 1], [1], normal=[0, 1]), leak([0, 2], [2], normal=[2])]),
    sized(1, [leak([0, 1, 2], [], normal=[]), leak([0, 1, 3], [3], normal=[3])]),
    sized(1, [leak([0], [0], carrier="spread")], carrier="spread", profile="informed"),
    sized(1, [leak([0, 3], [0, 3], carrier="spread")], carrier="spread", profile="informed"),
    cost(1, 0.1, carrier="spread", profile="informed"),
]


def drawn(table: str) -> list[dict[str, str]]:
    lines = [[each.strip() for each in line.strip("|").split(" | ")] for line in table.splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


def test_isolation_has_the_rules_apart_and_the_papers_values() -> None:
    weight, spread = drawn(isolation_table(ROWS))
    assert (weight["carrier"], weight["profile"], weight["seeds"]) == ("weight", "paper", "2")
    assert weight["isolated, normal threshold alone (paper)"] == "3/4 (100/100)"  # one names an innocent too
    assert weight["isolated, candidate threshold alone"] == "2/4"
    assert weight["isolated, certificate"] == "3/4"
    assert weight["q_owner (paper)"] == "0.20 ± 0.07 (.12)"  # means .15 and .25 of two seeds
    assert weight["nearest innocent (paper)"] == "0.30 ± 0.00 (.29 to .31)"
    assert weight["load"] == "0.27 ± 0.00"
    assert weight["shared model's attribution (paper)"] == "0.92 ± 0.01 (.98)"
    assert spread["isolated, normal threshold alone (paper)"] == "-"
    assert spread["isolated, certificate"] == "1/1"


def test_collusion_counts_by_rule_and_size() -> None:
    lines = {(each["carrier"], each["decided by"]): each for each in drawn(collusion_table(ROWS))}
    normal = lines["weight", "normal threshold alone"]
    assert (normal["k = 2 (paper)"], normal["k = 3 (paper)"], normal["k = 5 (paper)"]) == (
        "1.00 ± 0.00 (1.00)",
        "0.50 (0.95)",
        "- (0.40)",
    )
    assert normal["framed (paper)"] == "0.100 (0)"  # one of ten leaks, single ones among them
    assert lines["weight", "candidate threshold alone"]["k = 2 (paper)"] == "0.75 ± 0.35 (1.00)"
    assert lines["weight", "certificate"]["k = 2 (paper)"] == "0.75 ± 0.35"
    assert normal["mean disagreement, by k (paper)"] == "0.10/0.10 (0.22/0.24)"
    assert lines["spread", "certificate"]["k = 2 (paper)"] == "1.00"
    assert ("spread", "normal threshold alone") not in lines


def test_the_audit_counts_certificates_of_singles_and_pairs() -> None:
    weight, spread = drawn(certified_audit_table(ROWS))
    assert weight["single copies (paper)"] == "3/4 (60/60)"
    assert weight["pairs (paper)"] == "3/4 (270/270)"
    assert weight["certificates pass"] == "7/8"
    assert weight["framed"] == "0"
    assert weight["unanimous, pairs (paper)"] == "0.050 ± 0.000 (.112)"
    assert spread["pairs (paper)"] == "1/1"


def test_carriers_are_compared_with_students_of_the_longest_training() -> None:
    def student(epochs: int, caught: int) -> Row:
        facts = {"study": "attacks", "dataset": "gnss", "seed": 1, "target": "paper", "family": "distill"}
        preset = {"preset": {"federation": {"clients": 10}}, "parameters": {"epochs": epochs}}
        column = {"caught": caught, "framed": 0}
        return Row(trial=facts | preset, outcome={"columns": {"weight": column}}, origin={})

    rows = [*ROWS, student(5, 1), student(20, 0), student(20, 1)]
    weight, spread = drawn(twocarrier_table(rows))
    assert weight["positions (paper)"] == "512 (512)"
    assert weight["design c (paper)"] == "2 (2)"
    assert weight["max k, threshold alone (paper)"] == "0 (2)"
    assert weight["max k, certificate"] == "0"
    assert weight["students of features (paper)"] == "1/2, 20 epochs (0/10)"
    assert weight["copy loss, pp (negative: gain) (paper)"] == "5.00 ± 1.41 (4.5)"
    assert spread["max k, certificate"] == "2, none larger tried"
    assert spread["students of features (paper)"] == "-"


def test_copies_cost_recall_by_class() -> None:
    chirp, noise, classes, episodes, target = drawn(copy_cost_table(ROWS))
    assert (chirp["class"], chirp["recall, shared model"]) == ("chirp", "0.90 ± 0.00")
    assert chirp["paper, weight: loss, pp (negative: gain)"] == "2.0 ± 0.0"
    assert noise["paper, weight: loss, pp (negative: gain)"] == "5.0 ± 1.4"
    assert noise["informed, spread: loss, pp (negative: gain)"] == "0.1"
    assert classes["paper, weight: loss, pp (negative: gain)"] == "3.5 ± 0.7"
    assert classes["the paper's, pp (range)"] == "10.9 (0.9 to 18.0)"
    assert episodes["paper, weight: loss, pp (negative: gain)"] == "5.0 ± 1.4"
    assert target["informed, spread: loss, pp (negative: gain)"] == "0.5"
    assert target["paper, weight: loss, pp (negative: gain)"] == "-"


def disguised(attacker: str, profile: str, caught: int, *, epochs: int | None = None) -> Row:
    facts = {"study": "disguise", "dataset": "cifar10", "seed": 3, "attacker": attacker, "profile": profile}
    students = {} if epochs is None else {"students": {"epochs": epochs, "samples": 16_000, "inside": False}}
    column = {"caught": caught, "framed": 0}
    return Row(trial=facts | students, outcome={"columns": {"feature": column, "all": column}}, origin={})


KD = [
    disguised("features", "paper", 1, epochs=8),
    disguised("features", "informed", 0, epochs=8),
    disguised("isometry", "paper", 1),
    disguised("labels", "paper", 1, epochs=8),
]


def test_distillers_are_counted_by_class() -> None:
    features, isometry = drawn(kdclass_table(KD))
    assert features["distiller"] == "feature matching, 8 epochs"
    assert features["feature, paper's profile"] == "1/1"
    assert features["feature, informed"] == "0/1"
    assert features["the paper's feature, both data sets"] == "20/20"
    assert (features["seeds, paper's profile"], features["seeds, informed"]) == ("1", "1")
    assert (isometry["seeds, paper's profile"], isometry["seeds, informed"]) == ("1", "0")
    assert isometry["feature, informed"] == "-"
    assert isometry["the paper's feature, both data sets"] == "0/20"


def test_words_say_where_rows_agree_and_where_they_do_not() -> None:
    said = {name: words([*ROWS, *KD]) for name, words in WORDS.items()}
    assert (
        "3/4 copies by weight on simulated GNSS, normal threshold alone (paper: 100/100)" in said["isolation"]
    )
    assert "0.20 (more than the paper's 0.12)" in said["isolation"]
    assert "An innocent is named in 1 of 5 decodes" in said["isolation"]
    assert "Our profile, under its certificate, isolates 1/1 by spread" in said["isolation"]
    assert "copies 60 episodes (paper: 300)" in said["isolation"]
    assert "1,200 scales (paper: 4,800)" in said["isolation"]
    assert "weight on simulated GNSS by the normal threshold: k = 3 0.50 (0.95)" in said["collusion"]
    assert "An innocent is named in 0 of 7 decodes" in said["collusion"]
    assert (
        "3/4 single copies and 3/4 pairs by weight on simulated GNSS (paper: 60/60 and 270/270)"
        in said["certified-audit"]
    )
    assert "7 of 8 certificates" in said["certified-audit"]
    assert "a copy costs 5.00 points (about the paper's 4.50)" in said["twocarrier"]
    assert "a copy costs 0.10 points at best and costs 0.10 points at worst" in said["twocarrier"]
    assert "As in the paper: feature matching 1/1 (20/20)" in said["kdclass"]
    assert "Not as in the paper: feature isometry 1/1 (0/20)" in said["kdclass"]
    escaped = "read on all carriers, owners escape: 1/1 by feature matching, 8 epochs on CIFAR-10 (seed 3)."
    assert escaped in said["kdclass"]
    assert "nobody escapes" in WORDS["kdclass"]([*KD[:1], disguised("features", "informed", 1, epochs=8)])
    assert (
        "costs 3.50 points (less than the paper's 10.90), from 2.0 lost to 5.0 lost by class"
        in (said["copy-cost"])
    )
    assert "None misses it" in said["copy-cost"]


def test_without_rows_tables_are_empty_and_words_say_so() -> None:
    assert {words([]) for words in WORDS.values()} == {"No rows tell of this yet."}
    assert all(len(TABLES[name]([]).splitlines()) == 2 for name in WORDS)


def test_rows_of_a_finished_model_are_read_alike() -> None:
    old = {"named": [0], "caught": 1, "framed": 0, "verdict": "certified-attribute", "sigma": {}}
    row = Row(trial=trial("coalition", seed=42, members=[0, 4]), outcome=old, origin={})
    (found,) = leak_rows([row])
    assert (found.members, found.size, found.traced("certified")) == ((0, 4), 2, True)
    assert rules_of([found]) == ["certified"]
    assert list(by_setting([row])) == [found.setting]
    (line,) = (each for each in drawn(tracing_table([row])) if each["profile"] == "paper")
    assert (line["k = 2"], line["framed"], line["copy cost"]) == ("1/1", "0", "-")


@pytest.mark.parametrize("rule", ["normal", "candidate", "certified"])
def test_an_innocent_beside_a_colluder_is_not_traced(rule: str) -> None:
    (found,) = leak_rows([sized(1, [leak([0, 1], [0, 5], normal=[0, 5])])])
    assert not found.traced(rule)
    assert found.frames(rule)


def test_everybody_named_is_counted_apart_from_traced() -> None:
    """The paper's rule names one, so its certificate has no such count; an innocent beside all spoils it."""
    ours: Any = {"carrier": "output", "profile": "informed"}
    pairs = [leak([0, 1], [0, 1]), leak([0, 2], [2]), leak([1, 2], [1, 2, 7]), leak([1, 3], [1, 3])]
    rows = [*ROWS, sized(1, pairs, **ours), sized(1, [leak([0, 1, 2], [0, 1, 2])], **ours)]
    lines = {(each["carrier"], each["decided by"]): each for each in drawn(collusion_table(rows))}
    assert lines["output", "certificate"]["k = 2 (paper)"] == "0.75"
    assert lines["output", "certificate"]["everybody named, by k"] == "0.50/1.00"
    assert lines["weight", "certificate"]["everybody named, by k"] == "-"
    assert lines["weight", "normal threshold alone"]["everybody named, by k"] == "0.50/0.00"
    audit = {each["carrier"]: each["both of a pair named"] for each in drawn(certified_audit_table(rows))}
    assert audit == {"weight": "-", "spread": "1/1", "output": "2/4"}
    except_for = "except: 2/4 by output on simulated GNSS, k = 2."
    assert f"every member, and nobody else, in all coalitions, {except_for}" in WORDS["collusion"](rows)
    assert f"every member, and nobody else, of all pairs, {except_for}" in WORDS["certified-audit"](rows)
    assert "in all coalitions." in WORDS["collusion"](ROWS)


OTHERS = [
    sized(1, [leak([0], []), leak([39], [])], stations=40),
    sized(1, [leak([0], [], carrier="spread")], carrier="spread", profile="informed", stations=40),
    sized(1, [leak([0, 1], [], normal=[7])], stations=40),
    cost(1, 50.0, stations=40),
    sized(1, [leak([0], [0]), leak([1], [])], variant="shift"),
    sized(1, [leak([0], [0], carrier="spread")], carrier="spread", profile="informed", variant="shift"),
    cost(1, 60.0, variant="shift"),
    sized(1, [leak([0, 3], [5], carrier="spread")], carrier="spread", profile="informed", strategy="median"),
    cost(1, 70.0, strategy="median"),
]


@pytest.mark.parametrize(
    "name", ["isolation", "collusion", "certified-audit", "twocarrier", "tracing", "copy-cost"]
)
def test_other_federations_and_strategies_change_no_line(name: str) -> None:
    before, after = (TABLES[name](rows).splitlines() for rows in (ROWS, [*ROWS, *OTHERS]))
    assert [line for line in after if line in before] == before
    assert len(set(after)) == len(after)
    added = [line for line in after if line not in before]
    assert all("40" in line or "receiver shift" in line or "median" in line for line in added)
    assert name == "tracing" or not any("median" in line for line in added)


def test_the_figure_has_the_usual_federations_alone() -> None:
    ours: Any = {"carrier": "spread", "profile": "informed"}
    both = [sized(1, [leak([0], [0], carrier="spread")], **ours)]
    every = sized(1, [leak([0], [0], carrier="spread")], **ours)
    every.trial["carriers"] = ["spread", "weight"]
    assert list(leaks([*OTHERS, every, *both])) == [
        ("gnss", "spread", "informed"),
        ("gnss", "spread+weight", "informed"),
    ]
    figure = tracing_figure([*OTHERS, every, *both])
    assert figure is not None
    assert figure.panels[-1].places == ("spread, informed",)
    assert figure.panels[-1].curves[0].points == ((0.0, 12.0),), "of copies that carry one alone"
    assert "2 coalitions of one to eight" in tracing_figure_words([*OTHERS, every, *both])
    assert leaks(OTHERS) == {}


def test_words_on_shifted_receivers_and_crowds_stand_apart() -> None:
    said = WORDS["isolation"]([*ROWS, *OTHERS])
    assert "Our profile, under its certificate, isolates 1/1 by spread." in said
    assert (
        "With other numbers of stations it isolates 0/1 by spread on simulated GNSS with 40 stations." in said
    )
    assert (
        "With receivers shifted, owners isolated under a certificate are 1/2 by weight in profile paper and "
        "1/1 by spread in profile informed (paper: tracing succeeds in 100/100, isolation degrades toward "
        "chance)." in said
    )
    shifted = next(each for each in drawn(isolation_table(OTHERS)) if each["data"].endswith("receiver shift"))
    assert shifted["isolated, normal threshold alone (paper)"] == "- (toward chance)"
    assert shifted["shared model's attribution (paper)"] == "0.91 (.98)"
    assert "size of 2 by spread." in WORDS["collusion"]([*ROWS, *OTHERS])


def test_strategies_stand_beside_averages_of_the_same_copies() -> None:
    ours: Any = {"carrier": "spread", "profile": "informed"}
    rows = [
        *ROWS,
        sized(1, [leak([0, 1], [0, 1]), leak([0, 2], [0]), leak([1, 2], [0])], strategy="median", **ours),
        sized(2, [leak([0, 1, 2], [0, 2])], strategy="median", **ours),
    ]
    mean, median = drawn(strategies_table(rows))
    assert (mean["strategy"], mean["k = 2: traced, everybody, framed"]) == ("mean", "1/1, 1/1, 0")
    assert (median["strategy"], median["seeds"]) == ("median", "2")
    assert median["k = 2: traced, everybody, framed"] == "2/3, 1/3, 1"
    assert median["k = 3: traced, everybody, framed"] == "1/1, 0/1, 0"
    said = strategies_words(rows)
    assert "Of 5 coalitions, averages among them, 4 are traced under a certificate and 1 frame" in said
    assert "2 members by median, on GNSS, simulated by spread in profile informed: 2/3 traced" in said
    assert "Everybody is named" not in said
    whole = [*ROWS, sized(1, [leak([0, 1], [0, 1])], strategy="median", **ours)]
    assert "Everybody is named, whatever a coalition does, by spread." in strategies_words(whole)
    assert len(strategies_table(ROWS).splitlines()) == 2


def test_what_copies_cost_is_held_against_our_targets_and_signs_are_words() -> None:
    ours: Any = {"profile": "informed"}
    every = cost(1, 2.5, **ours)
    every.trial["carriers"] = ["spread", "weight"]
    gained = [cost(1, -4.2), sized(1, [leak([0], [0])]), cost(1, 0.9, carrier="feature", **ours)]
    rows = [*gained, cost(1, -0.2, carrier="weight", **ours), cost(2, 0.6, carrier="output", **ours), every]
    said = WORDS["copy-cost"](rows)
    assert "on simulated GNSS weight gains 0.20 points, feature costs 0.90 points, output costs 0.60" in said
    assert (
        "It is missed by output on simulated GNSS (0.60 instead of 0.5) and all at once (spread+weight) on "
        "simulated GNSS (2.50 instead of 2)." in said
    )
    assert "train on for 60 episodes with the server's images" in said
    assert "from 4.2 gained to 2.0 lost by class" in said
    targets = drawn(copy_cost_table(rows))[-1]
    assert targets["informed, spread+weight: loss, pp (negative: gain)"] == "2"
    assert targets["informed, feature: loss, pp (negative: gain)"] == "1"
    assert "a copy gains 4.20 points (paper: costs 4.50)" in WORDS["twocarrier"](rows)
    assert "-" not in WORDS["twocarrier"](rows)


def test_our_own_profile_has_no_values_of_the_paper_beside_it() -> None:
    rows = [sized(1, [leak([0], [0])], profile="informed"), cost(1, 0.1, profile="informed")]
    (line,) = drawn(twocarrier_table(rows))
    assert (line["positions (paper)"], line["max k, certificate"]) == ("512", "1, none larger tried")
    assert not any("(" in cell for cell in line.values())


def test_copies_with_all_carriers_have_lines_of_their_own() -> None:
    every = [
        sized(1, [leak([0], [0], carrier="spread")], profile="informed"),
        sized(1, [leak([0, 1], [0, 1], carrier="spread"), leak([0, 2], [2])], profile="informed"),
    ]
    for each in every:
        each.trial["carriers"] = ["spread", "weight"]
    rows = [*ROWS, *every]
    alone = drawn(isolation_table(rows))[-1]
    assert (alone["carrier"], alone["isolated, certificate"], alone["q_owner (paper)"]) == (
        "spread+weight",
        "1/1",
        "-",
    )
    several = drawn(collusion_table(rows))[-1]
    assert (several["carrier"], several["k = 2 (paper)"]) == ("spread+weight", "1.00")
    assert several["everybody named, by k"] == "0.50"
    assert several["mean disagreement, by k (paper)"] == "-"
    assert drawn(certified_audit_table(rows))[-1]["both of a pair named"] == "1/2"
    assert {each["carrier"] for each in drawn(twocarrier_table(rows))} == {"weight", "spread"}
    assert "isolates 1/1 by spread and 1/1 by spread+weight" in WORDS["isolation"](rows)


def test_a_crowd_is_told_by_its_stations_and_not_twice() -> None:
    trial = {"dataset": "gnss", "stations": 40, "carriers": ["weight"], "profile": "paper"}
    assert Setting.of(trial | {"variant": "stations-40"}) == Setting.of(trial)
    assert Setting.of(trial | {"variant": "shift"}).data == "GNSS, simulated, receiver shift"
