"""Promised seeds: what opens a place, what does not, and that both sides have a part in what comes of it."""

import hashlib
from dataclasses import replace

import pytest

from registry.small import CUSTODY, SHAPES
from zktrace.derivation.key import Use
from zktrace.derivation.promises import (
    Claim,
    Promise,
    bias_commitment,
    direction_seed,
    place_leaf,
    row_key,
    seed_commitment,
)
from zktrace.errors import InputError, InvalidProof
from zktrace.primitives import merkle
from zktrace.registry.records import PLACE, RELEASE

CARRIERS = tuple(each.carrier for each in SHAPES)
TREE = CUSTODY.tree(PLACE, 5, 11)
PROMISE = Promise(kind=PLACE, first=5, count=11, root=TREE.root, carriers=CARRIERS)


def shake(domain: str, *parts: bytes) -> bytes:
    """As docs/spec/derivation.md says, from hashlib alone."""
    absorbed = (len(each).to_bytes(8, "big") + each for each in (domain.encode(), *parts))
    return hashlib.shake_256(b"".join(absorbed)).digest(32)


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def test_everything_is_what_the_specification_says() -> None:
    secret = CUSTODY.key.secret
    seed = CUSTODY.seed(PLACE, "weight", 7)
    assert seed == shake("zkt-key-v1/place", secret, b"weight", number(7))
    assert CUSTODY.seed(RELEASE, "weight", 7) == shake("zkt-key-v1/release", secret, b"weight", number(7))
    assert CUSTODY.code("weight", (), length=24, law="fair").row_seed(7) == seed
    assert CUSTODY.bias_seed("weight") == shake("zkt-key-v1/biases", secret, b"weight")
    assert CUSTODY.code("weight", (), length=24, law="fair").bias_seed == CUSTODY.bias_seed("weight")
    assert row_key(seed, Claim(b"n" * 32, b"public")) == shake("zkt-row-v1", seed, b"n" * 32, b"public")
    root = bytes(range(32))
    wanted = shake("zkt-release-v1/directions", seed, root, b"weight")
    assert direction_seed(seed, root, "weight") == wanted
    base = "zkt-commitment-v1/"
    assert bias_commitment(seed, "weight") == shake(f"{base}biases", seed, b"weight")
    made = seed_commitment(PLACE, seed, 7, "weight")
    assert made == shake(f"{base}seed/place", seed, number(7), b"weight")
    fields = (b"zkt-seeds-v1/place", number(7), made, b"other" * 6)
    leaf = b"\x00" + b"".join(number(len(each)) + each for each in fields)
    assert place_leaf(PLACE, 7, (made, b"other" * 6)) == hashlib.sha256(leaf).digest()
    rho = shake("zkt-key-v1/key-opening", secret)
    assert CUSTODY.key_commitment() == shake(f"{base}code-key", rho, secret)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("place", [5, 9, 15])
def test_a_place_opens_on_one_carrier_alone(place: int, carrier: str) -> None:
    found = CUSTODY.opened(PROMISE, carrier, place)
    PROMISE.verify(place, carrier, found.seed, found.others, found.path)
    others = {CUSTODY.seed(PLACE, each, place) for each in CARRIERS if each != carrier}
    assert not others & {found.seed, *found.others}


def test_nothing_else_opens_a_place() -> None:
    found = CUSTODY.opened(PROMISE, "weight", 9)
    good = {"place": 9, "carrier": "weight", "seed": found.seed, "others": found.others, "path": found.path}
    wrong = [
        {"place": 8},
        {"place": 4},
        {"place": 16},
        {"carrier": "feature"},
        {"carrier": "output"},
        {"seed": CUSTODY.seed(PLACE, "weight", 8)},
        {"seed": CUSTODY.seed(RELEASE, "weight", 9)},
        {"others": ()},
        {"others": (*found.others, *found.others)},
        {"others": (bytes(32),)},
        {"path": found.path[1:]},
        {"path": (*found.path, bytes(32))},
        {"path": (bytes(32), *found.path[1:])},
    ]
    PROMISE.verify(**good)  # type: ignore[arg-type]
    for each in wrong:
        with pytest.raises(InvalidProof):
            PROMISE.verify(**(good | each))  # type: ignore[arg-type]
    for other in (
        replace(PROMISE, kind=RELEASE),
        replace(PROMISE, first=4),
        replace(PROMISE, count=20),
        replace(PROMISE, root=bytes(32)),
        replace(PROMISE, carriers=CARRIERS[::-1]),
        replace(PROMISE, carriers=("weight",)),
    ):
        with pytest.raises(InvalidProof):
            other.verify(**good)  # type: ignore[arg-type]


def test_a_tree_is_a_merkle_tree_over_its_places() -> None:
    leaves = [CUSTODY.leaf(PLACE, place) for place in range(5, 16)]
    assert merkle.root(leaves) == TREE.root
    assert CUSTODY.tree(PLACE, 6, 11).root != TREE.root
    assert CUSTODY.tree(RELEASE, 5, 11).root != TREE.root


@pytest.mark.parametrize("count", [0, -1, (1 << 16) + 1])
def test_trees_have_a_size(count: int) -> None:
    with pytest.raises(InputError):
        CUSTODY.tree(PLACE, 0, count)
    with pytest.raises(InputError):
        replace(PROMISE, count=count)


def test_every_derived_secret_is_another() -> None:
    found = [CUSTODY.key.subkey(use) for use in Use]
    found += [CUSTODY.seed(kind, each, i) for kind in (PLACE, RELEASE) for each in CARRIERS for i in range(4)]
    found += [CUSTODY.bias_seed(each) for each in CARRIERS]
    found += [row_key(bytes(32), Claim(bytes([i]) * 32, b"")) for i in range(4)]
    found += [direction_seed(bytes(32), bytes([i]) * 32, each) for i in range(4) for each in CARRIERS]
    assert len(set(found)) == len(found)


def test_an_output_release_and_a_copy_share_no_stream() -> None:
    """What is drawn for the probes of a release has nothing to do with what any copy is trained with."""
    one, other = (CUSTODY.probe_stream(each, 0).words(8).tolist() for each in CARRIERS)
    assert not set(one) & set(other)
    assert not set(CUSTODY.probe_stream("weight", 1).words(8).tolist()) & set(one)
