"""The command tree and what happens when a command fails.

Exit codes: 0 done or upheld, 1 examined and rejected, 2 usage or unreadable input, 70 a fault of ours,
130 interrupted, 141 nobody reads the output. `trace` alone also has 3 (a lead) and 4 (no evidence).
"""

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import click
import typer

import zktrace
from zktrace.cli import (
    attack,
    attribute,
    bounds,
    cases,
    credential,
    data,
    demo,
    dispatch,
    enrolment,
    interrupt,
    judge,
    model,
    output,
    probes,
    registry,
    report,
    status,
    study,
    trace,
    train,
)
from zktrace.cli.interrupt import interrupted
from zktrace.errors import Error, InputError, MissingExtra

INTERNAL = 70
BROKEN_PIPE = 141

app = typer.Typer(
    name="zktrace",
    help="Whose copy of the federated model leaked - with a bound that a judge can re-check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback must never print keys
)
STATION = "For a station"
OPERATOR = "For the operator"
JUDGE = "For a judge"
RESEARCHER = "For a researcher"

credential.app.command("request")(enrolment.request)
app.add_typer(credential.app, name="credential", rich_help_panel=STATION)
app.add_typer(model.app, name="model", rich_help_panel=JUDGE)
app.add_typer(bounds.app, name="bounds", rich_help_panel=JUDGE)
app.add_typer(data.app, name="data", rich_help_panel=RESEARCHER)
app.add_typer(registry.log, name="log", rich_help_panel=OPERATOR)
app.add_typer(registry.app, name="registry", rich_help_panel=OPERATOR)
app.command("init", rich_help_panel=OPERATOR)(registry.init)
app.command("offer", rich_help_panel=OPERATOR)(enrolment.offer)
app.command("enrol", rich_help_panel=OPERATOR)(enrolment.enrol)
app.command("reserve", rich_help_panel=OPERATOR)(enrolment.reserve)
app.command("stations", rich_help_panel=OPERATOR)(registry.stations)
app.command("revoke", rich_help_panel=OPERATOR)(registry.revoke)
app.command("status", rich_help_panel=OPERATOR)(status.status)
app.add_typer(cases.app, name="cases", rich_help_panel=OPERATOR)
app.command("release", rich_help_panel=OPERATOR)(dispatch.release)
app.command("dispatch", rich_help_panel=OPERATOR)(dispatch.dispatch)
app.add_typer(attack.app, name="attack", rich_help_panel=RESEARCHER)
app.add_typer(probes.app, name="probes", rich_help_panel=OPERATOR)
app.command("attribute", rich_help_panel=OPERATOR)(attribute.attribute)
app.command("train", rich_help_panel=OPERATOR)(train.train)
app.command("report", rich_help_panel=OPERATOR)(report.report)
app.command("trace", rich_help_panel=OPERATOR)(trace.trace)
app.command("judge", rich_help_panel=JUDGE)(judge.judge)
app.add_typer(study.app, name="study", rich_help_panel=RESEARCHER)
app.command("demo", rich_help_panel=RESEARCHER)(demo.demo)


def _reflow(tree: typer.Typer) -> None:
    """Paragraphs of docstrings as one line each: the terminal's width breaks them, not the source's."""
    for command in tree.registered_commands:
        text = inspect.cleandoc(command.help or getattr(command.callback, "__doc__", None) or "")
        command.help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    for group in tree.registered_groups:
        if group.typer_instance is not None:
            _reflow(group.typer_instance)


_reflow(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.say(f"zktrace {zktrace.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
) -> None:
    pass


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is one line."""
    if sys.stdout is None:  # closed by whoever started us; commands still do their work
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    try:
        code = app(list(arguments), prog_name="zktrace", standalone_mode=False)
        if code == interrupt.CODE:  # all that typer makes of Ctrl-C
            return _fail(KeyboardInterrupt(), arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        output.say(error.format_message())
        return InputError.exit_code
    except SystemExit as left:  # shell completion, or click's answer to a reader that has left
        return BROKEN_PIPE if left.code == 1 else int(left.code or 0)
    except BaseException as error:
        return _fail(error, arguments)


def _fail(error: BaseException, arguments: Sequence[str]) -> int:
    """Say what went wrong in one line, and what the exit code is."""
    if "--debug" in arguments:
        traceback.print_exc()
    ours, code = _translated(error, arguments)
    if isinstance(error, OSError) and error.filename is None:  # the output failed: write no more to it
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if code != BROKEN_PIPE:
        output.complain(ours, as_json="--json" in arguments)
    return code


def _translated(error: BaseException, arguments: Sequence[str]) -> tuple[Error, int]:
    match error:
        case Error():
            return error, error.exit_code
        case click.ClickException():
            return InputError(
                f"{' '.join(error.format_message().split())} (see --help)"
            ), InputError.exit_code
        case KeyboardInterrupt() | click.Abort():
            return interrupted(arguments), interrupt.CODE
        case BrokenPipeError():
            return InputError("nobody reads the output"), BROKEN_PIPE
        case OSError() | ModuleNotFoundError() if (ours := _outer(error)) is not None:
            return ours, ours.exit_code
        case _:
            return InputError(
                f"internal error, {type(error).__name__}: {error} (--debug shows where)"
            ), INTERNAL


def _outer(error: OSError | ModuleNotFoundError) -> InputError | None:
    """What the machine lacks: a file, space on a disk, a package that an extra brings."""
    if isinstance(error, ModuleNotFoundError):
        return MissingExtra.of(error)
    return InputError(f"{error.filename or 'input or output'}: {error.strerror}")
