"""Reports in a real browser: nothing is loaded, nothing is complained of, nothing sticks out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from report import browser, samples
from studies.paper_rows import some
from zktrace.demo.pages import demo_html
from zktrace.report.attribution import attribution_html
from zktrace.report.case import case_html
from zktrace.report.paper import paper_html
from zktrace.report.run_folder import read_run
from zktrace.report.training import training_html

PROGRAM = browser.executable()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt install chromium)")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    assert PROGRAM is not None
    with browser.headless(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def document(name: str, folder: Path) -> str:  # noqa: PLR0911
    match name:
        case "case":
            return case_html(samples.case())
        case "case, hostile names":
            return case_html(samples.case(stations=12, names=samples.HOSTILE))
        case "case, 60 stations":
            return case_html(samples.case(stations=60))
        case "demo":
            return demo_html(samples.demo(), head="zkt-head-v1:41:" + "5e" * 32, reports={}, evidence={})
        case "attribution":
            return attribution_html(samples.attribution())
        case "paper":
            pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
            return paper_html(some())
        case _:
            return training_html(read_run(samples.run_folder(folder / "run")))


@pytest.mark.parametrize("name", ["case", "attribution", "training", "demo", "paper"])
def test_a_report_in_light_and_dark_wide_and_narrow(
    chromium: browser.Browser, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(document(name, tmp_path), encoding="utf-8")
    backgrounds = {"light": set(), "dark": set()}
    for width, scheme in ((1200, "light"), (1200, "dark"), (360, "light"), (360, "dark")):
        seen = chromium.visit(path, width=width, scheme=scheme)
        check(seen, path, width=width)
        backgrounds[scheme].add(seen.background)
    assert len(backgrounds["light"]) == len(backgrounds["dark"]) == 1
    assert backgrounds["light"] != backgrounds["dark"]
    printed = chromium.visit(path, width=800, scheme="dark", media="print")
    assert printed.background == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["case, hostile names", "case, 60 stations"])
def test_a_crowded_report_on_a_phone(chromium: browser.Browser, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(document(name, tmp_path), encoding="utf-8")
    check(chromium.visit(path, width=360), path, width=360)


def check(seen: browser.Seen, path: Path, *, width: int) -> None:
    assert seen.complaints == []
    assert seen.requests == [path.as_uri()]  # itself
    assert seen.width <= width
    assert seen.cut == []  # no table that has to be scrolled
    assert len(seen.screenshot) > 10_000


def test_the_check_sees_what_it_should(chromium: browser.Browser, tmp_path: Path) -> None:
    """A page that does all that a report must not."""
    path = tmp_path / "bad.html"
    path.write_text(
        "<!DOCTYPE html><body><img src='missing.png'><div style='width: 3000px'>x</div>"
        "<main><div class='wide' style='overflow-x: auto; width: 50px'>averyverylongword</div></main>"
        "<script>console.error('no')</script>"
    )
    seen = chromium.visit(path, width=1200)
    assert len(seen.requests) == 2
    assert seen.width >= 3000
    assert seen.cut == ["wide"]
    assert any('"no"' in each for each in seen.complaints)


def test_the_policy_stops_a_script_that_got_in(chromium: browser.Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    inside = "<script>document.title = 'run'</script><img src='http://127.0.0.1:9/x.png'>"
    path.write_text(case_html(samples.case()).replace("</main>", f"{inside}</main>"), encoding="utf-8")
    seen = chromium.visit(path, width=1200)
    assert chromium._value("document.title") != "run"
    assert len([each for each in seen.complaints if "Content Security Policy" in each]) == 2
