"""`zktrace probes`: asking a model that can only be queried, without saying which questions count."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zktrace.cli.options import Force, Json, ReleaseName, WorkspaceFolder, workspace_at
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

app = typer.Typer(help="Questions for a model that can only be queried.", no_args_is_help=True)

OrderFile = Annotated[Path, typer.Option("--order", help="The secret order, mode 0600.")]


@app.command()
def export(
    order: OrderFile,
    out: Annotated[Path, typer.Option("--out", help="The questions: an npz with the array `inputs`.")],
    release: ReleaseName = None,
    decoys: Annotated[
        int, typer.Option("--decoys", min=0, help="Images among them that are no probes, in as many views.")
    ] = 0,
    labels: Annotated[
        bool,
        typer.Option("--labels", help="For a model that answers with classes alone: triggers, no decoys."),
    ] = False,
    force: Force = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Write the output carrier's probes among decoys, in a random order that only the order file knows."""
    from zktrace.primitives.files import write_atomic
    from zktrace.readouts.views import VIEWS
    from zktrace.releases.queries import label_queries_of, queries_of

    for path in (order, out):
        check_free(path, force=force)
    if labels and decoys:
        raise InputError("triggers have no decoys: leave --decoys out")
    chosen = workspace_at(workspace).opened(release)
    inputs, drawn = label_queries_of(chosen) if labels else queries_of(chosen, decoys=decoys)
    write_atomic(order, drawn.to_bytes(), secret=True, replace=force)
    write_atomic(out, _npz(inputs=inputs), secret=True, replace=force)
    views = 1 if labels else len(VIEWS)
    facts = {
        "ok": True,
        "release": chosen.name,
        "queries": len(inputs),
        "probes": len(drawn.places) // views,
        "views": views,
        "shape": list(inputs.shape[1:]),
        "out": str(out),
        "order": str(order),
    }
    count = (
        f"{len(inputs)} inputs, each to be answered with a class"
        if labels
        else f"{len(inputs)} inputs, {len(drawn.places)} of them {facts['probes']} probes in {views} views"
    )
    text = f"{out}  {count}\n{order}  which ones: keep it secret"
    emit(facts, as_json=as_json, text=text)


@app.command()
def collect(
    answers: Annotated[
        Path, typer.Argument(help="One matrix, a row of scores an input, in the same order; or their labels.")
    ],
    order: OrderFile,
    out: Annotated[Path, typer.Option("--out", help="The probes' scores, for `zktrace trace --scores`.")],
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="The answers are probabilities: take logarithms.")
    ] = False,
    force: Force = False,
    workspace: WorkspaceFolder = None,
    as_json: Json = False,
) -> None:
    """Pick the answers to the probes out of all answers; of labels, make the scores that stand for them."""
    from zktrace.primitives.files import read_bounded, write_atomic
    from zktrace.readouts.scores import read_array, read_matrix, scores_digest
    from zktrace.releases.queries import FILE_LIMIT, Order, picked, picked_labels

    check_free(out, force=force)
    drawn = Order.from_bytes(read_bounded(order, limit=FILE_LIMIT))
    if drawn.labels:
        if probabilities:
            raise InputError("labels are no probabilities: leave --probabilities out")
        labels, _ = read_array(answers)
        scores = picked_labels(labels, drawn, workspace_at(workspace).opened(drawn.release))
    else:
        scores = picked(read_matrix(answers), drawn, probabilities=probabilities)
    write_atomic(out, _npz(scores=scores), replace=force)
    facts = {
        "ok": True,
        "release": drawn.release,
        "probes": len(scores),
        "classes": scores.shape[1],
        "digest": scores_digest(scores).hex(),
        "out": str(out),
    }
    emit(facts, as_json=as_json, text=f"{out}  scores of {len(scores)} probes\n{scores_digest(scores).hex()}")


def _npz(**arrays: "NDArray[Any]") -> bytes:
    import io

    import numpy as np

    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
