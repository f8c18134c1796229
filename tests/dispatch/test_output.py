"""The output carrier through releases and copies; disguised and queried suspects; questions among decoys."""

from dataclasses import asdict, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")


from dispatch.small import SHAPES, code_of, operator, short_release
from learning.synthetic import narrow, task, taught
from zktrace.cli.app import run
from zktrace.codes import soft, sums
from zktrace.court import Judgement, Policy, judge
from zktrace.derivation.streams import Stream
from zktrace.dispatch.dispatching import dispatch
from zktrace.errors import EvidenceRejected, InputError, MalformedFile, MissingExtra, Refused
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.states import state_of
from zktrace.marking.settings import CopySettings
from zktrace.models import ModelState, model_digest, open_model, save_model
from zktrace.primitives import loading
from zktrace.readouts.outputs import draw_queries
from zktrace.readouts.reader import reader_of
from zktrace.readouts.samples import Pool
from zktrace.readouts.scores import scores_digest
from zktrace.readouts.views import in_views
from zktrace.registry.readouts import terms_of
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder
from zktrace.releases.lineage import check_unmarked
from zktrace.releases.queries import Order, picked, queries_of
from zktrace.tracing import trace

NAMES = ("alpha", "beta", "gamma")
MARK = {"passes": 12, "batch_size": 32, "beside": 32, "margin": 0.5, "learning_rate": 3e-4}
SETTINGS = CopySettings(
    marks={"feature": MARK, "output": MARK | {"passes": 60, "margin": 0.7, "companion": 6.0, "keep": 1.0}}
)
ALL = ("weight", "feature", "output")


@cache
def shared() -> ModelState:
    return ModelState.from_arrays(taught(width=8))


