"""`python -m zktrace` is the `zktrace` command."""

from zktrace.cli import main

main()
