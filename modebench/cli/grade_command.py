"""``modebench grade``: verdicts on recorded responses."""

from __future__ import annotations

from pathlib import Path

import click

from modebench.cli import options as shared
from modebench.config import Selection
from modebench.errors import UsageError
from modebench.evaluation import grade, summarize_run
from modebench.grading import grade_file
from modebench.runs import RunFolder
from modebench.verifiers import Reading


@click.command("grade")
@click.argument("source", type=shared.PATH)
@click.option(
    "--output", "-o", type=shared.PATH, help="Where to write verdicts of a file (not of a run folder)."
)
@click.option("--tasks", type=shared.PATH, help="Tasks of the file's responses  [default: the frozen splits]")
@click.option("--level", type=click.IntRange(1, 5), help="Level of the tasks that do not state one.")
@click.option("--strip-reasoning", is_flag=True, help="Split <think>…</think> off a file's responses first.")
@shared.reading_option
def command(
    source: Path,
    output: Path | None,
    tasks: Path | None,
    level: int | None,
    strip_reasoning: bool,
    reading: Reading,
) -> int:
    """Judge the responses of SOURCE: a run folder, or a JSON Lines file.

    A file may hold our records, any lines with task_id and response, or published records
    {"id", "level", "domain", "answer", "responses": [...]}. OUT.jsonl gets a line per response:
    task_id, domain, level, sample, status, mode, detail.
    """
    if source.is_dir():
        if output is not None:
            raise UsageError("a run folder keeps its verdicts itself; --output is for files")
        run = RunFolder.open(source)
        click.echo(str(grade(run, reading)))
        if reading == run.manifest["reading"]:
            summarize_run(run)
        return 0
    if output is None:
        raise UsageError(f"--output is missing: where should the verdicts on {source} go?")
    known = None
    if tasks is not None:
        levels = Selection().levels if level is None else (level,)
        sets = Selection(file=str(tasks), levels=levels).load()
        known = [task for members in sets for task in members]
    counts = grade_file(source, output, reading=reading, tasks=known, strip_reasoning=strip_reasoning)
    total = sum(counts.values())
    click.echo(
        f"{total} responses: " + ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
    )
    return 0
