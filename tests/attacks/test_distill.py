"""Students learn what they are taught, start afresh, and go on where they stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from attacks.lived import lived
from learning.synthetic import narrow, same, task
from zktrace.attacks.distill import OBJECTIVES, DistillConfig, DistillReport, distill
from zktrace.attacks.lessons import LESSONS, Task
from zktrace.errors import InputError, Refused
from zktrace.learning.backbone import backbone_of
from zktrace.learning.evaluation import embed
from zktrace.learning.states import state_of

IMAGES, LABELS = task(48, classes=3)
CONFIG = DistillConfig(objective="features", epochs=2, batch_size=16, learning_rate=3e-3, augment=False)


def teacher() -> dict[str, np.ndarray]:
    return lived(width=4)


@pytest.mark.parametrize("objective", ["logits", "top1", "labels"])
def test_a_head_is_kept_on_demand(objective: str) -> None:
    """The same student, with the answers it was taught to give."""
    config = replace(CONFIG, objective=objective, epochs=12, learning_rate=0.01)
    bare = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1))
    made = distill([teacher()], IMAGES, LABELS, replace(config, head=True), np.random.default_rng(1))
    assert same(bare, {name: array for name, array in made.items() if not name.startswith("fc.")})
    assert made["fc.weight"].shape == (3, 32)
    answers = embed(backbone_of(made), IMAGES)
    classes = np.unique(LABELS, return_inverse=True)[1]
    wanted = classes if objective == "labels" else nearest(teacher())
    assert (answers.argmax(axis=1) == wanted).mean() > 0.6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_student_learns_and_a_seed_has_one_outcome(objective: str) -> None:
    seen: list[DistillReport] = []
    config = replace(CONFIG, objective=objective, epochs=5)
    made = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1), progress=seen.append)
    assert [each.epoch for each in seen] == [1, 2, 3, 4, 5]
    assert seen[-1].loss < 0.8 * seen[0].loss
    assert made.keys() == teacher().keys()
    assert backbone_of(made).features == 32
    again = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1))
    assert same(made, again)
    assert not same(made, distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(2)))


@pytest.mark.parametrize(
    ("objective", "losses"),
    [
        ("features", [7.300206, 6.231845]),
        ("logits", [0.3388217, 0.4036104]),
        ("distances", [0.2807611, 0.2522102]),
        ("labels", [1.306412, 1.241199]),
    ],
)
def test_a_seed_has_the_outcome_it_always_had(objective: str, losses: list[float]) -> None:
    """Numbers of the loop that `learning.loop` replaced; what is drawn is the same to the last bit."""
    seen: list[DistillReport] = []
    config, rng = replace(CONFIG, objective=objective, augment=True), np.random.default_rng(1)
    distill([teacher()], IMAGES, LABELS, config, rng, progress=seen.append)
    assert [each.loss for each in seen] == pytest.approx(losses, rel=1e-2)
    assert rng.integers(1 << 60) == 874267135373634447


def test_distances_are_answered_in_the_students_own_features() -> None:
    """Nearest class means of the student agree with the teacher's, without any head."""
    config = replace(CONFIG, objective="distances", epochs=12, learning_rate=0.01)
    made = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1))
    assert made.keys() == teacher().keys()
    answers = [nearest(each) for each in (made, teacher(), state_of(narrow(3)))]
    assert (answers[0] == answers[1]).mean() > 0.6 > (answers[2] == answers[1]).mean()


def nearest(state: dict[str, np.ndarray]) -> np.ndarray:
    """The class of the mean nearest to each image's features."""
    features = embed(backbone_of(state), IMAGES)
    classes = np.unique(LABELS, return_inverse=True)[1]
    means = np.stack([features[classes == k].mean(axis=0) for k in range(3)])
    return np.square(features[:, None] - means).sum(axis=2).argmin(axis=1)


def test_features_are_copied_and_a_teacher_stays_as_it_was() -> None:
    before = teacher()
    config = replace(CONFIG, epochs=12)
    made = distill([before], IMAGES, None, config, np.random.default_rng(1))
    assert same(before, teacher())
    wanted, found = (embed(backbone_of(each), IMAGES) for each in (before, made))
    fresh = embed(narrow(3), IMAGES)
    assert np.square(found - wanted).mean() < 0.3 * np.square(fresh - wanted).mean()


@pytest.mark.parametrize(("depth", "width"), [(34, 0), (18, 6), (34, 6)])
@pytest.mark.parametrize("objective", ["features", "logits"])
def test_students_may_have_another_architecture(objective: str, depth: int, width: int) -> None:
    config = replace(CONFIG, objective=objective, depth=depth, width=width, epochs=1)
    model = backbone_of(distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1)))
    assert (model.depth, model.width) == (depth, width or 4)


@pytest.mark.parametrize("objective", ["features", "logits"])
def test_a_teacher_is_asked_anew_about_images_that_are_moved_about(objective: str) -> None:
    config = replace(CONFIG, objective=objective, epochs=1)
    still = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1))
    moved = distill([teacher()], IMAGES, LABELS, replace(config, augment=True), np.random.default_rng(1))
    assert not same(still, moved)


