"""Copies that are made by training: the paper's hinge, and the informed feature and output carriers."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zktrace.dispatch.copies import CopyPlan, CopySettings, Maker, Step, merged
from zktrace.dispatch.releases import Pool, ReleaseFolder
from zktrace.errors import InputError
from zktrace.learning.arrays import Images
from zktrace.learning.backbone import backbone_of
from zktrace.learning.configs import EpisodicConfig
from zktrace.learning.resnet import ResNet
from zktrace.learning.states import state_of
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import Penalty, train_episodes
from zktrace.marking.feature import FeatureConfig, FeatureHinge, FeatureWriter, feature_directions
from zktrace.marking.hinge import HingePenalty
from zktrace.marking.output import OutputConfig, OutputWriter, Support
from zktrace.models import ModelState
from zktrace.readouts.identity import Words
from zktrace.readouts.suspects import plain
from zktrace.readouts.weight import weight_directions

PROBES_A_STEP = 128


def trained_maker(plan: CopyPlan, shared: ModelState) -> Maker:
    """What makes the copies of a plan that needs training. A row has one outcome on one machine."""
    pool = ReleaseFolder(path=plan.folder).pool()
    return _paper(plan, shared, pool) if plan.profile == "paper" else _informed(plan, shared, pool)


def _rng(plan: CopyPlan, row: int) -> np.random.Generator:
    """Batches and episodes of a row's copy: a repeated copy is the same. No secret enters a generator."""
    return np.random.default_rng([*plan.model, row])


def _informed(plan: CopyPlan, shared: ModelState, pool: Pool) -> Maker:
    with single_threaded():
        feature, output = _writers(plan, shared, pool)
    weight = plan.weight_writer() if "weight" in plan.carriers else None

    def make(words: Mapping[str, Words], row: int, step: Step) -> ModelState:
        start = None
        if weight is not None:
            start = weight.write(shared, words["weight"], share=plan.settings.share).state
        rng = _rng(plan, row)
        with single_threaded():
            if output is not None:
                beside = None if feature is None else (feature, words["feature"])
                state = output.write(words["output"], rng=rng, start=start, feature=beside, progress=step)
            elif feature is not None:
                state = feature.write(words["feature"], rng=rng, start=start, progress=step)
            else:
                raise InputError(f"nothing to train for {', '.join(plan.carriers)}")
        return merged(shared, state)

    return make


def _writers(
    plan: CopyPlan, shared: ModelState, pool: Pool
) -> tuple[FeatureWriter | None, OutputWriter | None]:
    """What writes the carriers that are trained; all keep the features of the images that are no probes."""
    folder, images = ReleaseFolder(path=plan.folder), np.array(pool.images)
    probes: list[Images] = []
    queries = None
    if "feature" in plan.carriers:
        probes.append(np.array(folder.probes(plan.layout("feature"))))
    if "output" in plan.carriers:
        queries = folder.queries(plan.layout("output"))
        probes.append(np.array(queries.probes))
    first, second = mark_configs(plan.settings)
    beside = images[others(images, np.concatenate(probes), least=max(first.beside, second.beside))]
    feature = output = None
    if "feature" in plan.carriers:
        seed = plan.seeds["feature"]
        feature = FeatureWriter(shared, seed=seed, probes=probes[0], beside=beside, config=first)
    if queries is not None:
        layout = plan.layout("output")
        reference = folder.reference(layout)
        if reference is None:
            raise InputError("the output carrier has no reference")
        output = OutputWriter(
            shared,
            seed=plan.seeds["output"],
            reference=reference,
            probes=probes[-1],
            support=Support(images=np.array(queries.support), labels=np.array(queries.labels)),
            beside=beside,
            config=second,
        )
    return feature, output


def mark_configs(settings: CopySettings) -> tuple[FeatureConfig, OutputConfig]:
    """How informed feature and output marks are written, or InputError."""
    for given, config in ((settings.feature, FeatureConfig), (settings.output, OutputConfig)):
        known = {each.name: each.type for each in fields(config)}
        for name, value in given.items():
            if name not in known:
                raise InputError(f"a mark has no such setting {name!r}; it has {', '.join(known)}")
            if known[name] is int and type(value) is not int:
                raise InputError(f"{name} of a mark is a whole number, not {value}")
    return FeatureConfig(**settings.feature), OutputConfig(**settings.output)  # type: ignore[arg-type]


def others(images: Images, probes: Images, *, least: int) -> NDArray[np.bool_]:
    """Which images are no probes; all of them if fewer than `least` are not."""
    known = {each.tobytes() for each in probes}
    rest = np.array([each.tobytes() not in known for each in images])
    return rest if rest.sum() >= least else np.ones(len(images), dtype=bool)


def _paper(plan: CopyPlan, shared: ModelState, pool: Pool) -> Maker:
    config = _episodes(pool.episodes, plan)
    images, labels = np.array(pool.images), np.array(pool.labels)

    def make(words: Mapping[str, Words], row: int, step: Step) -> ModelState:
        rng = _rng(plan, row)
        model = backbone_of(plain(shared))
        penalty = _penalty(plan, model, words, seed=int(rng.integers(1 << 62)))
        with single_threaded():
            train_episodes(
                model,
                images,
                labels,
                config,
                rng,
                penalty=penalty,
                progress=lambda report: step(report.episode / report.episodes),
            )
        return merged(shared, state_of(model))

    return make


def _episodes(fields: dict[str, Any], plan: CopyPlan) -> EpisodicConfig:
    try:
        config = replace(EpisodicConfig(**fields), episodes=plan.settings.episodes)
    except TypeError as error:
        raise InputError(f"the release's episodes have no such setting ({error})") from error
    rate = plan.settings.learning_rate
    return config if rate is None else replace(config, learning_rate=rate)


def _penalty(plan: CopyPlan, model: ResNet, words: Mapping[str, Words], *, seed: int) -> Penalty:
    """lambda_t times the hinge of every carrier (`eq_dispatch_hinge`, `eq_feature_hinge`).

    The scales of `model` are pushed first: to turn a bit of scales as large as a short pre-training leaves
    them, the hinge alone takes thousands of episodes, or a learning rate that ruins the model.
    """
    mu, weight = plan.settings.mu, plan.settings.lambda_t
    parts: list[Penalty] = []
    if "weight" in plan.carriers:
        length = plan.lengths["weight"]
        family = weight_directions(plan.seeds["weight"], length=length, layers=plan.layout("weight").layers)
        hinge = HingePenalty(family.block(0, length), words["weight"], margin=mu, drop=0.0, seed=seed)
        if plan.settings.push_margin:
            hinge.push(model, margin=plan.settings.push_margin)
        parts.append(hinge)
    if "feature" in plan.carriers:
        length = plan.lengths["feature"]
        family = feature_directions(plan.seeds["feature"], length=length, dimension=model.features)
        probes = np.array(ReleaseFolder(path=plan.folder).probes(plan.layout("feature")))
        parts.append(
            FeatureHinge(
                family.block(0, length),
                probes,
                words["feature"],
                margin=mu,
                batch_size=PROBES_A_STEP,
                seed=seed,
            )
        )

    def total(net: ResNet) -> Any:  # noqa: ANN401
        return weight * sum(part(net) for part in parts)

    return total
