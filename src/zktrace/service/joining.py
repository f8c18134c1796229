"""Stations that enrol from afar: the operator invites a name, and whoever has the invitation sends a request.

The invitation says who a name belongs to, and nothing else: the request shows that its key is its sender's
own, and place and row are fixed by both sides, as they are in files.
"""

from zktrace.errors import Denied, Refused
from zktrace.registry.ledger import check_name
from zktrace.registry.requests import Request, offer_text
from zktrace.service.desk import FrontDesk
from zktrace.service.facts import Facts
from zktrace.service.problems import NOT_SIGNED_IN
from zktrace.service.visitors import SECONDS, Visitor


def invite(desk: FrontDesk, station: str) -> Facts:
    """Somebody may enrol by this name, for a week. A second invitation does not end the first."""
    check_name(station, "station")
    if station in desk.home.registry.ledger().stations:
        raise Refused(f"a station {station} is enrolled already")
    return {
        "station": station,
        "invitation": desk.tokens.issue("invitation", Visitor(role="station", name=station)),
        "seconds": SECONDS["invitation"],
    }


def offer(desk: FrontDesk) -> Facts:
    """The line that a request answers."""
    return {"offer": offer_text(desk.home.offer)}


def join(desk: FrontDesk, invitation: str, data: bytes) -> Facts:
    """Enrol whoever was invited. The invitation is used up when that is on record, and not before."""
    invited = desk.tokens.holder("invitation", invitation)
    if invited is None:
        raise Denied("this invitation has expired or was used: ask for a new one", status=NOT_SIGNED_IN)
    request = Request.from_bytes(data)
    entry = desk.home.admit(invited.name, request, allow_weak_params=desk.settings.allow_weak_params)
    desk.tokens.end(invitation)
    found = desk.home.registry.ledger().station(invited.name)
    return {"station": invited.name, "entry": entry, "place": found.enrolment.row}
