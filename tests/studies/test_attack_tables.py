"""Tables of the study of attacks, from rows written by hand: every number is where it belongs."""

from typing import Any

import pytest

from zktrace.studies.attack_tables import PAPER_ATTACKS, PAPER_CARRIERS, attacks_carriers_table, attacks_table
from zktrace.studies.attack_words import attacks_carriers_words, attacks_words
from zktrace.studies.rows import Row
from zktrace.studies.tables import TABLES


def row(target: str, family: str, outcome: dict[str, Any], *, seed: int = 1, **parameters: object) -> Row:
    trial = {"study": "attacks", "dataset": "gnss", "seed": seed, "target": target, "family": family}
    measured = {"accuracy": 0.5, "accuracy_before": 0.75} | outcome
    return Row(trial=trial | {"parameters": parameters}, outcome=measured, origin={})


def shared(attribution: float, own: float, *, flipped: int = 0, certain: int = 320) -> dict[str, Any]:
    return {
        "marks": {
            "attribution": attribution,
            "self_agreement": own,
            "cross_talk": 0.5,
            "within_radius": round(10 * attribution),
            "load": 0.27,
            "predicted": 0.8,
        },
        "presence": 0.2,
        "promised": 4,
        "stations": 10,
        "flips": {"moved": 0.1, "bits": 320, "certain": certain, "flipped": flipped, "broken": 0},
    }


def traced(*, caught: bool, sigma: float, framed: int = 0) -> dict[str, Any]:
    column = {
        "read": True,
        "look": "identity",
        "named": [3] * caught + [5] * framed,
        "caught": int(caught),
        "framed": framed,
        "sigma": {"identity": {"weight": {"greatest_member": sigma}}},
    }
    return {"columns": {"weight": column, "all": column}}


def cells(table: str) -> list[list[str]]:
    return [[each.strip() for each in line.strip("| ").split(" | ")] for line in table.splitlines()]


def test_attacks_have_the_papers_values_beside_ours() -> None:
    rows = [
        row("identity", "distill", shared(0.1, 0.5, flipped=160, certain=0), epochs=5),
        row("identity", "noise", shared(0.9, 0.8, flipped=32, certain=160), sigma=2.0),
        row("identity", "noise", shared(0.7, 0.7, flipped=64, certain=160), sigma=2.0, seed=2),
        row("identity", "reset", shared(0.5, 0.5), stages=["layer3", "layer4"]),
        row("identity", "none", shared(1.0, 0.97)),
        row("informed", "none", traced(caught=True, sigma=9.0)),
    ]
    head, _, *lines = cells(attacks_table(rows))
    found = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    assert list(found) == [
        "nothing",
        "noise on scales, sigma 2",
        "scales reset, stages layer3+layer4",
        "feature matching, epochs 5",
    ]
    noise = found["noise on scales, sigma 2"]
    assert noise["seeds"] == "2"
    assert noise["attribution (paper)"] == "0.80 ± 0.14 (.98 ± .04)"
    assert noise["own codeword (paper)"] == "0.75 ± 0.07 (.78 ± .01)"
    assert noise["proved by `thm:attr`"] == "16/20"
    assert noise["promised by `lem:flip`"] == "8/20"
    assert noise["flipped (by `lem:flip`)"] == "15.0 % (at most 50.0 %)"
    assert noise["accuracy (paper)"] == "50.0 ± 0.0 % (26.7 ± 1.9)"
    assert found["scales reset, stages layer3+layer4"]["attribution (paper)"] == "0.50 (.63 ± .23)"
    assert found["feature matching, epochs 5"]["attribution (paper)"] == "0.10 (-)"


