"""Reports to look at: a case with a named station, one with hostile names, a run, an attribution."""

import json
import math
import random
from fractions import Fraction
from pathlib import Path

from zktrace.demo.pages import DemoCase
from zktrace.report.case_scores import case_figure
from zktrace.report.case_values import (
    BudgetState,
    CarrierSection,
    CaseReport,
    CertificateRow,
    LogPosition,
    NamedStation,
    Recheck,
    RegistryProof,
    StationScore,
)
from zktrace.report.plots import steps_plot
from zktrace.report.svg import figure
from zktrace.tracing.attribution import Attribution, StationMark

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title></svg></style><b>",
    "a\u202egnp.exe\u2066\u200f",
    "line\nbreak\x00\x1b[31m\ud800",
    "long" * 2500,
    "W" * 10_000,
    "&lt;already&amp;",
    "https://example.org/x.js",
    "{{7*7}} ${7*7} javascript:alert(1)",
    "שלום مرحبا 测站 🛰️",
)


def case(
    *, stations: int = 10, names: tuple[str, ...] = (), verdict: str = "certified-attribute"
) -> CaseReport:
    """Two carriers; stations 3 and 7 are named."""
    draw = random.Random(5)
    called = [names[i] if i < len(names) else f"station-{i:02d}" for i in range(stations)]
    guilty = {3, 7} if verdict == "certified-attribute" else set()
    lead = 2 if verdict == "uncertified-lead" else None
    scores = tuple(
        StationScore(
            station=each,
            score=0.9 if i == lead else draw.gauss(1.8, 0.2) if i in guilty else draw.gauss(0, 0.22),
            named=i in guilty,
            lead=i == lead,
            revoked=i == 5,
        )
        for i, each in enumerate(called)
    )
    readout = tuple(draw.gauss(draw.choice((-0.05, 0.05)), 0.015) for _ in range(512))
    parts = tuple(
        CarrierSection(
            carrier=carrier,
            description=f"Profile informed, {length} positions, rule certified.",
            unit="score / certified threshold",
            scores=scores,
            threshold=1.0,
            candidate=0.82,
            readout=readout,
            deviation=0.22,
            readout_unit="change from the shared model",
            readout_caption="The mark of one copy pulls them apart into two heaps.",
        )
        for carrier, length in (("weight", 512), ("feature", 2048))
    )
    certificates = tuple(
        CertificateRow(
            carrier=carrier,
            stage=stage,
            tail=tail,
            method="exact tail",
            threshold=82.4712345,
            bound=2.49912e-4,
            allowed=Fraction(1, 4000),
            passes=True,
        )
        for carrier in ("weight", "feature")
        for stage in (1, 2)
        for tail in ("positive", "negative")
    )
    return CaseReport(
        title="Case 17: leaked-model.safetensors",
        suspect=names[0] if names else "leaked-model.safetensors",
        digest="8b49670dd0324516de6fa943a9074b6e6abf0cc0c4649166c7fb0d92539709fb",
        verdict=verdict,
        sentences=(
            "The suspect was read on two carriers and scored against the rows of all 10 enrolled stations.",
            "If a named station had no part in the suspect, its secret row would be independent of the "
            "readout, and a score this high would occur with at most the probability given below.",
        ),
        carriers=parts,
        named=tuple(
            NamedStation(
                station=called[i],
                stage_bound=Fraction(1, 3000),
                investigation_bound=Fraction(1, 1000),
                evidence="weight carrier, stage 1, 1.83 times the certified threshold",
            )
            for i in sorted(guilty)
            if i < stations
        ),
        certificates=certificates,
        registry=RegistryProof(
            head="zkt-head-v1:41:" + "5e" * 32,
            positions=(
                LogPosition(record="setup", index=0, digest="ab" * 32),
                LogPosition(record="enrolment of " + called[3 % stations], index=4, digest="cd" * 32),
                LogPosition(record="investigation", index=40, digest="ef" * 32),
            ),
        ),
        budget=BudgetState(
            total=Fraction(1, 100),
            spent_before=Fraction(1, 500),
            spent_here=Fraction(1, 1000),
            remaining=Fraction(7, 1000),
        ),
        rechecks=(
            Recheck(
                purpose="Check the evidence against the registry's head, offline:",
                command="zktrace judge case-17.zkt.json --head zkt-head-v1:41:" + "5e" * 32,
            ),
            Recheck(
                purpose="The same, with the suspect read again:",
                command="zktrace judge case-17.zkt.json --head HEAD --suspect leaked-model.safetensors",
            ),
        ),
        not_proved=(
            "It does not say who in the station's organisation passed the copy on.",
            "It rests on the operator having kept the rows secret (assumption A5a).",
        ),
        facts=(("release", "spring"), ("examined", "2026-11-15 22:00 UTC"), ("zktrace", "0.1.0")),
        note="The stations of this case are simulated.",
    )


