"""A carrier that nobody planned for: with an entry, a reader and a writer the whole life cycle runs."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import zktrace
from zktrace.carriers import Carrier, add, remove
from zktrace.errors import EvidenceRejected, InputError

MODULE = '''
"""Bits in the signs of small moves of one array."""

import numpy as np

from zktrace.errors import InputError
from zktrace.marking.writer import Writer
from zktrace.models import ModelState
from zktrace.readouts.reader import Reader, Survey


class ToyReader(Reader):
    @classmethod
    def survey(cls, name, shared, *, length, pool, draws):
        if "toy" not in shared or shared["toy"].size < length:
            raise InputError("the model has no toy of that size")
        return Survey(dimension=shared["toy"].size, length=length)

    def project(self, arrays):
        if "toy" not in arrays or arrays["toy"].size != self.terms.dimension:
            raise InputError("the model has no such toy")
        return np.asarray(arrays["toy"], dtype=np.float64)[: self.terms.length]


class ToyWriter(Writer):
    def write(self, state, words, *, row, step):
        (name,) = self.carriers
        toy = np.array(state["toy"])
        toy[: len(words[name])] += 0.25 * (2.0 * words[name] - 1.0)
        return ModelState.from_arrays({**state, "toy": toy})
'''


ENTRY = Carrier(
    name="toy",
    reads="Each is one number of the toy.",
    reader="toy_carrier:ToyReader",
    writers={"informed": "toy_carrier:ToyWriter"},
    length=256,
    colluders=2,
    trained=False,
)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "toy_carrier.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    add(ENTRY)
    yield
    remove("toy")
    sys.modules.pop("toy_carrier", None)


def model(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"toy": rng.normal(size=300), "other": rng.normal(size=(3, 4))}


@pytest.mark.usefixtures("toy")
def test_the_whole_life_cycle_runs_with_a_carrier_that_was_added(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="toys", budget="1/100")
    for name in ("alpha", "bravo", "charlie"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    with pytest.raises(InputError, match="too small to carry a code in its weights"):
        home.release(model())  # by default the spread carrier, for which this model has no room
    with pytest.raises(InputError, match="BatchNorm"):
        home.release(model(), carriers=["weight", "toy"])  # and it has no scales
    release = home.release(model(), carriers=["toy"])
    copies = {name: home.dispatch(name, release) for name in ("alpha", "bravo", "charlie")}
    assert len({copy.digest for copy in copies.values()}) == 3
    assert np.array_equal(copies["bravo"].arrays["other"], model()["other"])
    noise = 0.2 * np.random.default_rng(5).normal(size=300)
    suspect = {**copies["bravo"].arrays, "toy": copies["bravo"].arrays["toy"] + noise}
    case = home.trace(suspect, budget="1/1000000")
    assert case.named == ("bravo",)
    found = zktrace.judge(case.evidence, head=home.head, suspect=suspect)
    assert found.named == ("bravo",)
    assert any("toy: 256 values of the suspect read again" in each for each in found.steps[4].checked)
    with pytest.raises(EvidenceRejected):
        zktrace.judge(case.evidence, head=home.head, suspect=model())
    assert home.trace(model(), budget="1/1000000").named == ()
    assert "Each is one number of the toy." in case.report(tmp_path / "case.html").read_text()


@pytest.mark.usefixtures("toy")
def test_evidence_of_an_added_carrier_is_not_read_without_it(tmp_path: Path) -> None:
    home = zktrace.Workspace.create(tmp_path / "op", title="toys", carriers=["toy"])
    home.enrol("alpha", zktrace.Credential.new("alpha").request(home.setup))
    copy = home.dispatch("alpha", home.release(model()))
    evidence, head = home.trace(copy.arrays).evidence.to_bytes(), home.head
    remove("toy")
    try:
        with pytest.raises(InputError, match="must be one of spread, weight, feature, output"):
            zktrace.judge(evidence, head=head)
    finally:
        add(ENTRY)
