"""The command line. One module a group; a command is one library call."""

import sys


def main() -> None:
    """Entry point of the `zktrace` command."""
    from zktrace.cli.app import run

    sys.exit(run(sys.argv[1:]))
