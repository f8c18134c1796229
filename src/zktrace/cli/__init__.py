"""The command line. One module a group; a command is one library call."""

import sys


def main() -> None:
    """Entry point of the `zktrace` command."""
    from zktrace.cli import interrupt

    heard = interrupt.listen(sys.argv[1:])
    try:
        from zktrace.cli.app import run

        code = run(sys.argv[1:])
        heard.told = True
    except KeyboardInterrupt:  # before the command began, or while it ended
        code = interrupt.CODE
    if code == interrupt.CODE:
        heard.leave()  # without waiting for anybody's threads
    sys.exit(code)
