"""The console without a browser: forms, empty states, the judge's page, and text from outside."""

from pathlib import Path

import pytest

from service.small import House, house, model_file
from zktrace.front.case import kept_evidence
from zktrace.registry.overview import case_lines

PAGES = ("/", "/stations", "/releases", "/cases", "/cases/new", "/jobs", "/log", "/judge")


def test_an_empty_workspace_says_what_to_do(tmp_path: Path) -> None:
    made = house(tmp_path, stations=(), release=False)
    client = made.account("operator")
    said = {path: client.get(path).text for path in PAGES}
    assert "Put the first one on record" in said["/"]
    assert "zktrace offer" in said["/stations"]
    assert "Upload the model" in said["/releases"]
    assert "Put a shared model on record" in said["/cases/new"]
    assert "Nothing was asked for yet" in said["/jobs"]
    assert "no witnesses" in said["/log"]


def test_the_pages_show_what_is_on_record(shared: House) -> None:
    client = shared.account("auditor")
    overview = client.get("/").text
    assert "1/1000" in overview
    assert shared.home.head.to_text() in overview
    (place,) = shared.home.registry.ledger().investigations
    case = client.get(f"/cases/{place}").text
    assert "certified-attribute" in case
    assert "bravo" in case
    assert client.get("/releases/r1").text.count("/stations/") >= 3
    assert "Put a shared model on record" not in client.get("/releases").text  # an auditor reads
    entry = shared.client().get("/log/1").text
    assert "alpha" in entry


def test_the_forms_lead_from_an_upload_to_a_verdict(tmp_path: Path) -> None:
    made = house(tmp_path, release=False)
    browser, csrf = made.browser("operator")
    model = model_file(tmp_path / "m.safetensors").read_bytes()
    form = {"csrf": csrf, "name": "r1"}
    answer = browser.post("/releases", data=form, files={"model": ("m.safetensors", model)})
    assert answer.status_code == 303, answer.text
    assert "Waits for a worker" in browser.get(answer.headers["location"]).text
    made.work()
    page = browser.get("/releases/r1").text
    assert "Make copies for 3 stations without one" in page
    assert browser.post("/releases/r1/dispatch", data={"csrf": csrf}).status_code == 303
    made.work()
    assert "has a copy" in browser.get("/releases/r1").text
    copy = made.home.dispatch("bravo", "r1").path.read_bytes()
    form = {"csrf": csrf, "release": "r1", "budget": "1/1000"}
    answer = browser.post("/cases", data=form, files={"suspect": ("<b>leak</b>", copy)})
    job = answer.headers["location"]
    made.work()
    plan = browser.get(job).text
    assert "Spend 1/1000" in plan
    assert "<b>leak</b>" not in plan
    assert "&lt;b&gt;leak&lt;/b&gt;" in plan
    assert made.home.registry.ledger().spent == 0
    assert "waits for a confirmation" in browser.get("/cases").text
    assert browser.post(f"{job}/confirm", data={"csrf": csrf}).status_code == 303
    progress = browser.get(f"{job}/progress")
    assert "hx-refresh" not in progress.headers
    made.work()
    assert browser.get(f"{job}/progress").headers["hx-refresh"] == "true"
    assert "certified-attribute" in browser.get(job).text


def test_an_upload_of_a_form_that_is_not_ours_writes_nothing(tmp_path: Path) -> None:
    made = house(tmp_path)
    browser, csrf = made.browser("operator")
    uploads = made.home.root / "service" / "uploads"
    for form in ({}, {"csrf": "0" * 64}):
        assert browser.post("/cases", data=form, files={"suspect": ("m", b"x")}).status_code == 403
    late = b'--x\r\nContent-Disposition: form-data; name="suspect"; filename="m"\r\n\r\nbytes\r\n'
    late += f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n--x--\r\n'.encode()
    kind = {"content-type": "multipart/form-data; boundary=x"}
    assert browser.post("/cases", content=late, headers=kind).status_code == 403
    assert browser.post("/cases", content=b"--x\r\nnonsense", headers=kind).status_code in (403, 422)
    assert browser.post("/cases", data={"csrf": csrf}).status_code == 415
    two = {"suspect": ("m", b"x"), "other": ("n", b"y")}
    assert browser.post("/cases", data={"csrf": csrf}, files=two).status_code == 409
    none = browser.post("/cases", data={"csrf": csrf}, files={"suspect": ("", b"")})
    assert none.status_code in (409, 422)
    assert list(uploads.iterdir()) == []


