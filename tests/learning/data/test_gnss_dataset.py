"""The simulated benchmark as a data set, and its cache."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from zktrace.errors import LimitExceeded, MalformedFile, Refused
from zktrace.learning.data import GnssSpec, load_gnss
from zktrace.learning.data.cache import CacheLayout, SampleRequest, cached, default_folder, open_cache
from zktrace.learning.data.gnss import GnssConfig, ReceiverShift

SPEC = GnssSpec(total=70, seed=9, stations=3, imbalance=3, minimum=1)


def request(spec: GnssSpec = SPEC) -> SampleRequest:
    return SampleRequest(simulator=spec.simulator(), labels=spec.labels(), stations=spec.plan().station_of)


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_the_data_set_says_that_it_is_simulated() -> None:
    dataset, plan = load_gnss(SPEC)
    assert dataset.note.startswith("simulated CRPA interference")
    assert dataset.shape == (4, 32, 32)
    assert dataset.classes == 6
    assert dataset.split is plan.split
    images, labels = dataset.take(plan.shard(0))
    assert images.dtype == np.float32
    assert images.flags.writeable
    np.testing.assert_array_equal(labels, dataset.labels[plan.shard(0)])


def test_each_sample_is_heard_by_its_own_station() -> None:
    dataset, plan = load_gnss(SPEC)
    simulator = SPEC.simulator()
    for index in (3, 41, 69):
        alone = simulator.samples([index], dataset.labels[index], plan.station_of[index])
        np.testing.assert_array_equal(alone.images[0], dataset.images[index])


def test_a_cache_is_the_same_as_no_cache(tmp_path: Path) -> None:
    fresh, _ = load_gnss(SPEC)
    seen: list[tuple[int, int]] = []
    folder = tmp_path / "new" / "folder"
    built, _ = load_gnss(SPEC, cache=folder, workers=2, progress=lambda *now: seen.append(now))
    again, _ = load_gnss(SPEC, cache=folder, progress=lambda *now: pytest.fail("built twice"))
    np.testing.assert_array_equal(fresh.images, built.images)
    np.testing.assert_array_equal(fresh.images, again.images)
    assert seen[-1] == (70, 70)
    assert not again.images.flags.writeable
    assert len(list(folder.iterdir())) == 1  # no scratch file is left
    stored = load_file(only_file(folder))
    np.testing.assert_array_equal(stored["images"], fresh.images)
    np.testing.assert_array_equal(stored["labels"], fresh.labels)
    assert stored["jnr_db"].shape == (70,)


def test_a_damaged_cache_is_noticed_and_made_again(tmp_path: Path) -> None:
    whole = cached(tmp_path, request())
    good = whole.images.copy()
    path = only_file(tmp_path)
    data = path.read_bytes()
    layout = CacheLayout(digest=request().digest, count=70)
    places = [0, 9, 60, layout.start - 1, layout.start, layout.start + 100_000, len(data) - 1]
    damaged = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in places]
    for wrong in (*damaged, data[:-1], data[:100], b"", data + b"\0"):
        path.write_bytes(wrong)
        with pytest.raises(MalformedFile, match=r"damaged|samples take"):
            open_cache(path, layout)
        np.testing.assert_array_equal(cached(tmp_path, request()).images, good)
        assert path.read_bytes() == data


def test_every_parameter_names_another_file() -> None:
    changed = [
        GnssSpec(total=70, seed=10, stations=3, imbalance=3),
        GnssSpec(total=71, seed=9, stations=3, imbalance=3),
        GnssSpec(total=70, seed=9, stations=3, imbalance=4),
        GnssSpec(total=70, seed=9, stations=3, imbalance=3, plan_seed=1),
        GnssSpec(total=70, seed=9, stations=3, imbalance=3, config=GnssConfig(domain_shift=False)),
        GnssSpec(
            total=70, seed=9, stations=3, imbalance=3, config=GnssConfig(receiver_shift=ReceiverShift())
        ),
        GnssSpec(
            total=70,
            seed=9,
            stations=3,
            imbalance=3,
            config=GnssConfig(receiver_shift=ReceiverShift(gain_db=2)),
        ),
    ]
    names = {request(spec).digest for spec in (SPEC, *changed)}
    assert len(names) == len(changed) + 1


def test_without_domain_shift_all_partitions_share_one_file(tmp_path: Path) -> None:
    config = GnssConfig(domain_shift=False)
    for plan_seed, alpha in ((1, 2.0), (2, 0.5)):
        spec = GnssSpec(
            total=40, seed=3, plan_seed=plan_seed, alpha=alpha, imbalance=2, stations=2, config=config
        )
        dataset, plan = load_gnss(spec, cache=tmp_path)
        assert dataset.stations is plan.station_of
    assert len(list(tmp_path.iterdir())) == 1


def test_an_interrupted_build_leaves_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(tmp_path, request(), progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(Refused, match="no space left on device"):
        cached(tmp_path, request())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be written"):
        cached(tmp_path / "file", request())


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "zktrace"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "zktrace"


def test_an_immense_set_is_refused_before_it_is_made() -> None:
    with pytest.raises(LimitExceeded):
        GnssSpec(total=10**9).labels()
