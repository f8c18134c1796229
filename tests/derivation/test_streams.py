"""Draws from a labelled stream: uniform, repeatable, and apart from each other."""

import hashlib
from itertools import permutations

import numpy as np
import pytest
import scipy.stats

from codes import reference
from zktrace.derivation.streams import COUNT_LIMIT, Stream
from zktrace.errors import InputError

SEED = bytes(range(32))


def test_words_are_what_the_specification_says() -> None:
    """SHAKE-256 from hashlib and AES from FIPS 197 in plain Python."""
    fields = [b"zkt-stream-v1/use", SEED, b"a", b""]
    absorbed = b"".join(len(each).to_bytes(8, "big") + each for each in fields)
    key = hashlib.shake_256(absorbed).digest(32)
    data = b"".join(reference.aes(key, counter.to_bytes(16, "big")) for counter in range(3))
    expected = [int.from_bytes(data[8 * i : 8 * i + 8], "little") for i in range(6)]
    stream = Stream("use", SEED, b"a", b"")
    assert stream.words(2).tolist() + stream.words(4).tolist() == expected


def test_streams_of_other_uses_seeds_and_parts_have_nothing_in_common() -> None:
    streams = [
        Stream("probes", SEED),
        Stream("queries", SEED),
        Stream("probes", SEED[::-1]),
        Stream("probes", SEED, b""),
        Stream("probes", SEED, b"a", b"b"),
        Stream("probes", SEED, b"ab"),
    ]
    words = [word for stream in streams for word in stream.words(100).tolist()]
    assert len(set(words)) == len(words)


def test_small_permutations_are_uniform() -> None:
    stream = Stream("permutation", SEED)
    counts = dict.fromkeys(permutations(range(4)), 0)
    for _ in range(4800):
        counts[tuple(stream.permutation(4).tolist())] += 1
    assert scipy.stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_a_number_below_a_limit_is_uniform() -> None:
    stream = Stream("below", SEED)
    counts = np.bincount([stream.below(7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


def test_a_sample_has_everything_once() -> None:
    found = Stream("sample", SEED).sample(1000, 400)
    assert len(set(found.tolist())) == 400
    assert found.min() >= 0
    assert found.max() < 1000
    assert sorted(Stream("sample", SEED).sample(5, 5).tolist()) == list(range(5))


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.words(-1),
        lambda stream: stream.words(COUNT_LIMIT + 1),
        lambda stream: stream.below(0),
        lambda stream: stream.sample(3, 4),
        lambda stream: stream.sample(3, -1),
    ],
)
def test_what_cannot_be_drawn(call) -> None:  # noqa: ANN001
    with pytest.raises(InputError):
        call(Stream("wrong", SEED))


def test_a_stream_is_taken_up_anywhere_it_can_be() -> None:
    whole = Stream("a", b"s" * 32).words(40)
    for at in (0, 2, 6, 38):
        assert Stream("a", b"s" * 32).at(at).words(40 - at).tolist() == whole[at:].tolist()
    for wrong in (1, -2):
        with pytest.raises(InputError, match="even word"):
            Stream("a", b"s" * 32).at(wrong)
