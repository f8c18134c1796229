"""The study of innocents: what it counts, on which paths, what it would notice, and that it is resumed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sqlalchemy", reason="the operator's extra is not installed")

from zktrace.attacks.scales import batch_norms, noise_scales
from zktrace.certificates import adjudicate
from zktrace.cli.app import run
from zktrace.codes import Code, CodeKey, unpack
from zktrace.errors import InputError
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.models import open_model, save_model
from zktrace.readouts.readout import Attempt, Readout
from zktrace.readouts.samples import Pool
from zktrace.studies.binomial import greatest, interval
from zktrace.studies.innocents import Desk, InnocentsBatch, InnocentsTrial, cases
from zktrace.studies.leaks import LEAKS, CoalitionMark, Leak
from zktrace.studies.rows import Row, Rows
from zktrace.studies.runner import Progress, run_study
from zktrace.studies.tables import innocents_table
from zktrace.studies.tally import Tally
from zktrace.tracing import Case

LENGTH = 128  # all carriers can have it
LOUD = 50.0  # marks beside which nothing else in a readout matters: directions are not seeded
ALL = ("spread", "weight", "feature", "output")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("innocents") / "shared.safetensors"
    state = state_of(ResNet(depth=18, channels=1, width=4, rng=np.random.default_rng(3)))
    rng = np.random.default_rng(4)
    for name in (f"{layer}.weight" for layer in batch_norms(state)):  # fresh ones are all 1
        state[name] = (1 + 0.2 * rng.standard_normal(state[name].shape)).astype(np.float32)
    save_model(path, state)
    return path


@pytest.fixture(scope="module")
def noised(shared: Path) -> Path:
    path = shared.with_name("noised.safetensors")
    save_model(path, noise_scales(open_model(shared), sigma=0.3, rng=np.random.default_rng(5)))
    return path


@pytest.fixture(scope="module")
def desks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Workspaces are made once."""
    return tmp_path_factory.mktemp("desks")


def pool() -> Pool:
    """Images of four classes, enough for probes, support and anchors."""
    rng = np.random.default_rng(6)
    labels = np.arange(200) % 4
    images = rng.standard_normal((200, 1, 16, 16)) + 0.5 * labels[:, None, None, None]
    return Pool(images=images.astype(np.float32), labels=labels, episodes={}, note="noise")


def small(shared: Path, suspects: dict[str, Path], **changes: Any) -> InnocentsTrial:
    trial = InnocentsTrial(
        dataset="gnss",
        reference=shared,
        suspects=suspects,
        pool=pool,
        carriers=(("weight",),),
        leaks=("nobody",),
        levels=(Fraction(9, 10),),
        length=LENGTH,
        stations=6,
        keys=20,
        families=2,
        seed=7,
    )
    return replace(trial, **changes)


def perform(trial: InnocentsTrial, rows: Rows, *, work: Path, progress: Progress | None = None) -> list[Row]:
    found = run_study([InnocentsBatch(trial=trial, work=work)], rows, progress=progress)
    assert found.failures == []
    return found.made


@pytest.mark.slow
def test_a_row_for_every_suspect_path_leak_and_level_made_once(
    shared: Path, noised: Path, desks: Path, tmp_path: Path
) -> None:
    trial = small(shared, {"itself": shared, "noised": noised}, leaks=("nobody", "average of three"), keys=30)
    rows = Rows(tmp_path / "rows.jsonl")
    made = perform(replace(trial, suspects={"itself": shared}), rows, work=desks)
    assert len(made) == 2
    counted: list[tuple[str, int, int]] = []
    made += perform(trial, rows, work=desks, progress=lambda what, done, of: counted.append((what, done, of)))
    assert len(made) == 4
    assert len(counted) == 2 * (trial.keys + 1)  # those of the first call were not made again
    assert counted[-1] == ("trials", 2, 2)
    assert counted[-2] == ("noised, weight, average of three, 9/10", 30, 30)
    assert perform(trial, rows, work=desks) == []
    assert len(perform(replace(trial, levels=(Fraction(1, 5),), keys=1), rows, work=desks)) == 4
    assert all(row.outcome["within"] and row.outcome["keys"] == trial.keys for row in made)
    by_name = {(row.trial["kind"], row.trial["leak"]): row.outcome for row in made}
    assert by_name["itself", "nobody"]["namings"] == 0  # a readout of zeros says nothing
    assert by_name["noised", "nobody"]["namings"] > 0  # the bound is not idle
    assert by_name["noised", "nobody"]["caught"] == 0  # there is nobody to catch
    assert by_name["itself", "average of three"]["caught"] == 30  # nothing but the mark
    assert by_name["itself", "average of three"]["stages"] > 0
    table = innocents_table(made)
    assert table.count("\n") == 5
    start = "| 0.9 | informed | weight | GNSS, simulated | itself | nobody | 30 | 0 | 0.00 to 16.19 % | 30 |"
    assert f"{start} 0 | 0 | 0 |" in table


