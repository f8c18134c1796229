"""Copies that an attack takes, and the model that it makes of them, as files."""

from collections.abc import Collection, Mapping
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


def as_stored(state: "ModelState") -> "dict[str, Array]":
    """The arrays of a state, views of it all; bfloat16 as its bits."""
    import numpy as np

    return {
        each.name: np.frombuffer(each.data, "<u2").reshape(each.shape)
        if each.dtype == "bfloat16"
        else each.array()
        for each in state.tensors()
    }


def as_read(stored: "Mapping[str, Array]", halves: Collection[str]) -> "ModelState":
    """The state of such arrays."""
    from zktrace.models import ModelState, Tensor

    def tensor(name: str) -> Tensor:
        array = stored[name]
        if name not in halves:
            return Tensor.from_array(name, array)
        return Tensor(name=name, dtype="bfloat16", shape=array.shape, data=array.data)

    return ModelState(tensor(name) for name in stored)


def saved(
    out: Path, state: Mapping[str, Any], attack: str, sources: list[Path], *, force: bool, as_json: bool
) -> None:
    """Write what an attack made of its sources, and say so."""
    from zktrace.models import model_digest, open_model, save_model

    check_free(out, force=force)
    save_model(out, state, metadata={"format": "pt"}, replace=force)
    digest = model_digest(open_model(out)).hex()
    facts = {
        "ok": True,
        "attack": attack,
        "in": [str(path) for path in sources],
        "out": str(out),
        "digest": digest,
    }
    emit(facts, as_json=as_json, text=f"{out}  {digest}")
