"""A network of one's own, as the operator or a judge names it: a value, and nothing of torch.

Whoever reads or writes by a network that is none of this package's says how a module is made. Such a function
is run because somebody named it on the command line or handed it in; no file and no record can name one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zktrace.errors import InputError


@dataclass(frozen=True, slots=True)
class Network:
    """How a torch module is made, and where its features are."""

    make: Callable[[], Any]  # a new module, into which a model's arrays are loaded
    features: str = ""  # the module inside it that gives features; "": what its last linear layer is given
    train: str = ""  # parameters that a copy's training moves, as `blocks.3.*`; "": those of the last stage

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InputError(
                f"a network is a function that makes a torch module, not {type(self.make).__name__}"
            )
        if not isinstance(self.features, str) or not isinstance(self.train, str):
            raise InputError("features and trained parameters of a network are given by their names")
