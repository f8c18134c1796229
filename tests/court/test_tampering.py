"""Every field of an evidence file changed in turn, and thousands of random changes: none is upheld.

A file has one canonical text and everything in it is under a head or opens something that is, so an upheld
file is the original, byte for byte.
"""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from court.test_looks import disguised, queried
from tracing.small import Federation, federation
from zktrace.court import STEPS, Policy, judge
from zktrace.errors import CannotTell, Error, EvidenceRejected, MalformedEvidence
from zktrace.registry.log import Head

EASY = Policy(min_length=16)
Path = tuple[str | int, ...]


@pytest.fixture(scope="module")
def files() -> list[tuple[bytes, Head]]:
    """Two accused on two carriers, one on one, nobody; one named through an alignment, one by its scores."""
    found = []
    for carriers, rows, budget in (
        (("weight", "feature"), (0, 3), Fraction(1, 100)),
        (("weight",), (2,), Fraction(1, 100)),
        (("weight",), (2,), Fraction(0)),
    ):
        own: Federation = federation(stations=4, length=64, carriers=carriers)
        case = own.trace(rows, carriers=carriers, budget=budget)
        assert bool(case.names) == bool(budget)
        found.append((case.evidence.to_bytes(), own.registry.head()))
    own = federation(carriers=("weight", "feature"), length=192)
    found.append((disguised(own).evidence.to_bytes(), own.registry.head()))
    own, asked, _ = queried()
    found.append((asked.evidence.to_bytes(), own.registry.head()))
    return found


def text_of(tree: object) -> bytes:
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no object and no list, and every empty list."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from leaves(each, (*path, at))
    else:
        yield path, value


def nodes(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place of the tree but its root."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield (*path, key)
        yield from nodes(each, (*path, key))


def at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def put(tree: Any, path: Path, value: object) -> None:
    at(tree, path[:-1])[path[-1]] = value


def variants(value: Any) -> list[Any]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, 0 if value else 7]
    if value == "":
        return ["0", 16 * "0", "x"]
    if isinstance(value, str):
        places = {0, len(value) // 2, len(value) - 1}
        return [
            *(value[:i] + ("1" if value[i] != "1" else "2") + value[i + 1 :] for i in sorted(places)),
            value[:-1],
            value + "0",
            "",
        ]
    return [None, "x", [0]]


def verdict_on(data: bytes, head: Head) -> int | None:
    """The step that rejects it, 1 if it is malformed, None if it is upheld."""
    try:
        judge(data, head=head, policy=EASY)
    except MalformedEvidence:
        return 1
    except CannotTell:
        return 2
    except EvidenceRejected as error:
        assert error.step in STEPS
        assert str(error).startswith(f"step {error.step}, ")
        assert "\n" not in str(error)
        return error.step
    return None


def test_the_originals_are_upheld(files: list[tuple[bytes, Head]]) -> None:
    assert [verdict_on(*each) for each in files] == [None] * 5


@pytest.mark.parametrize("which", range(5))
def test_every_field_tampered_with_is_rejected(files: list[tuple[bytes, Head]], which: int) -> None:
    data, head = files[which]
    seen: dict[str, set[int]] = {}
    for path, value in leaves(json.loads(data)):
        for other in variants(value):
            tree = json.loads(data)
            put(tree, path, other)
            if text_of(tree) == data:
                continue
            step = verdict_on(text_of(tree), head)
            assert step is not None, (path, other)
            seen.setdefault(str(path[0]), set()).add(step)
    assert seen["format"] == {1}
    assert seen["head"] <= {1, 2}
    assert seen["entries"] <= {1, 2}
    if which != 2:
        assert seen["carriers"] == {1, 3}
        assert seen["accused"] == {1, 3}
        assert seen["findings"] >= {1, 3, 4, 6, 7, 9}
    else:
        assert 9 in seen["findings"]


@pytest.mark.parametrize("which", range(5))
def test_every_field_of_every_logged_entry_tampered_with_is_rejected(
    files: list[tuple[bytes, Head]], which: int
) -> None:
    data, head = files[which]
    for place, logged in enumerate(json.loads(data)["entries"]):
        entry = json.loads(logged["entry"])
        for path, value in leaves(entry):
            for other in variants(value)[:2]:
                inner = json.loads(logged["entry"])
                put(inner, path, other)
                tree = json.loads(data)
                tree["entries"][place]["entry"] = text_of(inner).decode()
                assert verdict_on(text_of(tree), head) in (1, 2), (path, other)


@pytest.mark.parametrize("which", range(5))
def test_every_part_left_out_or_doubled_is_rejected(files: list[tuple[bytes, Head]], which: int) -> None:
    data, head = files[which]
    for path in nodes(json.loads(data)):
        tree = json.loads(data)
        del at(tree, path[:-1])[path[-1]]
        assert verdict_on(text_of(tree), head) is not None, path
        if isinstance(path[-1], int):
            tree = json.loads(data)
            at(tree, path[:-1]).insert(path[-1], at(tree, path))
            assert verdict_on(text_of(tree), head) is not None, path


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One random change: of bytes, of the tree, or of a part by another file's."""
    match rng.randrange(6):
        case 0:  # flip bits
            out = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
            return bytes(out)
        case 1:  # cut, repeat or splice
            begin, end = sorted(rng.randrange(len(data)) for _ in range(2))
            donor = rng.choice(others)
            middle = rng.choice(
                [b"", data[begin:end] * 2, donor[begin:end], rng.randbytes(rng.randrange(30))]
            )
            return data[:begin] + middle + data[end:]
        case 2:  # a digit for a digit: still JSON, nearly always canonical
            out = bytearray(data)
            places = [i for i in rng.sample(range(len(out)), 20) if chr(out[i]) in "0123456789abcdef"]
            for i in places[: rng.randint(1, 3)]:
                out[i] = ord(rng.choice("0123456789abcdef"))
            return bytes(out)
        case 3:  # a part for another part of the file
            tree = json.loads(data)
            places = list(nodes(tree))
            put(tree, rng.choice(places), json.loads(json.dumps(at(tree, rng.choice(places)))))
            return text_of(tree)
        case 4:  # a part for that of another file
            tree, donor_tree = json.loads(data), json.loads(rng.choice(others))
            path = rng.choice(list(nodes(tree)))
            try:
                put(tree, path, at(donor_tree, path))
            except (LookupError, TypeError):
                put(tree, path, donor_tree)
            return text_of(tree)
        case _:  # another value of any kind
            tree = json.loads(data)
            strange = (None, True, 0, -1, 1 << 62, 1.5, "", "0/1", "é", "\ud800", [], {}, [[]], "00" * 32)
            put(tree, rng.choice(list(nodes(tree))), rng.choice(strange))
            return text_of(tree)


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_mutated_files_each_are_refused_without_a_crash(
    files: list[tuple[bytes, Head]], seed: int
) -> None:
    rng = random.Random(seed)
    datas = [data for data, _ in files]
    tried = reached = 0
    while tried < 1000:
        data, head = rng.choice(files)
        other = mutated(data, datas, rng)
        if other in datas:
            continue
        tried += 1
        try:
            step = verdict_on(other, head)
        except Error as error:  # nothing of ours but the two above leaves the judge
            raise AssertionError(other) from error
        assert step is not None, other
        reached += step > 1
    assert reached > 100  # many are well formed and are rejected on their merits
