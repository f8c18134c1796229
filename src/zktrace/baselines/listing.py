"""What is known of the systems without setting one up. Nothing here needs torch: tables are drawn by it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Source: TypeAlias = Literal["published", "reported", "code", "ours"]
SOURCES: Final[Mapping[Source, str]] = {
    "published": "in the paper, or said by its authors",
    "reported": "told of the paper by others; not checked",
    "code": "in the code that its authors released",
    "ours": "our choice",
}
SUPPORT: Final = "support set"  # the part of a payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A system in a table."""

    place: str  # where its mark lives
    names_recipients: bool  # whether it names whose copy a suspect is


_WEIGHTS, _OUTPUTS = "weight-space", "output-space"
LISTED: Final[Mapping[str, Listed]] = {
    "fedzkp": Listed(place=_WEIGHTS, names_recipients=False),
    "fedtracker": Listed(place=_WEIGHTS, names_recipients=True),
    "duw": Listed(place=_OUTPUTS, names_recipients=True),
    "fedipr": Listed(place=_WEIGHTS, names_recipients=False),
    "waffle": Listed(place=_OUTPUTS, names_recipients=False),
    "deepmarks": Listed(place=_WEIGHTS, names_recipients=True),
    "zk-trace": Listed(place=_WEIGHTS, names_recipients=True),
}
