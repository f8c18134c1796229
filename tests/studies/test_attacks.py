"""The study of attacks at its smallest: every family, every target, a row a trial, once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from zktrace.attacks.grid import Attack, grid
from zktrace.errors import InputError
from zktrace.learning.presets import load_preset
from zktrace.marking.settings import CopySettings
from zktrace.readouts.reader import Reader
from zktrace.readouts.scales import Arrays
from zktrace.studies.attack_tables import attacks_carriers_table, attacks_table
from zktrace.studies.attack_targets import TARGETS, AttackTarget, targets
from zktrace.studies.attacks import AttackBatch, AttackTrial
from zktrace.studies.federation import FederationTrial
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import run_study

pytestmark = pytest.mark.slow  # a federation, copies on all carriers and a student, made once a process

LENGTHS = {"weight": 256, "feature": 64, "output": 32}
SAMPLES = 96
FAMILIES: dict[str, tuple[str, ...]] = {  # none: all of them
    "identity": (),
    "informed": ("none", "pgd", "finetune", "distill"),
    "paper": ("none", "quantise", "distill"),
}


@pytest.fixture(scope="module")
def short_codes() -> Iterator[None]:
    def short(cls: type[Reader], name: str, shared: Arrays) -> int:
        return LENGTHS[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "default_length", classmethod(short))
        yield


def aims(work: Path, *names: str) -> list[AttackTarget]:
    smoke = load_preset("smoke")
    tiny = replace(
        smoke,
        pretraining=replace(smoke.pretraining, epochs=1),
        federation=replace(smoke.federation, clients=4, rounds=1),
        evaluation=replace(smoke.evaluation, shot=2, query=3),
    )
    brief = {"passes": 2, "batch_size": 32}
    settings = CopySettings(episodes=2, marks={"feature": brief, "output": brief})
    return targets([FederationTrial(preset=tiny, seed=5)], names, settings, work=work)


def points(*families: str) -> list[Attack]:
    return grid("short", families, lengths={"finetune": [2], "distill": [1]})


Made = tuple[Rows, list[AttackBatch]]


@pytest.fixture(scope="module")
def made(short_codes: None, tmp_path_factory: pytest.TempPathFactory) -> Made:
    work = tmp_path_factory.mktemp("attacks")
    rows = Rows(work / "rows.jsonl")
    wanted = [
        AttackBatch(target=target, attacks=tuple(points(*FAMILIES[target.name])), samples=SAMPLES)
        for target in aims(work, *TARGETS)
    ]
    ran = run_study(wanted, rows, workers=1)
    assert not ran.failures
    assert len(ran.made) == sum(each.size for each in wanted)
    assert not list(work.rglob("attack-*.checkpoint"))
    return rows, wanted


def by_attack(rows: Rows, target: str) -> dict[str, Row]:
    return {
        f"{row.trial['family']} {row.trial['parameters'].get('norm', '')}".strip(): row
        for row in rows.read()
        if row.trial["target"] == target
    }


def test_a_row_a_trial_and_none_twice(made: Made) -> None:
    rows, wanted = made
    again = run_study(wanted, rows, workers=1)
    assert (again.made, again.there) == ([], len(rows.read()))
    for row in rows.read():
        assert 0 < row.outcome["accuracy"] <= 1
        assert row.outcome["flips"]["broken"] == 0  # lem:flip
        assert ("samples" in row.trial) == (row.trial["family"] in ("finetune", "distill"))


def test_identity_marks(made: Made) -> None:
    found = by_attack(made[0], "identity")
    clean = found["none"].outcome
    assert clean["flips"] == {"moved": 0.0, "bits": 64, "certain": 64, "flipped": 0, "broken": 0}
    assert clean["accuracy"] == clean["accuracy_before"]
    assert clean["promised"] == clean["marks"]["within_radius"]
    for row in found.values():
        marks = row.outcome["marks"]
        assert row.outcome["promised"] <= marks["within_radius"] <= marks["attribution"] * 4
        assert row.outcome["presence"] <= marks["attribution"]
        assert (
            row.outcome["flips"]["flipped"] <= row.outcome["flips"]["bits"] - row.outcome["flips"]["certain"]
        )
    assert found["pgd linf"].outcome["marks"]["self_agreement"] < 0.2  # public directions: every bit can go
    assert found["pgd l2"].outcome["flips"]["moved"] <= 0.1 + 1e-6
    assert found["prune-all"].outcome["marks"] == clean["marks"]  # scales are no matrices


def test_copies(made: Made) -> None:
    for target, carriers in (
        ("informed", {"spread", "weight", "feature", "output"}),
        ("paper", {"weight", "feature"}),
    ):
        found = by_attack(made[0], target)
        for name, row in found.items():
            assert set(row.outcome["columns"]) == carriers | {"all"}
            assert sum(each["framed"] for each in row.outcome["columns"].values()) == 0
            assert ("stability" in row.outcome) == (name in ("finetune", "distill"))
            assert {"settings", "budget"} <= set(row.trial)
    clean = by_attack(made[0], "informed")["none"].outcome["columns"]
    assert clean["weight"]["caught"] == clean["spread"]["caught"] == clean["all"]["caught"] == 1
    guessed = by_attack(made[0], "informed")["pgd l2"].outcome["columns"]
    assert guessed["weight"]["caught"] == 1  # directions are secret
    differing = by_attack(made[0], "informed")["distill"].outcome["stability"]["differing"]
    assert 0 <= differing["found"] <= differing["bound"] <= 1  # prop:kd-robust


def test_tables_are_drawn(made: Made) -> None:
    rows = made[0].read()
    assert attacks_table(rows).count("\n") == 14 + 1
    assert attacks_carriers_table(rows).count("\n") == 6 + 1


def test_what_is_drawn_depends_on_seed_and_point_alone(made: Made) -> None:
    rows, wanted = made
    alone = AttackTrial(target=wanted[0].target, attack=grid("paper", ["noise"])[-1])
    (found,) = [row for row in rows.read() if row.id == alone.key]
    assert alone.outcome() == found.outcome


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no target 'nobody'"):
        aims(tmp_path, "nobody")
    with pytest.raises(InputError, match="needs an attack"):
        AttackBatch(target=aims(tmp_path, "identity")[0], attacks=())
