"""What every request is answered with: the workspace, the service's tables, and how it was started."""

import sys
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from fastapi import Request

from zktrace.errors import InputError
from zktrace.front.workspace import Workspace
from zktrace.service.address import address_of
from zktrace.service.bodies import UploadPlaces
from zktrace.service.counted import Counted
from zktrace.service.facts import Facts, overview_facts
from zktrace.service.hearing import Hearings
from zktrace.service.jobs import Jobs
from zktrace.service.limits import RATES, Rates
from zktrace.service.problems import Complaints
from zktrace.service.store import prepared
from zktrace.service.visitors import Accounts, Passwords, Tokens

UPLOAD_LIMIT: Final = 8 << 30  # bytes of a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a service is started."""

    url: str  # as visitors know it, without a path: what stations sign for
    upload_limit: int = UPLOAD_LIMIT
    allow_weak_params: bool = False  # credentials of test sets may sign in and enrol
    rate: int = RATES[""]  # requests a minute from one address; 0: any number

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", address_of(self.url))
        if self.upload_limit < 1:
            raise InputError("the limit of uploads is a number of bytes")
        if self.rate < 0:
            raise InputError(f"a rate of {self.rate} requests a minute: 0 is for any number")

    @property
    def secure(self) -> bool:
        """Whether visitors come by TLS."""
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        """What the Host of a request has to be."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, kw_only=True)
class FrontDesk:
    """Everything that an endpoint needs."""

    home: Workspace
    settings: Settings
    accounts: Accounts
    tokens: Tokens
    jobs: Jobs
    rates: Rates = field(default_factory=Rates)
    places: UploadPlaces = field(default_factory=UploadPlaces)
    passwords: Passwords = field(default_factory=Passwords)
    complaints: Complaints = field(default_factory=Complaints)
    hearings: Hearings = field(default_factory=Hearings)
    overview: Counted[Facts] = field(default_factory=lambda: Counted(overview_facts))

    @classmethod
    def of(cls, home: Workspace, settings: Settings, *, rates: Rates | None = None) -> Self:
        """For a workspace; the tables are made if they are not there."""
        database = prepared(home)
        database.keep_connections()
        return cls(
            home=home,
            settings=settings,
            accounts=Accounts(database),
            tokens=Tokens(database),
            jobs=Jobs(database),
            rates=rates or Rates(RATES | {"": settings.rate or sys.maxsize}),
        )


def desk_of(request: Request) -> FrontDesk:
    """The desk of the application that a request came to."""
    found: FrontDesk = request.app.state.desk
    return found
