"""How often somebody may ask, and who somebody is."""

from typing import Any

import anyio
import httpx
import pytest

from service.small import URL, House
from zktrace.errors import Denied
from zktrace.service import limits
from zktrace.service.app import make_app
from zktrace.service.desk import Settings
from zktrace.service.limits import RATES, Rates, kind_of, sender_of


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def allowed(rates: Rates, sender: str, what: str, tries: int) -> int:
    """How many of so many requests go through."""
    found = 0
    for _ in range(tries):
        try:
            rates.take(sender, what)
        except Denied:
            continue
        found += 1
    return found


def sender(address: str) -> str:
    return sender_of({"client": (address, 1234)})


def test_a_house_with_many_ipv6_addresses_is_one_sender() -> None:
    assert sender("2001:db8:1:2::1") == sender("2001:db8:1:2:ffff:ffff:ffff:ffff") == "2001:db8:1:2::/64"
    assert sender("2001:db8:1:3::1") != sender("2001:db8:1:2::1")
    assert sender("fe80::1%eth0") == sender("fe80::2") == "fe80::/64"
    assert sender("::ffff:192.0.2.7") == sender("192.0.2.7") == "192.0.2.7"
    assert sender("::ffff:192.0.2.8") != sender("192.0.2.7")
    assert sender("somebody") == "somebody"
    assert sender_of({}) == sender_of({"client": None})


def test_rates_are_of_senders(shared: House) -> None:
    """Through the gate: another address of the same /64 has no rate of its own."""
    app = make_app(shared.home, Settings(url=URL), rates=Rates({"": 2}))
    assert [anyio.run(asked, app, f"2001:db8::{number}") for number in range(3)] == [200, 200, 429]
    assert anyio.run(asked, app, "2001:db8:0:1::1") == 200


async def asked(app: Any, address: str) -> int:
    transport = httpx.ASGITransport(app=app, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        return (await client.get("/healthz")).status_code


def test_the_page_and_the_api_share_their_guesses() -> None:
    rates = Rates(clock=Clock())
    kinds = {kind_of("POST", path) for path in ("/sign-in", "/api/v1/login", "/api/v1/login/station")}
    assert kinds == {"login"}
    assert allowed(rates, "a", kind_of("POST", "/sign-in"), RATES["login"]) == RATES["login"]
    assert allowed(rates, "a", kind_of("POST", "/api/v1/login"), 1) == 0
    assert kind_of("GET", "/sign-in") == ""
    assert [kind_of("POST", path) for path in ("", "/", "/judge", "*")] == ["", "", "judge", ""]


def test_the_whole_log_has_a_rate_of_its_own() -> None:
    assert kind_of("GET", "/api/v1/log/export") == "export"
    assert RATES["export"] < RATES[""]
    assert kind_of("GET", "/api/v1/log/entries") == ""


def test_a_flood_of_senders_does_not_make_a_guesser_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders who asked once are as good as unknown a little later; whoever asked too often is not."""
    monkeypatch.setattr(limits, "SENDERS", 100)
    clock = Clock()
    rates = Rates({"login": 20, "": 1200}, clock=clock)
    assert allowed(rates, "guesser", "login", 25) == 20
    for number in range(1000):
        clock.now += 0.01
        rates.take(f"flood {number}", "")
    assert allowed(rates, "guesser", "login", 25) == 3  # ten seconds have passed
    assert len(rates._left) <= 100


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SENDERS", 100)
    rates = Rates({"login": 2, "": 2}, clock=Clock())
    assert allowed(rates, "first", "login", 3) == 2
    for number in range(150):
        assert allowed(rates, f"other {number}", "login", 3) == 2
        assert len(rates._left) <= 100
    assert allowed(rates, "other 149", "login", 1) == 0
    assert allowed(rates, "first", "login", 1) == 1  # nothing had become full: the oldest went


def test_a_bucket_fills_evenly() -> None:
    clock = Clock()
    rates = Rates({"": 60}, clock=clock)
    assert allowed(rates, "a", "", 70) == 60
    clock.now += 10.5
    assert allowed(rates, "a", "", 70) == 10
