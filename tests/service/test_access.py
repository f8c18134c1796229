"""Who may what: every endpoint of the application, and the roles that it answers."""

from typing import Any

import pytest

from service.small import PASSWORD, STATIONS, URL, House, TestClient, house

ROLES = ("public", "station", "auditor", "operator")
EVERYBODY, MEMBERS, READERS = set(ROLES), set(ROLES[1:]), {"auditor", "operator"}
OPERATOR, STATION = {"operator"}, {"station"}

TABLE: dict[tuple[str, str], set[str]] = {
    ("GET", "/healthz"): EVERYBODY,
    ("GET", "/api/v1/openapi.json"): EVERYBODY,
    ("GET", "/api/v1/head"): EVERYBODY,
    ("GET", "/api/v1/log/entries"): EVERYBODY,
    ("GET", "/api/v1/log/entries/{index}"): EVERYBODY,
    ("GET", "/api/v1/log/entries/{index}/proof"): EVERYBODY,
    ("GET", "/api/v1/log/entries/{index}/tlog-proof"): EVERYBODY,
    ("GET", "/api/v1/log/consistency"): EVERYBODY,
    ("GET", "/api/v1/log/export"): EVERYBODY,
    ("GET", "/api/v1/log/checkpoint"): EVERYBODY,
    ("GET", "/api/v1/log/witnesses"): EVERYBODY,
    ("GET", "/api/v1/offer"): EVERYBODY,
    ("POST", "/api/v1/invitations"): OPERATOR,
    ("POST", "/api/v1/enrolments"): EVERYBODY,
    ("POST", "/api/v1/login"): EVERYBODY,
    ("POST", "/api/v1/challenges"): EVERYBODY,
    ("POST", "/api/v1/login/station"): EVERYBODY,
    ("GET", "/api/v1/me"): MEMBERS,
    ("POST", "/api/v1/links"): MEMBERS,
    ("POST", "/api/v1/logout"): MEMBERS,
    ("GET", "/api/v1/overview"): READERS,
    ("GET", "/api/v1/budget"): READERS,
    ("GET", "/api/v1/stations"): READERS,
    ("GET", "/api/v1/stations/{name}"): READERS,
    ("GET", "/api/v1/releases"): READERS,
    ("GET", "/api/v1/releases/{name}"): READERS,
    ("GET", "/api/v1/releases/{name}/broadcasts"): READERS,
    ("GET", "/api/v1/cases"): READERS,
    ("GET", "/api/v1/cases/{place}"): READERS,
    ("GET", "/api/v1/cases/{place}/evidence"): READERS,
    ("GET", "/api/v1/jobs"): OPERATOR,
    ("GET", "/api/v1/jobs/{id}"): OPERATOR,
    ("POST", "/api/v1/jobs/{id}/confirm"): OPERATOR,
    ("POST", "/api/v1/jobs/{id}/cancel"): OPERATOR,
    ("POST", "/api/v1/cases/{place}/carry-on"): OPERATOR,
    ("POST", "/api/v1/investigations"): OPERATOR,
    ("POST", "/api/v1/releases"): OPERATOR,
    ("POST", "/api/v1/dispatches"): OPERATOR,
    ("POST", "/api/v1/copies/{release}"): STATION,
    ("GET", "/api/v1/copies/{release}"): STATION,
    ("GET", "/api/v1/copies/{release}/delivery"): STATION,
    ("GET", "/api/v1/copies/{release}/file"): STATION,
    ("POST", "/api/v1/copies/{release}/delivery"): STATION,
    ("POST", "/api/v1/receipts"): STATION,
    ("GET", "/api/v1/receipts/{id}"): STATION,
    ("GET", "/static/{name}"): EVERYBODY,
    ("GET", "/"): EVERYBODY,
    ("GET", "/sign-in"): EVERYBODY,
    ("POST", "/sign-in"): EVERYBODY,
    ("GET", "/enter/{token}"): EVERYBODY,
    ("POST", "/enter/{token}"): EVERYBODY,
    ("POST", "/sign-out"): MEMBERS,
    ("GET", "/stations"): READERS,
    ("POST", "/stations/invite"): OPERATOR,
    ("GET", "/stations/{name}"): READERS,
    ("GET", "/releases"): READERS,
    ("GET", "/releases/{name}"): READERS,
    ("POST", "/releases"): OPERATOR,
    ("POST", "/releases/{name}/dispatch"): OPERATOR,
    ("GET", "/cases"): READERS,
    ("GET", "/cases/new"): OPERATOR,
    ("POST", "/cases"): OPERATOR,
    ("GET", "/cases/{place:int}"): READERS,
    ("GET", "/cases/{place:int}/report"): READERS,
    ("GET", "/cases/{place:int}/evidence"): READERS,
    ("POST", "/cases/{place:int}/carry-on"): OPERATOR,
    ("GET", "/jobs"): OPERATOR,
    ("GET", "/jobs/{id}"): OPERATOR,
    ("GET", "/jobs/{id}/progress"): OPERATOR,
    ("POST", "/jobs/{id}/confirm"): OPERATOR,
    ("POST", "/jobs/{id}/cancel"): OPERATOR,
    ("GET", "/log"): EVERYBODY,
    ("GET", "/log/{index:int}"): EVERYBODY,
    ("GET", "/judge"): EVERYBODY,
    ("POST", "/judge"): EVERYBODY,
}
VALUES = {
    "{index}": "1",
    "{index:int}": "1",
    "{place}": "CASE",
    "{place:int}": "CASE",
    "{release}": "r1",
    "{id}": "none",
    "{token}": "none",
}
ASKED = {"/api/v1/log/consistency": {"old": 1}, "/api/v1/releases": {"name": "r1"}}
SIGNS_IN = ("/api/v1/login", "/api/v1/login/station", "/sign-in", "/enter/{token}")
UNSAFE_OF_A_SESSION = [key for key, roles in TABLE.items() if key[0] == "POST" and "public" not in roles]


