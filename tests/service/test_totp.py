"""The second factor: codes of RFC 6238, each taken once, and no answer that says which part was wrong."""

import base64
import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.small import PASSWORD, House, house
from zktrace.cli.app import run
from zktrace.errors import Denied, InputError, Refused
from zktrace.service import totp
from zktrace.service.totp import address, code_at, new_secret, step_of
from zktrace.service.visitors import WRONG_CODES, WRONG_SECONDS

VECTORS = {  # RFC 6238, appendix B, SHA-1: the last six of its eight digits
    59: "287082",
    1111111109: "081804",
    1111111111: "050471",
    1234567890: "005924",
    2000000000: "279037",
    20000000000: "353130",
}
SECRET = base64.b32encode(b"12345678901234567890").decode()
NAME = "an-operator"
NOW = 1_800_000_000.0
STEP = int(NOW) // 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> House:
    return house(tmp_path_factory.mktemp("totp"), stations=(), release=False)


@pytest.fixture
def code(made: House) -> Iterator[Callable[[], str]]:
    """The operator has a second factor. Gives the code of now, which may be one that was not taken yet."""

    def now() -> str:
        with made.home.database.writing() as change:
            change.run("UPDATE zks_accounts SET totp_step = 0")
        return present(made)

    made.desk.accounts.protect(NAME, SECRET, present(made))
    yield now
    made.desk.accounts.unprotect(NAME)


