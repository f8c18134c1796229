"""Releases and copies of the weight carrier: what is on disk, what is on record, and what a kill leaves."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from dispatch.small import arrays, code_of, model_file, operator, short_release
from readouts.making import weight_reader
from zktrace.certificates.stages import Source, investigate
from zktrace.codes import sums
from zktrace.dispatch import dispatching
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import Error, InputError, MalformedFile, Refused
from zktrace.marking.settings import CopySettings
from zktrace.models import model_digest, open_model, save_model
from zktrace.registry.readouts import readout_digest
from zktrace.registry.records import RevocationRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder, make_release
from zktrace.releases.making import next_name

NAMES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return operator(tmp_path / "op", *NAMES)


def released(place: Home, **options: object) -> Path:
    path = model_file(place.root.parent / "model.safetensors")
    short_release(place, path, **options)
    return path


def named(place: Home, release: str, state: object) -> set[str]:
    """Who is named for a suspect."""
    code = code_of(place, "weight", release)
    ledger = place.registry.ledger()
    rows = code.rows(range(len(ledger.by_row)))
    evidence = Source(
        carrier="weight",
        values=OpenRelease.of(place, release).reader("weight").read(state),  # type: ignore[arg-type]
        biases=code.biases,
        sums=lambda coefficients: sums(rows, coefficients),
        rows=code.rows,
    )
    found = investigate([evidence], level=Fraction(1, 1000))
    return {ledger.by_row[each.recipient] for each in found.named}


def test_a_release_records_what_a_reader_needs(place: Home) -> None:
    head = place.registry.head()
    path = released(place)
    before = path.read_bytes()
    record = place.registry.ledger().release("r1")
    layout = record.layout("weight")
    assert layout is not None
    folder = ReleaseFolder(path=place.release_folder("r1"))
    seed = OpenRelease.of(place, "r1").terms("weight").seed
    assert folder.shared_path.read_bytes() == before == path.read_bytes()
    assert record.model == model_digest(open_model(path))
    assert (layout.profile, layout.layers, layout.dimension) == ("informed", (60,) * 5, 300)
    assert (layout.length, layout.deviations, layout.referred) == (96, b"", True)
    assert (record.number, record.root) == (0, head.root)
    blank = weight_reader(seed=seed, length=96, layers=layout.layers, profile="informed")
    assert layout.reference == readout_digest(blank.project(arrays()))
    assert OpenRelease.of(place, "r1").reader("weight").read(arrays()).tolist() == [0.0] * 96
    with pytest.raises(Refused, match="exists already"):
        short_release(place, path, name="r1")
    assert short_release(place, path).name == "r2"
    assert next_name({"r1": 0, "r3": 0}) == "r2"


def test_a_release_of_another_container_becomes_safetensors(place: Home, tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **arrays())
    record = short_release(place, tmp_path / "model.npz")
    assert model_digest(ReleaseFolder(path=place.release_folder("r1")).shared()) == record.model


def test_every_station_gets_a_copy_of_its_own_and_the_shared_model_stays(place: Home) -> None:
    path = released(place)
    before = path.read_bytes()
    copies = list(dispatch(place))
    assert [copy.station for copy in copies] == list(NAMES)
    assert (
        path.read_bytes() == ReleaseFolder(path=place.release_folder("r1")).shared_path.read_bytes() == before
    )
    assert len({copy.digest for copy in copies}) == 4
    for copy in copies:
        assert copy.made
        assert copy.path == place.copy_path("r1", copy.station)
        assert model_digest(open_model(copy.path)) == copy.digest
        assert named(place, "r1", open_model(copy.path)) == {copy.station}
        with safe_open(copy.path, framework="numpy") as handle:
            assert handle.metadata() == {
                "format": "pt",
                "zktrace.release": "r1",
                "zktrace.station": copy.station,
            }
    recorded = {each.station: each.copy for _, each in place.registry.ledger().dispatches}
    assert recorded == {copy.station: copy.digest for copy in copies}
    secret = place.custody.key.secret
    assert all(secret not in copy.path.read_bytes() for copy in copies)


def test_copies_that_are_there_are_passed_over(place: Home, tmp_path: Path) -> None:
    released(place)
    first = list(dispatch(place, out=tmp_path / "out"))
    head = place.registry.head()
    stamps = [copy.path.stat().st_mtime_ns for copy in first]
    again = list(dispatch(place, out=tmp_path / "out"))
    assert [(copy.station, copy.digest, copy.made) for copy in again] == [
        (copy.station, copy.digest, False) for copy in first
    ]
    assert [copy.path.stat().st_mtime_ns for copy in again] == stamps
    assert place.registry.head() == head


def test_a_copy_that_was_lost_or_damaged_is_made_again(place: Home) -> None:
    released(place)
    alpha, beta, *_ = dispatch(place)
    head = place.registry.head()
    alpha.path.unlink()
    state = dict(open_model(beta.path))
    state["layer0.bn1.weight"] = state["layer0.bn1.weight"] + np.float32(1)
    metadata = {"format": "pt", "zktrace.release": "r1", "zktrace.station": "beta"}
    save_model(beta.path, state, metadata=metadata, replace=True)
    again = {copy.station: copy for copy in dispatch(place)}
    assert [again[name].made for name in NAMES] == [True, True, False, False]
    assert (again["alpha"].digest, again["beta"].digest) == (alpha.digest, beta.digest)
    assert place.registry.head() == head


def test_a_file_that_is_not_ours_is_left_alone(place: Home, tmp_path: Path) -> None:
    released(place)
    (tmp_path / "out").mkdir()
    for content in (b"notes", (tmp_path / "model.safetensors").read_bytes()):
        stray = tmp_path / "out" / "gamma.safetensors"
        stray.write_bytes(content)
        with pytest.raises(Refused, match="in the way"):
            list(dispatch(place, out=tmp_path / "out"))
        assert stray.read_bytes() == content
    assert not place.registry.ledger().dispatches


def test_revoked_stations_get_nothing(place: Home) -> None:
    released(place)
    place.registry.add(RevocationRecord(station="beta", reason="left"))
    with pytest.raises(Refused, match="beta is revoked"):
        list(dispatch(place, stations=["alpha", "beta"]))
    assert not place.registry.ledger().dispatches
    assert [copy.station for copy in dispatch(place)] == ["alpha", "gamma", "delta"]
    assert not place.copy_path("r1", "beta").exists()


def test_a_station_revoked_meanwhile_keeps_no_file(place: Home) -> None:
    released(place)
    making = dispatch(place)
    next(making)
    place.registry.add(RevocationRecord(station="beta", reason="left"))
    with pytest.raises(Refused, match="revoked"):
        next(making)
    assert not place.copy_path("r1", "beta").exists()


def test_the_latest_release_is_dispatched(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "zktrace.releases.lineage.LEVEL", 1e-9
    )  # of ten screens one in a hundred would refuse
    with pytest.raises(Refused, match="no release yet"):
        list(dispatch(place))
    for number in range(11):
        short_release(place, model_file(tmp_path / f"{number}.safetensors", number))
    (copy,) = dispatch(place, stations=["alpha"])
    assert copy.path.parent.name == "r11"
    assert named(place, "r11", open_model(copy.path)) == {"alpha"}
    assert not named(place, "r3", open_model(copy.path)) - {"alpha"}


def test_two_colluders_are_named(place: Home) -> None:
    released(place)
    copies = {copy.station: open_model(copy.path) for copy in dispatch(place)}
    mean = {
        name: (copies["alpha"][name] + copies["gamma"][name]) / 2
        if copies["alpha"][name].dtype.kind == "f"
        else copies["alpha"][name]
        for name in copies["alpha"]
    }
    assert named(place, "r1", mean) == {"alpha", "gamma"}


def test_the_share_is_the_size_of_the_change(place: Home) -> None:
    released(place)
    (copy,) = dispatch(place, stations=["alpha"], settings=CopySettings(share=0.1))
    moved = [
        open_model(copy.path)[name] - value for name, value in arrays().items() if name.endswith("bn1.weight")
    ]
    scales = [value for name, value in arrays().items() if name.endswith("bn1.weight")]
    ratio = np.linalg.norm(np.concatenate(moved)) / np.linalg.norm(np.concatenate(scales))
    assert ratio == pytest.approx(0.1, rel=1e-4)


def test_damaged_releases_are_refused(place: Home) -> None:
    released(place)
    folder = ReleaseFolder(path=place.release_folder("r1"))
    reference = folder.reference_path("weight")
    good = reference.read_bytes()
    reference.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(MalformedFile, match="on record"):
        OpenRelease.of(place, "r1").reader("weight")
    save_model(folder.shared_path, arrays(1), replace=True)
    with pytest.raises(Refused, match="not the shared model"):
        list(dispatch(place))
    with pytest.raises(Refused, match="do not carry"):
        OpenRelease.of(place, "r1").reader("feature")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"carriers": ()}, "each once"),
        ({"carriers": ("weight", "weight")}, "each once"),
        ({"carriers": ("sound",)}, "each once"),
        ({"carriers": ("output",)}, "--proxy"),
        ({"carriers": ("output",), "profile": "paper"}, "informed only"),
        ({"carriers": ("weight",), "profile": "paper"}, "--proxy"),
        ({"carriers": ("feature",)}, "--proxy"),
        ({"carriers": ("weight",), "name": "../x"}, "no release name"),
        ({"carriers": ("weight",), "lengths": {"feature": 96}}, "do not carry it"),
        ({"carriers": ("weight",), "lengths": {"weight": 0}}, "1..8192 positions"),
        ({"carriers": ("weight",), "lengths": {"weight": 8193}}, "1..8192 positions"),
        ({"carriers": ("weight",), "lengths": {"weight": 96.0}}, "1..8192 positions"),
        ({"carriers": ("weight",)}, "512 bits, the model's scales have room for 295"),
    ],
)
def test_impossible_releases_are_errors(place: Home, options: dict[str, object], words: str) -> None:
    path = model_file(place.root.parent / "model.safetensors")
    with pytest.raises(Error, match=words):
        make_release(place, path, **options)  # type: ignore[arg-type]
    assert not place.registry.ledger().releases


def test_a_model_without_room_for_the_code_is_refused(place: Home, tmp_path: Path) -> None:
    small = {"bn.weight": np.ones(90, np.float32), "bn.running_var": np.ones(90, np.float32)}
    save_model(tmp_path / "small.safetensors", small)
    with pytest.raises(InputError, match="room for 89"):
        short_release(place, tmp_path / "small.safetensors")


def test_what_tells_copies_apart_is_for_the_operator_alone(place: Home, tmp_path: Path) -> None:
    released(place)
    copies = [*dispatch(place), *dispatch(place, out=tmp_path / "out", stations=["alpha"])]
    kept = list(ReleaseFolder(path=place.release_folder("r1")).path.iterdir())
    assert len(kept) == 2
    files = [*kept, *(copy.path for copy in copies)]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    folders = (ReleaseFolder(path=place.release_folder("r1")).path, place.copies_folder("r1"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_a_second_dispatch_to_a_folder_is_refused_and_then_knows_the_first(place: Home) -> None:
    released(place)
    first = dispatch(place)
    next(first)
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(place.root)], capture_output=True, text=True, check=False
    )
    assert "copies are just being written there" in ran.stderr
    with pytest.raises(Refused, match="just being written"):
        next(dispatch(Home.open(place.root)))
    (elsewhere,) = dispatch(place, out=place.root.parent / "out", stations=["alpha"])
    assert elsewhere.made
    assert len(list(first)) == 3
    assert [copy.made for copy in dispatch(place)] == [False] * 4
    assert len(place.registry.ledger().dispatches) == 4


def test_what_was_dispatched_before_the_folder_was_ours_is_not_made_again(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    released(place)
    original = dispatching.claimed

    @contextmanager
    def late(folder: Path, **options: Any) -> Iterator[None]:
        monkeypatch.setattr(dispatching, "claimed", original)
        list(dispatch(Home.open(place.root)))
        with original(folder, **options):
            yield

    monkeypatch.setattr(dispatching, "claimed", late)
    assert [copy.made for copy in dispatch(place)] == [False] * 4
    assert len(place.registry.ledger().dispatches) == 4


CHILD = """
import sys
from pathlib import Path
from zktrace.dispatch.dispatching import dispatch
from zktrace.registry.workspace import Home
place = Home.open(Path(sys.argv[1]))
print("ready", flush=True)
for copy in dispatch(place):
    print(copy.station, flush=True)
"""


def test_a_killed_dispatch_is_repaired_by_repeating_it(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(12)]
    place = operator(tmp_path / "op", *names)
    released(place)
    rng = np.random.default_rng(0)
    for _ in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(place.root)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(float(rng.uniform(0.0, 0.15)))
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        place.registry.verify()
        for _, each in place.registry.ledger().dispatches:  # on record: the file is there, whole
            assert model_digest(open_model(place.copy_path("r1", each.station))) == each.copy
    copies = list(dispatch(place))
    assert [copy.station for copy in sorted(copies, key=lambda copy: int(copy.station[1:]))] == names
    assert len(place.registry.ledger().dispatches) == len(names)
    assert {path.name for path in (place.root / "copies" / "r1").iterdir()} == {
        f"{name}.safetensors" for name in names
    }