def pool(samples: int = 320) -> Pool:
    images, labels = task(samples, seed=1)
    config = EpisodicConfig(way=5, shot=2, query=3, temperature=8.0, learning_rate=0.01)
    return Pool(images=images, labels=labels, episodes=asdict(config), note="a task")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A release with all carriers, and a copy of it for `beta`."""
    folder = tmp_path_factory.mktemp("output")
    place = operator(folder / "op", *NAMES, shapes=SHAPES, budget=Fraction(1, 2))
    save_model(folder / "model.safetensors", shared())
    short_release(place, folder / "model.safetensors", carriers=ALL, pool=pool())
    list(dispatch(place, stations=["beta"], settings=SETTINGS))
    return place


def copy(made: Home) -> ModelState:
    return open_model(made.copy_path("r1", "beta"))


def sigmas(made: Home, carrier: str, values: np.ndarray) -> np.ndarray:
    code = code_of(made, carrier)
    found = soft(values, code.biases)
    return np.asarray(found.scores_float(sums(code.rows(range(3)), found)) / np.sqrt(code.length))


# ── releases and copies ─────────────────────────────────────────────────────────────────────────────────────


def test_a_copy_carries_all_three_rows(made: Home) -> None:
    for carrier in ALL:
        found = sigmas(made, carrier, OpenRelease.of(made, "r1").reader(carrier).read(copy(made)))
        assert found.argmax() == 1
        assert found[1] > 4
    layout = made.registry.ledger().release("r1").layout("output")
    assert layout is not None
    assert (layout.dimension, layout.profile, layout.layers) == (6, "informed", ())


def test_what_the_output_carrier_asks_is_fixed_by_a_digest(made: Home) -> None:
    folder = ReleaseFolder(path=made.release_folder("r1"))
    layout = made.registry.ledger().release("r1").layout("output")
    assert layout is not None
    asked, path = dict(folder.probes(layout) or {}), folder.probes_path("output")
    known = {each.tobytes() for each in asked["probes"]}
    assert len(known) == len(asked["probes"]) == 128
    assert not known & {each.tobytes() for each in asked["support"]}
    assert sorted(set(asked["labels"].tolist())) == list(range(6))
    good = path.read_bytes()
    try:
        folder.save_probes("output", {**asked, "labels": asked["labels"][::-1].copy()})
        with pytest.raises(MalformedFile, match="not the probes"):
            OpenRelease.of(made, "r1").reader("output")
    finally:
        path.write_bytes(good)


def test_what_cannot_be_a_release_is_refused(made: Home, tmp_path: Path) -> None:
    save_model(tmp_path / "model.safetensors", shared())
    with pytest.raises(InputError, match="profile informed only"):
        short_release(
            made, tmp_path / "model.safetensors", carriers=("output",), profile="paper", pool=pool()
        )
    with pytest.raises(InputError, match="--proxy"):
        short_release(made, tmp_path / "model.safetensors", carriers=("output",))
    with pytest.raises(InputError, match="128 probes and 60 images of a support"):
        short_release(made, tmp_path / "model.safetensors", carriers=("output",), pool=pool(150))
    one = Pool(images=pool().images, labels=np.zeros(320, np.int64), episodes={}, note="")
    with pytest.raises(InputError, match="two classes"):
        draw_queries(one, 10, Stream("probes", bytes(32)))


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_suspect_is_read_as_it_is_and_alignments_wait(made: Home) -> None:
    reading = OpenRelease.of(made, "r1").read(copy(made), ALL)
    assert [each.carrier for each in reading.readouts] == list(ALL)
    assert [(each.carrier, each.alignment) for each in reading.further] == [
        ("weight", "channels"),
        ("feature", "procrustes"),
        ("feature", "ridge"),
        ("output", "head"),
    ]
    assert reading.left == ()
    assert OpenRelease.of(made, "r1").read(copy(made), ALL, align=False).further == ()


def turned(state: ModelState, seed: int = 3) -> ModelState:
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((64, 64)))[0].astype(np.float32)
    return ModelState.from_arrays({**state, "fc.weight": turn})


def test_rotated_features_are_turned_back(made: Home) -> None:
    suspect = turned(copy(made))
    reading = OpenRelease.of(made, "r1").read(suspect, ("feature",))
    assert abs(sigmas(made, "feature", reading.readouts[0].values)[1]) < 3
    for each in reading.further:
        assert sigmas(made, "feature", each.read().values)[1] > 3.5, each.alignment


def test_a_rotated_copy_is_named_through_a_declared_look(made: Home) -> None:
    suspect = turned(copy(made))
    reading = OpenRelease.of(made, "r1").read(suspect, ("feature",))
    case = trace(
        made.registry,
        made.custody,
        suspect=model_digest(suspect),
        release="r1",
        readouts=reading.readouts,
        further=reading.further,
        budget=Fraction(1, 10),
        requests=made.request_of,
    )
    assert case.names == ("beta",)
    assert case.look.alignment in ("procrustes", "ridge")


def rescaled(state: ModelState) -> ModelState:
    """Channels inside blocks times positive factors: the same function, other scales."""
    rng = np.random.default_rng(1)
    made = {name: np.array(value) for name, value in state.items()}
    for name in [each for each in made if each.endswith(".bn1.weight") and each.startswith("layer")]:
        block = name.removesuffix("bn1.weight")
        factor = np.exp(0.5 * rng.standard_normal(len(made[name]))).astype(np.float32)
        made[name] *= factor
        made[f"{block}bn1.bias"] *= factor
        made[f"{block}conv2.weight"] /= factor[None, :, None, None]
    return ModelState.from_arrays(made)


def test_rescaled_channels_are_put_back(made: Home) -> None:
    suspect = rescaled(copy(made))
    reading = OpenRelease.of(made, "r1").read(suspect, ("weight",))
    plain, back = (
        sigmas(made, "weight", values)[1]
        for values in (reading.readouts[0].values, reading.further[0].read().values)
    )
    assert back > 4
    assert back > plain


def test_a_judge_with_the_shared_model_aligns_the_suspect_again(made: Home) -> None:
    suspect = rescaled(copy(made))
    reading = OpenRelease.of(made, "r1").read(suspect, ("weight",))
    case = trace(
        made.registry,
        made.custody,
        suspect=model_digest(suspect),
        release="r1",
        readouts=(),
        further=reading.further,
        budget=Fraction(1, 10),
        requests=made.request_of,
    )
    assert case.names == ("beta",)
    data, head = case.evidence.to_bytes(), made.registry.head()
    policy = Policy(min_length=64, accept_weak_credentials=True, max_budget=Fraction(1, 10))
    found = judge(data, head=head, policy=policy, suspect=suspect)
    assert any("takes the release's shared model" in fact for fact in found.steps[4].unchecked)
    original = ReleaseFolder(path=made.release_folder("r1")).shared()
    found = judge(data, head=head, policy=policy, suspect=suspect, shared=original)
    assert any(
        "aligned by channels, 96 values of the suspect read again" in fact for fact in found.steps[4].checked
    )
    with pytest.raises(EvidenceRejected, match=r"step 5.*shared model given"):
        judge(data, head=head, policy=policy, suspect=suspect, shared=copy(made))


def test_an_embedding_is_given_a_head_and_a_judge_fits_it_again(made: Home) -> None:
    reading = OpenRelease.of(made, "r1").read(copy(made), ("output",))
    (head,) = reading.further
    assert (head.alignment, head.carrier) == ("head", "output")
    case = trace(
        made.registry,
        made.custody,
        suspect=model_digest(copy(made)),
        release="r1",
        readouts=(),
        further=reading.further,
        budget=Fraction(1, 10),
        requests=made.request_of,
    )
    assert case.names == ("beta",)
    assert case.look.alignment == "head"
    folder = ReleaseFolder(path=made.release_folder("r1"))
    found = judge(
        case.evidence.to_bytes(),
        head=made.registry.head(),
        policy=Policy(min_length=64, accept_weak_credentials=True, max_budget=Fraction(1, 10)),
        suspect=copy(made),
        shared=folder.shared(),
        probes=[open_model(folder.probes_path("output"))],
    )
    again = "aligned by head, 128 values of the suspect read again"
    assert any(again in fact for fact in found.steps[4].checked)


def test_a_classifier_is_taken_at_its_word(made: Home) -> None:
    """A student with an output a class: no head is looked for."""
    head = np.random.default_rng(2).standard_normal((6, 64)).astype(np.float32)
    classifier = ModelState.from_arrays({**copy(made), "fc.weight": head, "fc.bias": head[:, 0]})
    reading = OpenRelease.of(made, "r1").read(classifier, ("output",))
    assert reading.further == ()


def test_a_judge_with_the_probes_reads_the_network_again(made: Home) -> None:
    """Feature and output readings of the suspect and of the shared model, by the probes on record."""
    suspect, folder = copy(made), ReleaseFolder(path=made.release_folder("r1"))
    reading = OpenRelease.of(made, "r1").read(suspect, ("feature", "output"), align=False)
    case = trace(
        made.registry,
        made.custody,
        suspect=model_digest(suspect),
        release="r1",
        readouts=reading.readouts,
        budget=Fraction(1, 10),
        requests=made.request_of,
    )
    assert case.names == ("beta",)
    named = {each.carrier for each in case.evidence.carriers}
    policy = Policy(
        min_length=64,
        accept_weak_credentials=True,
        max_budget=Fraction(1, 10),
        require_suspect=True,
        require_readout=True,
    )
    probes = [open_model(folder.probes_path(each)) for each in ("feature", "output")]

    def judged(suspect: ModelState, **more: object) -> Judgement:
        return judge(
            case.evidence.to_bytes(),
            head=made.registry.head(),
            policy=policy,
            suspect=suspect,
            **more,  # type: ignore[arg-type]
        )

    for shared in (None, folder.shared()):
        found = judged(suspect, shared=shared, probes=probes)
        facts = " ".join(found.steps[4].checked)
        assert facts.count("values of the suspect read again") == len(named)
        assert ("values of the shared model read again" in facts) == (shared is not None)
    with pytest.raises(EvidenceRejected, match="was not recomputed"):
        judged(suspect)
    with pytest.raises(EvidenceRejected, match=r"step 5.*probes given"):
        judged(suspect, probes=[folder.shared()])


@pytest.mark.parametrize("carrier", ["feature", "output"])
def test_probes_on_record_that_are_no_images_are_refused(made: Home, carrier: str) -> None:
    layout = made.registry.ledger().release("r1").layout(carrier)
    assert layout is not None
    images = np.zeros((128, 3, 8, 8), np.float32)
    for arrays in (
        {"a": images},
        {"probes": np.zeros((), np.float32)},
        {"probes": images[:5]},
        {"probes": np.zeros(128, np.float32), "support": images, "labels": np.arange(128)},
        *(
            [
                {"probes": images, "support": images},
                {"probes": images, "support": images, "labels": np.arange(128)},
                {"probes": images, "support": images, "labels": np.zeros((), np.int64)},
            ]
            if carrier == "output"
            else []
        ),
    ):
        asked = ModelState.from_arrays(arrays)
        terms = terms_of(replace(layout, length=128), seed=bytes(32), probes=asked)
        with pytest.raises(InputError):
            reader_of(terms).project(copy(made))


def test_a_student_of_another_shape_is_read_where_it_can_be(made: Home) -> None:
    student = ModelState.from_arrays(state_of(narrow(width=4)))
    reading = OpenRelease.of(made, "r1").read(student, ALL)
    assert [each.carrier for each in reading.readouts] == ["output"]
    assert [each.alignment for each in reading.further] == ["ridge", "head"]
    assert dict(reading.left).keys() == {"weight", "feature"}
    assert len(reading.further[0].read().values) == 64
    with pytest.raises(InputError):
        OpenRelease.of(made, "r1").read(student, ALL, strict=True)
    with pytest.raises(InputError):
        OpenRelease.of(made, "r1").read(ModelState.from_arrays({"a": np.zeros(3)}), ("weight",), align=False)


def test_a_suspect_is_read_from_its_scores_alone(made: Home) -> None:
    reader = OpenRelease.of(made, "r1").reader("output")
    scores = reader.project(copy(made)).reshape(128, 6)
    reading = OpenRelease.of(made, "r1").read_answers(scores)
    assert np.array_equal(reading.readouts[0].values, reader.read(copy(made)))
    assert reading.further == ()
    with pytest.raises(InputError, match="128 probes and 6 classes"):
        OpenRelease.of(made, "r1").read_answers(scores[:100])
    with pytest.raises(Refused):
        OpenRelease.of(made, "r9").read_answers(scores)


@pytest.mark.parametrize("how", ["scores", "student"])
def test_lost_evidence_is_made_again_by_the_plan_on_record(made: Home, tmp_path: Path, how: str) -> None:
    """Of scores alone, and of a student that has other layers: output as it is, features through a ridge."""
    student = ModelState.from_arrays(state_of(narrow(width=4)))
    scores = OpenRelease.of(made, "r1").reader("output").project(student).reshape(128, 6)
    save_model(tmp_path / "student.safetensors", student)
    np.savez(tmp_path / "scores.npz", scores=scores)
    if how == "scores":
        given, digest = ["--scores", str(tmp_path / "scores.npz")], scores_digest(scores)
        reading = OpenRelease.of(made, "r1").read_answers(scores)
    else:
        given, digest = [str(tmp_path / "student.safetensors")], model_digest(student)
        reading = OpenRelease.of(made, "r1").read(student, ALL)
    case = trace(
        made.registry,
        made.custody,
        suspect=digest,
        release="r1",
        readouts=reading.readouts,
        further=reading.further,
        budget=Fraction(1, 100),
        requests=made.request_of,
    )
    planned = [(each.alignment, each.carriers) for each in case.investigation.looks]
    aligned = [("ridge", ("feature",)), ("head", ("output",))]
    assert planned == [("identity", ("output",)), *aligned * (how == "student")]
    command = ["cases", "rebuild", str(case.place), "--workspace", str(made.root)]
    assert run([*command, *given]) == 0
    path = made.root / "cases" / f"case-{case.place}.zkt.json"
    assert path.read_bytes() == case.evidence.to_bytes()
    assert made.registry.head().to_text() == case.evidence.head  # nothing was put on record
    path.unlink()
    np.savez(tmp_path / "others.npz", scores=scores[::-1])
    assert run([*command, "--scores", str(tmp_path / "others.npz")]) == 2


def test_probes_are_of_all_classes_alike_as_far_as_there_are_images() -> None:
    counts = {0: 300, 1: 60, 2: 40, 3: 20}
    labels = np.concatenate([np.full(count, label) for label, count in counts.items()])
    images = np.random.default_rng(0).standard_normal((len(labels), 3, 8, 8)).astype(np.float32)
    pool = Pool(images=images, labels=labels, episodes={}, note="")
    of = {image.tobytes(): int(label) for image, label in zip(images, labels, strict=True)}
    found = draw_queries(pool, 120, Stream("probes", bytes(32)))
    drawn = [of[each.tobytes()] for each in found["probes"]]
    assert [drawn.count(label) for label in counts] == [40, 40, 30, 10]  # ten of each are the support's
    assert drawn != sorted(drawn)
    assert len({each.tobytes() for each in found["probes"]}) == 120
    other = draw_queries(pool, 120, Stream("probes", bytes([1] * 32)))
    assert not np.array_equal(other["probes"], found["probes"])


# ── questions among decoys ──────────────────────────────────────────────────────────────────────────────────


def test_probes_are_found_again_among_decoys(made: Home) -> None:
    inputs, order = queries_of(OpenRelease.of(made, "r1"), decoys=70)
    assert inputs.shape == (4 * 198, 4, 32, 32)
    layout = made.registry.ledger().release("r1").layout("output")
    assert layout is not None
    probes = dict(ReleaseFolder(path=made.release_folder("r1")).probes(layout) or {})["probes"]
    assert np.array_equal(inputs[list(order.places)], in_views(probes))
    assert len({each.tobytes() for each in inputs}) == 4 * 198  # no decoy is a probe, or there twice
    again, other = queries_of(OpenRelease.of(made, "r1"), decoys=70)
    assert other.places != order.places  # the order is drawn anew
    assert again.shape == inputs.shape
    reader = OpenRelease.of(made, "r1").reader("output")
    asked = reader.terms.probes or {}
    support = Support(images=asked["support"], labels=asked["labels"])
    answers = class_scores(copy(made), inputs, support)
    scores = picked(answers, Order.from_bytes(order.to_bytes()))
    assert OpenRelease.of(made, "r1").read_answers(scores).readouts[0].values == pytest.approx(
        reader.read(copy(made)), abs=1e-4
    )
    with pytest.raises(InputError, match="192 images that are no probes"):
        queries_of(OpenRelease.of(made, "r1"), decoys=193)


def test_probabilities_become_logarithms() -> None:
    """Two probes in four views, and two decoys; a probability of 0 counts as half the least of all."""
    order = Order(release="r1", total=10, places=(2, 0, 4, 6, 8, 3, 5, 7))
    given = np.random.default_rng(0).uniform(0.1, 0.9, (10, 2))
    given[2, 0] = 0.0
    raised = np.where(given == 0, given[[*order.places]][given[[*order.places]] > 0].min() / 2, given)
    slow = [np.mean([np.log(raised[at]) for at in order.places[probe::2]], axis=0) for probe in (0, 1)]
    assert picked(given, order, probabilities=True) == pytest.approx(np.array(slow))
    plain = [np.mean([given[at] for at in order.places[probe::2]], axis=0) for probe in (0, 1)]
    assert picked(given, order) == pytest.approx(np.array(plain))
    for bad in (given[:3], 2 * given):
        with pytest.raises(InputError):
            picked(bad, order, probabilities=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"format":"zkt-order-v2","places":[0,1,2,3],"release":"r1"}',
        b'{"format":"zkt-order-v1","places":[0,1,2,3],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[0,0,1,2],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[0,1,2,4],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[0,2,3,true],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[0,1,2,3],"release":"r1","total":200000}',
        b'{"format":"zkt-order-v2","places":[0,1,2,3],"release":5,"total":4}',
        b'{"format":"zkt-order-v2", "places":[0,1,2,3],"release":"r1","total":4}',
        b'{"format":"zkt-order-v2","places":[0,1,2],"release":"r1","total":4}',
    ],
)
def test_what_is_no_order_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFile):
        Order.from_bytes(data)


def test_without_torch_nothing_is_passed_over(made: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is a suspect read on what is left, nor is a marked model taken for a clean one."""
    honest = loading.importlib.import_module

    def imported(name: str) -> object:
        if name.startswith("zktrace.learning"):
            raise ModuleNotFoundError(f"No module named {name!r}", name="torch")
        return honest(name)

    monkeypatch.setattr(loading.importlib, "import_module", imported)
    with pytest.raises(MissingExtra, match="PyTorch"):
        OpenRelease.of(made, "r1").read(copy(made))
    with pytest.raises(MissingExtra, match="PyTorch"):
        check_unmarked(made, made.registry.ledger(), shared())
    assert OpenRelease.of(made, "r1").read(copy(made), ("weight",)).readouts
