"""A small service: a workspace with stations, a release and copies, and visitors of every role."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zktrace
from zktrace.credentials import MessageBinding, prove
from zktrace.models import save_model
from zktrace.service.app import make_app
from zktrace.service.desk import FrontDesk, Settings
from zktrace.service.jobs import JobRow
from zktrace.service.limits import Rates
from zktrace.service.signing import login_message
from zktrace.service.worker import do

with warnings.catch_warnings():  # starlette would rather have another client than the one that Flower brings
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

URL = "http://testserver"
PASSWORD = "correct horse battery"  # noqa: S105
STATIONS = ("alpha", "bravo", "charlie")
PLENTY = {"": 1_000_000}


def arrays(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    state = {"conv.weight": rng.normal(size=(64, 12, 3, 3)).astype(np.float32)}
    for layer in range(8):
        state[f"bn{layer}.weight"] = rng.normal(1, 0.1, 64).astype(np.float32)
    return state


def model_file(path: Path, seed: int = 0) -> Path:
    save_model(path, arrays(seed))
    return path


@dataclass(frozen=True, kw_only=True)
class House:
    """A workspace, its service, and the keys of its stations."""

    home: zktrace.Workspace
    app: Any
    credentials: dict[str, zktrace.Credential]

    @property
    def desk(self) -> FrontDesk:
        found: FrontDesk = self.app.state.desk
        return found

    def client(self, token: str = "", **headers: str) -> TestClient:
        """Somebody with a bearer token, or a stranger."""
        given = headers | ({"authorization": f"Bearer {token}"} if token else {})
        return TestClient(self.app, base_url=URL, headers=given, follow_redirects=False)

    def account(self, role: str) -> TestClient:
        """An operator or an auditor, signed in."""
        answer = self.client().post("/api/v1/login", json={"name": f"an-{role}", "password": PASSWORD})
        return self.client(answer.json()["token"])

    def browser(self, role: str) -> tuple[TestClient, str]:
        """The same with a cookie, and what its forms carry."""
        made = self.client()
        answer = made.post("/sign-in", data={"name": f"an-{role}", "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        return made, made.get("/api/v1/me").json()["csrf"]

    def station(self, name: str) -> TestClient:
        """A station that signed in with its credential."""
        answer = self.sign(name)
        assert answer.status_code == 200, answer.text
        return self.client(answer.json()["token"])

    def sign(self, name: str, *, by: str | None = None, url: str = URL) -> Any:
        """A challenge, answered with a signature of somebody's."""
        challenge = self.client().post("/api/v1/challenges").json()["challenge"]
        return self.answer(name, challenge, by=by, url=url)

    def answer(self, name: str, challenge: str, *, by: str | None = None, url: str = URL) -> Any:
        import base64

        message = login_message(url=url, station=name, challenge=challenge)
        proof = prove(self.credentials[by or name].key, MessageBinding.of(message)).to_bytes()
        given = {"station": name, "challenge": challenge, "proof": base64.b64encode(proof).decode()}
        return self.client().post("/api/v1/login/station", json=given)

    def work(self) -> list[JobRow]:
        """Do all jobs that wait, as a worker would, in this process."""
        done = []
        while (job := self.desk.jobs.claim()) is not None:
            do(self.home, self.desk.jobs, job)
            done.append(self.desk.jobs.find(job.id))
        return done


def house(root: Path, *, stations: tuple[str, ...] = STATIONS, release: bool = True) -> House:
    """A workspace with accounts, stations and a release."""
    home = zktrace.Workspace.create(
        root / "operator", title="a federation", budget="1/10", carriers=["spread"], places=8
    )
    credentials = {name: zktrace.Credential.new(name) for name in stations}
    for name, credential in credentials.items():
        home.enrol(name, credential.request(home.setup))
    if release:
        home.release(arrays(), name="r1")
    return served(home, credentials)


def served(
    home: zktrace.Workspace, credentials: dict[str, zktrace.Credential], *, url: str = URL, **settings: Any
) -> House:
    """A service of a workspace, with an account of each role."""
    app = make_app(home, Settings(url=url, **settings), rates=Rates(PLENTY))
    accounts = app.state.desk.accounts
    known = {each.name for each in accounts.listed()}
    for role in ("operator", "auditor"):
        if f"an-{role}" not in known:
            accounts.add(f"an-{role}", role, PASSWORD)
    return House(home=home, app=app, credentials=credentials)
