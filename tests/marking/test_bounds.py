"""Suspects that are run are bounded before they are: their outputs, their channels, their element types."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from cli import hostile
from learning.synthetic import narrow, task
from readouts.making import feature_reader
from zktrace.attacks.rewrite import LARGEST_STATE, permute
from zktrace.errors import InputError, LimitExceeded
from zktrace.learning.answers import Support, class_scores
from zktrace.learning.backbone import MAX_OUTPUTS, backbone_of
from zktrace.models import open_model
from zktrace.readouts.alignment import align_scales
from zktrace.readouts.channels import MAX_CHANNELS
from zktrace.readouts.reader import MAX_ANSWERS, check_answers


def with_head(path: Path, outputs: int) -> Path:
    return hostile.safetensors(path, hostile.resnet(1) | {"fc.weight": ("float16", (outputs, 8))})


def test_a_last_layer_of_too_many_outputs_is_refused(tmp_path: Path) -> None:
    state = open_model(with_head(tmp_path / "m", MAX_OUTPUTS + 1))
    with pytest.raises(LimitExceeded, match=f"32769 outputs, at most {MAX_OUTPUTS}"):
        backbone_of(state)
    assert backbone_of(state, head=False).features == 8


def test_features_of_all_images_together_are_bounded(tmp_path: Path) -> None:
    images, _ = task(4, seed=1)
    many = np.broadcast_to(images[:1], (MAX_ANSWERS // MAX_OUTPUTS + 1, *images.shape[1:]))
    state = open_model(with_head(tmp_path / "m", MAX_OUTPUTS))
    support = Support(images=images[:2], labels=np.arange(2))
    with pytest.raises(LimitExceeded, match="32768 numbers an image"):
        class_scores(state, many, support)
    reader = feature_reader(seed=bytes(32), probes=images, profile="paper", dimension=MAX_OUTPUTS)
    with pytest.raises(LimitExceeded, match="of 513 images"):
        reader.features(state, many)
    check_answers(len(many), narrow().features)


def test_integers_are_no_weights(tmp_path: Path) -> None:
    state = open_model(hostile.safetensors(tmp_path / "m", hostile.resnet(2, "int8")))
    with pytest.raises(InputError, match=r"'conv1\.weight' is of type int8; turn it back"):
        backbone_of(state)


def test_layers_of_too_many_channels_are_not_aligned(tmp_path: Path) -> None:
    """The assignment of n channels takes a matrix of n x n."""
    arrays, size = hostile.resnet(1), MAX_CHANNELS + 1
    arrays["layer1.0.conv1.weight"] = ("float16", (size, 1, 3, 3))
    arrays["layer1.0.conv2.weight"] = ("float16", (1, size, 3, 3))
    arrays |= {
        f"layer1.0.bn1.{part}": ("float16", (size,))
        for part in ("weight", "bias", "running_mean", "running_var")
    }
    state = open_model(hostile.safetensors(tmp_path / "m", arrays))
    with pytest.raises(LimitExceeded, match="at most 4096 channels"):
        align_scales(state, state)


def test_a_model_that_is_too_large_is_not_rewritten(tmp_path: Path) -> None:
    state = open_model(hostile.integer_resnet(tmp_path / "m"))
    with pytest.raises(LimitExceeded, match=f"at most {LARGEST_STATE} are rewritten"):
        permute(state, np.random.default_rng(0))
