"""From a model's arrays to a network that speaks: this package's ResNet, or one that somebody brought along.

Of one's own network nothing is assumed but that it is a torch module: arrays are loaded by name, features are
taken on their way by a hook, scores are what the module gives.
"""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from zktrace.errors import Error, InputError
from zktrace.learning.arrays import Arrays, Images, State
from zktrace.learning.backbone import backbone_of
from zktrace.learning.embedding import Embedding, Said
from zktrace.learning.states import load_state, state_of
from zktrace.primitives.text import one_line, shown
from zktrace.readouts.network import Network
from zktrace.readouts.reader import check_answers
from zktrace.readouts.suspects import plain, plain_names

_NORMS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_REASON: Final = 200  # characters of somebody else's error


def embedding_of(arrays: Arrays, inputs: Images, network: Network | None = None) -> Embedding:
    """The network of a state, in evaluation mode, if it takes such inputs and does not say too much of them.

    Without a `network` it is the ResNet of this package that the state fits.
    """
    model = (
        _resnet(arrays, inputs) if network is None else OwnNetwork(_loaded(arrays, network), network, inputs)
    )
    check_answers(len(inputs), model.features)
    return model


def module_of(arrays: Arrays, network: Network | None = None) -> nn.Module:
    """The torch module of a state, in evaluation mode, as it is."""
    return backbone_of(plain(arrays)) if network is None else _loaded(arrays, network)


def names_in(arrays: Iterable[str], network: Network | None = None) -> dict[str, str]:
    """What the network calls its arrays, and what a state calls them."""
    if network is None:
        return plain_names(arrays)
    return _fitted(list(arrays), made(network).state_dict())


def made(network: Network) -> nn.Module:
    """A new module of one's own network, in evaluation mode; InputError if its function gives none."""
    module = theirs("the network's function", network.make)
    if not isinstance(module, nn.Module):
        raise InputError(f"the network's function gave {type(module).__name__}, not a torch module")
    return module.eval()


def theirs(what: str, function: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
    """What somebody else's function gives; its errors as one line."""
    try:
        return function(*given)
    except (Error, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        reason = one_line(str(error), limit=_REASON)
        raise InputError(f"{what} raised {type(error).__name__}{': ' * bool(reason)}{reason}") from error


def _resnet(arrays: Arrays, inputs: Images) -> Embedding:
    model = backbone_of(plain(arrays))
    if inputs.ndim != 4:
        raise InputError(f"the model takes images, the probes are of shape {inputs.shape[1:]}")
    if model.channels != inputs.shape[1]:
        raise InputError(
            f"the model takes images of {model.channels} channels, the probes have {inputs.shape[1]}"
        )
    return model


def _loaded(arrays: Arrays, network: Network) -> nn.Module:
    module = made(network)
    wanted = module.state_dict()
    state = {name: arrays[given] for name, given in _fitted(list(arrays), wanted).items()}
    for name, array in state.items():
        if wanted[name].is_floating_point() and array.dtype.kind != "f":
            raise InputError(f"{name!r} is of type {array.dtype}; turn it back into real numbers first")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{name!r} has numbers that are not finite")
    load_state(module, state)
    return module


def _fitted(given: list[str], wanted: Iterable[str]) -> dict[str, str]:
    """Names of the module -> names in the state, which may all have something before them (`module.`)."""
    names, there = list(wanted), set(given)
    if not names:
        raise InputError("the network has no parameters")
    ends = [each for each in given if each == names[0] or each.endswith(f".{names[0]}")]
    for before in dict.fromkeys(each.removesuffix(names[0]) for each in ("", *ends)):
        if all(f"{before}{name}" in there for name in names):
            return {name: f"{before}{name}" for name in names}
    missing = next((name for name in names if name not in there), names[0])
    raise InputError(f"the model has no {shown(missing)}, which the network has: another architecture?")


class OwnNetwork(Embedding):
    """A module that somebody brought along, with its features and what of it a writer may train."""

    def __init__(self, module: nn.Module, network: Network, inputs: Images) -> None:
        super().__init__()
        self.module = module
        self._caught: list[Tensor] = []
        self._last = _last_linear(module)
        self._hook(network.features)
        self._trained = _stage(module, self._last, network.train)
        with torch.no_grad():
            self._features = self.said(torch.from_numpy(np.array(inputs[:1]))).features.shape[1]

    def _hook(self, name: str) -> None:
        """Catch features where they pass; the module's own output if there is nowhere else."""
        if name:
            found = dict(self.module.named_modules()).get(name)
            if found is None:
                known = ", ".join(each for each, _ in self.module.named_children())
                raise InputError(
                    f"the network has no module {shown(name)} (it has {one_line(known, limit=200)})"
                )
            found.register_forward_hook(lambda _module, _given, out: self._catch(out))
        elif self._last is not None:
            self._last.register_forward_pre_hook(
                lambda _module, given: self._catch(given[0] if given else None)
            )

    def _catch(self, value: object) -> None:
        if not isinstance(value, Tensor):
            raise InputError(f"the network's features are {type(value).__name__}, not a tensor")
        self._caught.append(value)

    @property
    def features(self) -> int:
        """Numbers that it says of an input."""
        return self._features

    def trunk(self, x: Tensor) -> Tensor:
        """Nothing: where the trained part begins is the module's own affair."""
        return x

    def say(self, inner: Tensor) -> Said:
        """Features and scores of a batch, by one pass."""
        self._caught.clear()
        out = theirs(f"the network, given inputs of shape {tuple(inner.shape)},", self.module, inner)
        found = self._caught[-1] if self._caught else out
        self._caught.clear()
        for what, each in (("output", out), ("features", found)):
            if not isinstance(each, Tensor) or each.dim() < 2 or len(each) != len(inner):
                form = tuple(each.shape) if isinstance(each, Tensor) else type(each).__name__
                raise InputError(f"the network's {what} of {len(inner)} inputs: {form}, not a row for each")
        return Said(features=found.flatten(1).float(), outputs=out.float() if out.dim() == 2 else None)

    def state(self) -> State:
        """Its arrays, as the module calls them."""
        return state_of(self.module)

    def stage(self) -> list[nn.Parameter]:
        """The parameters that were named, or those of the last stage, normalisation aside."""
        return self._trained


def _last_linear(module: nn.Module) -> nn.Linear | None:
    return next((each for each in reversed(list(module.modules())) if isinstance(each, nn.Linear)), None)


def _stage(module: nn.Module, head: nn.Module | None, pattern: str) -> list[nn.Parameter]:
    if pattern:
        found = [each for name, each in module.named_parameters() if fnmatchcase(name, pattern)]
        if not found:
            raise InputError(f"no parameter of the network is called as {shown(pattern)}")
        return found
    apart = {id(each) for each in _untrained(module, head)}
    return _last_stage(module, apart) or list(module.parameters())


def _untrained(module: nn.Module, head: nn.Module | None) -> Iterator[nn.Parameter]:
    """The head, whose input are the features, and normalisation, where another carrier lives."""
    for each in module.modules():
        if isinstance(each, _NORMS):
            yield from each.parameters()
    if head is not None:
        yield from head.parameters()


def _last_stage(module: nn.Module, apart: set[int]) -> list[nn.Parameter]:
    """Parameters of the last part that has weights beside those set apart; the head's is looked into."""
    for child in reversed(list(module.children())):
        own = [each for each in child.parameters() if id(each) not in apart]
        if not any(each.dim() >= 2 for each in own):
            continue
        whole = all(id(each) not in apart for each in child.parameters() if each.dim() >= 2)
        return own if whole else _last_stage(child, apart) or own
    return []
