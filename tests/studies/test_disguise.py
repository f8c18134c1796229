"""The disguise study at its smallest: every attacker makes a suspect, every suspect a row, once."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.errors import InputError
from zktrace.learning.presets import Preset, load_preset
from zktrace.marking.settings import CopySettings
from zktrace.models import open_model
from zktrace.readouts.reader import Reader
from zktrace.readouts.scales import Arrays
from zktrace.studies.disguise import DisguiseBatch, batches
from zktrace.studies.disguise_tables import disguise_table, stability_table, stability_words
from zktrace.studies.federation import FederationTrial
from zktrace.studies.ground import Ground, grounds
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study
from zktrace.studies.suspects import ASKED, ATTACKERS, Students

LENGTHS = {"weight": 256, "feature": 64, "output": 32}
STUDENTS = Students(epochs=1, samples=96)


@pytest.fixture
def short_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(cls: type[Reader], name: str, shared: Arrays) -> int:
        return LENGTHS[name]

    monkeypatch.setattr(Reader, "default_length", classmethod(short))


def tiny() -> Preset:
    smoke = load_preset("smoke")
    return replace(
        smoke,
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, clients=4, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )


def places(work: Path, *profiles: str) -> list[Ground]:
    marks = CopySettings(
        episodes=2,
        marks={
            "feature": {"passes": 2, "batch_size": 32},
            "output": {"passes": 2, "batch_size": 32},
        },
    )
    federations = [FederationTrial(preset=tiny(), seed=seed) for seed in (5, 6)]
    return grounds(federations, profiles, marks, work=work, cifar10=None, cache=None)


def perform(
    ground: Ground,
    rows: Rows,
    *,
    students: Students = STUDENTS,
    attackers: tuple[str, ...] = ATTACKERS,
    foreign: Ground | None = None,
) -> list[Row]:
    batch = DisguiseBatch(pairs=((ground, foreign),), students=students, attackers=attackers)
    found = run_study([batch], rows)
    assert (found.failures, len(found.made) + found.there) == ([], batch.size)
    return found.made


@pytest.mark.slow
@pytest.mark.usefixtures("short_codes")
def test_every_attacker_has_a_row_and_a_study_goes_on(tmp_path: Path) -> None:
    first, second = places(tmp_path / "work", "informed")
    assert first.other([first, second]) is second
    assert first.other([first]) is None
    assert first.members != second.members
    rows = Rows(tmp_path / "rows.jsonl")
    some = perform(first, rows, attackers=("none", "logits"), foreign=second)
    assert [row.trial["attacker"] for row in some] == ["none", "logits"]
    rest = perform(first, rows, foreign=second)
    made = {row.trial["attacker"]: row for row in some + rest}
    assert set(made) == set(ATTACKERS)
    assert len(rest) == len(ATTACKERS) - 2
    assert perform(first, rows, foreign=second) == []
    for name, row in made.items():
        assert set(row.outcome["columns"]) == {"spread", "weight", "feature", "output", "all"}
        assert sum(each["framed"] for each in row.outcome["columns"].values()) == 0
        assert ("students" in row.trial) == ("stability" in row.outcome or "logits" in name or name in LATER)
        assert 0 < row.outcome["accuracy"] <= 1
    assert made["none"].outcome["columns"]["spread"]["caught"] == 1
    assert made["none"].outcome["columns"]["weight"]["caught"] == 1
    assert made["rewrite"].outcome["columns"]["weight"]["look"] == "channels"
    assert made["rewrite"].outcome["columns"]["weight"]["caught"] == 1
    assert made["isometry"].outcome["columns"]["all"]["caught"] == 1
    assert made["deeper"].outcome["columns"]["weight"] == NOT_READ
    assert made["pair-logits"].outcome["members"] == list(first.members)
    assert made["labels"].outcome["members"] == made["foreign"].outcome["members"] == []
    assert made["features"].outcome["stability"]["flipped"] <= LENGTHS["feature"]
    assert "foreign" not in {row.trial["attacker"] for row in perform(second, rows)}
    table = disguise_table(rows.read())
    assert "| GNSS, simulated | the copy itself | 2/2 (" in table
    assert table.count("\n") == len(ATTACKERS) + 1
    assert stability_table(rows.read()).count("\n") == 1 + 2


LATER = ("headless", "distances", "labels", "top1", "top1-service")
NOT_READ = {"read": False, "named": [], "caught": 0, "framed": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("short_codes")
def test_the_papers_profile_and_probes_inside_the_students_data(tmp_path: Path) -> None:
    ground, _ = places(tmp_path / "work", "paper")
    rows = Rows(tmp_path / "rows.jsonl")
    inside = replace(STUDENTS, samples=160, inside=True)
    found = perform(ground, rows, students=inside, attackers=("none", "features"))
    assert [set(row.outcome["columns"]) for row in found] == [{"weight", "feature", "all"}] * 2
    assert found[1].trial["students"] == {"epochs": 1, "samples": 160, "inside": True}
    suspects = list((ground.workspace.root / "suspects").glob("features-*.safetensors"))
    assert len(suspects) == 1
    assert "fc.weight" not in open_model(suspects[0])


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a profile is one of"):
        places(tmp_path, "secret")
    with pytest.raises(InputError, match="no attacker 'nobody'"):
        batches(places(tmp_path, "paper"), students=STUDENTS, attackers=["nobody"])


def test_a_batch_has_all_federations_on_the_same_data_in_the_same_profile(tmp_path: Path) -> None:
    """They lend copies to each other; other batches never touch their workspaces."""
    found = batches(places(tmp_path, "informed", "paper"), students=STUDENTS)
    assert [{each.profile for each in batch.needs} for batch in found] == [{"informed"}, {"paper"}]
    assert [{each.key for each in batch.needs} for batch in found] == [
        {each.key for each in found[0].needs}
    ] * 2
    assert [batch.size for batch in found] == [2 * len(ATTACKERS), 2 * (len(ATTACKERS) - len(ASKED))]


def promised(
    found: float, bound: float | None, *, seed: int = 1, beyond: bool = True, **trial: object
) -> Row:
    way = {"holds": False, "changed": 2048}
    stability = {
        "budget": way,
        "residuals": way,
        "projected": {"holds": True, "changed": 300},
        "margin": 0.3,
        "residual": 5.0,
        "flipped": 800,
        "score": 1000.0,
        "student_score": 300.0,
        "threshold": 201.0,
        "student_beyond": beyond,
    }
    differing = {} if bound is None else {"differing": {"found": found, "bound": bound}}
    facts = {"study": "attacks", "family": "distill", "parameters": {"epochs": 80}, "target": "paper"}
    return Row(
        trial=facts | {"dataset": "gnss", "seed": seed},
        outcome={"stability": stability | differing},
        origin={},
    )


def test_bits_that_differ_stand_beside_their_bound_where_rows_say_it() -> None:
    rows = [promised(0.3, 0.4), promised(0.4, 1.0, seed=2, beyond=False)]
    line = stability_table(rows).splitlines()[2]
    assert "| GNSS, simulated | feature matching, epochs 80 | paper | 0.30 | 5.00 |" in line
    assert "| 800 | 0.35 (0.70) | 1000 → 300 | 201 | 1/2 |" in line
    said = stability_words(rows)
    assert "Of 2 models that were trained on features of a copy, 1 keep a score" in said
    assert "for 1 of 2, and exceeded by 0" in said
    older = [promised(0.3, None)]
    assert "differing" not in stability_table(older)
    assert "prop:kd-robust" not in stability_words(older)