def test_labels_need_no_teacher_and_logits_no_features() -> None:
    """The control is the same whoever the teacher is; soft labels are the same under a rotation."""
    config = replace(CONFIG, objective="labels", epochs=1)
    one, two = (
        distill([lived(width=4, seed=seed)], IMAGES, LABELS, config, np.random.default_rng(1))
        for seed in (0, 1)
    )
    assert same(one, two)
    turn = np.eye(32, dtype=np.float32)[::-1]
    soft = replace(config, objective="logits")
    one, two = (
        distill([each], IMAGES, LABELS, soft, np.random.default_rng(1))
        for each in (teacher(), teacher() | {"fc.weight": turn})
    )
    for name in one:
        assert one[name] == pytest.approx(two[name], rel=0.05, abs=2e-3)


def test_a_student_of_the_best_class_is_told_no_scores() -> None:
    """Whatever the teacher says of other classes, its lesson is the same."""
    lesson = LESSONS["top1"](
        Task(
            teachers=[backbone_of(teacher())],
            images=IMAGES,
            labels=LABELS,
            features=32,
            temperature=1.0,
            softness=1.0,
            rng=np.random.default_rng(1),
        )
    )
    features = torch.from_numpy(np.random.default_rng(2).standard_normal((48, 32)).astype(np.float32))
    best = lesson.targets.argmax(dim=1)
    assert np.array_equal(best.numpy(), nearest(teacher()))
    bare = torch.nn.functional.one_hot(best, 3).float()
    loss = lesson.loss(features, lesson.targets)
    assert torch.equal(loss, lesson.loss(features, bare))
    assert not torch.equal(loss, lesson.loss(features, bare.roll(1, dims=1)))


def test_a_coalition_teaches_its_mean() -> None:
    config = replace(CONFIG, epochs=1)
    alone = distill([teacher()], IMAGES, None, config, np.random.default_rng(1))
    twice = distill([teacher(), teacher()], IMAGES, None, config, np.random.default_rng(1))
    assert all(alone[name] == pytest.approx(twice[name], abs=1e-4) for name in alone)
    mixed = distill([teacher(), lived(width=4, seed=5)], IMAGES, None, config, np.random.default_rng(1))
    assert not same(alone, mixed)
    with pytest.raises(InputError, match="several widths"):
        distill([teacher(), lived(width=6)], IMAGES, None, config, np.random.default_rng(1))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_run_goes_on_where_it_stopped(objective: str, tmp_path: Path) -> None:
    config = replace(CONFIG, objective=objective, epochs=3, augment=True)
    whole = distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1))
    path = tmp_path / "run.safetensors"

    class Stop(Exception):
        pass

    def stop(report: DistillReport) -> None:
        if report.epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1), checkpoint=path, progress=stop)
    seen: list[DistillReport] = []
    rest = distill(
        [teacher()],
        IMAGES,
        LABELS,
        config,
        np.random.default_rng(1),
        checkpoint=path,
        resume=True,
        progress=seen.append,
    )
    assert [each.epoch for each in seen] == [3]
    assert same(whole, rest)


def test_another_run_is_not_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    config = replace(CONFIG, epochs=1)
    distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1), checkpoint=path)
    with pytest.raises(Refused, match="was begun"):
        distill([teacher()], IMAGES, LABELS, config, np.random.default_rng(1), checkpoint=path)
    for changed, words in (
        (([teacher()], IMAGES, LABELS, replace(config, learning_rate=0.1)), "another config"),
        (([teacher()], IMAGES[:40], LABELS[:40], config), "another data"),
        (([lived(width=4, seed=8)], IMAGES, LABELS, config), "another lesson"),
    ):
        with pytest.raises(InputError, match=words):
            distill(*changed, np.random.default_rng(1), checkpoint=path, resume=True)
    with pytest.raises(Refused, match="folder"):
        distill(
            [teacher()], IMAGES, LABELS, config, np.random.default_rng(1), checkpoint=tmp_path / "no" / "run"
        )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"objective": "weights"}, "objective"),
        ({"depth": 50}, "depth"),
        ({"width": -1}, "width"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"temperature": 0.0}, "temperature"),
        ({"softness": -1.0}, "softness"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"objective": "distances", "head": True}, "no head"),
        ({"objective": "features", "head": True}, "no head"),
    ],
)
def test_impossible_settings_are_errors(values: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        DistillConfig(**values)


def test_impossible_lessons_are_errors() -> None:
    rng = np.random.default_rng(0)
    soft = replace(CONFIG, objective="logits")
    for teachers, images, labels, config, words in (
        ([], IMAGES, LABELS, CONFIG, "teacher"),
        ([teacher()], IMAGES[:1], LABELS[:1], CONFIG, "at least two"),
        ([teacher()], IMAGES, LABELS[:5], CONFIG, "labels of shape"),
        ([teacher()], IMAGES, None, soft, "needs labels"),
        ([teacher()], IMAGES, np.zeros(48, np.int64), soft, "two classes"),
        (
            [state_of(narrow()) | {"fc.weight": np.zeros((5, 32), np.float32)}],
            IMAGES,
            LABELS,
            CONFIG,
            "same features",
        ),
    ):
        with pytest.raises(InputError, match=words):
            distill(teachers, images, labels, config, rng)
