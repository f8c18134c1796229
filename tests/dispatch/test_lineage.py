"""Models that descend from marked copies are refused: tracing them would name innocents."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from dispatch.small import SHAPES, arrays, model_file, operator, short_release
from zktrace.attacks.collusion import collude
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import Refused
from zktrace.models import open_model, save_model
from zktrace.registry.workspace import Home
from zktrace.releases.lineage import carries, chi_squared_above

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    made = operator(tmp_path / "op", *NAMES, shapes=SHAPES[:1])
    short_release(made, model_file(tmp_path / "model.safetensors"))
    return made


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean models are refused once in a thousand; not here."""
    monkeypatch.setattr("zktrace.releases.lineage.LEVEL", 1e-7)


def trained_on(state: dict[str, np.ndarray], seed: int, size: float) -> dict[str, np.ndarray]:
    """What some training does to a model, as far as its scales are concerned."""
    rng = np.random.default_rng(seed)
    return {
        name: (value + size * rng.normal(size=value.shape)).astype(np.float32)
        for name, value in state.items()
    }


@pytest.mark.parametrize("size", [0.0, 0.002, 0.01])
def test_a_model_trained_on_from_marked_copies_is_refused(place: Home, tmp_path: Path, size: float) -> None:
    """Every station trains on from its copy, the server averages: everybody's row is in the result."""
    copies = [trained_on(dict(open_model(each.path)), at, size) for at, each in enumerate(dispatch(place))]
    save_model(tmp_path / "next.safetensors", collude(copies))
    before = place.registry.head()
    with pytest.raises(Refused, match=r"carries rows of copies of r1.*would name innocents"):
        short_release(place, tmp_path / "next.safetensors")
    assert place.registry.head() == before
    assert not place.release_folder("r2").exists()


def test_one_copy_is_refused_too(place: Home) -> None:
    (copy,) = dispatch(place, stations=["beta"])
    with pytest.raises(Refused, match="carries rows"):
        short_release(place, copy.path)


@pytest.mark.parametrize("seed", range(5))
def test_a_model_trained_on_from_the_shared_one_is_released(place: Home, tmp_path: Path, seed: int) -> None:
    list(dispatch(place))
    save_model(tmp_path / "next.safetensors", trained_on(dict(arrays()), seed, 0.01))
    assert short_release(place, tmp_path / "next.safetensors").name == "r2"
    assert short_release(place, tmp_path / "model.safetensors").name == "r3"


def test_another_architecture_is_nobodys_copy(place: Home, tmp_path: Path) -> None:
    save_model(tmp_path / "other.safetensors", {f"net.{name}": value for name, value in arrays(3).items()})
    wider = {f"bn{i}.{part}": np.ones(200, np.float32) for i in (1, 2) for part in ("weight", "running_var")}
    save_model(tmp_path / "wider.safetensors", wider)
    for name in ("other", "wider"):
        short_release(place, tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize("lost", ["shared.safetensors", "reference-weight.bin"])
def test_a_release_whose_files_are_lost_vouches_for_nobody(place: Home, lost: str) -> None:
    """A marked copy would pass if what cannot be read were passed over."""
    (copy,) = dispatch(place, stations=["beta"])
    (place.release_folder("r1") / lost).unlink()
    with pytest.raises(Refused, match=r"rows of copies of r1 cannot be told.*Put them back"):
        short_release(place, copy.path)
    assert list(place.registry.ledger().releases) == ["r1"]


@pytest.mark.parametrize("degrees", [1, 2, 10, 1000])
@pytest.mark.parametrize("level", [1e-2, 1e-4, 1e-6])
def test_the_limit_of_a_chi_squared_sum(degrees: int, level: float) -> None:
    assert chi_squared_above(degrees, level) == pytest.approx(scipy.stats.chi2.isf(level, degrees), rel=1e-6)


@pytest.mark.parametrize("count", [1, 3, 30, 1000])
def test_clean_scores_are_seldom_refused_and_shifted_ones_mostly(count: int) -> None:
    rng = np.random.default_rng(count)
    level, runs = 0.05, 2000
    clean = sum(carries(rng.standard_normal(count), level) for _ in range(runs))
    assert clean <= scipy.stats.binom.isf(1e-4, runs, 1.2 * level)
    assert clean >= 1  # the screen is not vacuous
    shift = {1: 6.0, 3: 3.5}.get(count, 2.5)
    assert sum(carries(rng.standard_normal(count) + shift, 1e-4) for _ in range(100)) > 60
