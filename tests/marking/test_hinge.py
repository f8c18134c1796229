"""The hinge writes words into scales."""

import numpy as np
import pytest

from zktrace.errors import InputError
from zktrace.readouts.directions import Directions


def test_the_hinge_is_the_formula_and_its_gradient_is_right() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from zktrace.marking.hinge import HingePenalty, scales

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
    from zktrace.marking.hinge import HingePenalty, scales

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
    from zktrace.marking.hinge import HingePenalty

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
    from zktrace.marking.hinge import HingePenalty

    with pytest.raises(InputError):
        HingePenalty(np.eye(4), np.zeros(bits, dtype=np.uint8), margin=margin, drop=drop, seed=0)