def test_an_upload_beyond_the_limit_is_cut_off(tmp_path: Path) -> None:
    from service.small import served

    made = house(tmp_path)
    small = served(made.home, made.credentials, upload_limit=10_000)
    browser, csrf = small.browser("operator")
    answer = browser.post("/cases", data={"csrf": csrf}, files={"suspect": ("m", b"x" * 50_000)})
    assert answer.status_code == 413
    token = small.account("operator")
    assert token.post("/api/v1/investigations", content=b"x" * 50_000).status_code == 413
    assert list((made.home.root / "service" / "uploads").iterdir()) == []


def test_the_log_is_read_page_by_page(shared: House) -> None:
    size = shared.home.registry.ledger().size
    anybody = shared.client()
    assert f"Entries 0 to {size - 1}" in anybody.get("/log").text
    assert f"Entries 3 to {size - 1}" in anybody.get("/log", params={"from": 3}).text
    assert "no records from here on" in anybody.get("/log", params={"from": size}).text
    assert anybody.get("/log", params={"from": -1}).status_code == 422


def judged(made: House, data: bytes, head: str) -> str:
    answer = made.client().post("/judge", data={"head": head}, files={"evidence": ("case.json", data)})
    assert answer.status_code in (200, 422), answer.text
    assert list((made.home.root / "service" / "judged").iterdir()) == []
    return answer.text


def test_anybody_has_an_evidence_file_examined(shared: House) -> None:
    (line,) = case_lines(shared.home.registry.ledger())
    path = kept_evidence(shared.home, line)
    assert path is not None
    data, head = path.read_bytes(), shared.home.head.to_text()
    page = judged(shared, data, head)
    assert "Upheld: certified-attribute" in page
    assert all(f"({number}) " in page for number in range(1, 10))
    assert "Not reached" not in page
    wrong = judged(shared, data, f"zkt-head-v1:{shared.home.head.size}:{'0' * 64}")
    assert "Rejected at step 2" in wrong or "Cannot tell" in wrong
    assert "Upheld:" not in wrong
    tampered = judged(shared, data.replace(b"bravo", b"alpha"), head)
    assert "Upheld:" not in tampered
    assert "not a head" in judged(shared, data, "nonsense")
    assert "Upheld:" not in judged(shared, b"{}", head)


def test_a_head_that_is_later_than_the_evidence_is_bridged_by_the_log(tmp_path: Path) -> None:
    made = house(tmp_path)
    case = made.home.trace(made.home.dispatch("bravo", "r1").path, budget="1/1000")
    made.home.dispatch("alpha", "r1")
    assert made.home.head.to_text() != case.evidence.head
    assert "Upheld: certified-attribute" in judged(made, case.evidence.to_bytes(), made.home.head.to_text())


@pytest.mark.parametrize(
    "path", ["/nothing", "/stations/nobody", "/log/99999", "/static/../style.css", "/cases/7777"]
)
def test_what_is_not_there_is_a_page_too(shared: House, path: str) -> None:
    answer = shared.account("operator").get(path)
    assert answer.status_code == 404
    assert "<h1>Not there</h1>" in answer.text


def test_a_form_that_ends_in_the_middle_of_its_file_is_refused_and_not_kept(tmp_path: Path) -> None:
    made = house(tmp_path)
    browser, csrf = made.browser("operator")
    begun = f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{csrf}\r\n'
    begun += '--x\r\nContent-Disposition: form-data; name="suspect"; filename="m"\r\n\r\nhalf a model'
    kind = {"content-type": "multipart/form-data; boundary=x"}
    for path in ("/cases", "/releases"):
        answer = browser.post(path, content=begun.encode(), headers=kind)
        assert (answer.status_code, "ends in the middle" in answer.text) == (422, True)
    late = f'\r\n--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{"0" * 64}\r\n--x--\r\n'
    assert browser.post("/cases", content=(begun + late).encode(), headers=kind).status_code == 403
    assert browser.post("/judge", content=begun.encode(), headers=kind).status_code == 422
    assert list((made.home.root / "service" / "uploads").iterdir()) == []
    assert list((made.home.root / "service" / "judged").iterdir()) == []
    assert made.desk.jobs.listed() == []


def test_what_parts_a_form_may_be_anything_and_is_no_fault_of_the_service(shared: House) -> None:
    for boundary in ("x" * 257, '"' + "x" * 5000 + '"'):
        kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
        answer = shared.client().post("/judge", content=b"--x--", headers=kind)
        assert (answer.status_code, "the form cannot be read" in answer.text) == (422, True)
    assert list((shared.home.root / "service" / "judged").iterdir()) == []
