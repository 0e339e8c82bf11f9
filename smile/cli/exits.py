"""Exit codes, the same for every subcommand; docs/cli.md has the same table, and a test compares the two."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a script may rely on."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    UNREACHABLE = 4
    REFUSED = 5
    INTERRUPTED = 130
    UNREAD = 141


MEANINGS = {
    Exit.OK: "all is well",
    Exit.FAILED: "the input has errors, or a check failed",
    Exit.USAGE: "the command was used wrongly, a name is unknown, or a file could not be read or written",
    Exit.PARTIAL: "some lines were refused, or some views could not be verified; the others are done",
    Exit.UNREACHABLE: "no broker answers, or not in time",
    Exit.REFUSED: "the brokers do not allow it",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.UNREAD: "nobody reads what is printed any more, as with `head`; nothing is said about it",
}
