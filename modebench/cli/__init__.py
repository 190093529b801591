"""The command line: one small module a command, imported when it is called."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module

import click

from modebench import __version__

COMMANDS = {
    "eval": "Measure a model: generate, grade and summarise.",
    "train": "Train a model with a method, and evaluate it all the way.",
    "coach": "Write prefixes that name ways to go about tasks, and check them.",
    "diagnose": "How the responses of a model pull on each other, and its strategies.",
    "pretrain": "Make the tiny policy that the package ships.",
    "sweep": "Train arms × domains × seeds from one file, and go on where it stopped.",
    "generate": "Let a model write responses into a run folder.",
    "merge": "Join the shards of a run.",
    "grade": "Judge a run folder or a file of responses.",
    "summarize": "Numbers of graded runs as a table, csv, json, markdown or latex.",
    "compare": "What changes from one model to another, prompt by prompt.",
    "attribution": "Where a change of training comes from: learned, retained, gradients, tasks, costs.",
    "power": "Prompts and samples that a difference needs to be seen.",
    "report": "A self-contained page: numbers, figures, prompts with their responses.",
    "show": "Look at responses of a run with their verdicts and modes.",
    "methods": "List the training methods with their formulas and defaults.",
    "tasks": "List, show, verify, build, export and compare tasks.",
}

EXIT_CODES = """\b
Exit codes: 0 done; 1 failed, or over the error budget; 2 usage or input
error; 3 finished with missing samples (the resume command is printed);
130 interrupted (the run can be resumed)."""


class _Commands(click.Group):
    """A group whose commands are imported only when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f"modebench.cli.{name}_command")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; commands: {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command is called {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="modebench")
def cli() -> None:
    """Measure solution-mode collapse of language models over five executable domains."""


def main() -> None:
    """Entry point: every foreseen error is one line on stderr and an exit code, never a traceback."""
    _warn_of_namesake()
    from modebench.cli.errors import exit_code

    sys.exit(exit_code(lambda: cli(standalone_mode=False)))


def _warn_of_namesake() -> None:
    """Say so when the published package, which has our import name and command, is installed too.

    Looks at folder names: importing importlib.metadata would double the start of ``--help``.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("modebench-") and name.endswith((".dist-info", ".egg-info")):
                click.echo(
                    f"warning: {name.rpartition('.')[0]} is installed too and has the same import name; they "
                    "overwrite each other: pip uninstall modebench, then reinstall modebench-toolkit",
                    err=True,
                )
                return
