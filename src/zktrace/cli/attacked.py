"""Copies that an attack takes, and the model that it makes of them, as files."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zktrace.cli.output import check_free, emit

if TYPE_CHECKING:
    from zktrace.models import ModelState
    from zktrace.models.state import Array


def opened(path: Path) -> "ModelState":
    """A copy."""
    from zktrace.models import open_model

    return open_model(path)


class Stored(Mapping[str, "Array"]):
    """The arrays of a state as its file has them: bfloat16 as its bits. One is made when it is asked for."""

    def __init__(self, state: "ModelState") -> None:
        self._tensors = {each.name: each for each in state.tensors()}

    @property
    def halves(self) -> frozenset[str]:
        """Which are bfloat16."""
        return frozenset(name for name, each in self._tensors.items() if each.dtype == "bfloat16")

    def __getitem__(self, name: str) -> "Array":
        import numpy as np

        each = self._tensors[name]
        if each.dtype != "bfloat16":
            return each.array()
        return np.frombuffer(each.data, "<u2").reshape(each.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def leaked(like: "ModelState", pieces: "Callable[[str], Iterable[Array]]") -> "ModelState":
    """A state with the names, shapes and types of another; its tensors are made as they are written."""
    from zktrace.models import LazyTensor, ModelState

    return ModelState(
        LazyTensor(name=each.name, dtype=each.dtype, shape=each.shape, make=partial(pieces, each.name))
        for each in like.tensors()
    )


def saved(
    out: Path, state: Mapping[str, Any], attack: str, sources: list[Path], *, force: bool, as_json: bool
) -> None:
    """Write what an attack made of its sources, and say so."""
    from zktrace.models import save_model

    check_free(out, force=force)
    digest = save_model(out, state, metadata={"format": "pt"}, replace=force).hex()
    facts = {
        "ok": True,
        "attack": attack,
        "in": [str(path) for path in sources],
        "out": str(out),
        "digest": digest,
    }
    emit(facts, as_json=as_json, text=f"{out}  {digest}")
