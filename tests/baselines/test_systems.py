"""Each system by itself: a written mark is read, another's key reads chance, sizes are as computed."""

from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from baselines import small
from zktrace.attacks.collusion import collude
from zktrace.baselines.deepmarks import DESIGNS, Codes, DeepMarks, code_vectors
from zktrace.baselines.duw import DUW
from zktrace.baselines.fedipr import FedIPR
from zktrace.baselines.fedtracker import FedTracker, Fingerprints
from zktrace.baselines.fedzkp import FedZKP
from zktrace.baselines.fingerprints import nearest, spread_words
from zktrace.baselines.listing import SUPPORT
from zktrace.baselines.patterns import noise, patterns
from zktrace.baselines.protocol import Scheme
from zktrace.baselines.scale_words import ScaleWord, allowed_errors, bits_for, gaussian
from zktrace.baselines.triggers import Ends, Kept, answers_of, hits_needed, support_of
from zktrace.baselines.waffle import TriggerSet, Waffle
from zktrace.errors import InputError
from zktrace.learning.arrays import State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.states import state_of
from zktrace.learning.threads import single_threaded
from zktrace.learning.training import Penalty

SCALES = 75 * small.WIDTH


def descended(state: State, penalty: Penalty, steps: int = 100) -> State:
    """By the penalty alone: a federation of one, without a task."""
    model = backbone_of(state)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with single_threaded():
        for _ in range(steps):
            optimizer.zero_grad()
            penalty(model).backward()
            optimizer.step()
    return state_of(model)


