"""A whole federation on disk: pre-training, rounds, and what came out.

    spec.json                what makes the run what it is: preset, seed, roster
    pretraining.safetensors  checkpoint after every epoch
    rounds.safetensors       checkpoint after every round
    log.jsonl                one line a round
    model.safetensors        the shared model
    agreement.json           every station's component against every codeword
    result.json              accuracy, attribution, and where they came from

Every file is written whole. A run that was killed goes on where its last epoch or round ended, and ends in
the same weights.
"""

import json
import math
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import zktrace
from zktrace.certificates.identity import agreement, cross_talk, load, quadrature_accuracy, radius_check
from zktrace.errors import InputError, Refused
from zktrace.federation.handout import Engine
from zktrace.federation.server import RoundReport, conclude, participants
from zktrace.federation.spec import RunSpec, build_model, sample_counts
from zktrace.learning.arrays import State
from zktrace.learning.checkpoints import Checkpoint, load_checkpoint, prefixed, save_checkpoint
from zktrace.learning.episodes import can_form
from zktrace.learning.evaluation import embed, episode_accuracy
from zktrace.learning.states import load_state, state_of
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import EpochReport, pretrain
from zktrace.models import ModelState, model_digest, save_model
from zktrace.primitives.files import write_atomic
from zktrace.readouts.scales import gather, layer_sizes

_PRETRAINING, _TESTING, _WATCHING = 5, 6, 7  # purposes of randomness
_WATCHED, _GLANCES = 600, 20  # validation samples, at most, and episodes on them after every round
_KIND = "federation"