def test_copies_under_attack_are_counted_by_carrier_and_profile() -> None:
    rows = [
        row("informed", "distill", traced(caught=False, sigma=0.4), epochs=80),
        row("paper", "distill", traced(caught=False, sigma=0.2), epochs=80),
        row("informed", "pgd", traced(caught=True, sigma=12.0), norm="l2", epsilon=0.1),
        row("informed", "pgd", traced(caught=True, sigma=8.0), norm="l2", epsilon=0.1, seed=2),
        row("informed", "pgd", traced(caught=True, sigma=8.0, framed=1), norm="linf", epsilon=0.1),
    ]
    head, _, *lines = cells(attacks_carriers_table(rows))
    assert head[3:6] == ["weight (score)", "all (score)", "paper's profile (score)"]
    found = {line[1]: dict(zip(head, line, strict=True)) for line in lines}
    assert found["PGD, norm l2, epsilon 0.1"]["weight (score)"] == "2/2 (8.0)"
    assert found["PGD, norm l2, epsilon 0.1"]["paper's profile (score)"] == "-"
    assert found["PGD, norm linf, epsilon 0.1"]["weight (score)"] == "0/1 (8.0)"
    assert found["PGD, norm linf, epsilon 0.1"]["framed"] == "2"
    student = found["feature matching, epochs 80"]
    assert (student["weight (score)"], student["paper's profile (score)"]) == ("0/1 (0.4)", "0/1 (0.2)")
    assert student["accuracy (copy)"] == "50.0 % (75.0 %)"
    assert student["the paper's own"] == "weight 0/10, feature 10/10"


@pytest.mark.parametrize("kind", ["attacks", "attacks-carriers"])
def test_tables_are_known_and_pass_over_rows_of_other_studies(kind: str) -> None:
    assert TABLES[kind]([Row(trial={"study": "federation"}, outcome={}, origin={})]).count("\n") == 1


def test_every_cell_of_the_paper_has_its_source() -> None:
    every = [*PAPER_ATTACKS["gnss"], *PAPER_ATTACKS["cifar10"], *PAPER_CARRIERS]
    assert {each.source for each in every} == {"tab:attacks", "tab:kd"}
    assert [each.family for each in PAPER_ATTACKS["gnss"]] == [
        each.family for each in PAPER_ATTACKS["cifar10"]
    ]
    assert all(len(each.values) == 3 for each in (*PAPER_ATTACKS["gnss"], *PAPER_ATTACKS["cifar10"]))


def test_words_say_which_attacks_differ_and_why() -> None:
    rows = [
        row("identity", "none", shared(1.0, 0.97)),
        row("identity", "noise", shared(0.6, 0.7), sigma=2.0),
        row("identity", "noise", shared(0.8, 0.7), sigma=2.0, seed=2),
        row("identity", "pgd", shared(1.0, 0.9), norm="l2", epsilon=0.1),
        row("identity", "pgd", shared(0.0, 0.0), norm="linf", epsilon=0.1),
        row("identity", "reset", shared(0.6, 0.6), stages=["layer3", "layer4"]),
    ]
    said = attacks_words(rows)
    assert said.startswith(
        "GNSS, simulated: 3 of 5 attacks of the paper's table leave attribution within 0.1 of the paper's "
        "(the paper's PGD tells no norm, so each of ours stands beside it); apart: noise on scales, sigma 2: "
        "0.70 (paper 0.98); PGD, norm linf, epsilon 0.1: 0.00 (paper 0.98)."
    )
    assert "Accuracy stays higher: 50.0 % after noise on scales, sigma 2 (paper 26.7 %)." in said
    assert "the weakest bits of all stations" in said
    assert "deviations of all scales" in said
    assert "After a reset" not in said, "which comes out as in the paper"
    assert "[" not in said
    assert "PGD" not in attacks_words(rows[:1])


def test_words_say_after_what_nobody_is_named() -> None:
    rows = [
        row("informed", "none", traced(caught=True, sigma=9.0)),
        row("informed", "distill", traced(caught=False, sigma=0.4), epochs=80),
        row("informed", "quantise", traced(caught=True, sigma=9.0, framed=1), bits=2),
        row("paper", "none", traced(caught=True, sigma=9.0)),
    ]
    assert attacks_carriers_words(rows) == (
        "In our profile the owner of an attacked copy, and nobody else, is named by weight 1/3, all 1/3; "
        "not always after scales quantised, bits 2 on GNSS, simulated (0/1), feature matching, epochs 80 on "
        "GNSS, simulated (0/1). In the paper's profile the owner of an attacked copy, and nobody else, is "
        "named by weight 1/1, all 1/1. An innocent is named in 2 investigations. Paper, after 80 epochs of "
        "feature matching: weight 0/10, feature 10/10."
    )
    assert attacks_carriers_words([row("identity", "none", shared(1.0, 0.97))]) == "No rows tell of this yet."
