"""Numbers of a decode against slow references, and thresholds against what they promise."""

import math
from fractions import Fraction

import numpy as np
import pytest

from support import seeded
from zktrace.codes import Code, CodeKey, unpack
from zktrace.studies.decodes import CANDIDATE, NORMAL, Decoder, normal_threshold

STATIONS, LENGTH, LEVEL = 6, 256, Fraction(1, 1000)


@pytest.fixture(name="code")
def _code() -> Code:
    return Code(key=CodeKey(secret=seeded("decodes")(32)), label="weight", length=LENGTH, colluders=2)


def decoder(code: Code) -> Decoder:
    return Decoder(code=code, stations=STATIONS, level=LEVEL)


def test_disagreements_are_counted_position_by_position(code: Code) -> None:
    rows = unpack(code.rows(range(STATIONS)), LENGTH)
    word = np.array(rows[2])
    word[:10] ^= 1
    members = (2, 4)
    alike = [b for b in range(LENGTH) if rows[2][b] == rows[4][b]]
    apart = [sum(int(rows[i][b] != word[b]) for b in range(LENGTH)) / LENGTH for i in range(STATIONS)]
    found = decoder(code).facts(np.where(word, 0.5, -0.5), members)
    assert decoder(code).disagreements(word).tolist() == pytest.approx(apart)
    assert found["length"] == LENGTH
    assert found["disagreement"] == pytest.approx((apart[2] + apart[4]) / 2, abs=1e-4)
    assert found["least_innocent"] == pytest.approx(min(apart[i] for i in (0, 1, 3, 5)), abs=1e-4)
    assert found["unanimous"] == pytest.approx(sum(b < 10 for b in alike) / len(alike), abs=1e-4)


def test_a_single_owners_two_disagreements_are_one(code: Code) -> None:
    values = np.random.default_rng(3).normal(size=LENGTH)
    found = decoder(code).facts(values, (1,))
    assert found["disagreement"] == found["unanimous"]


def test_members_who_are_never_at_one_have_no_unanimous_position(code: Code) -> None:
    here = decoder(code)
    here.__dict__["_rows"] = np.array([[0, 1], [1, 0]], dtype=np.uint8)
    assert here.unanimous(np.zeros(2, dtype=np.uint8), (0, 1)) is None


def test_whoever_scores_above_a_threshold_is_beyond_it(code: Code) -> None:
    rows, p = unpack(code.rows(range(STATIONS)), LENGTH), code.biases.probabilities()
    word = np.array(rows[3])
    word[: LENGTH // 5] ^= 1
    scores = []
    for row in rows:
        total = 0.0
        for x, y, q in zip(row, word, p, strict=True):
            up, down = math.sqrt((1 - q) / q), math.sqrt(q / (1 - q))
            total += (up if x else -down) if y else (down if not x else -up)
        scores.append(total)
    here = decoder(code)
    found = here.beyond(np.where(word, 1.0, -1.0))
    for name, threshold in here.thresholds.items():
        assert min(abs(each - threshold) for each in scores) > 1  # rounded coefficients decide nobody
        assert found[name] == [i for i in range(STATIONS) if scores[i] > threshold]
    assert 3 in found[CANDIDATE]


def test_thresholds_are_the_papers(code: Code) -> None:
    found = Decoder(code=Code(key=code.key, label="w", length=512, colluders=2), stations=10, level=LEVEL)
    assert found.thresholds[CANDIDATE] == pytest.approx(math.sqrt(2 * 512 * math.log(10 / 1e-3)))
    assert round(found.thresholds[CANDIDATE], 1) == 97.1
    assert found.thresholds[NORMAL] < found.thresholds[CANDIDATE]


def test_normal_scores_pass_the_normal_threshold_as_often_as_it_says() -> None:
    threshold = normal_threshold(length=400, recipients=10, level=Fraction(1, 10))
    draws = np.random.default_rng(1).normal(scale=math.sqrt(400), size=200_000)
    assert (draws > threshold).mean() == pytest.approx(0.01, rel=0.1)