Progress = Callable[[EpochReport | RoundReport], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """How well the codewords can be read back (`tab:attribution`, `tab:survival`)."""

    attribution: float  # share of stations that maximum agreement names uniquely and rightly
    self_agreement: float
    cross_talk: float
    within_radius: int  # stations whose attribution is proved by their distance (`thm:attr`)
    load: float
    predicted: float  # p-hat, from the norm of the pre-trained scales as the codebook reads them


def run(
    spec: RunSpec,
    folder: Path,
    engine: Engine,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train the federation of `spec` in `folder` and return what `result.json` says."""
    _check(spec, engine)
    _claim(spec, folder, resume=resume)
    report = progress or (lambda _: None)
    with single_threaded():
        initial = _pretrained(spec, folder, report)
        state, log = _rounds(spec, folder, engine, initial, report)
        save_model(folder / "model.safetensors", state, replace=True)
        result = _result(spec, initial, state, log)
        _write_agreement(spec, folder, state)
    write_atomic(folder / "result.json", (json.dumps(result, indent=1) + "\n").encode(), replace=True)
    return result


def _check(spec: RunSpec, engine: Engine) -> None:
    """Whether the result can be measured, and the network handed out, is known before hours of training."""
    dataset, plan = spec.source.load()
    shape = spec.preset.evaluation.shape
    if not can_form(dataset.labels[plan.split.test], shape):
        raise InputError(f"the {len(plan.split.test)} test samples cannot form a {shape}: more data, or less")
    engine.handout.check(state_of(build_model(spec, dataset.shape[0])))


def _claim(spec: RunSpec, folder: Path, *, resume: bool) -> None:
    """Make the folder this run's own, or find that it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{folder}: cannot be made ({error.strerror})") from error
    path = folder / "spec.json"
    text = (json.dumps(spec.facts(), indent=1, sort_keys=True) + "\n").encode()
    if not path.exists():
        write_atomic(path, text)
    elif path.read_bytes() != text:
        raise Refused(f"{folder}: holds a run of another preset, seed or roster")
    elif not resume:
        raise Refused(f"{folder}: holds this run already (--resume goes on with it)")


def _pretrained(spec: RunSpec, folder: Path, report: Progress) -> State:
    images, labels = spec.source.samples("train")
    model = build_model(spec, images.shape[1])
    pretrain(
        model,
        images,
        labels,
        spec.preset.pretraining,
        spec.rng(_PRETRAINING),
        checkpoint=folder / "pretraining.safetensors",
        resume=True,
        progress=report,
    )
    return state_of(model)


def _rounds(
    spec: RunSpec, folder: Path, engine: Engine, initial: State, report: Progress
) -> tuple[State, list[dict[str, Any]]]:
    path = folder / "rounds.safetensors"
    state, log = initial, []
    if path.exists():
        saved = load_checkpoint(path, kind=_KIND)
        if saved.facts.get("spec") != spec.digest():
            raise InputError(f"{path}: a checkpoint of another run")
        state, log = saved.group("model"), list(saved.facts["log"])
    watch, counts = _held_out(spec), sample_counts(spec)
    for number in range(len(log), spec.preset.federation.rounds):
        asked = participants(spec, number)
        engine.handout.opening(number, initial, state)
        answers = engine.answers(number, asked, state)
        aggregate, found = conclude(spec, number, state, asked, answers, counts=counts)
        state = engine.handout.incoming(aggregate)
        marks = read_marks(spec, initial, state)
        found = replace(
            found, attribution=None if marks is None else marks.attribution, held_out=watch(state)
        )
        log.append(_line(found))
        save_checkpoint(
            path,
            Checkpoint(
                kind=_KIND, arrays=prefixed("model", state), facts={"spec": spec.digest(), "log": log}
            ),
        )
        lines = "".join(json.dumps(each) + "\n" for each in log)
        write_atomic(folder / "log.jsonl", lines.encode(), replace=True)
        report(found)
    return state, log


def _line(found: RoundReport) -> dict[str, Any]:
    """A round as JSON keeps it: text for keys, null for a mean over nobody."""
    values = {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in found.as_dict().items()
    }
    line: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
    return line


def _held_out(spec: RunSpec) -> Callable[[State], float | None]:
    """Accuracy on the same few validation episodes after every round; None where the split has too few.

    It draws from a generator of its own, so that a run with it ends in the weights of a run without.
    """
    dataset, plan = spec.source.load()
    shape = spec.preset.evaluation.shape
    labels = dataset.labels[plan.split.validation]
    share = max(shape.needed, _WATCHED // dataset.classes)
    kept = [np.flatnonzero(labels == each)[:share] for each in range(dataset.classes)]
    chosen = plan.split.validation[np.sort(np.concatenate(kept))]
    if not can_form(dataset.labels[chosen], shape):
        return lambda _: None
    model = build_model(spec, dataset.shape[0])
    images, truth = dataset.take(chosen)

    def accuracy(state: State) -> float:
        load_state(model, state)
        features = embed(model, images)
        return episode_accuracy(features, truth, shape, spec.rng(_WATCHING), episodes=_GLANCES).mean

    return accuracy


def _write_agreement(spec: RunSpec, folder: Path, state: State) -> None:
    """The matrix behind the marks, for the report."""
    if len(spec.words) < 2:
        return
    matrix = agreement(spec.codebook(layer_sizes(state)).extract(state), spec.codewords())
    text = json.dumps({"agreement": matrix.tolist()}) + "\n"
    write_atomic(folder / "agreement.json", text.encode(), replace=True)


def read_marks(spec: RunSpec, initial: State, state: State) -> Marks | None:
    """The state of the identity marks; None for a federation without codewords."""
    if len(spec.words) < 2:
        return None
    book, words, marks = spec.codebook(layer_sizes(state)), spec.codewords(), spec.preset.marks
    extracted = book.extract(state)
    matrix, check = agreement(extracted, words), radius_check(extracted, words)
    shape = {"clients": len(words), "length": marks.bits, "omega": sum(book.layers)}
    baseline = float(np.linalg.norm(book.component(initial)))
    return Marks(
        attribution=check.correct / len(words),
        self_agreement=float(matrix.diagonal().mean()),
        cross_talk=cross_talk(matrix),
        within_radius=sum(check.within),
        load=float(load(**shape)),
        predicted=quadrature_accuracy(baseline=baseline, margin=marks.push_margin or marks.mu, **shape),
    )


def _result(spec: RunSpec, initial: State, state: State, log: list[dict[str, Any]]) -> dict[str, Any]:
    dataset, plan = spec.source.load()
    model = build_model(spec, dataset.shape[0])
    load_state(model, state)
    images, labels = dataset.take(plan.split.test)
    config = spec.preset.evaluation
    score = episode_accuracy(
        embed(model, images), labels, config.shape, spec.rng(_TESTING), episodes=config.episodes
    )
    marks = read_marks(spec, initial, state)
    return {
        "spec": spec.digest(),
        "seed": spec.seed,
        "dataset": dataset.note,
        "first": model_digest(ModelState.from_arrays(initial)).hex(),
        "rounds": len(log),
        "marked": spec.marked,
        "stations": list(spec.names),
        "accuracy": score.mean,
        "accuracy_half_width": score.half_width,
        "marks": None if marks is None else asdict(marks),
        "scale_norm": float(np.linalg.norm(gather(initial))),
        "never_trained": sorted(
            set(range(spec.preset.federation.clients)) - {s for line in log for s in line["trained"]}
        ),
        "versions": {
            "zktrace": zktrace.__version__,
            "torch": version("torch"),
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
    }
