"""`zktrace model`: what is in a model file, read without executing anything."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Json
from zktrace.cli.output import emit

app = typer.Typer(help="Look into model files, which are never executed.", no_args_is_help=True)


@app.command()
def show(
    file: Annotated[
        Path,
        typer.Argument(help="safetensors, GGUF, ONNX, npz or torch zip; an index of shards, or a folder."),
    ],
    as_json: Json = False,
) -> None:
    """Print the canonical digest of a model's complete state, and its size."""
    from zktrace.models import model_digest, open_model

    state = open_model(file)
    facts = {
        "ok": True,
        "digest": model_digest(state).hex(),
        "tensors": len(state),
        "tensor_bytes": state.nbytes,
    }
    emit(
        facts,
        as_json=as_json,
        text=f"{facts['digest']}  {file}\n{len(state)} tensors, {state.nbytes} bytes",
    )
