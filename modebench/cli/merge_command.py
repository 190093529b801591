"""``modebench merge``: from shards to the run."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from modebench.cli import options as shared
from modebench.cli.errors import FAILED, INCOMPLETE, OK
from modebench.merging import merge


@click.command("merge")
@click.argument("shards", nargs=-1, required=True, type=shared.PATH, metavar="RUN...")
@click.option("--output", "-o", type=shared.PATH, required=True, help="Run folder, empty or new.")
def command(shards: tuple[Path, ...], output: Path) -> int:
    """Join the runs of all shards (made with --shard i/n) into the run that they are parts of.

    Prints the folder. The merged run equals the one that would have been made without --shard.
    """
    run = merge(shards, output)
    click.echo(str(run.path))
    missing = run.manifest["missing"]
    if not missing:
        return OK
    resume = f"modebench eval --resume {shlex.quote(str(run.path))}"
    click.echo(f"{missing} samples are missing; resume with: {resume}", err=True)
    return FAILED if run.manifest["status"] == "error" else INCOMPLETE