def present(made: House) -> str:
    with made.home.database.reading() as found:
        (clock,) = found.rows(f"SELECT {made.home.database.now} AS now")
    return code_at(SECRET, int(clock["now"]) // 30)


@pytest.mark.parametrize(("at", "code"), VECTORS.items())
def test_codes_are_those_of_the_rfc(at: int, code: str) -> None:
    assert code_at(SECRET, at // 30) == code
    assert step_of(SECRET, code, now=at, after=0) == at // 30


@pytest.mark.parametrize("late", [-2, -1, 0, 1, 2])
def test_a_code_is_taken_one_step_to_each_side(late: int) -> None:
    wanted = STEP + late if abs(late) <= 1 else None
    for now in (NOW, NOW + 29.9):
        assert step_of(SECRET, code_at(SECRET, STEP + late), now=now, after=0) == wanted


def test_a_code_is_not_taken_after_itself_or_a_later_one() -> None:
    code = code_at(SECRET, STEP)
    assert step_of(SECRET, code, now=NOW, after=STEP - 1) == STEP
    assert step_of(SECRET, code, now=NOW, after=STEP) is None
    assert step_of(SECRET, code, now=NOW, after=STEP + 1) is None


def test_blanks_in_a_code_are_passed_over_and_all_else_is_no_code() -> None:
    code = code_at(SECRET, STEP)
    assert step_of(SECRET, f" {code[:3]} {code[3:]} ", now=NOW, after=0) == STEP
    arabic = "".join(chr(0x660 + int(digit)) for digit in code)
    for each in ("", code[:5], f"{code}0", f"{code}x", f"-{code}", arabic, "\ud800", code * 1000):
        assert step_of(SECRET, each, now=NOW, after=0) is None
    assert step_of(SECRET, "000000", now=-1e9, after=0) is None  # by a clock that was never set


def test_an_address_is_what_authenticators_read() -> None:
    found = address(SECRET, name="eve (a federation)")
    assert found.startswith("otpauth://totp/zktrace:eve%20%28a%20federation%29?")
    given = dict(part.split("=") for part in found.partition("?")[2].split("&"))
    assert given == {
        "secret": SECRET,
        "issuer": "zktrace",
        "algorithm": "SHA1",
        "digits": "6",
        "period": "30",
    }
    assert len({new_secret() for _ in range(20)}) == 20
    assert len(base64.b32decode(new_secret())) == 20


def test_a_code_is_asked_for_and_works_once(made: House, code: Callable[[], str]) -> None:
    client, now = made.client(), code()
    right = {"name": NAME, "password": PASSWORD, "code": now}
    assert client.post("/api/v1/login", json=right | {"password": "another"}).status_code == 401
    assert client.post("/api/v1/login", json=right).json()["role"] == "operator"
    assert client.post("/api/v1/login", json=right).status_code == 401
    assert client.post("/sign-in", data=right).status_code == 401
    assert client.post("/sign-in", data=right | {"code": code()}).status_code == 303
    other = {"name": "an-auditor", "password": PASSWORD, "code": "000000"}
    assert made.client().post("/api/v1/login", json=other).status_code == 200  # who has none needs none


def test_no_answer_says_what_was_wrong(made: House, code: Callable[[], str]) -> None:
    client, now = made.client(), code()
    wrong = code_at(SECRET, 1)
    given = [
        {"name": "nobody", "password": PASSWORD},
        {"name": NAME, "password": "another password"},
        {"name": NAME, "password": "another password", "code": now},
        {"name": NAME, "password": PASSWORD},
        {"name": NAME, "password": PASSWORD, "code": wrong},
        {"name": "an-auditor", "password": "another password", "code": now},
    ]
    answers = [client.post("/api/v1/login", json=each) for each in given]
    assert {each.status_code for each in answers} == {401}
    assert len({each.text for each in answers}) == 1
    pages = [client.post("/sign-in", data=each) for each in given]
    assert {each.status_code for each in pages} == {401}
    assert len({each.text for each in pages}) == 1
    assert client.post("/api/v1/login", json=given[3] | {"code": code()}).status_code == 200


def test_who_has_the_password_gets_few_guesses_of_a_code(made: House, code: Callable[[], str]) -> None:
    """From any number of addresses; a wrong password is no guess, so nobody else can lock the account."""

    def tried(given: str, password: str = PASSWORD) -> bool:
        try:
            made.desk.accounts.signed_in(NAME, password, given)
        except Denied as error:
            assert str(error) == "the name, the password or the code is wrong"
            return False
        return True

    right = code()
    wrong = f"{(int(right) + 500_000) % 1_000_000:06}"
    for _ in range(20):
        assert not tried(wrong, PASSWORD[::-1])
    for _ in range(WRONG_CODES - 1):
        assert not tried(wrong)
    assert tried(code())
    assert not tried(wrong)
    assert not tried(code())  # right, and too late
    with made.home.database.writing() as change:
        change.run("UPDATE zks_tokens SET expires = expires - :seconds", seconds=WRONG_SECONDS)
    assert tried(code())
    for _ in range(WRONG_CODES):
        assert not tried(wrong)
    made.desk.accounts.add(NAME, "operator", PASSWORD, replace=True)  # by whoever has the machine
    assert tried(code())


def test_of_two_who_come_with_one_code_at_once_the_first_gets_in(
    made: House, code: Callable[[], str]
) -> None:
    now, both, entered = code(), threading.Barrier(2), list[str]()

    def come() -> None:
        both.wait()
        try:
            entered.append(made.desk.accounts.signed_in(NAME, PASSWORD, now).name)
        except Denied:
            entered.append("denied")

    threads = [threading.Thread(target=come) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(entered) == [NAME, "denied"]


def test_a_second_factor_ends_sessions_and_outlives_a_new_password(tmp_path: Path) -> None:
    made = house(tmp_path, stations=(), release=False)
    accounts, client, other = made.desk.accounts, made.account("operator"), made.account("auditor")
    link = client.post("/api/v1/links").json()["link"]
    with pytest.raises(InputError, match="not the code of now"):
        accounts.protect(NAME, SECRET, code_at(SECRET, 1))
    assert client.get("/api/v1/me").status_code == 200
    first = present(made)
    accounts.protect(NAME, SECRET, first)
    assert client.get("/api/v1/me").status_code == 401
    assert made.client().post(link).status_code == 401
    assert other.get("/api/v1/me").status_code == 200
    with pytest.raises(Denied):
        accounts.signed_in(NAME, PASSWORD, first)  # it was taken to set this up
    with pytest.raises(Refused, match="already"):
        accounts.protect(NAME, new_secret(), present(made))
    accounts.add(NAME, "operator", "another password", replace=True)
    with pytest.raises(Denied):
        accounts.signed_in(NAME, "another password")
    accounts.remove(NAME)
    accounts.add(NAME, "operator", PASSWORD)
    assert accounts.signed_in(NAME, PASSWORD).role == "operator"
    for what in (accounts.unprotect, accounts.check_unprotected):
        with pytest.raises(Refused, match="no account"):
            what("nobody")
    with pytest.raises(Refused, match="has no second factor"):
        accounts.unprotect(NAME)


def test_the_command_shows_a_secret_and_takes_its_first_code(
    made: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--workspace", str(made.home.root)]
    monkeypatch.setattr(totp, "new_secret", lambda: SECRET)
    command = ["operator", "totp", NAME, *where]

    def typed(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))

    typed("")
    assert run(command) == 2
    assert "--code-stdin" in capsys.readouterr().err
    typed(code_at(SECRET, 1))
    assert run([*command, "--code-stdin"]) == 2
    assert made.desk.accounts.signed_in(NAME, PASSWORD).role == "operator"  # it did not take effect
    capsys.readouterr()
    typed(present(made))
    assert run([*command, "--code-stdin", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == {"ok": True, "account": NAME, "second_factor": True}
    assert re.search(f"otpauth://totp/zktrace:{NAME}.*secret={SECRET}", said.err)
    assert run(["operator", "list", *where]) == 0
    assert f"{NAME}  operator  second factor\n" in capsys.readouterr().out
    assert run([*command, "--code-stdin"]) == 2
    assert SECRET not in capsys.readouterr().out  # a new one is not even shown
    assert run([*command, "--off"]) == 0
    assert made.desk.accounts.signed_in(NAME, PASSWORD).role == "operator"
    assert run([*command, "--off"]) == 2


def test_a_terminal_asks_until_the_code_is_right(
    made: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [code_at(SECRET, 1), "nonsense", present(made)]
    monkeypatch.setattr(totp, "new_secret", lambda: SECRET)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answers.pop(0))
    assert run(["operator", "totp", NAME, "--workspace", str(made.home.root)]) == 0
    assert answers == []
    assert f"{NAME} needs a code to sign in from now on" in capsys.readouterr().out
    made.desk.accounts.unprotect(NAME)
