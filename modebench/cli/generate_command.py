"""``modebench generate``: the first stage alone."""

from __future__ import annotations

from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.running import open_work
from modebench.evaluation import Progress, generate
from modebench.runs import RunFolder
from modebench.sampling import Engine


@click.command("generate")
@click.option("--model", "-m", help=shared.MODEL_HELP)
@shared.selection_options
@shared.sampling_options
@shared.reading_option
@shared.engine_options
@shared.server_options
@shared.output_option
@shared.resume_option
@shared.progress_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Let a model write responses; judge them later with ``modebench grade``."""
    return open_work(ctx, options, "generate").carry_out(_generate, options["progress"])


def _generate(run: RunFolder, engine: Engine, progress: Progress | None) -> int:
    run.update(status="running")
    try:
        missing = generate(run, engine, progress)
    except KeyboardInterrupt:
        run.update(status="cancelled")
        raise
    run.update(status="success", missing=missing)
    click.echo(str(run.path))
    return missing
