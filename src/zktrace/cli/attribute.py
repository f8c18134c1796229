"""`zktrace attribute`: which credentials are represented in a shared model. Needs no torch."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zktrace.cli.files import public_key
from zktrace.cli.options import Force, Json, Raw, RosterKeys, RosterWorkspace, SharedModel, workspace_at
from zktrace.cli.output import check_free, emit
from zktrace.errors import InputError

if TYPE_CHECKING:
    from zktrace.readouts.runs import RunFacts
    from zktrace.registry.roster import Roster
    from zktrace.tracing.attribution import Attribution

_SHADES = ((0.95, "██"), (0.8, "▓▓"), (0.7, "▒▒"), (0.6, "░░"), (0.0, "· "))
_BITS = 128  # of a codeword, where nothing says otherwise
_MAP_LIMIT = 32  # stations whose map still fits a terminal


def attribute(
    model: SharedModel,
    public: RosterKeys = None,
    workspace: RosterWorkspace = None,
    bits: Annotated[
        int | None,
        typer.Option("--bits", min=1, max=65536, help="Codeword length. Default: the run's, or 128."),
    ] = None,
    seed: Annotated[str, typer.Option("--codebook", help="Public seed of the codebook.")] = "",
    raw: Raw = False,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write an HTML report with table and heat map.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Read every station's component from a model's BatchNorm scales and compare it with all codewords.

    The folder of a run tells how its model is to be read; what contradicts it is refused. A match is
    statistical evidence of a codeword, not of its holder: public marks can be copied.
    """
    from zktrace.primitives.files import write_atomic
    from zktrace.readouts.runs import RunFacts
    from zktrace.report.attribution import attribution_html
    from zktrace.tracing.attribution import check_run, read_attribution

    if report is not None:
        check_free(report, force=force)
    run = RunFacts.beside(model)
    who = _stations(run, public or [], workspace, bits)
    warnings = check_run(run, who, raw=raw)
    found = read_attribution(model, who, seed=seed.encode(), raw=raw or (run is not None and run.raw))
    facts: dict[str, object] = {"ok": True, **found.as_json(), "bits": who.bits, "warnings": warnings}
    text = _table(found) + _map(found) + "".join(f"\nwarning: {each}" for each in warnings)
    if report is not None:
        write_atomic(report, attribution_html(found).encode(), replace=force)
        facts["report"] = str(report)
        text += f"\n{report}"
    emit(facts, as_json=as_json, text=text)


def _stations(
    run: "RunFacts | None", public: list[Path], workspace: Path | None, bits: int | None
) -> "Roster":
    """Names, keys, rows and codeword length: the registry's, or those of the files."""
    from zktrace.registry.roster import Roster, roster

    if (workspace is not None) == bool(public):
        raise InputError("whose codewords? Give --workspace, or --public twice or more")
    if workspace is None:
        return Roster(
            names=tuple(path.stem for path in public),
            keys=tuple(public_key(path) for path in public),
            rows=() if run is None or len(run.rows) != len(public) else run.rows,
            bits=bits or (_BITS if run is None else run.bits),
        )

    found = roster(workspace_at(workspace).registry.ledger(), run.stations or None if run else None)
    if bits not in (None, found.bits):
        raise InputError(f"codewords of this registry have {found.bits} bits, not {bits}")
    return found


def _table(found: "Attribution") -> str:
    width = max(len(each.station) for each in found.stations)
    lines = [f"{'station':<{width}}  agrees  best other  attributed to"]
    for each in found.stations:
        named = each.attributed or "several"
        proved = "" if not each.within_radius else ", proved by its distance"
        lines.append(
            f"{each.station:<{width}}  {each.agreement:6.3f}  {each.best_other:10.3f}  {named}{proved}"
        )
    lines.append(
        f"attributed to themselves: {found.attribution:.1%}; agreement {found.self_agreement:.3f} "
        f"with the own codeword, {found.cross_talk:.3f} with others"
    )
    return "\n".join(lines)


def _map(found: "Attribution") -> str:
    """Stations x codewords in shades, on a terminal that can show it."""
    if not sys.stdout.isatty() or len(found.matrix) > _MAP_LIMIT:
        return ""
    try:
        "".join(shade for _, shade in _SHADES).encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ""
    return "\n" + heat_text(found.matrix, [each.station for each in found.stations])


def heat_text(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """The heat map of agreement in characters."""
    width = min(20, max(len(name) for name in names))
    rows = [
        f"{name[:width]:<{width}}  " + "".join(_shade(value) for value in values)
        for name, values in zip(names, matrix, strict=True)
    ]
    key = "  ".join(f"{shade.strip()} from {least:g}" for least, shade in _SHADES[:-1])
    return "\n".join(["components (rows) and codewords (columns)", *rows, key])


def _shade(value: float) -> str:
    return next((shade for least, shade in _SHADES if value >= least), "? ")
