"""A service's address as every browser says it, whoever wrote it down: what stations sign for is compared."""

import re
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from zktrace.errors import InputError

PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_.])?", re.ASCII)


def address_of(text: str) -> str:
    """`http(s)://HOST[:PORT]` in lower case and without a port that goes without saying; or InputError."""
    try:
        parts = urlsplit(text)
        host, port = _host(parts.hostname or ""), parts.port
    except ValueError:
        raise _no_address(text) from None
    more = parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in PORTS or not host or port == 0 or more or text.split() != [text]:
        raise _no_address(text)
    return f"{parts.scheme}://{host}" + ("" if port in (None, PORTS[parts.scheme]) else f":{port}")


def _host(name: str) -> str:
    """A name, or a number as browsers write it; nothing if it is neither."""
    if ":" in name and "%" not in name:
        return f"[{IPv6Address(name).compressed}]"
    return name if _NAME.fullmatch(name) else ""


def _no_address(text: str) -> InputError:
    return InputError(f"{text!r} is no address of a service: http(s)://HOST[:PORT]")
