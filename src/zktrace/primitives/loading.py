"""What a table names as text, `module:name`, loaded when it is asked for."""

import importlib
from typing import Any

from zktrace.errors import InputError, MissingExtra
from zktrace.primitives.text import shown


def loaded(place: str) -> Any:  # noqa: ANN401
    """The object at `module:name`; MissingExtra where a library that it needs is not installed."""
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise MissingExtra.of(error) or InputError(f"{shown(place)}: there is no such module") from error
    except AttributeError as error:
        raise InputError(f"{shown(place)}: the module has no such name") from error