@pytest.mark.parametrize("path", [("feature",), ("output",), ALL], ids="+".join)
def test_every_carrier_is_read_by_the_tool_itself_and_leaks_are_found_on_it(
    path: tuple[str, ...], shared: Path, noised: Path, desks: Path, tmp_path: Path
) -> None:
    leaks = ("nobody", "one copy", "one copy, reversed", "minority of three", "average of two, disguised")
    trial = small(shared, {"noised": noised}, carriers=(path,), leaks=leaks, keys=3)
    trial = replace(trial, strength=LOUD, levels=(Fraction(1, 1000),))
    made = perform(trial, Rows(tmp_path / "rows.jsonl"), work=desks)
    found = {row.trial["leak"]: row.outcome for row in made}
    assert set(found) == set(leaks)
    assert found["nobody"]["caught"] == 0
    assert found["one copy"]["caught"] == found["one copy, reversed"]["caught"] == 3
    hidden = found["average of two, disguised"]
    assert hidden["aligned"] == hidden["caught"] == 3
    assert all(row.trial["carriers"] == list(path) for row in made)


def test_the_same_seed_repeats_a_row_and_another_does_not(
    shared: Path, noised: Path, desks: Path, tmp_path: Path
) -> None:
    trial = small(shared, {"noised": noised}, leaks=("minority of three",), keys=6)

    def heads(**changes: Any) -> list[str]:
        desk, suspect = Desk(trial=replace(trial, **changes), work=desks), open_model(noised)
        found = cases(
            desk,
            suspect,
            desk.readings(suspect, ("weight",)),
            leak="minority of three",
            level=Fraction(1, 5),
            name="x",
        )
        return [case.evidence.findings.digest().hex() for case, _ in found]

    first = heads()
    assert heads() == first
    assert heads(keys=3) == first[:3]
    assert len(set(first + heads(seed=8))) == 12


def test_investigations_are_whole_and_under_keys_of_their_own(
    shared: Path, noised: Path, desks: Path
) -> None:
    trial = small(shared, {"noised": noised}, keys=3)
    desk, suspect = Desk(trial=trial, work=desks), open_model(noised)
    readings = desk.readings(suspect, ("weight",))
    assert not np.array_equal(readings[0].readouts[0].values, readings[1].readouts[0].values)
    found = list(cases(desk, suspect, readings, leak="one copy", level=Fraction(1, 5), name="x"))
    for case, members in found:
        assert [(look.alignment, look.share) for look in case.investigation.looks] == [
            ("identity", Fraction(19, 20)),
            ("channels", Fraction(1, 20)),
        ]
        assert case.investigation.budget == Fraction(1, 5)
        assert case.investigation.recipients == trial.stations
        assert case.verdict_place == case.place + 1 == 9  # setup, six stations, release, plan, verdict
        assert len(members) == 1
    setups = {case.evidence.entries[0].entry for case, _ in found}
    assert len(setups) == 3


