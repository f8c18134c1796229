"""Whoever waits for an investigation is told of every look before it is taken."""

from pathlib import Path

import pytest

from service.small import arrays, house, model_file
from zktrace.errors import Unavailable
from zktrace.registry.ledger import Ledger
from zktrace.service.jobs import JobRow

Told = list[tuple[str, float, Ledger]]


def test_every_look_is_told_of_and_the_evidence_after_them(tmp_path: Path) -> None:
    home, told = house(tmp_path).home, Told()

    def steps(what: str, share: float) -> None:
        told.append((what, share, home.registry.ledger()))

    case = home.trace(arrays(7), budget="1/1000", steps=steps)
    looks = home.registry.ledger().investigations[case.case.place].looks
    assert [share for _, share, _ in told] == [*(at / len(looks) for at in range(len(looks))), 1.0]
    assert told[0][0] == f"look 1 of {len(looks)}: spread, as it is"
    assert told[-1][0] == "verdict and evidence"
    assert all(each.investigations and not each.verdicts for _, _, each in told)  # paid before the first
    told.clear()
    copy = home.dispatch("bravo", "r1").path
    assert home.trace(copy, budget="1/1000", steps=steps).named == ("bravo",)
    assert len(told) == 2  # a look that names somebody is the last


@pytest.mark.parametrize("away", [False, True])
def test_the_bar_of_a_job_moves_and_a_database_that_is_away_stops_it_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: bool
) -> None:
    made = house(tmp_path)
    client = made.account("operator")
    content = model_file(tmp_path / "m.safetensors", seed=9).read_bytes()
    id = client.post("/api/v1/investigations", content=content).json()["id"]
    made.work()
    client.post(f"/api/v1/jobs/{id}/confirm")
    shares, report = list[float](), made.desk.jobs.report

    def moved(job: JobRow, *, share: float, note: str) -> None:
        if note.startswith("look"):
            shares.append(share)
            if away:
                raise Unavailable("for a moment")
        report(job, share=share, note=note)

    monkeypatch.setattr(made.desk.jobs, "report", moved)
    (done,) = made.work()
    assert done.state == "done", done.error
    assert len(shares) >= 1
    assert shares == sorted(shares)
