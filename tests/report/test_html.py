"""What the reports promise of their markup: balanced, escaped, self-contained, whatever names come in."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report import samples
from zktrace.demo.pages import demo_html
from zktrace.errors import InputError, MalformedFile
from zktrace.report import numbers
from zktrace.report.attribution import attribution_html
from zktrace.report.case import case_html, headline
from zktrace.report.case_scores import DRAWN
from zktrace.report.case_values import CarrierSection, StationScore
from zktrace.report.html import Html, tag, text
from zktrace.report.page import POLICY
from zktrace.report.run_folder import read_run
from zktrace.report.svg import apart, span, ticks
from zktrace.report.training import training_html

VOID = {"meta", "br", "hr", "col"}
KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section", "div", "p"),
    *("h1", "h2", "h3", "ul", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("code", "pre", "bdi", "span", "figure", "figcaption", "details", "summary", "b"),
    *("svg", "desc", "text", "line", "rect", "circle", "polygon", "polyline", "g"),
}


class Strict(HTMLParser):
    """Every element is known and closed by its own end; no attribute acts or loads."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        assert name in KNOWN, name
        keys = [key for key, _ in attributes]
        assert len(keys) == len(set(keys))
        assert not [key for key in keys if key.startswith("on") or key in ("src", "href", "xlink:href")]
        assert not any("url(" in (value or "") for _, value in attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(document: str) -> Strict:
    """Parse a document, and hold it to what every report promises."""
    document.encode()  # no half of a surrogate pair
    strict = Strict()
    strict.feed(document)
    strict.close()
    assert strict.open == []
    assert document.startswith("<!DOCTYPE html>")
    assert text(POLICY) in document
    assert "@import" not in document
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x09\x0b-\x1f]", document)
    return strict


def case_page(names: tuple[str, ...]) -> str:
    return case_html(samples.case(stations=12, names=names))


def attribution_page(names: tuple[str, ...]) -> str:
    return attribution_html(samples.attribution(stations=12, names=names))


@pytest.mark.parametrize("make", [case_page, attribution_page])
def test_hostile_names_stay_text(make: Callable[[tuple[str, ...]], str]) -> None:
    honest, hostile = parsed(make(())), make(samples.HOSTILE)
    shown = " ".join(parsed(hostile).words)
    assert "<script>alert(1)</script>" in shown
    assert r"a\u202egnp.exe\u2066\u200f" in shown
    assert "<script" not in hostile
    assert "long" * 60 not in hostile
    assert len(hostile) < 100_000
    assert honest.words[:3] == parsed(hostile).words[:3]


def test_a_hostile_run_stays_text(tmp_path: Path) -> None:
    for number, name in enumerate(samples.HOSTILE):
        folder = samples.run_folder(tmp_path / str(number), rounds=4, reason=name)
        shown = parsed(training_html(read_run(folder)))
        assert any("Absent and excluded" in words for words in shown.words)


def test_a_demo_has_a_tick_or_a_cross_a_picture_and_short_digests() -> None:
    document = demo_html(samples.demo(), head="h", reports={"a run": "run/report.html"}, evidence={})
    main = document.partition("<main>")[2]
    assert (main.count("\N{CHECK MARK}"), main.count("\N{BALLOT X}")) == (2, 2)
    assert main.count("<figure>") == 2
    assert f'title="{"ab" * 32}" class="short">abababab…abababab</code>' in main
    assert "ab" * 32 + "<" not in main
    assert '<a href="run/report.html">a run</a>' in main
    assert main.count('href="cases/case-1.html"') == 3  # table, picture, reports


@settings(max_examples=25)
@given(st.text(max_size=40))
def test_any_text_is_escaped(words: str) -> None:
    strict = Strict()
    strict.feed(tag("p", words, title=words))
    strict.close()
    assert strict.open == []
    assert not re.search(r"[<>\"']", text(words))


def test_markup_is_only_what_was_made_as_markup() -> None:
    assert tag("p", "a<b", None, 3, Html("<b>c</b>"), class_="x", hidden=True, id=None) == (
        '<p class="x" hidden>a&lt;b3<b>c</b></p>'
    )


def test_every_number_of_stations_can_be_drawn() -> None:
    for count in (1, 2, 40, 41, 300):
        shown = parsed(case_html(samples.case(stations=max(count, 1))))
        assert any("Scores and thresholds" in words for words in shown.words)
    for count in (2, 12, 13, 41):
        parsed(attribution_html(samples.attribution(stations=count)))


def carrier(scores: tuple[StationScore, ...], **changes: object) -> CarrierSection:
    values: dict[str, object] = {"threshold": 1.0, "scores": scores} | changes
    return CarrierSection(carrier="weight", description="", unit="score", **values)  # type: ignore[arg-type]


