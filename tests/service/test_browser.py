"""Every page in a real browser: nothing fails, nothing complains, and everybody can use it.

Two checks of accessibility, the rules of axe-core and our own: headings in order, one main, a name for every
control, contrast of every text by the colours that the browser computed, visible focus, nothing wider than
the screen, no layout shift.
"""

import base64
import json
import os
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from report.browser import Browser, executable, headless
from service.small import PASSWORD, House, house, model_file, served
from service.test_fetch import free_port, running
from zktrace.service.jobs import JobRow

PROGRAM = executable()
AXE = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
FOUND_BY_AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => JSON.stringify(
  found.violations.map(each => `${each.id}: ${each.help} (${each.nodes[0].html.slice(0, 80)})`)))"""
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium was found")
SHOTS = os.environ.get("ZKT_SCREENSHOTS")  # a folder: pictures of the main pages for docs/figures

# What is wrong with a page, as a list of lines. Contrast is that of WCAG 2.2 (1.4.3).
CHECK = """(() => {
  const wrong = [], seen = each => each.getClientRects().length > 0;
  const colour = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = each => { for (let at = each; at; at = at.parentElement) {
    const found = colour(getComputedStyle(at).backgroundColor);
    if (found.length < 4 || found[3] > 0.99) return found.slice(0, 3); } return [255, 255, 255]; };
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !seen(each) || each.closest("svg, .skip")) continue;
    const style = getComputedStyle(each);
    const a = light(colour(style.color).slice(0, 3)), b = light(behind(each));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5))
      wrong.push(`contrast ${ratio.toFixed(2)}: ${each.textContent.trim().slice(0, 40)}`);
  }
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea, progress"))
    if (!(each.labels && each.labels.length) && !each.getAttribute("aria-label"))
      wrong.push(`no label: ${each.name}`);
  for (const each of document.querySelectorAll("a, button"))
    if (!each.textContent.trim() && !each.getAttribute("aria-label"))
      wrong.push("a link or button without a name");
  for (const each of document.querySelectorAll("svg[role=img]"))
    if (!each.getAttribute("aria-label")) wrong.push("a picture without a name");
  for (const each of document.querySelectorAll("table"))
    if (!each.caption) wrong.push("a table without a caption");
  const ids = [...document.querySelectorAll("[id]")].map(each => each.id);
  if (new Set(ids).size !== ids.length) wrong.push("an id twice");
  for (const name of ["main", "h1", "nav"])
    if (document.querySelectorAll(name).length !== 1) wrong.push(`not one ${name}`);
  let level = 0;
  for (const each of document.querySelectorAll("h1, h2, h3")) {
    const now = Number(each.tagName[1]);
    if (now > level + 1) wrong.push(`heading ${each.textContent}`);
    level = now; }
  if (!document.documentElement.lang || !document.title.trim()) wrong.push("no language");
  if (document.querySelector("[tabindex]:not([tabindex='0'])")) wrong.push("an order of focus");
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push(`wider than the screen: ${wide}`);
  return JSON.stringify(wrong);
})()"""
SHIFT = """new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => { for (const each of list.getEntries()) sum += each.value; })
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(String(sum)), 150);
})"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    """With all there is to see: copies, a case that was confirmed, a plan that waits, an old upload."""
    found = house(tmp_path_factory.mktemp("browser"))
    found.account("operator").post("/api/v1/dispatches", json={"release": "r1"})
    found.work()
    copy = found.home.dispatch("bravo", "r1").path.read_bytes()
    client = found.account("operator")
    for name, budget in (("leak.safetensors", "1/100"), ("another.safetensors", "1/1000")):
        given = {"name": name, "budget": budget}
        job = client.post("/api/v1/investigations", params=given, content=copy).json()["id"]
        found.work()
        if name.startswith("leak"):
            client.post(f"/api/v1/jobs/{job}/confirm")
            found.work()
    return found


@pytest.fixture(scope="module")
def url(made: House) -> Iterator[str]:
    port = free_port()
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM
    with headless(PROGRAM, tmp_path_factory.mktemp("profile")) as found:
        yield found


def value(browser: Browser, expression: str) -> str:
    found = browser.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
    return str(found["result"].get("value"))


def enter(browser: Browser, made: House, url: str, role: str) -> None:
    """The browser as a visitor of this role."""
    browser.call("Network.clearBrowserCookies")
    if role != "public":
        client = made.station("alpha") if role == "station" else made.account(role)
        token = client.headers["authorization"].removeprefix("Bearer ")
        browser.call("Network.setCookie", url=url, name="zkt_session", value=token, httpOnly=True)


def looked_at(browser: Browser, address: str, *, width: int = 1200, scheme: str = "light") -> list[str]:
    """Everything that is wrong with a page: what failed, what was complained of, what the check found."""
    browser._events.clear()
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", media="screen", features=features)
    browser.call("Page.navigate", url=address)
    return loaded(browser)


def loaded(browser: Browser) -> list[str]:
    """The same of the page that is just being loaded."""
    browser._wait_for("Page.loadEventFired")
    wrong: list[str] = json.loads(value(browser, CHECK))
    value(browser, f"{AXE};0")
    wrong += json.loads(value(browser, FOUND_BY_AXE))
    if float(value(browser, SHIFT)) > 0.01:
        wrong.append("the layout shifts")
    for event in browser._events:
        method, found = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            wrong.append(json.dumps(found)[:300])
        if method == "Network.loadingFailed":
            wrong.append(f"failed: {found.get('errorText')}")
        if method == "Network.responseReceived" and found["response"]["status"] >= 400:
            wrong.append(f"{found['response']['status']}: {found['response']['url']}")
    return wrong


def pages(made: House) -> dict[str, list[str]]:
    """The addresses that each role has."""
    jobs = [f"/jobs/{each.id}" for each in made.desk.jobs.listed()]
    (place,) = made.home.registry.ledger().investigations
    read = ["/", "/stations", "/stations/bravo", "/releases", "/releases/r1", "/cases", f"/cases/{place}"]
    return {
        "public": ["/", "/sign-in", "/log", "/log/1", "/judge", "/enter/none"],
        "station": ["/", "/log"],
        "auditor": ["/", "/releases", "/cases"],
        "operator": [*read, "/cases/new", "/jobs", *jobs],
    }


@pytest.mark.parametrize("role", ["public", "station", "auditor", "operator"])
def test_every_page_is_whole_and_can_be_used_by_everybody(
    browser: Browser, made: House, url: str, role: str
) -> None:
    enter(browser, made, url, role)
    for path in pages(made)[role]:
        for width, scheme in ((1200, "light"), (360, "dark")):
            assert looked_at(browser, f"{url}{path}", width=width, scheme=scheme) == [], (path, width, scheme)


def test_a_page_is_used_by_keyboard_alone(browser: Browser, made: House, url: str) -> None:
    enter(browser, made, url, "public")
    looked_at(browser, f"{url}/judge")
    stops = []
    for _ in range(8):  # after these the browser's own buttons come
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        stops.append(value(browser, "document.activeElement.id || document.activeElement.textContent.trim()"))
        style = "getComputedStyle(document.activeElement)"
        assert value(browser, f"{style}.outlineStyle") != "none", stops
    assert stops[0] == "Skip to the content"
    assert [each for each in stops if each in ("head", "evidence", "Examine")] == [
        "head",
        "evidence",
        "Examine",
    ]


def test_progress_goes_on_by_itself(browser: Browser, made: House, url: str, tmp_path: Path) -> None:
    enter(browser, made, url, "operator")
    content = model_file(tmp_path / "m.safetensors", seed=5).read_bytes()
    job = made.account("operator").post("/api/v1/investigations", content=content).json()["id"]
    assert looked_at(browser, f"{url}/jobs/{job}") == []
    for _ in range(100):
        if "Spend 1/1000" in value(browser, "document.body.textContent"):
            break
        time.sleep(0.2)
    assert "Spend 1/1000" in value(browser, "document.body.textContent")


def typed(browser: Browser, fields: dict[str, str], files: dict[str, Path] | None = None) -> None:
    """What a person enters, by the names of the fields."""
    for name, text in fields.items():
        value(browser, f"document.querySelector('main [name={name}]').value = {json.dumps(text)}")
    for name, path in (files or {}).items():
        found = browser.call("Runtime.evaluate", expression=f"document.querySelector('main [name={name}]')")
        place = found["result"]["objectId"]
        browser.call("DOM.setFileInputFiles", files=[str(path)], objectId=place)


def pressed(browser: Browser, words: str) -> list[str]:
    """What is wrong with the page that a button leads to."""
    button = f"[...document.querySelectorAll('button')].find(each => each.textContent.startsWith({words!r}))"
    assert value(browser, f"!!{button}") == "True", value(browser, "document.body.textContent")
    browser._events.clear()
    value(browser, f"{button}.click()")
    return loaded(browser)


def shown(browser: Browser, what: str = "main") -> str:
    return value(browser, f"document.querySelector('{what}').textContent")


def settled(made: House, id: str) -> JobRow:
    """A job that somebody did, or that waits for a confirmation."""
    for _ in range(600):
        found = made.desk.jobs.find(id)
        if found.state not in ("queued", "running"):
            return found
        time.sleep(0.05)
    pytest.fail("nobody does it")


def test_somebody_drops_an_evidence_file_and_reads_nine_steps(
    browser: Browser, made: House, url: str, tmp_path: Path
) -> None:
    enter(browser, made, url, "public")
    (place,) = made.home.registry.ledger().investigations
    evidence = tmp_path / "case.zkt.json"
    evidence.write_bytes(made.account("auditor").get(f"/api/v1/cases/{place}/evidence").content)
    for spoilt, heading in ((False, "upheld"), (True, "rejected")):
        if spoilt:
            evidence.write_bytes(evidence.read_bytes().replace(b'"bravo"', b'"alpha"'))
        assert looked_at(browser, f"{url}/judge", width=360, scheme="dark") == []
        typed(browser, {"head": made.home.registry.head().to_text()}, {"evidence": evidence})
        assert pressed(browser, "Examine") == []
        assert heading in shown(browser, "h1").lower()
        assert all(f"({step}) " in shown(browser) for step in range(1, 10))
        said = "rejected" if spoilt else "not checked"
        assert said in shown(browser), shown(browser)


def test_an_operator_does_everything_by_forms(browser: Browser, tmp_path: Path) -> None:
    """As a browser sends them: with its own word for where they come from."""
    made, port = house(tmp_path), free_port()
    other = model_file(tmp_path / "other.safetensors", seed=2)
    with running(served(made.home, made.credentials, url=f"http://127.0.0.1:{port}"), port) as url:
        enter(browser, made, url, "public")
        assert looked_at(browser, f"{url}/stations") == []
        typed(browser, {"name": "an-operator", "password": PASSWORD})
        assert pressed(browser, "Sign in") == []
        assert "alpha" in shown(browser)
        typed(browser, {"station": "delta"})
        assert pressed(browser, "Make an invitation") == []
        assert "delta" in shown(browser)
        assert looked_at(browser, f"{url}/releases") == []
        typed(browser, {"name": "r-2"}, {"model": other})
        assert pressed(browser, "Upload") == []
        settled(made, value(browser, "location.pathname").rpartition("/")[2])
        assert looked_at(browser, f"{url}/releases/r-2") == []
        assert pressed(browser, "Make copies for 3 stations") == []
        settled(made, value(browser, "location.pathname").rpartition("/")[2])
        copy = made.home.dispatch("bravo", "r-2").path
        for price, button in (("1/100", "Drop this plan"), ("1/50", "Spend")):
            assert looked_at(browser, f"{url}/cases/new") == []
            typed(browser, {"release": "r-2", "budget": price}, {"suspect": copy})
            assert pressed(browser, "Upload") == []
            job = value(browser, "location.pathname").rpartition("/")[2]
            assert settled(made, job).state == "waiting"
            assert looked_at(browser, f"{url}/jobs/{job}") == []
            assert pressed(browser, button) == []
        found = settled(made, job).result
        assert found["named"] == ["bravo"]
        assert looked_at(browser, f"{url}/cases/{found['place']}") == []
        assert "bravo" in shown(browser)
        assert pressed(browser, "Sign out") == []
        assert looked_at(browser, f"{url}/stations") == []
        assert "Sign in" in shown(browser, "h1")


@pytest.mark.skipif(SHOTS is None, reason="ZKT_SCREENSHOTS names no folder")
def test_pictures_for_the_documentation(browser: Browser, made: House, url: str) -> None:
    enter(browser, made, url, "operator")
    waiting = next(each.id for each in made.desk.jobs.listed() if each.state == "waiting")
    for name, path in {"overview": "/", "plan": f"/jobs/{waiting}", "judge": "/judge"}.items():
        assert looked_at(browser, f"{url}{path}", width=900) == []
        clip = {"x": 0, "y": 0, "width": 900, "height": 760, "scale": 0.8}
        shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        (Path(str(SHOTS)) / f"console-{name}.png").write_bytes(base64.b64decode(shot["data"]))