def demo() -> list[DemoCase]:
    """A traced case, and a forgery that a judge rejects at the second of three steps."""
    strip = steps_plot(
        ("format", "openings", "verdict"), failed=2, title="Steps", description="Two of three."
    )
    return [
        DemoCase(
            case="one leaked copy",
            expected="station-03",
            happened="certified: station-03's copy",
            ok=True,
            figure=case_figure(case()),
            page="cases/case-1.html",
        ),
        DemoCase(
            case="judge: another row",
            expected="rejected",
            happened=f"rejected, step 2, openings: the row opens {'ab' * 32}, enrolled was {'cd' * 32}",
            ok=False,
            figure=figure(strip, caption="It ended at step 2."),
        ),
    ]


def attribution(*, stations: int = 10, names: tuple[str, ...] = ()) -> Attribution:
    """Marks that hold, except for the last station's."""
    draw = random.Random(6)
    called = [names[i] if i < len(names) else f"station{i:03d}" for i in range(stations)]
    last = stations - 1
    matrix = tuple(
        tuple(
            round(draw.uniform(0.95, 1.0), 3) if i == j != last else round(draw.uniform(0.3, 0.62), 3)
            for j in range(stations)
        )
        for i in range(stations)
    )
    return Attribution(
        model=names[0] if names else "model.safetensors",
        digest="12" * 32,
        bits=128,
        stations=tuple(
            StationMark(
                station=each,
                agreement=matrix[i][i],
                best_other=max(matrix[i][:i] + matrix[i][i + 1 :]),
                attributed=None if i == last else each,
                distance=round(128 * (1 - matrix[i][i])),
                within_radius=i != last,
            )
            for i, each in enumerate(called)
        ),
        matrix=matrix,
        attribution=1 - 1 / stations,
        self_agreement=0.95,
        cross_talk=0.49,
        codeword_distance=44,
    )


def run_folder(folder: Path, *, rounds: int = 30, reason: str = "its samples cannot form an episode") -> Path:
    """A finished run as `zktrace train` leaves it, without its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    clients = 10
    preset = {
        "data": {"dataset": "gnss", "samples": 100000},
        "federation": {"clients": clients, "rounds": rounds, "participation": 1.0},
        "marks": {"bits": 128, "lambda_wm": 0.1, "raw": False},
    }
    (folder / "spec.json").write_text(json.dumps({"preset": preset, "seed": 42, "words": "ab" * 32}))
    lines = []
    for number in range(rounds):
        nobody = number == 7
        absent = {"4": reason} if number % 5 == 0 else {}
        lines.append(
            {
                "round": number,
                "asked": list(range(clients)),
                "trained": [] if nobody else [s for s in range(clients) if str(s) not in absent],
                "absent": absent,
                "excluded": {"2": "NaN in 'bn1.weight'"} if number == 3 else {},
                "loss": None if nobody else 0.1 + math.exp(-number / 8),
                "penalty": None if nobody else 0.09 * math.exp(-number / 12),
                "accuracy": None if nobody else 0.97 - 0.3 * math.exp(-number / 6),
                "attribution": min(1.0, 0.2 + number / 10),
                "held_out": 0.8 - 0.3 * math.exp(-number / 6),
            }
        )
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = {
        "spec": "0c" * 32,
        "seed": 42,
        "dataset": "simulated CRPA interference, setting B",
        "rounds": rounds,
        "marked": True,
        "accuracy": 0.7973,
        "accuracy_half_width": 0.0106,
        "marks": {
            "attribution": 1.0,
            "self_agreement": 0.992,
            "cross_talk": 0.493,
            "within_radius": 10,
            "load": 0.2667,
            "predicted": 0.94,
        },
        "never_trained": [],
        "versions": {"zktrace": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.7"},
    }
    (folder / "result.json").write_text(json.dumps(result))
    matrix = attribution(stations=clients).matrix
    (folder / "agreement.json").write_text(json.dumps({"agreement": matrix}))
    return folder