def with_carrier(part: CarrierSection) -> str:
    base = samples.case()
    return case_html(
        type(base)(**{key: getattr(base, key) for key in base.__slots__} | {"carriers": (part,)})
    )


def test_a_named_station_is_drawn_however_many_there_are() -> None:
    many = tuple(StationScore(station=f"s{i}", score=5.0) for i in range(DRAWN))
    last = StationScore(station="the-guilty-one", score=1.2, named=True)
    document = with_carrier(carrier((*many, last)))
    parsed(document)
    assert "the-guilty-one" in document
    assert "1 further stations with lower scores are not drawn" in document


def test_without_scores_thresholds_and_the_law_of_innocents_are_drawn() -> None:
    document = with_carrier(carrier((), deviation=0.25, others=7, candidate=0.8))
    words = parsed(document).words
    assert {"any innocent", "certified threshold", "candidate threshold"} <= set(words)
    assert "the scores of the 7 stations, which would give rows away" in document
    assert "Scores as a table" not in document
    bare = with_carrier(carrier((StationScore(station="guilty", score=1.234, named=True),)))
    assert "any innocent" not in parsed(bare).words
    assert bare.count("1.23<") == 2  # pointed at, and in the table: the same digits


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 0.0, 1e300, -1e-300])
def test_odd_numbers_do_not_break_a_drawing(odd: float) -> None:
    scores = (StationScore(station="a", score=odd), StationScore(station="b", score=0.1, lead=True))
    document = with_carrier(
        carrier(scores, threshold=odd, candidate=odd, opposite=-0.5, readout=(odd, 0.0, 0.1))
    )
    parsed(document)
    assert not re.search(r'"(nan|-?inf)"', document)


def test_no_certificate_is_said_and_an_empty_case_is_a_page() -> None:
    document = with_carrier(carrier((), threshold=None))
    parsed(document)
    assert "no score can be certified" in document
    base = samples.case()
    bare = type(base)(
        title="t", suspect="s", digest="d", verdict="no-certified-evidence", sentences=(), carriers=()
    )
    assert any("No evidence: nobody is named" in words for words in parsed(case_html(bare)).words)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("certified-attribute", "Certified: the copies of station-03 and station-07"),
        ("certified-tamper", "Certified tampering: the reverse of a station's copy"),
        ("uncertified-lead", "A lead only: nobody is accused"),
        ("no-certified-evidence", "No evidence: nobody is named"),
    ],
)
def test_every_verdict_has_its_words(verdict: str, words: str) -> None:
    shown = parsed(case_html(samples.case(verdict=verdict)))
    assert words in "".join(shown.words)
    assert verdict in shown.words


def test_a_headline_names_the_stations() -> None:
    base = samples.case()
    one = replace(base, named=base.named[:1] * 2)  # on two carriers
    assert headline(one) == "Certified: <bdi>station-03</bdi>&#x27;s copy"
    crowd = tuple(replace(base.named[0], station=f"s{i:02d}") for i in range(30))
    said = re.sub("<[^>]*>", "", headline(replace(base, named=crowd)))
    assert said.endswith("s10, s11 and 18 more, listed below")


def test_an_unknown_verdict_is_refused() -> None:
    with pytest.raises(InputError, match="unknown verdict"):
        samples.case(verdict="guilty")


def test_a_case_shows_what_a_reader_needs() -> None:
    case = samples.case()
    shown = " ".join(parsed(case_html(case)).words)
    assert case.registry is not None
    wanted = [case.digest, case.registry.head, *case.sentences, *case.not_proved]
    wanted += [step.command for step in case.rechecks]
    for words in wanted:
        assert words in shown
    document = case_html(case)
    assert f'title="{case.digest}" class="short">8b49670d…539709fb</code>' in document
    assert f'title="{case.registry.head}" class="short">zkt-head-v1:41:5e5e5e5e…5e5e5e5e</code>' in document
    assert [words for words in parsed(document).words if "1/3000 (0.000334)" in words]


def test_one_number_has_the_same_digits_everywhere() -> None:
    assert numbers.chance(Fraction(1, 1000)) == "1/1000 (0.001)"
    assert numbers.chance(Fraction(1, 120_000)) == "1/120000 (8.34e-6)"
    assert numbers.chance(Fraction(10**12 - 1, 10**15)) == "0.001"
    assert [numbers.chance(Fraction(value)) for value in (0, 1)] == ["0", "1"]
    for value in (0.29, -0.07, 494.6, 1e15 + 0.3, 0.005):
        assert numbers.down(value) == numbers.down(Fraction(value))
        assert float(numbers.down(value)) <= value <= float(numbers.up(value))
    assert (numbers.down(Fraction(-1, 8)), numbers.up(Fraction(-1, 8))) == ("-0.13", "-0.12")
    assert [numbers.up(odd) for odd in (math.inf, math.nan)] == ["∞", numbers.NONE]


