"""`zktrace report`: draw the report of a training run again, from the files of its folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zktrace.cli.output import Json, check_free, emit

if TYPE_CHECKING:
    from zktrace.report.run_folder import TrainingReport


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run of `zktrace train`, finished or not.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write. Default: report.html in the folder.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file named by --out.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a training run as one HTML file: curves, marks, who was absent, where it came from."""
    path = write_training_report(folder, out, replace=force or out is None)
    emit({"ok": True, "report": str(path)}, as_json=as_json, text=str(path))


def write_training_report(folder: Path, out: Path | None = None, *, replace: bool = True) -> Path:
    """Draw the run in `folder`; the file that was written."""
    from zktrace.primitives.files import write_atomic
    from zktrace.report.run_folder import read_run
    from zktrace.report.training import training_html

    path = out or folder / "report.html"
    check_free(path, force=replace)
    run = _with_agreement(read_run(folder), folder)
    write_atomic(path, training_html(run).encode(), replace=replace)
    return path


def _with_agreement(run: "TrainingReport", folder: Path) -> "TrainingReport":
    """Runs of an earlier version kept no matrix; where model and keys are there, it is read from them."""
    from zktrace.cli.attribute import read_attribution
    from zktrace.cli.files import public_key
    from zktrace.errors import Error

    paths = [folder / "stations" / f"{name}.pub" for name in run.stations]
    model, marks = folder / "model.safetensors", _marks(run.spec)
    if run.agreement or not all(each.exists() for each in (model, *paths)) or "bits" not in marks:
        return run
    try:
        keys = [public_key(path) for path in paths]
        bits, raw = int(marks["bits"]), bool(marks.get("raw", True))
        rows = tuple(int(each) for each in run.spec.get("rows", ()))
        found = read_attribution(model, run.stations, keys, bits=bits, rows=rows, raw=raw)
    except (Error, TypeError, ValueError):
        return run  # the rest of the report is still worth having
    return replace(run, agreement=found.matrix)


def _marks(spec: Mapping[str, Any]) -> dict[str, Any]:
    preset = spec.get("preset")
    marks = preset.get("marks") if isinstance(preset, dict) else None
    return marks if isinstance(marks, dict) else {}
