"""The command tree and what happens when a command fails.

Exit codes: 0 done or upheld, 1 examined and rejected, 2 usage or unreadable input, 130 interrupted.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import click
import typer

import zktrace
from zktrace.cli import attribute, bounds, credential, demo, model, output
from zktrace.errors import Error

INTERRUPTED = 130

app = typer.Typer(
    name="zktrace",
    help="Whose copy of the federated model leaked - with a bound that a judge can re-check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a traceback must never print keys
)
app.add_typer(credential.app, name="credential")
app.add_typer(model.app, name="model")
app.add_typer(bounds.app, name="bounds")
app.command("attribute")(attribute.attribute)
app.command("demo")(demo.demo)


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
    """Run one command and return its exit code; every failure of ours is one line."""
    debug = "--debug" in arguments
    try:
        code = app(list(arguments), prog_name="zktrace", standalone_mode=False)
    except Error as error:
        if debug:
            raise
        output.complain(error, as_json="--json" in arguments)
        return error.exit_code
    except click.ClickException as error:
        sys.stderr.write(f"error: {error.format_message()} (see --help)\n")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left; that is its choice
        sys.stderr.close()
        return 0
    return code if isinstance(code, int) else 0
