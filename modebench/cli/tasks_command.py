"""``modebench tasks``: look at tasks and try answers."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path

import click

from modebench.cli import options as shared
from modebench.cli.task_sets import build, calibrate, export, overlap, split_named, tasks_in
from modebench.domains import get_domain
from modebench.grading import TaskLookup
from modebench.prompts import build_messages
from modebench.splits import frozen_splits
from modebench.tasks import Task
from modebench.verifiers import Reading, verify

_SHOWN_MODES = 20


@click.group("tasks")
def command() -> None:
    """List, show, build, compare and export tasks."""


for _subcommand in (build, export, overlap, calibrate):
    command.add_command(_subcommand)


@command.command("ls")
@click.argument("name", required=False)
@click.option("--tasks", "file", type=shared.PATH, help="A JSON Lines file of tasks: list its tasks.")
def list_tasks(name: str | None, file: Path | None) -> int:
    """List the frozen splits, or the tasks of the split NAME, e.g. countdown/level1/eval."""
    if file is None and name is None:
        for split, entry in frozen_splits().items():
            click.echo(f"{split:32} {entry['count']:4} tasks  sha256 {entry['sha256'][:16]}…")
        return 0
    for task in tasks_in(file) if file is not None else split_named(str(name)):
        click.echo(f"{task.id:40} {'-' if task.modes is None else task.modes:>6} modes")
    return 0


@command.command("show")
@click.argument("task_id")
@click.option("--tasks", "file", type=shared.PATH, help="Where the task is  [default: the frozen splits]")
@click.option(
    "--modes", "shown", type=int, default=_SHOWN_MODES, show_default=True, help="Modes listed at most."
)
def show_task(task_id: str, file: Path | None, shown: int) -> int:
    """Show a task: prompt, reference, and its modes with an answer for each."""
    task = _find(task_id, file)
    for message in build_messages(task):
        click.echo(f"--- {message['role']}\n{message['content']}")
    click.echo(f"--- reference\n{json.dumps(task.reference, indent=2)}")
    click.echo(f"--- {'unknown number of' if task.modes is None else task.modes} modes")
    for solution in islice(get_domain(task.domain).solutions(task.reference, task.level), shown):
        click.echo(f"{solution.mode}\n    {solution.answer}")
    if task.modes is not None and task.modes > shown:
        click.echo(f"… and {task.modes - shown} more; --modes {task.modes} lists them all")
    return 0


@command.command("verify")
@click.argument("task_id")
@click.argument("response", required=False)
@click.option("--tasks", "file", type=shared.PATH, help="Where the task is  [default: the frozen splits]")
@shared.reading_option
def verify_response(task_id: str, response: str | None, file: Path | None, reading: Reading) -> int:
    """Judge RESPONSE (or standard input) to a task."""
    text = sys.stdin.read() if response is None else response
    verdict = verify(_find(task_id, file), text, reading)
    click.echo(json.dumps(verdict._asdict(), ensure_ascii=False))
    return 0


def _find(task_id: str, file: Path | None) -> Task:
    return TaskLookup(None if file is None else tasks_in(file)).find(task_id)
