"""``modebench sweep``: train every arm on every domain with every seed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from modebench.cli import options as shared
from modebench.cli.errors import FAILED, INTERRUPTED, OK
from modebench.cli.train_command import require_extra

if TYPE_CHECKING:
    from modebench.training.sweep_runs import Job


@click.command("sweep")
@click.argument("file", type=shared.PATH)
@click.option(
    "--output", "-o", type=shared.PATH, help="Folder of the sweep  [default: runs/NAME-OF-THE-FILE]"
)
@click.option("--jobs", "-j", type=click.IntRange(1), default=1, show_default=True, help="Runs at a time.")
@click.option("--dry-run", "dry", is_flag=True, help="Print every run, its rollouts and its command.")
def command(file: Path, output: Path | None, jobs: int, dry: bool) -> int:
    """Train what the YAML file FILE asks for: arms × domains × seeds, each run a process of its own.

    A run stands at DIR/DOMAIN/ARM/seed-N and is what the same modebench train makes. The same command again
    goes on with a sweep: finished runs are left as they are, interrupted ones resumed. What failed is told at
    the end, with exit code 1. Then: modebench summarize DIR --collapse
    """
    require_extra()
    from modebench.training.sweep import plan_sweep, state_of, write_manifest
    from modebench.training.sweep_file import read_sweep
    from modebench.training.sweep_runs import Job, carry_out
    from modebench.training.trainer import StopRequest

    asked = read_sweep(file)
    folder = output if output is not None else Path("runs") / file.stem
    planned = plan_sweep(asked)
    todo = [Job(run, folder / run.name, state_of(run, folder / run.name)) for run in planned]
    if dry:
        for job in todo:
            click.echo(
                f"{job.run.name}  {job.state}, {job.run.rollouts} rollouts  {_command(job.arguments())}"
            )
        return OK
    write_manifest(folder, asked, planned)
    again = _command(
        ["sweep", str(file), "--output", str(folder), *(["--jobs", str(jobs)] if jobs > 1 else [])]
    )
    unfinished = [job for job in todo if job.state != "finished"]
    click.echo(f"{len(todo)} runs, {len(todo) - len(unfinished)} finished before", err=True)
    stop = StopRequest()
    try:
        with stop.on_signals():
            carry_out(unfinished, jobs, stop, lambda text: click.echo(text, err=True))
    except KeyboardInterrupt:
        stop.made = True
    if stop.made:
        click.echo(f"interrupted; resume with: {again}", err=True)
        return INTERRUPTED
    return _close(todo, folder, again)


def _close(jobs: Sequence[Job], folder: Path, again: str) -> int:
    """Say what was spent, what failed and what comes next; the exit code."""
    from modebench.analysis.grid import render_grid
    from modebench.training.sweep_budget import budget_grid

    click.echo(render_grid(budget_grid([job.run for job in jobs], folder)))
    failed = [job for job in jobs if job.outcome == "failed"]
    for job in failed:
        click.echo(f"failed: {job.run.name}: {job.problem} (see {job.log})", err=True)
    if failed:
        click.echo(f"{len(failed)} of {len(jobs)} runs failed; try them again with: {again}", err=True)
        return FAILED
    click.echo(f"next: {_command(['summarize', str(folder), '--collapse'])}", err=True)
    return OK


def _command(arguments: Sequence[str]) -> str:
    return shlex.join(["modebench", *arguments])
