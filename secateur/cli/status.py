"""How commands end: exit codes that scripts can rely on, one line of explanation, no traceback."""

from __future__ import annotations

from typing import Any

import click

from secateur.errors import AuditFailed, IndexFault, SecateurError

FOUND_WRONG = 1
CALLED_WRONG = 2
INTERRUPTED = 130  # what shells report for a process ended by SIGINT

# The library's errors name the Python call that helps; these are the names on the command line.
_ON_THE_COMMAND_LINE = {
    "build one with build_index()": "build one with: secateur index PATH",
    "index_location=": "--index-location",
    "use plan.to_spark(spark)": "ask Spark",
    "use_index=False": "--no-index",
    "verify_index(table, spark=spark) tells": "secateur verify --spark PATH tells",
}


class Interrupted(Exception):
    """Ctrl-C; the message says what state was left behind."""


class ScriptGroup(click.Group):
    """A group of commands in the order they were added; errors become one line on stderr and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (IndexFault, AuditFailed) as fault:
            code, message = FOUND_WRONG, str(fault)
        except SecateurError as error:
            code, message = CALLED_WRONG, str(error)
        except Interrupted as interrupt:
            code, message = INTERRUPTED, f"interrupted: {interrupt}"
        except KeyboardInterrupt:
            code, message = INTERRUPTED, "interrupted: the index is as it was"
        click.echo(f"secateur: {on_the_command_line(message)}", err=True)
        raise click.exceptions.Exit(code)


def on_the_command_line(message: str) -> str:
    """Replace the library's options and functions in a message by those of the command line."""
    for there, here in _ON_THE_COMMAND_LINE.items():
        message = message.replace(there, here)
    return message
