"""Options about a network, inputs and a metric of one's own, and what they stand for.

A function is imported and run because it was named on the command line, and for no other reason.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zktrace.errors import InputError, MissingExtra
from zktrace.primitives.text import one_line, shown

if TYPE_CHECKING:
    from zktrace.readouts.network import Network

NetworkAt = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="MODULE:FUNCTION",
        help="Makes the torch module, if it is none of this package's ResNets. It is imported and run.",
    ),
]
FeaturesAt = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="MODULE",
        help="With --network: the module inside it that gives features. Default: what its last linear layer "
        "is given.",
    ),
]
TrainParameters = Annotated[
    str | None,
    typer.Option(
        "--train-parameters",
        metavar="PATTERN",
        help="With --network: what a copy's training moves, as blocks.3.*. Default: the last stage.",
    ),
]
InputsAt = Annotated[
    Path | None,
    typer.Option(
        "--inputs",
        help="Instead of --proxy: an npz file, or a folder of npy files, with `inputs` and `labels`.",
    ),
]
MetricAt = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="MODULE:FUNCTION",
        help="Instead of --evaluate: a function that gives a torch module a number, the more the better.",
    ),
]


def network_option(
    network: str | None, features: str | None = None, train: str | None = None
) -> "Network | None":
    """The network that was named, if one was."""
    from zktrace.readouts.network import Network

    if network is None:
        for option, value in (("--features", features), ("--train-parameters", train)):
            if value is not None:
                raise InputError(f"{option} is about a network of your own: name it with --network")
        return None
    return Network(function_at(network, "--network"), features=features or "", train=train or "")


def function_at(place: str, option: str) -> Callable[..., Any]:
    """A function that was named as `package.module:function`; it is looked for in the current folder too."""
    from importlib import import_module

    module, _, name = place.partition(":")
    if not module or not name:
        raise InputError(f"{option} {shown(place)} must be like package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise MissingExtra.of(error) or InputError(f"{option}: there is no module {error.name!r}") from error
    except AttributeError as error:
        raise InputError(f"{option}: {module} has no function {shown(name)}") from error
    except Exception as error:
        reason = one_line(str(error), limit=200)
        raise InputError(
            f"{option}: {module} cannot be imported ({type(error).__name__}: {reason})"
        ) from error
    if not callable(found):
        raise InputError(f"{option}: {place} is no function")
    checked: Callable[..., Any] = found
    return checked
