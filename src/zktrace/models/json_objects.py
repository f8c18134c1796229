"""A JSON object from a hostile file: bounded before it is parsed, no key twice at any level."""

import json
from typing import Any

from zktrace.errors import LimitExceeded, MalformedModel
from zktrace.models.limits import Limits
from zktrace.primitives.text import shown

_COMMAS_A_TENSOR = 16  # an entry with 8 dimensions has 11


def json_object(text: bytes, limits: Limits, *, what: str) -> dict[str, Any]:
    """The object that is all of `text`; `what` it is called in a refusal."""
    if not text.startswith(b"{"):
        raise MalformedModel(f"{what} does not begin with '{{'")
    # Each value but the first stands behind a comma, so this bounds what the JSON parser can allocate.
    if text.count(b",") > _COMMAS_A_TENSOR * limits.max_tensors:
        raise LimitExceeded(f"{what} has more entries than the limit on tensors allows")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise MalformedModel(f"{what} has {shown(name)} twice")
            found[name] = value
        return found

    try:
        value = json.loads(text.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise MalformedModel(f"{what} is not a JSON object") from error
    if not isinstance(value, dict):
        raise MalformedModel(f"{what} is not a JSON object")
    return value
