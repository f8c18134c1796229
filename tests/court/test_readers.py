"""Readouts that a judge can or cannot make itself: what somebody invented is seen, or refused as unread."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from court.forge import relogged, the
from tracing.small import Federation, federation
from zktrace.court import Judgement, Policy, judge
from zktrace.errors import EvidenceRejected, MissingExtra
from zktrace.models import ModelState, model_digest
from zktrace.primitives import loading
from zktrace.readouts.features import FeatureReader
from zktrace.readouts.reader import spoken
from zktrace.registry.log import Head
from zktrace.registry.records import InvestigationRecord, ReleaseRecord
from zktrace.tracing import Case

pytestmark = pytest.mark.usefixtures("network")
Floats = NDArray[np.float64]
EASY = Policy(min_length=64)
OWN = replace(EASY, require_suspect=True, require_readout=True)
PROBES = ModelState.from_arrays({"probes": np.ones((2, 1, 4, 4), np.float32)})


def saying(values: Floats) -> ModelState:
    """A model that says these values of the probes."""
    return ModelState.from_arrays({"said": values, "bn.weight": np.ones(3), "bn.running_var": np.ones(3)})


class Bench:
    """A feature case whose log speaks of any suspect and shared model."""

    def __init__(self, said: Callable[[Floats, Floats], Floats], shared: Floats | None = None) -> None:
        """`said`: what the suspect says, from readout and reference of the file."""
        own: Federation = federation(carriers=("feature",))
        case: Case = own.trace((2,), carriers=("feature",))
        self.reference = own.references["feature"]
        self.suspect = saying(said(case.evidence.carriers[0].values(), self.reference))
        self.shared = saying(self.reference if shared is None else shared)
        release, investigation = the(own, case, ReleaseRecord), the(own, case, InvestigationRecord)
        layout = replace(release.layouts[0], probes=model_digest(PROBES))
        self.data, self.head, _ = relogged(
            own,
            case,
            replace(release, layouts=(layout,), model=model_digest(self.shared)),
            replace(investigation, suspect=model_digest(self.suspect)),
        )

    def judged(self, policy: Policy = EASY, **given: object) -> Judgement:
        head: Head = self.head
        return judge(self.data, head=head, policy=policy, suspect=self.suspect, **given)  # type: ignore[arg-type]

    def step(self, policy: Policy = EASY, **given: object) -> int:
        with pytest.raises(EvidenceRejected) as caught:
            self.judged(policy, **given)
        return caught.value.step


NETWORK = {"probes": [PROBES]}


def test_an_invented_readout_is_refused_or_seen() -> None:
    """The suspect is a model that nobody marked; the readout in the file is a row and some noise."""
    stranger = np.random.default_rng(3).standard_normal(128)
    bench = Bench(lambda values, reference: stranger)
    found = bench.judged()
    assert any("feature: not recomputed" in fact for fact in found.unchecked)
    assert bench.step(OWN) == 8
    assert bench.step(**NETWORK) == 5


def test_a_readout_that_the_judge_makes_itself_is_enough() -> None:
    bench = Bench(lambda values, reference: values + reference)
    found = bench.judged(OWN, **NETWORK)
    assert any("128 values of the suspect read again" in fact for fact in found.steps[4].checked)
    assert any("read by the judge" in fact for fact in found.steps[6].checked)
    assert not any("not recomputed" in fact for fact in found.unchecked)
    found = bench.judged(OWN, shared=bench.shared, **NETWORK)
    assert any("128 values of the shared model read again" in fact for fact in found.steps[4].checked)


def test_probes_of_another_release_are_seen() -> None:
    bench = Bench(lambda values, reference: values + reference)
    other = ModelState.from_arrays({"probes": np.zeros((2, 1, 4, 4), np.float32)})
    assert bench.step(probes=[other]) == 5
    assert bench.step(probes=[PROBES, other]) == 5


@pytest.mark.parametrize(("off", "upheld"), [(3e-5, True), (3e-4, False)])
def test_a_network_may_differ_by_its_float32(off: float, upheld: bool) -> None:
    largest = 4.0  # about what the largest projection is
    bench = Bench(lambda values, reference: values + reference + off * largest * (np.arange(128) == 5))
    if upheld:
        bench.judged(OWN, **NETWORK)
    else:
        assert bench.step(OWN, **NETWORK) == 5


def test_a_row_within_that_difference_accuses_nobody() -> None:
    """The suspect is the shared model itself; the reference on record lacks a row in its float32."""
    own = federation(carriers=("feature",))
    hidden = own.copy_readout("feature", (2,), noise=0.3)
    faint = 5e-5 * hidden
    case = own.investigate([own.readout("feature", faint)])
    assert case.names == ("station-2",)
    shared = saying(own.references["feature"] + faint)
    release, investigation = the(own, case, ReleaseRecord), the(own, case, InvestigationRecord)
    layout = replace(release.layouts[0], probes=model_digest(PROBES))
    data, head, _ = relogged(
        own,
        case,
        replace(release, layouts=(layout,), model=model_digest(shared)),
        replace(investigation, suspect=model_digest(shared)),
    )
    judge(data, head=head, policy=OWN, suspect=shared, **NETWORK)  # type: ignore[arg-type]
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head, policy=OWN, suspect=shared, shared=shared, **NETWORK)  # type: ignore[arg-type]
    assert caught.value.step == 7


def test_an_aligned_feature_look_is_not_recomputed() -> None:
    from court.test_looks import mapped

    own, case = mapped()
    release = the(own, case, ReleaseRecord)
    suspect = saying(np.zeros(192))
    layouts = tuple(replace(each, probes=model_digest(PROBES)) for each in release.layouts)
    data, head, _ = relogged(
        own,
        case,
        replace(release, layouts=layouts),
        replace(the(own, case, InvestigationRecord), suspect=model_digest(suspect)),
    )
    found = judge(data, head=head, policy=EASY, suspect=suspect, **NETWORK)  # type: ignore[arg-type]
    assert any("aligning it takes images" in fact for fact in found.unchecked)
    with pytest.raises(EvidenceRejected) as caught:
        judge(data, head=head, policy=OWN, suspect=suspect, **NETWORK)  # type: ignore[arg-type]
    assert caught.value.step == 8


def test_without_torch_probes_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no rejection: another judge can read them."""
    bench = Bench(lambda values, reference: values + reference)
    monkeypatch.undo()  # the network is the real one

    def missing(name: str) -> object:
        raise ModuleNotFoundError(f"No module named {name!r}", name="torch")

    known = loading.importlib.import_module

    def imported(name: str) -> object:
        return missing(name) if name.startswith("zktrace.learning") else known(name)

    monkeypatch.setattr(loading.importlib, "import_module", imported)
    with pytest.raises(MissingExtra, match="PyTorch"):
        spoken("feature", {}, {})
    monkeypatch.setattr(FeatureReader, "images", np.ones((2, 1, 4, 4), np.float32))
    with pytest.raises(MissingExtra, match="PyTorch"):
        bench.judged(probes=[PROBES])
    assert bench.judged().named  # without probes nothing is asked of a network