def test_fedipr_reads_every_stations_word_and_only_with_its_own_directions() -> None:
    system = FedIPR(bits=384)
    scheme, strangers = (system.set_up(small.venue(seed=seed)) for seed in (1, 2))
    terms = [scheme.penalty(station, 0) for station in range(small.STATIONS)]
    marked = descended(small.shared(), lambda model: torch.stack([each(model) for each in terms]).sum())
    reading = scheme.read(marked)
    assert reading.mark > 0.95
    assert reading.present
    assert reading.named == (0, 1, 2)
    other = strangers.read(marked)
    assert abs(other.mark - 0.5) < 0.2
    assert other.named == ()
    count = bits_for(384, SCALES)
    assert scheme.payload() == {"projection": 4 * count * SCALES, "word": count // 8}


def test_one_stations_word_says_nothing_of_the_others() -> None:
    scheme = FedIPR(bits=384).set_up(small.venue())
    reading = scheme.read(descended(small.shared(), scheme.penalty(1, 0)))
    assert reading.scores[1] == 1.0
    assert reading.named == (1,)
    assert reading.present is False


def test_a_word_of_the_paper_has_its_size() -> None:
    directions = gaussian(np.random.default_rng(0), 128, (4800,))
    word = ScaleWord(directions=directions, bits=np.zeros(128, np.uint8))
    assert word.payload() == {"projection": 2_457_600, "word": 16}
    assert bits_for(128, 4800) == 128
    assert bits_for(128, 1200) == 32
    assert bits_for(128, 10) == 8


def test_directions_apart_from_means_do_not_see_them() -> None:
    layers = (5, 7)
    directions = gaussian(np.random.default_rng(0), 3, layers, apart=True)
    means = np.repeat([2.0, -1.0], layers)
    assert np.allclose(directions @ means, 0)


@pytest.mark.parametrize(
    ("bits", "chance"), [(32, Fraction(1, 1000)), (72, Fraction(1, 1 << 64)), (8, Fraction(1, 9999))]
)
def test_errors_that_are_forgiven(bits: int, chance: Fraction) -> None:
    most = allowed_errors(bits, chance)
    tails = [Fraction(sum(comb(bits, j) for j in range(t + 1)), 1 << bits) for t in range(bits)]
    assert most == sum(tail <= chance for tail in tails) - 1


def test_fedzkp_has_one_word_and_a_proof_that_cannot_be_lent() -> None:
    scheme = FedZKP(alpha=1.0).set_up(small.venue())
    strangers = FedZKP(alpha=1.0).set_up(small.venue(seed=2))
    marked = descended(small.shared(), scheme.penalty(0, 0))
    assert descended(small.shared(), scheme.penalty(1, 0)).keys() == marked.keys()
    assert scheme.read(marked).present
    assert scheme.read(marked).mark > 0.97
    assert strangers.read(marked).present is False
    proved = scheme.proved(marked, small.shared())
    assert proved is not None
    assert (proved.accepted, proved.borrowed, proved.replayed) == (True, False, False)
    assert abs(scheme.payload()["proof"] - proved.size) < 0.2 * proved.size
    public = scheme.public()
    assert public is not None
    assert public.right(marked) / len(public.bits) == scheme.read(marked).mark


def copies(scheme: Scheme, count: int = small.STATIONS) -> list[State]:
    with single_threaded():
        return [scheme.outgoing(small.shared(), each, small.venue().rounds) for each in range(count)]


def test_fedtracker_tells_copies_apart() -> None:
    scheme, strangers = (FedTracker(triggers=30, shown=5).set_up(small.venue(seed=each)) for each in (1, 2))
    for station, copy in enumerate(copies(scheme)):
        reading = scheme.read(copy)
        assert reading.named == (station,)
        assert reading.mark >= 0.85
        others = [each for k, each in enumerate(reading.scores) if k != station]
        assert max(others) < 0
        assert strangers.read(copy).named == ()
    bits = SCALES // 4
    payload = scheme.payload()
    assert payload["projection"] == 4 * bits * SCALES
    assert payload["triggers"] == 30 * (np.prod(small.SHAPE) + 1) + 8 * small.SHAPE[0]


def test_fedtrackers_score_is_its_formula() -> None:
    scheme = FedTracker(triggers=30, shown=5).set_up(small.venue())
    suspect = small.shared()
    word = scheme.words[0]
    gamma = np.concatenate([suspect[name] for name in scale_order(suspect)])
    slow = 0.0
    for direction, bit in zip(word.directions, word.bits, strict=True):
        slow += min(0.5, (1 if bit else -1) * float(direction @ gamma)) / 0.5
    assert scheme.read(suspect).scores[0] == pytest.approx(slow / len(word.bits))


def scale_order(state: State) -> list[str]:
    from zktrace.readouts.scales import scale_names

    return scale_names(state)


def test_a_gradient_against_the_memory_is_turned() -> None:
    scheme = FedTracker(triggers=30, shown=5).set_up(small.venue())
    assert isinstance(scheme, Fingerprints)
    before = small.shared()
    after = {
        name: array - np.float32(0.01) if array.dtype.kind == "f" else array for name, array in before.items()
    }
    scheme._memory = {
        name: before[name].astype(float) - after[name] for name in before if before[name].dtype.kind == "f"
    }
    model = backbone_of(after)
    for each in model.parameters():
        each.grad = torch.full_like(each, -1.0)
    scheme._guided(model)
    for name, each in model.named_parameters():
        memory = torch.from_numpy(scheme._memory[name]).float()
        assert float((each.grad * memory).sum()) > float(-memory.sum()), "less against it than before"
    for each in model.parameters():
        each.grad = torch.full_like(each, 1.0)
    scheme._guided(model)
    assert all(bool((each.grad == 1.0).all()) for each in model.parameters()), "one that agrees is left alone"


def test_the_memory_points_back_to_where_a_round_began() -> None:
    scheme = FedTracker(triggers=6, shown=5, epochs=0).set_up(small.venue())
    assert isinstance(scheme, Fingerprints)
    before = small.shared()
    after = {
        name: array - np.float32(0.5) if array.dtype.kind == "f" else array for name, array in before.items()
    }
    scheme.begun(before)
    for _ in range(2):
        scheme.incoming(after, before)
    assert np.allclose(scheme._memory["conv1.weight"], 1.0, atol=1e-5)


def test_words_of_the_search_lie_further_apart_than_drawn_ones() -> None:
    rng = np.random.default_rng(0)
    found = spread_words(rng, 10, 64)
    drawn = [nearest(rng.integers(0, 2, (10, 64)).astype(np.uint8)) for _ in range(20)]
    slow = min(int((a != b).sum()) for k, a in enumerate(found) for b in found[:k])
    assert nearest(found) == slow > float(np.mean(drawn))
    assert found.any(axis=1).all()


def test_duw_decodes_a_stations_own_images_alone() -> None:
    scheme = DUW.smallest().set_up(small.venue())
    strangers = DUW.smallest().set_up(small.venue(seed=2))
    for station, copy in enumerate(copies(scheme, 2)):
        reading = scheme.read(copy)
        assert reading.named == (station,)
        assert reading.scores[station] == 1.0
        assert strangers.read(copy).scores != reading.scores
    assert scheme.payload() == {
        "triggers": 16 * int(np.prod(small.SHAPE)) + 8 * small.SHAPE[0],
        "decoder": 4 * 16 * 8 * small.WIDTH,
    }


def test_duw_of_strangers_decodes_by_chance() -> None:
    copy = copies(DUW.smallest().set_up(small.venue()), 1)[0]
    strangers = [DUW.smallest().set_up(small.venue(seed=seed)).read(copy).scores for seed in range(2, 22)]
    assert len(strangers) * small.STATIONS == 60
    assert np.mean(strangers) < 0.25  # of 16 classes; all images of a model may go to one of them
    assert np.mean([max(each) > 0.9 for each in strangers]) < 0.6  # 3 of 16, where all go to one class


def test_duw_leaves_the_first_rounds_alone_and_needs_a_class_a_station() -> None:
    scheme = replace(DUW.smallest(), first=0.5).set_up(small.venue(rounds=4))
    shared = small.shared()
    assert scheme.outgoing(shared, 0, 1) is shared
    assert scheme.outgoing(shared, 0, 2) is not shared
    with pytest.raises(InputError, match="a class a station"):
        DUW(classes=2).set_up(small.venue())


def test_waffle_is_learnt_read_and_asked() -> None:
    system = Waffle(rate=0.01, begins=60, batch=6, shown=5, triggers=12, level="1/10000")
    scheme = system.set_up(small.venue())
    assert isinstance(scheme, TriggerSet)
    assert scheme.needed == hits_needed(12, small.CLASSES, Fraction(1, 10_000))
    with single_threaded():
        marked = scheme.begun(small.shared(width=16))  # a narrower one learns them on some processors alone
    reading = scheme.read(marked)
    assert reading.mark > 0.8
    assert reading.present
    assert scheme.ask(answers_of(marked)) == reading
    strangers = system.set_up(small.venue(seed=2))
    assert strangers.read(marked).present is False
    payload = scheme.payload()
    count = len(scheme.labels)
    assert payload["triggers"] == count * (int(np.prod(small.SHAPE)) + 1) + 8 * small.SHAPE[0]
    assert payload[SUPPORT] == 30 * (int(np.prod(small.SHAPE)) + 1) + 8 * small.SHAPE[0]


@pytest.mark.parametrize(("count", "classes"), [(100, 10), (96, 6), (5, 2)])
def test_hits_that_guessing_does_not_have(count: int, classes: int) -> None:
    chance, right = Fraction(1, 1 << 64), Fraction(1, classes)

    def tail(hits: int) -> Fraction:
        return sum(
            (comb(count, k) * right**k * (1 - right) ** (count - k) for k in range(hits, count + 1)),
            Fraction(),
        )

    needed = hits_needed(count, classes, chance)
    assert tail(needed) <= chance
    assert tail(needed - 1) > chance
    assert needed == {100: 46, 96: 56, 5: 6}[count]


def test_patterns_lie_where_their_class_has_them() -> None:
    rng = np.random.default_rng(0)
    some = patterns(rng, 3, (3, 32, 32))
    assert len({each.mask.tobytes() for each in some}) == 3
    one = np.repeat(some[0].colour[:, None], some[0].mask.sum(), axis=1)
    images = some[0].on(noise(rng, 4, (3, 32, 32)))
    assert all(np.array_equal(image[:, some[0].mask], one) for image in images)
    assert not (images[0] == images[1]).all()


def test_kept_images_are_bytes_between_the_ends() -> None:
    images, labels = small.samples()
    kept = Kept.of(images, Ends.of(images))
    step = (kept.high - kept.low).max() / 255
    assert np.abs(kept.images - images).max() <= step / 2 + 1e-6
    support = support_of(small.venue(), 5)
    assert np.bincount(support.labels).tolist() == [5] * small.CLASSES
    assert len(images) > len(support.labels)
    assert labels.dtype == support.labels.dtype


@pytest.mark.parametrize("positions", DESIGNS)
def test_every_pair_of_positions_is_in_one_block(positions: int) -> None:
    blocks = [set(np.flatnonzero(user == 0).tolist()) for user in code_vectors(positions)]
    pairs = [(a, b) for block in blocks for a in block for b in block if a < b]
    assert len(pairs) == len(set(pairs)) == positions * (positions - 1) // 2


def exact(scheme: Codes, state: State, station: int) -> State:
    """A copy whose projection is the fingerprint: the least change of the scales."""
    from zktrace.marking.weight import with_scales
    from zktrace.models import ModelState
    from zktrace.readouts.scales import gather

    wanted = scheme._basis @ (2.0 * scheme._code[station] - 1.0)
    gamma = gather(state)
    change = np.linalg.lstsq(scheme._host, wanted - scheme._host @ gamma, rcond=None)[0]
    return dict(with_scales(ModelState.from_arrays(state), gamma + change))


def test_deepmarks_finds_exact_coalitions_up_to_its_design_and_no_innocent() -> None:
    venue = small.venue(stations=10)
    scheme = DeepMarks().set_up(venue)
    assert isinstance(scheme, Codes)
    held = [exact(scheme, small.shared(), each) for each in range(10)]
    for size in (1, 2, 3, 5):
        for first in range(0, 10 - size, 2):
            members = tuple(range(first, first + size))
            some = [held[each] for each in members]
            suspect = some[0] if size == 1 else dict(collude(some))
            assert scheme.read(suspect).named == members


def test_deepmarks_of_other_keys_sees_nothing_of_a_fingerprint() -> None:
    venue = small.venue(stations=10)
    scheme, stranger = (DeepMarks().set_up(each) for each in (venue, replace(venue, seed=2)))
    assert isinstance(scheme, Codes)
    assert isinstance(stranger, Codes)
    for station in range(10):
        copy, before = exact(scheme, small.shared(), station), stranger.values(small.shared())
        wanted = scheme._code[station].astype(float)
        assert np.corrcoef(scheme.values(copy), wanted)[0, 1] > 0.99
        assert abs(np.corrcoef(stranger.values(copy) - before, wanted)[0, 1]) < 0.6  # of 31 positions
        assert abs(np.corrcoef(scheme.values(small.shared()), wanted)[0, 1]) < 0.6


def test_deepmarks_of_eight_colluders_misses_some() -> None:
    scheme = DeepMarks().set_up(small.venue(stations=10))
    assert isinstance(scheme, Codes)
    named = scheme.read(dict(collude([exact(scheme, small.shared(), each) for each in range(8)]))).named
    assert len(named) < 8


def test_deepmarks_fine_tunes_towards_a_fingerprint() -> None:
    scheme = replace(DeepMarks(), episodes=60).set_up(small.venue())
    assert isinstance(scheme, Codes)
    (copy,) = copies(scheme, 1)
    wanted = scheme._code[0].astype(float)
    before, after = (np.abs(scheme.values(each) - wanted).max() for each in (small.shared(), copy))
    assert after < 0.15 < before
    assert scheme.read(copy).named == (0,)
    assert scheme.payload()["projection"] == 4 * 31 * SCALES
    with pytest.raises(InputError, match="users"):
        DeepMarks(positions=7).set_up(small.venue(stations=8))
