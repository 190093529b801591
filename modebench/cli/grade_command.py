"""``modebench grade``: verdicts on recorded responses."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from modebench.cli import options as shared
from modebench.config import EvalConfig, Selection
from modebench.errors import UsageError
from modebench.evaluation import grade, summarize_run
from modebench.grading import Differences, differences_of_file, differences_of_run, grade_file
from modebench.runs import RunFolder
from modebench.tasks import Task
from modebench.verifiers import Reading
from modebench.verifiers.registry import READINGS

Asked = Reading | Literal["both"]


@click.command("grade")
@click.argument("source", type=shared.PATH)
@click.option(
    "--output", "-o", type=shared.PATH, help="Where to write verdicts of a file (not of a run folder)."
)
@click.option("--tasks", type=shared.PATH, help="Tasks of the file's responses  [default: the frozen splits]")
@click.option("--level", type=click.IntRange(1, 5), help="Level of the tasks that do not state one.")
@click.option("--strip-reasoning", is_flag=True, help="Split <think>…</think> off a file's responses first.")
@click.option(
    "--reading",
    type=click.Choice((*READINGS, "both")),
    default=shared.default_of(EvalConfig, "reading"),
    show_default=True,
    help="How verifiers read answers; both also shows where the two differ.",
)
def command(
    source: Path,
    output: Path | None,
    tasks: Path | None,
    level: int | None,
    strip_reasoning: bool,
    reading: Asked,
) -> int:
    """Judge the responses of SOURCE: a run folder, or a JSON Lines file.

    A file may hold our records, any lines with task_id and response, or published records
    {"id", "level", "domain", "answer", "responses": [...]}. OUT.jsonl gets a line per response:
    task_id, domain, level, sample, status, mode, detail; with --reading both the published verdict, and
    clean_status and clean_mode beside it.
    """
    if source.is_dir():
        if output is not None:
            raise UsageError("a run folder keeps its verdicts itself; --output is for files")
        _grade_folder(RunFolder.open(source), reading)
        return 0
    if output is None:
        raise UsageError(f"--output is missing: where should the verdicts on {source} go?")
    known = None if tasks is None else _tasks(tasks, level)
    counts = grade_file(source, output, reading=reading, tasks=known, strip_reasoning=strip_reasoning)
    total = sum(counts.values())
    click.echo(
        f"{total} responses: " + ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    )
    if reading == "both":
        click.echo(difference_table(differences_of_file(output)))
    return 0


def _grade_folder(run: RunFolder, reading: Asked) -> None:
    readings = READINGS if reading == "both" else (reading,)
    for each in readings:
        click.echo(str(grade(run, each)))
    if reading == "both":
        click.echo(difference_table(differences_of_run(run) or Differences()))
    if run.manifest["reading"] in readings:
        summarize_run(run)


def _tasks(path: Path, level: int | None) -> list[Task]:
    levels = Selection().levels if level is None else (level,)
    sets = Selection(file=str(path), levels=levels).load()
    return [task for members in sets for task in members]


def difference_table(found: Differences) -> str:
    """Where the two readings differ, a line for each domain and kind."""
    if not found:
        return "The published and the clean reading agree on every response."
    rows = [("domain", "published", "clean", "responses")]
    for (domain, published, clean), number in sorted(found.items()):
        rows.append(
            (domain, published, "same status, other mode" if published == clean else clean, str(number))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([f"The readings differ on {found.total()} responses:", *map(str.rstrip, lines)])