@pytest.fixture(scope="module")
def visitors(shared: House) -> dict[str, TestClient]:
    return {
        "public": shared.client(),
        "station": shared.station("alpha"),
        "auditor": shared.account("auditor"),
        "operator": shared.account("operator"),
    }


def address(shared: House, path: str) -> str:
    for key, value in VALUES.items():
        path = path.replace(key, value)
    (case,) = shared.home.registry.ledger().investigations
    name = {"static": "console.css", "stations": "bravo", "releases": "r1"}
    first = path.removeprefix("/api/v1").split("/")[1]
    return path.replace("CASE", str(case)).replace("{name}", name.get(first, ""))


def check_answered(path: str, answer: Any) -> None:
    """Not turned away for who asks: only for a password, a link or a form that is wrong here."""
    if answer.status_code == 401:
        assert path in SIGNS_IN, answer.text[:300]
    elif answer.status_code == 403:
        assert "this form is not of your session" in answer.text, answer.text[:300]
    else:
        assert not answer.headers.get("location", "").startswith("/sign-in")


def routes(found: Any) -> set[tuple[str, str]]:
    """Every method and path that the application answers, whatever routers they stand in."""
    out: set[tuple[str, str]] = set()
    for each in found:
        inner = getattr(each, "original_router", None) or getattr(each, "router", None)
        if inner is not None:
            out |= routes(inner.routes)
        elif getattr(each, "methods", None):
            out |= {(method, each.path) for method in each.methods if method != "HEAD"}
        else:
            out.add(("?", repr(each)))
    return out


def test_every_endpoint_is_in_the_table(shared: House) -> None:
    assert routes(shared.app.routes) == set(TABLE)


