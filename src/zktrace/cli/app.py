"""The command tree and what happens when a command fails.

Exit codes: 0 done or upheld, 1 examined and rejected, 2 usage or unreadable input, 70 a fault of ours,
130 interrupted, 141 nobody reads the output. `trace` alone also has 3 (a lead) and 4 (no evidence).
"""

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Final

import click
import typer

import zktrace
from zktrace.cli import interrupt, output
from zktrace.cli.interrupt import interrupted
from zktrace.cli.shelf import Command, shelved
from zktrace.errors import Error, InputError, MissingExtra

INTERNAL = 70
BROKEN_PIPE = 141

STATION: Final = "For a station"
OPERATOR: Final = "For the operator"
WITNESS: Final = "For a witness"
JUDGE: Final = "For a judge"
RESEARCHER: Final = "For a researcher"

# In the order in which they are used; whoever uses them stand in the order of the life cycle.
COMMANDS: Final = {
    "credential": Command(
        "credential:app", STATION, "Create credentials; prove and verify that a station holds one."
    ),
    "join": Command(
        "serve:join",
        STATION,
        "Enrol at a service, with an invitation of its operator. The key stays here; its proof is sent.",
    ),
    "login": Command(
        "serve:login",
        STATION,
        "Sign in at a service with a station's credential, and print a link for the browser that works once.",
    ),
    "sign": Command(
        "signing:sign",
        STATION,
        "Sign at a service for copies that came: of a release, or of the rounds of a guarded one.",
    ),
    "fetch": Command(
        "serve:fetch",
        STATION,
        "Fetch a station's own copy from a service, and check its digest. An interrupted download goes on.",
    ),
    "init": Command(
        "registry:init",
        OPERATOR,
        "Make a workspace: a code key, and a registry whose first entry commits to it.",
    ),
    "offer": Command(
        "enrolment:offer",
        OPERATOR,
        "Print the line that stations need for their requests to enrol. Publish it: it is no secret.",
    ),
    "enrol": Command(
        "enrolment:enrol",
        OPERATOR,
        "Enrol a station: it gets the next place, and its row is fixed by both sides from now on.",
    ),
    "reserve": Command(
        "enrolment:reserve", OPERATOR, "Promise seeds for more stations, or releases, than the setup did."
    ),
    "stations": Command("registry:stations", OPERATOR, "List the stations in the order of their rows."),
    "revoke": Command(
        "registry:revoke",
        OPERATOR,
        "Revoke a station: it gets no further copies. Its row is kept and still traced.",
    ),
    "guard": Command("guard:app", OPERATOR, "Mark every broadcast of a federation (docs/guard.md)."),
    "train": Command(
        "train:train",
        OPERATOR,
        "Train a federation: pre-training, rounds of local episodes, averaging; codewords go into the "
        "scales.",
    ),
    "report": Command(
        "report:report",
        OPERATOR,
        "Draw a training run as one HTML file: curves, marks, who was absent, where it came from.",
    ),
    "attribute": Command(
        "attribute:attribute",
        OPERATOR,
        "Read every station's component from a model's BatchNorm scales and compare it with all codewords.",
    ),
    "release": Command(
        "dispatch:release",
        OPERATOR,
        "Put a shared model on record, with how copies of it will be read. The model itself is not changed.",
    ),
    "dispatch": Command(
        "dispatch:dispatch",
        OPERATOR,
        "Write one marked copy a station and put it on record. The shared model stays as it is.",
    ),
    "receipts": Command("receipts:app", OPERATOR, "Who signed for which copy, and who did not."),
    "probes": Command("probes:app", OPERATOR, "Questions for a model that can only be queried."),
    "trace": Command(
        "trace:trace",
        OPERATOR,
        "Score a suspect against every enrolled station; name one only under a certificate.",
    ),
    "cases": Command(
        "cases:app",
        OPERATOR,
        "List the investigations: when, of what, at what price, how each ended, and its evidence.",
    ),
    "status": Command(
        "status:status",
        OPERATOR,
        "Show stations, releases, copies, cases, the budget left, and the head of the log.",
    ),
    "serve": Command(
        "serve:serve",
        OPERATOR,
        "Serve the workspace: an HTTP API and a console for browsers (docs/service.md).",
    ),
    "operator": Command("serve:app", OPERATOR, "Accounts of the console: operators and auditors."),
    "log": Command(
        "registry:log",
        OPERATOR,
        "The append-only log: its head, its proofs, and whether it still is what it was.",
    ),
    "registry": Command("registry:app", OPERATOR, "The registry as a whole."),
    "attest": Command(
        "attest:app",
        OPERATOR,
        "Statements about copies and suspects that other tools read (in-toto), and a check of them.",
    ),
    "witness": Command(
        "witness:app",
        WITNESS,
        "Watch logs of others, and sign what extends what was seen. Needs no workspace.",
    ),
    "judge": Command("judge:judge", JUDGE, "Check an accusation offline, step by step."),
    "model": Command("model:app", JUDGE, "Look into model files, which are never executed."),
    "bounds": Command(
        "bounds:app",
        JUDGE,
        "Thresholds, lengths, presence radius, rounds, hardness: what may be claimed. Scores have no unit; "
        "probabilities lie between 0 and 1.",
    ),
    "demo": Command(
        "demo:demo",
        RESEARCHER,
        "Ten simulated stations enrol, train and receive copies; copies leak; a judge checks the evidence.",
    ),
    "data": Command(
        "data:app", RESEARCHER, "Look at data sets: simulated CRPA interference, recordings, CIFAR-10."
    ),
    "attack": Command(
        "attack:app",
        RESEARCHER,
        "What a leaker may do to a copy before it is found. Research only: no key is read.",
    ),
    "study": Command("study:app", RESEARCHER, "Experiments: run what has no row yet, and append its row."),
}

app = typer.Typer(
    name="zktrace",
    cls=shelved(COMMANDS),
    help="Whose copy of the federated model leaked - with a bound that a judge can re-check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback must never print keys
)


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


def _outer(error: OSError | ModuleNotFoundError) -> Error | None:
    """What the machine lacks: a file, space on a disk, a package that an extra brings."""
    if isinstance(error, ModuleNotFoundError):
        return MissingExtra.of(error)
    return InputError(f"{error.filename or 'input or output'}: {error.strerror}")
