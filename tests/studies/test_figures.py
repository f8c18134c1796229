"""Figures as data: what rows come to, and the paper's points beside it."""

import math
from dataclasses import replace

import pytest

from studies.paper_rows import attacked, coalition, federated, some
from zktrace.studies.channel_price import channel_price_figure, channel_price_words
from zktrace.studies.figures import Curve, FigureData
from zktrace.studies.identity_figures import (
    survival_figure,
    survival_figure_words,
    tradeoff_figure,
    tradeoff_words,
)
from zktrace.studies.tracing_figure import tracing_figure, tracing_figure_words


def curve(figure: FigureData | None, panel: int, label: str) -> Curve:
    assert figure is not None
    return next(each for each in figure.panels[panel].curves if each.label == label)


def test_attribution_is_a_mean_over_seeds_at_a_load() -> None:
    rows = [
        federated(0.2667, attribution=1.0),
        federated(0.2667, attribution=0.8, seed=137),
        federated(0.27, marked=False, attribution=0.1),
        federated(1.0667, attribution=0.5, study="stressors", variant="stations-40"),
        federated(0.2667, attribution=0.0, study="stressors", variant="median"),
    ]
    ours = curve(survival_figure(rows), 0, "GNSS, simulated, ours")
    assert ours.points == ((0.27, pytest.approx(0.9)), (1.07, 0.5))
    assert ours.spread == (pytest.approx(0.1), 0.0)
    assert "at load 0.27, 1.07" in survival_figure_words(rows)
    assert "in 3 of 3" in survival_figure_words(rows)


@pytest.mark.parametrize(
    ("label", "points"),
    [
        ("GNSS, paper", ((0.13, 1.0), (0.27, 0.98), (0.53, 0.96), (1.07, 0.87))),
        ("CIFAR-10, paper", ((0.13, 1.0), (0.27, 1.0), (0.53, 1.0), (1.07, 1.0), (2.13, 0.88), (3.2, 0.61))),
    ],
)
def test_the_papers_attribution_is_open(label: str, points: tuple[tuple[float, float], ...]) -> None:
    found = curve(survival_figure([federated(0.27)]), 0, label)
    assert found.points == points
    assert found.paper


def test_coalitions_are_shares_by_size_and_an_innocent_spoils_one() -> None:
    rows = [each for each in some() if each.trial["study"] == "tracing"]
    figure = tracing_figure(rows)
    assert curve(figure, 0, "weight, profile paper").points == ((0.0, 1.0), (1.0, pytest.approx(1 / 3)))
    assert curve(figure, 0, "innocent framed, any").points == ((0.0, 0.0), (1.0, pytest.approx(1 / 3)))
    assert curve(figure, 0, "weight, in the paper").points[1:] == ((2.0, 0.95), (3.0, 0.40), (4.0, 0.15))
    assert curve(figure, 0, "feature, in the paper").points[-1] == (4.0, 0.76)
    assert "4 coalitions of one to eight: in 2 a member and nobody else was named, in 1 an innocent" in (
        tracing_figure_words(rows)
    )


def test_a_row_may_have_all_coalitions_of_a_size() -> None:
    one, two = coalition([0, 1], caught=1), coalition([0, 2], caught=0)
    both = [{"members": each.trial["members"], **each.outcome} for each in (one, two)]
    trial = {key: each for key, each in one.trial.items() if key != "members"}
    together = replace(one, trial=trial | {"part": "coalitions", "size": 2}, outcome={"leaks": both})
    assert tracing_figure([together]) == tracing_figure([one, two])


def test_margins_are_of_single_copies_alone() -> None:
    figure = tracing_figure([coalition([0], caught=1), coalition([0, 1], caught=1)])
    assert figure is not None
    margins = figure.panels[-1]
    assert margins.places == ("weight, paper",)
    assert [each.points for each in margins.curves] == [((0.0, 12.0),), ((0.0, 1.5),)]
    assert margins.references[0].value == pytest.approx(math.sqrt(2 * math.log(10 / 1e-3)))


def test_an_attack_that_the_paper_leaves_open_has_a_point_for_each_way() -> None:
    rows = [
        attacked("pgd", 0.9, 0.79, norm="l2", epsilon=0.1),
        attacked("pgd", 0.7, 0.77, norm="l2", epsilon=0.1),
        attacked("pgd", 0.02, 0.78, norm="linf", epsilon=0.1),
        attacked("pgd", 0.0, 0.0, norm="linf", epsilon=0.2),
    ]
    figure = tradeoff_figure(rows)
    assert curve(figure, 0, "PGD, 0.1").points == (
        (pytest.approx(0.8), pytest.approx(78.0)),
        (0.02, pytest.approx(78.0)),
    )
    assert figure is not None
    told = [each for each in figure.panels[0].curves if each.paper]
    assert [each.points[0] for each in told][-1] == (0.5, 80.4)
    assert len(told) == 8
    assert "GNSS, simulated: agreement falls below 0.6 by PGD, 0.1, norm linf (0.02)." in tradeoff_words(rows)


def test_the_price_of_a_channel_is_the_formulas() -> None:
    price, thresholds = channel_price_figure([]).panels
    assert dict(price.curves[0].points)[0.4] == pytest.approx(25.0)
    candidate, certified = (dict(each.points) for each in thresholds.curves)
    for place, length in enumerate(map(int, thresholds.places)):
        required = math.log(10 / 1e-3)
        third = math.sqrt(600 - 1) * required / 3
        assert candidate[place] == pytest.approx(math.sqrt(2 * length * required))
        assert certified[place] == pytest.approx(third + math.sqrt(third**2 + 2 * length * required))
    assert "at 512 positions 97.1" in channel_price_words([])


def test_no_rows_are_no_figure() -> None:
    assert survival_figure([]) is None
    assert tracing_figure([]) is None
    assert tradeoff_figure([]) is None