@pytest.mark.parametrize(("method", "path"), TABLE, ids=str)
def test_an_endpoint_answers_the_roles_of_the_table_and_no_other(
    shared: House, visitors: dict[str, TestClient], method: str, path: str
) -> None:
    place = address(shared, path)
    for role in ROLES:
        if place.endswith(("logout", "sign-out")) and role != "public":
            continue  # they end the session that all share: tested by themselves
        answer = visitors[role].request(method, place, params=ASKED.get(path))
        if role in TABLE[method, path]:
            check_answered(path, answer)
        else:
            wanted = {401, 303} if role == "public" else {403}
            assert answer.status_code in wanted, (role, answer.status_code)
            if answer.status_code == 303:
                assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize(("method", "path"), UNSAFE_OF_A_SESSION, ids=str)
def test_a_form_of_another_site_changes_nothing(shared: House, method: str, path: str) -> None:
    """A cookie alone is not enough: the form, or the program, has to show that it read a page."""
    role = "operator" if "operator" in TABLE[method, path] else "station"
    if role == "station":
        made = shared.client()
        token = shared.sign("alpha").json()["token"]
        made.cookies.set("zkt_session", token)
    else:
        made, _ = shared.browser("operator")
    place, before = address(shared, path), shared.home.head
    for given in (
        {"data": {"csrf": "0" * 64}},
        {"files": {"f": ("m", b"x")}},
        {"headers": {"x-csrf-token": "1"}},
        {"headers": {"authorization": ""}},
        {"headers": {"authorization": " "}},
    ):
        answer = made.request(method, place, params=ASKED.get(path), **given)  # type: ignore[arg-type]
        assert answer.status_code in (403, 415), (answer.status_code, answer.text[:200])
    elsewhere = made.request(method, place, headers={"origin": "http://evil.example"})
    assert elsewhere.status_code == 403
    assert made.get("/api/v1/me").status_code == 200
    assert shared.home.head == before


def test_no_station_learns_of_another(shared: House) -> None:
    """Neither pages nor the API show a station the name, copy or score of any other beyond the public log."""
    client = shared.station("alpha")
    for (method, path), roles in TABLE.items():
        if "station" in roles and "public" not in roles and method == "GET":
            said = client.get(address(shared, path)).text
            assert not any(each in said for each in STATIONS[1:]), path
    assert not any(each in client.get("/").text for each in STATIONS[1:])
    digests = {each.station: each.copy.hex() for _, each in shared.home.registry.ledger().dispatches}
    assert client.post("/api/v1/copies/r1").status_code == 202
    shared.work()
    ready = client.get("/api/v1/copies/r1").json()
    assert ready["digest"] == digests["alpha"]
    assert digests["bravo"] not in client.get("/").text
    assert str(shared.home.root) not in shared.account("operator").get("/api/v1/jobs").text


def test_a_wrong_password_and_an_unknown_name_are_told_alike(shared: House) -> None:
    client = shared.client()
    said = [
        client.post("/api/v1/login", json={"name": name, "password": password})
        for name, password in (("an-operator", "wrong"), ("nobody", PASSWORD), ("an-operator", "x" * 1500))
    ]
    assert {each.status_code for each in said} == {401}
    assert len({each.json()["detail"] for each in said}) == 1
    page = client.post("/sign-in", data={"name": "an-operator", "password": "wrong"})
    assert page.status_code == 401
    assert "zkt_session" not in page.headers.get("set-cookie", "")


def test_a_session_ends_and_its_token_with_it(shared: House) -> None:
    client = shared.account("auditor")
    assert client.get("/api/v1/me").json()["name"] == "an-auditor"
    assert client.post("/api/v1/logout").status_code == 200
    assert client.get("/api/v1/me").status_code == 401
    made, csrf = shared.browser("operator")
    assert made.post("/sign-out", data={"csrf": csrf}).status_code == 303
    assert made.get("/stations").status_code == 303


def test_a_cookie_cannot_be_read_by_scripts_and_goes_nowhere_else(shared: House) -> None:
    answer = shared.client().post("/sign-in", data={"name": "an-operator", "password": PASSWORD})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


