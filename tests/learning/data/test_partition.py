"""Counts, splits, partitions and who can form an episode."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zktrace.errors import InputError
from zktrace.learning.configs import EpisodeShape
from zktrace.learning.data import (
    GnssSpec,
    Split,
    class_counts,
    episode_report,
    make_plan,
    split_samples,
)
from zktrace.learning.data.counts import apportion, shuffled_labels
from zktrace.learning.data.partition import deal, dirichlet_shares

PAPER_SEEDS = (42, 137, 271, 314, 1729, 2718, 3141, 5772, 6561, 9999)


def everything(count: int) -> Split:
    index = np.arange(count, dtype=np.int64)
    return Split(train=index, validation=index[:0], test=index[:0])


def test_the_imbalance_of_the_paper() -> None:
    assert class_counts(100_000).tolist() == [64655, 22936, 8136, 2886, 1024, 363]
    assert class_counts(60, imbalance=1).tolist() == [10] * 6


@given(st.integers(1, 20), st.integers(0, 5000), st.floats(1, 1e6))
def test_counts_add_up_and_leave_no_class_empty(classes: int, more: int, imbalance: float) -> None:
    counts = class_counts(classes + more, classes=classes, imbalance=imbalance)
    assert counts.sum() == classes + more
    assert counts.min() >= 1
    assert (np.diff(counts) <= 0).all()


@given(st.integers(0, 10_000), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50))
def test_apportioning_is_within_one_of_the_exact_share(total: int, weights: list[float]) -> None:
    share = np.array(weights)
    counts = apportion(total, share)
    assert counts.sum() == total
    assert (np.abs(counts - total * share / share.sum()) < 1 + 1e-6).all()


@pytest.mark.parametrize(
    "wrong", [{"total": 5}, {"total": 100, "imbalance": 0.5}, {"total": 100, "classes": 0}]
)
def test_impossible_counts_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        class_counts(**wrong)  # type: ignore[arg-type]


@given(st.integers(1, 3000), st.integers(0, 2**63 - 1))
def test_a_split_loses_and_repeats_nothing(count: int, seed: int) -> None:
    split = split_samples(count, seed=seed)
    together = np.concatenate((split.train, split.validation, split.test))
    np.testing.assert_array_equal(np.sort(together), np.arange(count))
    assert len(split.test) == len(split.validation) == count // 10


def test_a_split_is_of_samples_not_of_classes() -> None:
    labels = shuffled_labels(class_counts(100_000), seed=1)
    split = split_samples(100_000, seed=1)
    assert [len(part) for part in split.parts().values()] == [80_000, 10_000, 10_000]
    assert set(labels[split.test]) == set(range(6))
    np.testing.assert_array_equal(split.test, split_samples(100_000, seed=1).test)
    assert not np.array_equal(split.test, split_samples(100_000, seed=2).test)


def test_a_split_that_overlaps_is_refused() -> None:
    index = np.arange(4)
    with pytest.raises(InputError, match="two parts"):
        Split(train=index, validation=index[:1], test=index[:0])


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=400),
    st.integers(1, 30),
    st.floats(1e-3, 1e4),
    st.integers(0, 2**32),
)
def test_a_partition_loses_and_repeats_nothing(
    classes: list[int], stations: int, alpha: float, seed: int
) -> None:
    labels = np.array(classes, np.int64)
    plan = make_plan(labels, classes=10, stations=stations, alpha=alpha, seed=seed, minimum=0)
    shards = plan.shards()
    assert len(shards) == stations
    np.testing.assert_array_equal(np.sort(np.concatenate(shards)), plan.split.train)
    assert ((plan.station_of >= 0) & (plan.station_of < stations)).all()  # test samples have one too
    np.testing.assert_allclose(plan.shares.sum(axis=1), 1)
    again = make_plan(labels, classes=10, stations=stations, alpha=alpha, seed=seed, minimum=0)
    np.testing.assert_array_equal(plan.station_of, again.station_of)


def test_every_class_is_dealt_by_its_shares() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 5000)
    shares = dirichlet_shares(classes=6, stations=7, alpha=0.5, rng=rng)
    station_of = deal(labels, shares, rng)
    for label in range(6):
        members = labels == label
        counts = np.bincount(station_of[members], minlength=7)
        assert (np.abs(counts - members.sum() * shares[label]) < 1).all()


@pytest.mark.parametrize("alpha", [0.1, 2.0, 50.0])
def test_shares_have_the_moments_of_dirichlet(alpha: float) -> None:
    shares = dirichlet_shares(classes=20_000, stations=10, alpha=alpha, rng=np.random.default_rng(1))
    np.testing.assert_allclose(shares.mean(axis=0), 0.1, atol=0.012)
    np.testing.assert_allclose(shares.var(axis=0), 0.09 / (10 * alpha + 1), rtol=0.1)


def test_a_tiny_alpha_gives_each_class_to_one_station() -> None:
    shares = dirichlet_shares(classes=50, stations=10, alpha=1e-6, rng=np.random.default_rng(1))
    np.testing.assert_allclose(shares.max(axis=1), 1)


def test_no_shard_is_empty_unless_that_is_allowed() -> None:
    labels = np.arange(60) % 6
    for seed in range(30):
        plan = make_plan(labels, classes=6, stations=8, alpha=0.3, seed=seed, split=everything(60))
        assert min(map(len, plan.shards())) >= 1
    loose = [
        make_plan(labels, classes=6, stations=8, alpha=0.3, seed=seed, split=everything(60), minimum=0)
        for seed in range(30)
    ]
    assert any(min(map(len, plan.shards())) == 0 for plan in loose)
    assert all(plan.draws == 1 for plan in loose)


def test_an_impossible_partition_says_why() -> None:
    labels = np.zeros(100, np.int64)
    with pytest.raises(InputError, match="too few: 200 stations"):
        make_plan(labels, classes=1, stations=200, seed=0)
    with pytest.raises(InputError, match="minimum=0 allows that"):
        make_plan(labels, classes=1, stations=10, alpha=1e-6, seed=0)
    for wrong in ({"stations": 0}, {"alpha": 0.0}, {"alpha": float("nan")}):
        with pytest.raises(InputError):
            make_plan(labels, classes=1, seed=0, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="of 1 classes"):
        make_plan(labels + 1, classes=1, seed=0)
    with pytest.raises(InputError, match="station 3"):
        make_plan(labels, classes=1, stations=3, seed=0).shard(3)


def test_who_can_form_an_episode() -> None:
    labels = np.array([0] * 20 + [1] * 20 + [2] * 19 + [0] * 5)
    shards = (np.arange(59), np.arange(40), np.arange(20, 59), np.arange(0))
    reports = episode_report(labels, shards, classes=3, shape=EpisodeShape(way=2))
    assert [report.formable for report in reports] == [True, True, False, False]
    assert reports[2].counts == (0, 20, 19)
    assert reports[2].usable == (1,)
    assert reports[3].samples == 0
    with pytest.raises(InputError):
        EpisodeShape(way=1)


def test_the_paper_s_stations_form_episodes_as_the_paper_says() -> None:
    """tab:noniid: at alpha .1 a mean of .5 (GNSS) and 4.1 (CIFAR-10) of ten; at alpha 2, 98 % of GNSS."""

    def gnss(alpha: float) -> list[int]:
        specs = [GnssSpec(seed=seed, alpha=alpha) for seed in PAPER_SEEDS]
        return [
            sum(
                report.formable
                for report in episode_report(
                    spec.labels(), spec.plan().shards(), classes=6, shape=EpisodeShape()
                )
            )
            for spec in specs
        ]

    assert np.mean(gnss(0.1)) == pytest.approx(0.5, abs=0.5)
    assert np.mean(gnss(2.0)) == pytest.approx(9.8, abs=0.3)
    labels = np.arange(50_000) % 10
    formed = []
    for seed in PAPER_SEEDS:
        plan = make_plan(labels, classes=10, alpha=0.1, seed=seed, split=everything(50_000))
        reports = episode_report(labels, plan.shards(), classes=10, shape=EpisodeShape())
        formed.append(sum(report.formable for report in reports))
    assert np.mean(formed) == pytest.approx(4.1, abs=1.2)
