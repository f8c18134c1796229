"""Every endpoint against whatever may come: an error of ours, or an answer, and never a fault of the service.

Requests are drawn from the OpenAPI document and from the console's routes: each parameter is sometimes right,
sometimes hostile, each body sometimes of the form that is asked for.
"""

import json
import random
from typing import Any, Final
from urllib.parse import quote

import pytest
from httpx import InvalidURL

from service.small import PASSWORD, STATIONS, House, TestClient, house
from zktrace.service.limits import BODY_LIMIT

TEXTS: Final = (
    *STATIONS, "r1", "", "0", "1", "-1", "99999999999999999999", "1e-3", "1/0", "nan", "1e-9999", "..",
    "%2e%2e%2f", "a/b", "\x00", "\n", "é", "\u202e", "😀", "x" * 70, "x" * 5000,
    "'; DROP TABLE zkt_entries; --",
    "{{7*7}}", "<script>alert(1)</script>", "null", "true", "[]", "zkt-head-v1:1:" + "0" * 64, "-0", "\uff11",
)  # fmt: skip
NUMBERS: Final = (0, 1, 2, 5, -1, 499, 501, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, 1 << 70)
KINDS: Final = (
    "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "multipart/form-data", "text/plain", "application/octet-stream", "",
)  # fmt: skip
BOUNDARIES: Final = (
    "x", '"x"', '"x', "", " x ", "y" * 256, "y" * 257, '"' + "z" * 5000 + '"', "\xe9", "a\x7fb", "--",
    "x; boundary=y", "\\", "x*0=y",
)  # fmt: skip
SLOW: Final = (
    "/api/v1/login",
    "/sign-in",
    "/api/v1/login/station",
)  # each takes a password's or a proof's time
STATUSES: Final = {
    200, 201, 202, 206, 303, 307, 400, 401, 403, 404, 405, 409, 411, 413, 415, 416, 422, 501, 503,
}  # fmt: skip


class Fuzz:
    """Requests that follow from a seed."""

    def __init__(self, made: House, seed: int, *, only: tuple[str, ...] = ()) -> None:
        self.drawn = random.Random(seed)
        document = made.client().get("/api/v1/openapi.json").json()
        self.schemas = document["components"]["schemas"]
        self.operations = [
            (method.upper(), path, operation)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        ]
        self.operations += [
            (method, route.path, {})
            for route in routes(made.app)
            for method in route.methods - {"HEAD"}
            if not route.path.startswith("/api/")
        ]
        self.operations = [each for each in self.operations if not only or each[1] in only]

    def request(self) -> tuple[str, str, dict[str, Any]]:
        """Method, address, and the rest."""
        method, path, operation = self.drawn.choice(self.operations)
        while path in SLOW and self.drawn.random() < 0.9:
            method, path, operation = self.drawn.choice(self.operations)
        if self.drawn.random() < 0.03:
            method = self.drawn.choice(("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"))
        return method, self.filled(path), {"params": self.query(operation), **self.body(method, operation)}

    def filled(self, path: str) -> str:
        parts = (quote(self.text(), safe="%/") if part.startswith("{") else part for part in path.split("/"))
        return "/".join(parts)

    def text(self) -> str:
        if self.drawn.random() < 0.2:
            return "".join(chr(self.drawn.randrange(1, 0xD800)) for _ in range(self.drawn.randrange(12)))
        return str(self.drawn.choice(TEXTS)) if self.drawn.random() < 0.8 else str(self.drawn.choice(NUMBERS))

    def query(self, operation: dict[str, Any]) -> dict[str, str]:
        names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
        names += ["from", "next", "x"] if self.drawn.random() < 0.2 else []
        return {name: self.text() for name in names if self.drawn.random() < 0.7}

    def body(self, method: str, operation: dict[str, Any]) -> dict[str, Any]:
        if method == "GET" and self.drawn.random() < 0.95:
            return {}
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content and self.drawn.random() < 0.8:
            value = self.value(content["application/json"]["schema"])
            return {"content": json.dumps(value), "headers": {"content-type": "application/json"}}
        kind = self.kind()
        return {"content": self.bytes(kind), "headers": {"content-type": kind} if kind else {}}

    def kind(self) -> bytes:
        """Of a body; of a form with what parts it, or with something else."""
        if self.drawn.random() < 0.5:
            return self.drawn.choice(KINDS).encode()
        name = self.drawn.choice(("boundary", "BOUNDARY", " boundary", "boundary*"))
        return f"multipart/form-data;{name}={self.drawn.choice(BOUNDARIES)}".encode("latin-1")

    def bytes(self, kind: bytes) -> bytes:
        choice = self.drawn.random()
        if choice < 0.3:
            return self.drawn.randbytes(self.drawn.choice((0, 1, 100, 5000)))
        if choice < 0.35:
            return bytes(BODY_LIMIT + 1)
        if b"multipart" in kind:
            return self.form().encode("utf-8", "replace")
        if b"json" in kind:
            return json.dumps(self.junk(3)).encode()
        return f"csrf={self.text()}&station=x&name=an-operator&password={PASSWORD}".encode("utf-8", "replace")

    def form(self) -> str:
        lines = []
        for name in self.drawn.sample(("csrf", "release", "budget", "name", "head", "file"), 3):
            extra = f'; filename="{self.drawn.choice(TEXTS)}"' if self.drawn.random() < 0.4 else ""
            lines += ["--x", f'Content-Disposition: form-data; name="{name}"{extra}', "", self.text()]
        return "\r\n".join([*lines, "--x--" if self.drawn.random() < 0.8 else "", ""])

    def value(self, schema: dict[str, Any]) -> object:
        """Something of a schema, or not."""
        if self.drawn.random() < 0.1:
            return self.junk(2)
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            return self.value(self.drawn.choice(schema["anyOf"]))
        kind = schema.get("type")
        if kind == "object":
            properties = schema.get("properties", {}).items()
            return {name: self.value(each) for name, each in properties if self.drawn.random() < 0.95}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(self.drawn.randrange(3))]
        return self.text() if kind == "string" else self.junk(1)

    def junk(self, depth: int) -> object:
        kinds = [self.text, lambda: self.drawn.choice(NUMBERS), lambda: None, lambda: True, lambda: 1.5]
        if depth:
            kinds += [
                lambda: [self.junk(depth - 1) for _ in range(3)],
                lambda: {self.text(): self.junk(depth - 1) for _ in range(3)},
            ]
        return self.drawn.choice(kinds)()


