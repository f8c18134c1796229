"""`zktrace report`: draw the report of a training run again, from the files of its folder."""

from pathlib import Path
from typing import Annotated

import typer

from zktrace.cli.options import Force, Json
from zktrace.cli.output import check_free, emit


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run of `zktrace train`, finished or not.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write. Default: report.html in the folder.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw a training run as one HTML file: curves, marks, who was absent, where it came from."""
    from zktrace.report.training import write_training_report

    path, replace = out or folder / "report.html", force or out is None
    check_free(path, force=replace)
    write_training_report(folder, path, replace=replace)
    emit({"ok": True, "report": str(path)}, as_json=as_json, text=str(path))
