"""The page of the paper's exhibits: self-contained, accessible, the same bytes each time."""

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib", reason="Matplotlib is not installed")

from studies.paper_rows import some
from zktrace.report.drawing import palette, svg_file, svg_panels
from zktrace.report.markdown import blocks
from zktrace.report.paper import paper_html
from zktrace.studies.channel_price import channel_price_figure
from zktrace.studies.exhibits import EXHIBITS


def test_a_page_has_every_exhibit_and_a_way_to_it() -> None:
    page = paper_html(some())
    for each in EXHIBITS:
        assert page.count(f'href="#{each.anchor}"') == 1
        assert page.count(f'id="{each.anchor}"') == 1
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)


def test_what_is_missing_says_how_it_is_made() -> None:
    page = paper_html([])
    assert page.count("There are no rows for it yet.") == sum(bool(each.studies) for each in EXHIBITS)
    assert "zktrace study paper --only tracing --work DIR --out FILE" in page
    assert page.count("Computed; no rows are needed.") == sum(not each.studies for each in EXHIBITS)


def test_a_figure_is_the_same_bytes_each_time_and_its_text_is_text() -> None:
    figure = channel_price_figure([])
    drawn = svg_file(figure)
    assert svg_file(figure) == drawn
    root = ElementTree.fromstring(drawn)  # noqa: S314
    names = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(names) == len(set(names))
    texts = {each.text for each in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"candidate", "Bernstein, certified", "flip rate q", "512"} <= texts
    children = [each.tag.rpartition("}")[2] for each in root][:3]
    assert children == ["title", "desc", "style"]
    assert "20" + "26-" not in drawn  # no date


def test_a_figure_has_no_colour_that_the_page_cannot_turn() -> None:
    for panel in svg_panels(channel_price_figure([])):
        colours = set(re.findall(r"#[0-9a-f]{6}\b", panel)) - {"#000000"}
        assert colours == set()
    light, dark = palette(), palette(dark=True)
    assert set(light) == set(dark)
    assert light["card"] != dark["card"]


def test_markdown_becomes_a_table_with_heads_and_numbers() -> None:
    text = "| a | `b` |\n| --- | --- |\n| x < y | 1.5 % |\n| `code` | 2/3 |\n\nA word on it."
    found = blocks(text, caption="What it is")
    assert "<caption>What it is</caption>" in found
    assert '<th scope="col">a</th><th scope="col" class="number">b</th>' in found
    assert "x &lt; y" in found
    assert "<code>code</code>" in found
    assert found.endswith("<p>A word on it.</p>")