def routes(app: Any) -> list[Any]:
    found: list[Any] = []
    for each in app.routes:
        found += each.original_router.routes if hasattr(each, "original_router") else [each]
    return [each for each in found if getattr(each, "methods", None)]


def clients(made: House) -> list[TestClient]:
    browser, csrf = made.browser("operator")
    browser.headers["x-csrf-token"] = csrf
    return [
        made.client(), made.client("no such token"), made.account("auditor"), made.account("operator"),
        made.account("operator"), made.station("alpha"), browser,
    ]  # fmt: skip


def hammered(made: House, *, seed: int, count: int, only: tuple[str, ...] = ()) -> dict[int, int]:
    """So many requests; how often each status came."""
    fuzz, found = Fuzz(made, seed, only=only), dict[int, int]()
    visitors = clients(made)
    for number in range(count):
        at = fuzz.drawn.randrange(len(visitors))
        method, path, rest = fuzz.request()
        said = f"seed {seed}, request {number}: {method} {path!r} {str(rest)[:300]}"
        try:
            answer = visitors[at].request(method, path, **rest)
        except InvalidURL:  # a client that cannot even ask
            continue
        except Exception as error:
            raise AssertionError(said) from error
        assert answer.status_code in STATUSES, f"{said}: {answer.status_code} {answer.text[:300]}"
        assert "Traceback" not in answer.text, said
        if answer.status_code >= 400 and path.startswith("/api/") and method != "HEAD":
            problem = answer.json()
            assert problem["status"] == answer.status_code, said
            assert "\n" not in problem["detail"], said
        if answer.status_code == 200 and path in {"/api/v1/logout", "/sign-out"}:
            visitors = clients(made)
        found[answer.status_code] = found.get(answer.status_code, 0) + 1
    return found


def unharmed(made: House, spent: object) -> None:
    """The log holds, and nothing was spent: whatever was uploaded waits for somebody who confirms it."""
    ledger = made.home.registry.ledger()
    assert made.home.registry.verify() == ledger.head
    assert ledger.spent == spent
    assert list(ledger.investigations) == []


def test_no_request_is_a_fault_of_the_service(tmp_path: Any) -> None:
    made = house(tmp_path)
    found = hammered(made, seed=2026, count=300)
    assert {200, 401, 403, 404, 422} <= set(found), found
    unharmed(made, 0)


def test_no_form_is_a_fault_of_the_service(tmp_path: Any) -> None:
    made = house(tmp_path)
    found = hammered(made, seed=2027, count=300, only=("/judge", "/cases", "/releases"))
    assert {200, 401, 403, 415, 422} <= set(found), found
    unharmed(made, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_requests_are_no_fault_of_the_service(tmp_path: Any, seed: int) -> None:
    made = house(tmp_path)
    hammered(made, seed=seed, count=2500)
    unharmed(made, 0)
