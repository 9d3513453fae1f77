"""How commands end: exit codes that scripts can rely on, one line of explanation, no traceback."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import traceback
from typing import Any

import click

from secateur.cli.structures import flag_of
from secateur.errors import AuditFailed, IndexFault, SecateurError
from secateur.io.storage.redaction import without_secrets

FOUND_WRONG = 1
CALLED_WRONG = 2
CRASHED = 70  # EX_SOFTWARE of sysexits.h
TABLE = "secateur.table"  # in the context's meta: the table that a command works on, quoted for a shell
INTERRUPTED = 130  # what shells report for a process ended by SIGINT

# The library's errors name the Python call that helps; these are the names on the command line.
_ON_THE_COMMAND_LINE = {
    "build one with build_index()": "build one with: secateur index PATH",
    "index_location=": "--index-location",
    "by params=": "by --param NAME=VALUE",
    "by log=": "by --log FILE",
    "use plan.to_spark(spark)": "ask Spark",
    "use_index=False": "--no-index",
    "verify_index(table, spark=spark) shows": "secateur verify --spark PATH shows",
}
_ARGUMENT = r"\w+=(?:\[[^]]*\]|\{(?:[^{}]|\{[^{}]*\})*\})"  # a list of columns, or a mapping from them to settings
_CALL = re.compile(rf"\b(build|refresh)_index\(table, spark=spark(?:, ({_ARGUMENT}))?\)")
_TUNE = re.compile(r"\btune\(table, budget=(\d+), apply=True\)")
_PLACE = re.compile(r"\b(secateur(?: [a-z-]+)+) PATH\b")
_ADD = re.compile(rf"\badd {_ARGUMENT}(?: or {_ARGUMENT})*")
_ONE = re.compile(_ARGUMENT)


class Interrupted(Exception):
    """Ctrl-C was pressed; the message says what state was left behind."""


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
        except OSError as error:
            if error.errno == errno.EPIPE:
                _end_quietly()
            code, message = CALLED_WRONG, without_secrets(str(error))
        except (click.exceptions.Exit, click.Abort, click.ClickException):
            raise
        except Exception as error:
            code, message = _crashed(error)
        click.echo(f"secateur: {on_the_command_line(message)}", err=True)
        raise click.exceptions.Exit(code)


def on_the_command_line(message: str, table: str | None = None) -> str:
    """Replace the library's options and functions in a message by those of the command line.

    `table` is the table that it is about, if that is not the one that the command works on.
    """
    for there, here in _ON_THE_COMMAND_LINE.items():
        message = message.replace(there, here)
    message = _TUNE.sub(r"secateur tune PATH --budget \1 --apply", message)
    message = _ADD.sub(_flags, _CALL.sub(_command, message))
    context = click.get_current_context(silent=True)
    named = None if context is None else context.meta.get(TABLE)
    place = named if table is None else shlex.quote(table)
    return message if place is None else _PLACE.sub(lambda match: f"{match[1]} {place}", message)


def _flags(match: re.Match[str]) -> str:
    return _ONE.sub(lambda argument: flag_of(argument[0]), match[0])


def _command(match: re.Match[str]) -> str:
    name = {"build": "index", "refresh": "refresh"}[match[1]]
    return " ".join(filter(None, (f"secateur {name} PATH", flag_of(match[2]) if match[2] else "")))


def _end_quietly() -> None:
    """End with exit code 0 if the reader is gone, as in ``secateur prune ... | head``. Raises click's Exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush finds a reader
    raise click.exceptions.Exit(0)


def _crashed(error: Exception) -> tuple[int, str]:
    """Print the traceback of an unforeseen error. Return the exit code and a line for the user."""
    traceback.print_exception(error)
    return CRASHED, "this is a defect of secateur, not of the call; the lines above say where. Nothing was published"
