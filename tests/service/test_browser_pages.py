"""All pages in a real browser: every address of the access table, empty states, errors, no scripts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from report.browser import Browser
from service import test_browser
from service.small import PASSWORD, House, house, served
from service.test_access import TABLE
from service.test_browser import enter, looked_at, settled, shown, typed, value
from service.test_fetch import free_port, running
from service.test_paid import killed_always
from service.test_rounds import guarded, listed
from zktrace.front.receipts import sign
from zktrace.registry.witnessing import PublicLog
from zktrace.transparency.keys import Kind, Signer

pytestmark = test_browser.pytestmark
browser = test_browser.browser

NOT_PAGES = {  # GET addresses of the console that a person does not look at, or not as a page of it
    "/healthz",
    "/static/{name}",
    "/jobs/{id}/progress",  # a part of the job's page
    "/cases/{place:int}/evidence",  # a download
    "/cases/{place:int}/report",  # a page by itself: tests/report
}
PAGES = {
    path
    for method, path in TABLE
    if method == "GET" and not path.startswith("/api/") and path not in NOT_PAGES
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    """With all there is to see: every state of jobs, an open case, a guarded release, witnesses."""
    place = tmp_path_factory.mktemp("pages")
    found = house(place)
    sent = guarded(found)
    receipt = sign(found.credentials["alpha"].key, listed(found, "alpha"), [], unseen=sent["alpha"])
    found.station("alpha").post("/api/v1/receipts", content=receipt.to_bytes())
    found.work()
    client = found.account("operator")
    client.post("/api/v1/dispatches", json={"release": "r1"})
    found.work()
    copy = found.home.dispatch("bravo", "r1").path.read_bytes()
    for name in ("leak", "interrupted", "broken", "waiting"):
        content = b"no model" if name == "broken" else copy
        given = {"name": name, "release": "r1"}
        job = client.post("/api/v1/investigations", params=given, content=content).json()["id"]
        found.work()
        if name in ("leak", "interrupted"):
            assert client.post(f"/api/v1/jobs/{job}/confirm").status_code == 200
        if name == "interrupted":
            interrupt(found)
        found.work()
    log = PublicLog(found.home)
    log.make_keys("north.example/log", [Kind.NOTE])
    log.add_witness(Signer.generate("w1.example", Kind.COSIGNATURE).verifier)
    log.sign()
    client.post(
        "/api/v1/dispatches", json={"release": "r1", "stations": ["alpha"]}
    )  # nobody is there to do it
    return found


def interrupt(made: House) -> None:
    """A worker that is killed as soon as the price is paid, as often as it takes to give the job up."""
    with pytest.MonkeyPatch.context() as patch:
        killed_always(made, patch)


@pytest.fixture(scope="module")
def url(made: House) -> Iterator[str]:
    """Nobody does jobs here: they stay what they are."""
    port = free_port()
    quiet = served(made.home, made.credentials, url=f"http://127.0.0.1:{port}")
    object.__setattr__(quiet.desk.jobs, "claim", lambda **_: None)
    with running(quiet, port) as found:
        yield found


def addresses(made: House) -> dict[str, list[str]]:
    """What each role looks at."""
    done, interrupted = made.home.registry.ledger().investigations
    jobs = [f"/jobs/{each.id}" for each in made.desk.jobs.listed()]
    releases = ["/releases/r1", "/releases/federation"]
    read = ["/", "/stations", "/stations/alpha", "/stations/bravo", "/releases", *releases, "/cases"]
    read += [f"/cases/{done}", f"/cases/{interrupted}"]
    return {
        "public": ["/", "/sign-in", "/log", "/log?from=0", "/log/1", "/judge", "/enter/none"],
        "station": ["/", "/log", "/log/1", "/judge"],
        "auditor": [*read, "/log"],
        "operator": [*read, "/cases/new", "/jobs", *jobs, "/log", "/judge"],
    }


def visited(made: House) -> set[str]:
    """The addresses of the table that these are."""
    patterns = {
        path: re.compile(re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+:int\}", "[0-9]+", path)))
        for path in PAGES
    }
    found = {each.partition("?")[0] for paths in addresses(made).values() for each in paths}
    exact = found & PAGES
    return exact | {
        path for path, pattern in patterns.items() for each in found - exact if pattern.fullmatch(each)
    }


def test_the_pages_that_are_looked_at_are_all_that_there_are(made: House) -> None:
    assert visited(made) == PAGES
    states = {each.state for each in made.desk.jobs.listed()}
    assert states == {"done", "failed", "waiting", "queued"}


@pytest.mark.parametrize("role", ["public", "station", "auditor", "operator"])
def test_every_page_of_the_table_is_whole(browser: Browser, made: House, url: str, role: str) -> None:
    enter(browser, made, url, role)
    for path in addresses(made)[role]:
        for width, scheme in ((1200, "dark"), (360, "light")):
            assert looked_at(browser, f"{url}{path}", width=width, scheme=scheme) == [], (path, width, scheme)


def test_what_is_special_is_said(browser: Browser, made: House, url: str) -> None:
    enter(browser, made, url, "operator")
    _, interrupted = made.home.registry.ledger().investigations
    for path, words in (
        ("/releases/federation", "alpha"),
        ("/stations/alpha", "0 to 3"),
        (f"/cases/{interrupted}", "Carry on to the verdict"),
        ("/log", "w1.example"),
        ("/log/1", "The entry under the last checkpoint"),
    ):
        assert looked_at(browser, f"{url}{path}") == []
        assert words in shown(browser), path


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, str]]:
    """A workspace in which nothing was done yet but that one station enrolled."""
    port = free_port()
    made = house(tmp_path_factory.mktemp("empty"), stations=("alpha",), release=False)
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as url:
        yield made, url


def test_empty_states_are_whole_pages(browser: Browser, empty: tuple[House, str]) -> None:
    made, url = empty
    for role, paths in {
        "public": ["/", "/log", "/log?from=999", "/judge"],
        "station": ["/"],
        "auditor": ["/", "/stations", "/releases", "/cases"],
        "operator": ["/", "/stations", "/stations/alpha", "/releases", "/cases", "/cases/new", "/jobs"],
    }.items():
        enter(browser, made, url, role)
        for path in paths:
            for width, scheme in ((1200, "light"), (360, "dark")):
                assert looked_at(browser, f"{url}{path}", width=width, scheme=scheme) == [], (role, path)


@pytest.mark.parametrize(
    ("role", "path", "status", "title"),
    [
        ("operator", "/nothing", 404, "Not there"),
        ("operator", "/stations/nobody", 404, "Not there"),
        ("operator", "/cases/7777", 404, "Not there"),
        ("operator", "/jobs/none", 404, "Not there"),
        ("public", "/log/99999", 404, "Not there"),
        ("public", "/log?from=-1", 422, "Cannot be used"),
        ("station", "/jobs", 403, "Not for you"),
        ("auditor", "/cases/new", 403, "Not for you"),
    ],
)
def test_an_error_is_a_whole_page_too(
    browser: Browser, made: House, url: str, role: str, path: str, status: int, title: str
) -> None:
    enter(browser, made, url, role)
    for width, scheme in ((1200, "light"), (360, "dark")):
        wrong = looked_at(browser, f"{url}{path}", width=width, scheme=scheme)
        expected = [each for each in wrong if each.startswith(f"{status}: ") or f"status of {status}" in each]
        assert wrong == expected
        assert expected
    assert shown(browser, "h1") == title
    assert str(made.home.root) not in shown(browser)


def pressed(browser: Browser, words: str) -> None:
    """A button of a page that may run no script: what the browser does by itself."""
    button = f"[...document.querySelectorAll('button')].find(each => each.textContent.startsWith({words!r}))"
    assert value(browser, f"!!{button}") == "True", shown(browser)
    browser._events.clear()
    value(browser, f"{button}.click()")
    browser._wait_for("Page.loadEventFired")


def test_an_operator_comes_to_a_verdict_with_scripts_switched_off(browser: Browser, tmp_path: Path) -> None:
    made, port = house(tmp_path), free_port()
    copy = made.home.dispatch("bravo", "r1").path
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as url:
        enter(browser, made, url, "public")
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            browser._events.clear()
            browser.call("Page.navigate", url=f"{url}/cases/new")
            browser._wait_for("Page.loadEventFired")
            typed(browser, {"name": "an-operator", "password": PASSWORD})
            pressed(browser, "Sign in")
            typed(browser, {"release": "r1", "budget": "1/100"}, {"suspect": copy})
            pressed(browser, "Upload")
            job = value(browser, "location.pathname").rpartition("/")[2]
            assert settled(made, job).state == "waiting"
            refreshed(browser, "Spend 1/100")  # by itself
            pressed(browser, "Spend 1/100")
            assert settled(made, job).state == "done"
            refreshed(browser, "certified-attribute")
            assert "bravo" in shown(browser)
        finally:
            browser.call("Emulation.setScriptExecutionDisabled", value=False)


def refreshed(browser: Browser, words: str) -> None:
    """The page says so, after it has loaded itself anew if it has to."""
    for _ in range(20):
        if words in shown(browser):
            return
        browser._events.clear()
        browser._wait_for("Page.loadEventFired")
    pytest.fail(shown(browser))