def test_bounds_are_rounded_to_the_safe_side() -> None:
    assert numbers.at_most(0.00099961, digits=3) == "0.001"
    assert numbers.at_most(2.491e-9) == "2.5e-9"
    assert numbers.at_least(0.0069999) == "0.00699"
    assert numbers.plain(0.01) == "0.01"
    assert [numbers.plain(value) for value in (0.0, 123456.0, 1e20, math.inf)] == ["0", "123500", "1e20", "∞"]
    assert numbers.plain(math.nan) == numbers.plain(None) == numbers.percent(None) == numbers.NONE


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_shown_bound_is_never_on_the_wrong_side(value: float) -> None:
    assert float(numbers.at_least(value)) <= value <= float(numbers.at_most(value))


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_and_inside(low: float, size: float) -> None:
    high = low + size
    if high - low < 1e-9 * abs(low):
        return
    found = ticks(low, high)
    assert 1 <= len(found) <= 8
    assert all(low - 1e-6 * size <= each <= high + 1e-6 * size for each in found)


def test_a_range_is_never_empty() -> None:
    for values in ([], [0.0], [1e9], [-3.0, -3.0], [math.nan], [1e-300, 2e-300]):
        low, high = span(values)
        assert low < high


# ── the files of a run ─────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_shown_with_its_data_and_its_gaps(tmp_path: Path) -> None:
    shown = " ".join(parsed(training_html(read_run(samples.run_folder(tmp_path / "run")))).words)
    assert "Everything on this page comes from simulated data." in shown
    assert "79.7 % ± 1.1 (95 %)" in shown
    assert "1, 6, 11, 16, 21, 26" in shown
    assert "NaN in 'bn1.weight'" in shown
    assert "Agreement of components and codewords" in shown
    assert "2.13.0" in shown


def test_a_run_of_an_earlier_version_or_unfinished_is_shown(tmp_path: Path) -> None:
    folder = samples.run_folder(tmp_path / "run", rounds=5)
    for name in ("agreement.json", "result.json"):
        (folder / name).unlink()
    lines = (folder / "log.jsonl").read_text().splitlines()
    older = re.sub(r', "attribution": [^}]*', "", "\n".join(lines[:3]))
    assert "held_out" not in older
    (folder / "log.jsonl").write_text(older)
    shown = " ".join(parsed(training_html(read_run(folder))).words)
    assert "not finished: 3 of 5 rounds" in shown
    assert "simulated" in shown
    (folder / "log.jsonl").unlink()
    assert "0 of 5 rounds" in training_html(read_run(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("spec.json", "[]"),
        ("spec.json", "{"),
        ("spec.json", "[" * 100_000),
        ("result.json", "3"),
        ("log.jsonl", '{"round": 0}\n'),
        ("log.jsonl", '{"round": 0, "asked": 3, "trained": [], "absent": {}, "excluded": {}}'),
        ("log.jsonl", "\xff\n"),
        ("agreement.json", '{"agreement": [["x"]]}'),
        ("agreement.json", '{"agreement": 3}'),
    ],
)
def test_a_malformed_file_of_a_run_is_one_error(tmp_path: Path, name: str, content: str) -> None:
    folder = samples.run_folder(tmp_path / "run", rounds=2)
    (folder / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(MalformedFile, match=name):
        read_run(folder)


def test_odd_values_in_a_run_are_shown_not_trusted(tmp_path: Path) -> None:
    folder = samples.run_folder(tmp_path / "run", rounds=2)
    (folder / "spec.json").write_text(
        '{"preset": {"data": 3, "federation": {"clients": 1e99}}, "seed": "<b>"}'
    )
    (folder / "result.json").write_text(
        '{"accuracy": "x", "marks": {"attribution": NaN}, "versions": [], "never_trained": [9, "x"]}'
    )
    (folder / "agreement.json").write_text('{"agreement": [[1], [2, 3]]}')
    (folder / "pretraining.safetensors").write_bytes(b"not a checkpoint")
    assert any("station 9" in words for words in parsed(training_html(read_run(folder))).words)


def test_names_of_points_that_lie_together_do_not_lie_upon_each_other() -> None:
    assert apart([], 10.0) == []
    assert apart([50.0, 10.0, 30.0], 10.0) == [50.0, 10.0, 30.0]
    assert apart([20.0, 21.0, 20.5, 60.0], 10.0) == [20.0, 40.0, 30.0, 60.0]
