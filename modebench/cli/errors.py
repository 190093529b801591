"""From exceptions to one line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Callable

import click

from modebench.errors import InputError, SplitError, TrainingError, UsageError
from modebench.sampling.base import EngineUnavailable
from modebench.verifiers import InvalidReference

OK, FAILED, USAGE, INCOMPLETE, INTERRUPTED = 0, 1, 2, 3, 130
_INPUT_ERRORS = (InputError, SplitError, UsageError, EngineUnavailable, InvalidReference)


def exit_code(run: Callable[[], object]) -> int:
    """Run a command and translate how it ends."""
    try:
        result = run()
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "modebench"
        click.echo(f"error: {_one_line(error.format_message())} (see {where} --help)", err=True)
        return USAGE
    except click.ClickException as error:
        click.echo(f"error: {_one_line(error.format_message())}", err=True)
        return USAGE
    except _INPUT_ERRORS as error:
        click.echo(f"error: {_one_line(error)}", err=True)
        return USAGE
    except (OSError, TrainingError) as error:
        click.echo(f"error: {_one_line(error)}", err=True)
        return FAILED
    return result if isinstance(result, int) else OK


def _one_line(error: object) -> str:
    return " ".join(str(error).split())
