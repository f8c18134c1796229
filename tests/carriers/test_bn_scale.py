"""Scales are found, ordered, projected and written."""

import numpy as np
import pytest

from zktrace.carriers.bn_scale import ScaleCarrier, gather, scale_names
from zktrace.carriers.directions import Directions
from zktrace.carriers.identity import IdentityCodebook
from zktrace.certificates.identity import agreement, cross_talk, radius_check
from zktrace.errors import InputError


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


def test_reading_is_the_projection_of_the_scales() -> None:
    arrays = model(np.random.default_rng(1))
    directions = Directions(label="t", seed=b"s", dimension=120, count=7)
    expected = [
        sum(g * e for g, e in zip(gather(arrays), row, strict=True)) for row in directions.block(0, 7)
    ]
    assert ScaleCarrier(directions=directions).read(arrays) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda arrays: {"conv1.weight": arrays["conv1.weight"]}, "no BatchNorm scales"),
        (
            lambda arrays: arrays | {"bn1.weight": np.full(20, np.nan, np.float32)},
            "bn1.weight: a scale that is not",
        ),
        (lambda arrays: arrays | {"bn1.weight": np.ones((4, 5), np.float32)}, "bn1.weight: not the scale"),
        (lambda arrays: arrays | layer("bn9", np.ones(3)), "123 BatchNorm scales, the carrier reads 120"),
    ],
)
def test_a_model_that_cannot_be_read_is_an_error(change, reason: str) -> None:  # noqa: ANN001
    arrays = change(model(np.random.default_rng(2)))
    carrier = ScaleCarrier(directions=Directions(label="t", seed=b"s", dimension=120, count=2))
    with pytest.raises(InputError, match=reason):
        carrier.read(arrays)


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


# --- torch -------------------------------------------------------------------------------------------


def test_the_hinge_is_the_formula_and_its_gradient_is_right() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.carriers.hinge import HingePenalty, scales

    net = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 1), torch.nn.BatchNorm2d(12), torch.nn.BatchNorm2d(12))
    with torch.no_grad():
        for part in net[1:]:
            part.weight.copy_(torch.linspace(-1, 1, 12))
    directions = Directions(label="t", seed=b"s", dimension=24, count=10).block(0, 10)
    word = np.array([0, 1] * 5, dtype=np.uint8)
    penalty = HingePenalty(directions, word, margin=0.5, drop=0.0, seed=1)
    gamma = scales(net).detach().numpy().astype(np.float64)
    signs = 2.0 * word - 1
    expected = np.mean([max(0.0, 0.5 - s * (gamma @ d)) for s, d in zip(signs, directions, strict=True)])
    value = penalty(net)
    assert value.item() == pytest.approx(expected, rel=1e-5)
    value.backward()
    gradient = torch.cat([net[1].weight.grad, net[2].weight.grad]).numpy()
    for i in range(24):
        for step in (1e-6,):
            up, down = gamma.copy(), gamma.copy()
            up[i] += step
            down[i] -= step
            loss = [np.maximum(0, 0.5 - signs * (directions @ g)).mean() for g in (up, down)]
            assert gradient[i] == pytest.approx((loss[0] - loss[1]) / (2 * step), abs=1e-4)
    assert net[0].weight.grad is None


def test_pushing_moves_the_scales_alone_up_to_the_margin() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.carriers.hinge import HingePenalty, scales

    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 200, 1), torch.nn.BatchNorm2d(200), torch.nn.BatchNorm2d(100)
    )
    before = {name: value.clone() for name, value in net.state_dict().items()}
    directions = Directions(label="t", seed=b"s", dimension=300, count=40).block(0, 40)
    word = (np.arange(40) % 3 == 0).astype(np.uint8)
    penalty = HingePenalty(directions, word, margin=0.8, drop=0.0, seed=1)
    start = scales(net).detach().numpy().astype(np.float64)
    signed = (2.0 * word - 1)[:, None] * directions
    penalty.push(net, margin=0.8)
    moved = scales(net).detach().numpy() - start
    short = signed @ start < 0.8
    assert 0 < short.sum() < 40
    assert signed[short] @ (start + moved) == pytest.approx(0.8, abs=1e-4)
    least = np.linalg.lstsq(signed[short], 0.8 - signed[short] @ start, rcond=None)[0]
    assert moved == pytest.approx(least, abs=1e-5)
    for _ in range(50):  # neighbours that fell short of the margin are found by the next pushes
        penalty.push(net, margin=0.8)
    assert (signed @ scales(net).detach().numpy() >= 0.8 - 1e-3).all()
    assert penalty(net).item() == pytest.approx(0, abs=1e-3)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]) == (name not in ("1.weight", "2.weight"))
    settled = scales(net).detach().clone()
    penalty.push(net, margin=0.8)
    assert torch.allclose(scales(net), settled, atol=1e-3)


def test_bit_dropout_drops_about_half_and_is_seeded() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.carriers.hinge import HingePenalty

    net = torch.nn.Sequential(torch.nn.BatchNorm2d(50))
    with torch.no_grad():
        net[0].weight.copy_(torch.randn(50, generator=torch.Generator().manual_seed(0)))
    directions = Directions(label="t", seed=b"s", dimension=50, count=400).block(0, 400)
    word = np.zeros(400, dtype=np.uint8)
    one, two = (HingePenalty(directions, word, drop=0.5, seed=7) for _ in range(2))
    first = [one(net).item() for _ in range(30)]
    assert first == [two(net).item() for _ in range(30)]
    assert len(set(first)) == 30
    whole = HingePenalty(directions, word, drop=0.0, seed=7)(net).item()
    assert np.mean(first) == pytest.approx(whole, rel=0.02)


@pytest.mark.parametrize(
    ("bits", "drop", "margin"), [(3, 0.5, 1.0), (4, 1.0, 1.0), (4, -0.1, 1.0), (4, 0.5, 0.0)]
)
def test_impossible_penalties_are_errors(bits: int, drop: float, margin: float) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.carriers.hinge import HingePenalty

    with pytest.raises(InputError):
        HingePenalty(np.eye(4), np.zeros(bits, dtype=np.uint8), margin=margin, drop=drop, seed=0)
