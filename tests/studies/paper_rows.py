"""Rows as the studies write them, made by hand: for tables, figures and pages."""

from typing import Any

from zktrace.studies.rows import Row


def row(study: str, outcome: dict[str, Any], **trial: Any) -> Row:
    return Row(
        trial={"study": study, "seed": 42, **trial}, outcome=outcome, origin={"commit": "abc", "seconds": 1.0}
    )


def preset(data: str = "gnss", width: int = 16) -> dict[str, Any]:
    return {
        "data": {"dataset": data, "samples": 24_000},
        "model": {"depth": 18, "width": width},
        "federation": {"clients": 10, "rounds": 10, "alpha": 2.0, "participation": 1.0},
        "marks": {"bits": 32, "lambda_wm": 0.1},
        "pretraining": {"epochs": 10, "samples": 10_000},
    }


def federated(load: float, *, attribution: float = 1.0, marked: bool = True, **trial: Any) -> Row:
    marks = {
        "load": load,
        "attribution": attribution,
        "self_agreement": 0.96,
        "predicted": 0.9,
        "cross_talk": 0.5,
        "within_radius": 10,
    }
    outcome = {
        "marked": marked,
        "marks": marks,
        "accuracy": 0.8,
        "accuracy_half_width": 0.01,
        "never_trained": [],
    }
    return row(**{"study": "federation", "outcome": outcome, "preset": preset(), **trial})


def attacked(family: str, own: float, accuracy: float, **parameters: Any) -> Row:
    marks = {"self_agreement": own, "attribution": 0.9, "cross_talk": 0.5, "within_radius": 9}
    return row(
        "attacks",
        {
            "marks": marks,
            "accuracy": accuracy,
            "presence": 0.5,
            "promised": 3,
            "stations": 10,
            "flips": {"bits": 320, "certain": 100, "flipped": 10},
        },
        dataset="gnss",
        target="identity",
        preset=preset(),
        family=family,
        parameters=parameters,
    )


def coalition(members: list[int], *, caught: int, framed: int = 0, carrier: str = "weight") -> Row:
    sigma = {carrier: {"least_member": 12.0, "greatest_member": 12.0, "greatest_other": 1.5}}
    return row(
        "tracing",
        {"caught": caught, "framed": framed, "named": [], "verdict": "lead", "sigma": sigma},
        dataset="gnss",
        carriers=[carrier],
        profile="paper",
        part="coalition",
        members=members,
        settings={"episodes": 300},
        width=16,
        stations=10,
    )


def steered(size: int, traced: int, *, steering: str = "majority", strength: float = 1.0) -> Row:
    outcome = {"traced": traced, "caught": traced, "framed": 0, "leads": 0, "own_flips": 0.2, "greatest": 9.0}
    return row(
        "steering",
        outcome,
        size=size,
        steering=steering,
        strength=strength,
        law="tardos",
        trials=400,
        rule="paper",
    )


def some() -> list[Row]:
    """Of several studies."""
    return [
        federated(0.27),
        federated(0.27, marked=False),
        attacked("none", 0.96, 0.8),
        attacked("pgd", 0.9, 0.79, norm="l2", epsilon=0.1),
        attacked("pgd", 0.02, 0.78, norm="linf", epsilon=0.1),
        coalition([0], caught=1),
        coalition([0, 1], caught=2),
        coalition([0, 2], caught=0),
        coalition([1, 2], caught=1, framed=1),
        steered(2, 400),
        steered(3, 10, steering="oracle"),
    ]