def test_a_mark_is_made_of_the_members_rows_alone() -> None:
    code = Code(key=CodeKey.generate(), label="weight", length=64, colluders=2)
    bits = unpack(code.rows([1, 4, 5]), 64).astype(int)
    noise = np.random.default_rng(1).standard_normal(64)
    found = Readout(carrier="weight", values=noise, reference=None)

    def values(leak: Leak, members: tuple[int, ...]) -> Any:
        rng = np.random.default_rng(2)
        marks = CoalitionMark(leak=leak, members=members, codes={"weight": code}, strength=2.0, rng=rng)
        attempt = marks.attempt(Attempt(carrier="weight", alignment="channels", read=lambda: found))
        return (marks.readout(found).values - noise, attempt.read().values - noise)

    size = 2.0 * np.sqrt(np.mean(noise**2))
    mean = size * (2 * bits.mean(axis=0) - 1)
    for leak, members, wanted in (
        ("nobody", (), 0 * mean),
        ("average of three", (1, 4, 5), mean),
        ("majority of three", (1, 4, 5), size * np.sign(mean)),
        ("all ones of three", (1, 4, 5), size * (2 * bits.max(axis=0) - 1)),
        ("one copy, reversed", (4,), -size * (2 * bits[1] - 1)),
    ):
        as_it_is, aligned = values(LEAKS[leak], members)
        np.testing.assert_allclose(as_it_is, wanted, atol=1e-12)
        np.testing.assert_allclose(aligned, wanted, atol=1e-12)
    as_it_is, aligned = values(LEAKS["average of two, disguised"], (1, 4))
    assert not as_it_is.any()
    np.testing.assert_allclose(aligned, size * (2 * bits[:2].mean(axis=0) - 1), atol=1e-12)


def test_an_alignment_is_found_once_and_so_is_that_there_is_none(
    shared: Path, noised: Path, desks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zktrace.readouts import weight as reading

    asked: list[str] = []

    def impossible(*_: Any) -> Any:
        asked.append("asked")
        raise InputError("no such channels")

    monkeypatch.setattr(reading, "align_scales", impossible)
    trial = small(shared, {"noised": noised}, keys=6, levels=(Fraction(1, 10**6),))
    (row,) = perform(trial, Rows(tmp_path / "rows.jsonl"), work=desks)
    assert len(asked) == trial.families
    assert row.outcome["keys"] == 6


def test_a_tool_that_spends_more_than_the_budget_is_noticed(
    shared: Path, noised: Path, desks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = adjudicate.smallest_threshold

    def generous(*given: Any, recipients: int, level: Any) -> Any:
        return real(*given, recipients=1, level=Fraction(1, 3))

    trial = small(shared, {"noised": noised}, levels=(Fraction(1, 100),))
    (honest,) = perform(trial, Rows(tmp_path / "honest.jsonl"), work=desks)
    monkeypatch.setattr(adjudicate, "smallest_threshold", generous)
    (broken,) = perform(trial, Rows(tmp_path / "broken.jsonl"), work=desks)
    assert honest.outcome["within"]
    assert not broken.outcome["within"]
    assert broken.outcome["low"] > 0.01
    assert "(budget refuted)" in innocents_table([broken])


def test_only_stations_that_are_no_colluders_count(shared: Path, noised: Path, desks: Path) -> None:
    """Cases of one copy, counted with their true member, with another one, and with nobody."""
    trial = small(shared, {"noised": noised}, keys=4, strength=LOUD)
    desk, suspect = Desk(trial=trial, work=desks), open_model(noised)
    readings = desk.readings(suspect, ("weight",))
    level = Fraction(1, 1000)
    found = list(cases(desk, suspect, readings, leak="one copy", level=level, name="x"))

    def counted(members: Iterator[tuple[str, ...]]) -> Tally:
        count = Tally(level=level)
        for (case, _), who in zip(found, members, strict=True):
            count.take(case, who)
        return count

    true = counted(iter([who for _, who in found]))
    assert (true.namings, true.caught, true.keys) == (0, 4, 4)
    assert not true.outcome()["namings"]
    other = counted(iter([_other(case) for case, _ in found]))
    assert (other.namings, other.caught, other.late) == (4, 0, 0)
    assert not other.outcome()["within"]


def _other(case: Case) -> tuple[str, ...]:
    return (next(each for each in case.stations if each not in case.names),)


def test_the_papers_profile_is_counted_too(shared: Path, noised: Path, desks: Path, tmp_path: Path) -> None:
    trial = small(shared, {"noised": noised}, profile="paper", leaks=("one copy",), keys=4, carriers=())
    made = perform(trial, Rows(tmp_path / "rows.jsonl"), work=desks)
    assert [row.trial["carriers"] for row in made] == [["weight"], ["feature"], ["weight", "feature"]]
    assert all(row.outcome["within"] and row.trial["profile"] == "paper" for row in made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"carriers": (("other",),)}, "carriers are of spread, weight, feature, output"),
        ({"carriers": (("output",),), "profile": "paper"}, "carriers are of weight, feature, each once"),
        ({"carriers": (("weight", "weight"),)}, "each once"),
        ({"keys": 0}, "at least 1"),
        ({"suspects": {}}, "needs suspects"),
        ({"levels": (Fraction(1),)}, "between 0 and 1"),
        ({"leaks": ("other",)}, "no leak 'other'"),
        ({"leaks": ("average of three",), "stations": 3}, "nobody would be innocent"),
        ({"strength": 0.0}, "must be a positive number"),
    ],
)
def test_a_trial_that_makes_no_sense_is_refused(shared: Path, changes: dict[str, Any], message: str) -> None:
    trial = small(shared, {"itself": shared})
    with pytest.raises(InputError, match=message):
        replace(trial, **changes)


