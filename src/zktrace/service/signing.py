"""What a station signs to sign in: said alike by the station's side and by the service."""

from zktrace.primitives.encoding import fields

_DOMAIN = b"zkt-login-v1"


def login_message(*, url: str, station: str, challenge: str) -> bytes:
    """A challenge, bound to the address that the station means and to the station's name."""
    return fields((_DOMAIN, url.rstrip("/").encode(), station.encode(), challenge.encode()))
