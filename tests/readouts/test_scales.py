"""Scales are found, ordered, projected and written."""

import numpy as np
import pytest

from zktrace.certificates.identity import agreement, cross_talk, radius_check
from zktrace.errors import InputError
from zktrace.readouts.identity import IdentityCodebook, read_component
from zktrace.readouts.scales import gather, scale_names


def layer(name: str, scale: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"{name}.weight": scale.astype(np.float32),
        f"{name}.bias": np.zeros(len(scale), np.float32),
        f"{name}.running_mean": np.zeros(len(scale), np.float32),
        f"{name}.running_var": np.ones(len(scale), np.float32),
        f"{name}.num_batches_tracked": np.array(3),
    }


def model(random: np.random.Generator) -> dict[str, np.ndarray]:
    names = ("bn1", "layer1.0.bn1", "layer1.0.bn2", "layer2.0.downsample.1", "layer10.0.bn1", "layer2.0.bn2")
    arrays = {"conv1.weight": random.normal(size=(8, 4, 3, 3)).astype(np.float32)}
    for name in names:
        arrays |= layer(name, random.normal(size=20))
    return arrays


def test_the_order_is_that_of_the_network() -> None:
    arrays = model(np.random.default_rng(0))
    assert scale_names(arrays) == [
        "bn1.weight",
        "layer1.0.bn1.weight",
        "layer1.0.bn2.weight",
        "layer2.0.bn2.weight",
        "layer2.0.downsample.1.weight",
        "layer10.0.bn1.weight",
    ]
    shuffled = dict(reversed(arrays.items()))
    assert (gather(shuffled) == gather(arrays)).all()
    assert len(gather(arrays)) == 120


def test_any_text_can_be_a_layers_name() -> None:
    names = ("²", "1²", "٣", "①.1", "9" * 600, "01", "1", "001", "10", "2", "")
    states = [f"{name}.{part}" for name in names for part in ("weight", "running_var")]
    for given in (states, states[::-1]):  # one order, whichever way they come
        found = [name.removesuffix(".weight") for name in scale_names(given)]
        numbers = [name for name in found if name.isascii() and name.isdigit()]
        assert numbers == ["001", "01", "1", "2", "10", "9" * 600]
        assert found == [name.removesuffix(".weight") for name in scale_names(states)]
        assert sorted(found) == sorted(names)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda arrays: {"conv1.weight": arrays["conv1.weight"]}, "no BatchNorm scales"),
        (
            lambda arrays: arrays | {"bn1.weight": np.full(20, np.nan, np.float32)},
            "bn1.weight: a scale that is not",
        ),
        (lambda arrays: arrays | {"bn1.weight": np.ones((4, 5), np.float32)}, "bn1.weight.: not the scale"),
    ],
)
def test_a_model_that_cannot_be_read_is_an_error(change, reason: str) -> None:  # noqa: ANN001
    arrays = change(model(np.random.default_rng(2)))
    with pytest.raises(InputError, match=reason):
        gather(arrays)


def test_marks_written_in_closed_form_are_attributed() -> None:
    random = np.random.default_rng(3)
    arrays = model(random)
    book = IdentityCodebook(stations=3, bits=16, layers=(20,) * 6)
    words = random.integers(0, 2, (3, 16)).astype(np.uint8)
    signed = (2.0 * words.reshape(-1, 1) - 1) * np.concatenate([book.block(i) for i in range(3)])
    gamma = 1.0 + np.linalg.lstsq(signed, np.ones(48), rcond=None)[0]
    start = 0
    for name in scale_names(arrays):
        arrays[name] = gamma[start : start + 20].astype(np.float32)
        start += 20
    extracted = book.extract(arrays)
    assert (extracted == words).all()
    matrix = agreement(extracted, words)
    assert (matrix.diagonal() == 1).all()
    assert matrix[0, 1] == (words[0] == words[1]).mean()
    assert cross_talk(matrix) == pytest.approx((matrix.sum() - 3) / 6)
    assert radius_check(extracted, words).correct == 3
    with pytest.raises(InputError):
        cross_talk(matrix[:1, :1])
    with pytest.raises(InputError):
        agreement(extracted, words[:, :8])


def test_centred_marks_ignore_the_mean_of_a_layer_and_raw_ones_do_not() -> None:
    arrays = model(np.random.default_rng(4))
    shifted = {name: array + 3 if name.endswith("bn1.weight") else array for name, array in arrays.items()}
    book, raw = (IdentityCodebook(stations=2, bits=8, layers=(20,) * 6, raw=raw) for raw in (False, True))
    assert book.read(shifted) == pytest.approx(book.read(arrays), abs=1e-5)
    assert not np.allclose(raw.read(shifted), raw.read(arrays), atol=0.01)
    for one in (book, raw):  # reading is the product with the directions that are written
        assert one.read(arrays)[1] == pytest.approx(one.block(1) @ gather(arrays), abs=1e-9)
    assert book.block(0).reshape(8, 6, 20).mean(axis=2) == pytest.approx(0, abs=1e-12)
    assert (raw.block(0) == raw.directions.block(0, 8)).all()
    with pytest.raises(InputError, match="120 BatchNorm scales in 6 layers, the codebook 120 in 5"):
        IdentityCodebook(stations=2, bits=8, layers=(24,) * 5).read(arrays)


def test_a_station_reads_its_own_block_whatever_the_roster_and_the_prefix() -> None:
    arrays = model(np.random.default_rng(5))
    book = IdentityCodebook(stations=4, bits=16, layers=(20,) * 6)
    renamed = {f"module.{name}": array for name, array in arrays.items()}
    for row in range(4):
        expected = np.packbits(book.extract(arrays)[row]).tobytes()
        assert read_component(arrays, row=row, bits=16) == expected
        assert read_component(renamed, row=row, bits=16) == expected