@pytest.mark.parametrize("place", ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/a\n"])
def test_signing_in_leads_nowhere_else(shared: House, place: str) -> None:
    given = {"name": "an-operator", "password": PASSWORD, "next": place}
    assert shared.client().post("/sign-in", data=given).headers["location"] == "/"


def test_a_station_signs_in_by_its_own_credential_alone(shared: House) -> None:
    assert shared.sign("alpha").json()["role"] == "station"
    assert shared.sign("alpha", by="bravo").status_code == 401
    assert shared.sign("nobody", by="alpha").status_code == 401
    assert shared.sign("alpha", url="http://evil.example").status_code == 401  # passed on by another site


def test_a_challenge_is_answered_once_and_only_if_it_was_asked(shared: House) -> None:
    challenge = shared.client().post("/api/v1/challenges").json()["challenge"]
    assert shared.answer("alpha", challenge).status_code == 200
    assert shared.answer("alpha", challenge).status_code == 401
    assert shared.answer("alpha", "made-up").status_code == 401


def test_a_link_signs_a_browser_in_once(shared: House) -> None:
    link = shared.station("alpha").post("/api/v1/links").json()["link"]
    assert link.startswith(f"{URL}/enter/")
    browser = shared.client()
    assert browser.get(link).status_code == 200  # a program that looks at links does not use it up
    assert browser.post(link).status_code == 303
    assert "alpha" in browser.get("/").text
    assert browser.get("/api/v1/me").json()["role"] == "station"
    assert shared.client().post(link).status_code == 401


def test_every_answer_has_the_headers_that_keep_others_out(shared: House) -> None:
    for path in ("/", "/healthz", "/api/v1/head", "/api/v1/stations", "/nothing", "/static/console.css"):
        headers = shared.client().get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
    assert shared.client().get("/api/v1/head", headers={"host": "evil.example"}).status_code == 400


def test_a_body_that_is_too_large_is_refused_before_it_is_read(shared: House) -> None:
    answer = shared.client().post("/api/v1/login", content=b"x", headers={"content-length": str(1 << 40)})
    assert answer.status_code == 413
    assert shared.client().post("/sign-in", data={"name": "x" * (1 << 17)}).status_code == 413

    def endless() -> Any:
        for _ in range(64):
            yield b"x" * (1 << 16)

    assert shared.client().post("/api/v1/login", content=endless()).status_code == 413


def test_guessing_is_slow(tmp_path: Any) -> None:
    from zktrace.service.limits import Rates

    made = house(tmp_path, stations=(), release=False)
    now = [0.0]
    object.__setattr__(made.desk, "rates", Rates({"login": 2, "": 100}, clock=lambda: now[0]))
    client = made.client()
    asked = [client.post("/api/v1/login", json={"name": "x", "password": "y"}).status_code for _ in range(3)]
    assert asked == [401, 401, 429]
    assert client.get("/api/v1/head").status_code == 200
    now[0] = 31.0
    assert client.post("/api/v1/login", json={"name": "x", "password": "y"}).status_code == 401
    assert client.post("/api/v1/login", json={"name": "x", "password": "y"}).status_code == 429


def test_passwords_are_kept_as_argon2id_and_a_new_one_signs_out(tmp_path: Any) -> None:
    from zktrace.errors import InputError, Refused

    made = house(tmp_path, stations=(), release=False)
    client = made.account("operator")
    with made.home.database.reading() as found:
        kept = found.rows("SELECT password FROM zks_accounts WHERE name = 'an-operator'")[0]["password"]
        tokens = [each["digest"] for each in found.rows("SELECT digest FROM zks_tokens")]
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert PASSWORD not in kept
    assert all(client.headers["authorization"].removeprefix("Bearer ") != each for each in tokens)
    accounts = made.desk.accounts
    with pytest.raises(Refused, match="exists already"):
        accounts.add("an-operator", "operator", "another password")
    with pytest.raises(InputError, match="12 to 1024"):
        accounts.add("third", "operator", "short")
    with pytest.raises(InputError, match="no role"):
        accounts.add("third", "station", PASSWORD)
    accounts.add("an-operator", "auditor", "another password", replace=True)
    assert client.get("/api/v1/me").status_code == 401
    accounts.remove("an-operator")
    with pytest.raises(Refused, match="no account"):
        accounts.remove("an-operator")