def test_the_command_counts_and_draws(
    shared: Path,
    noised: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("zktrace.learning.data.proxy.proxy_pool", lambda _source, _episodes: pool())
    out = str(tmp_path / "rows.jsonl")
    command = ["study", "innocents", "--out", out, "--work", str(tmp_path / "work"), "--dataset", "gnss"]
    command += ["--reference", str(shared), "--preset", "smoke", "--length", str(LENGTH), "--keys", "3"]
    command += ["--families", "1", "--stations", "4", "--json"]
    told = ["--suspect", f"with noise={noised}", "--carrier", "weight+output", "--leak", "one copy"]
    assert run([*command, *told]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "new": 1, "there": 0}
    assert run(["study", "table", out, "--kind", "innocents"]) == 0
    start = "| 0.2 | informed | weight+output | GNSS, simulated | with noise | one copy | 3 |"
    assert start in capsys.readouterr().out
    assert run([*command, "--suspect", str(noised)]) == 2
    assert run([*command, *(2 * ["--suspect", f"x={noised}"])]) == 2
    assert run([*command, "--suspect", f"x={noised}", "--level", "1/0"]) == 2
    assert run([*command, "--suspect", f"x={noised}", "--profile", "other"]) == 2
    assert run([*command, "--suspect", f"x={noised}", "--leak", "other"]) == 2


def test_rows_of_suspects_that_nobody_was_given_keep_their_table() -> None:
    """Those were made before leaks were: the columns about leaks are left out."""
    trial = {"study": "innocents", "dataset": "gnss", "carrier": "weight", "profile": "informed"}
    trial |= {"kind": "noise", "level": "1/5"}
    outcome = {"namings": 1, "keys": 60, "low": 0.0, "high": 0.1, "most": 27, "within": True}
    row = Row(trial=trial, outcome=outcome, origin={})
    line = "| 0.2 | informed | weight | GNSS, simulated | noise | 60 | 1 | 0.00 to 10.00 % | 27 |"
    assert innocents_table([row]).endswith(line)


@pytest.mark.parametrize(("trials", "level"), [(1, "1/5"), (60, "1/5"), (2000, "1/5"), (2000, "1/1000")])
def test_what_a_budget_allows_is_the_binomial_quantile(trials: int, level: str) -> None:
    chance = Fraction(level)
    assert greatest(trials, chance) == int(stats.binom.ppf(1 - 1e-5, trials, float(chance)))


@pytest.mark.parametrize(("count", "trials"), [(0, 60), (60, 60), (1, 2000), (191, 2000), (1999, 2000)])
def test_the_interval_is_the_one_of_clopper_and_pearson(count: int, trials: int) -> None:
    wanted = stats.binomtest(count, trials).proportion_ci(confidence_level=0.99, method="exact")
    low, high = interval(count, trials)
    assert (low, high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert low == 0.0 if count == 0 else stats.binom.sf(count - 1, trials, low) == pytest.approx(0.005)
    assert high == 1.0 if count == trials else stats.binom.cdf(count, trials, high) == pytest.approx(0.005)
