"""``modebench generate``: the first stage alone."""

from __future__ import annotations

from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.progress import progress_reporter
from modebench.cli.running import announce, open_run, outcome, resume_command
from modebench.evaluation import generate


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
    run, engine = open_run(ctx, options)
    announce(run)
    run.update(status="running")
    try:
        with progress_reporter(options["progress"]) as progress:
            missing = generate(run, engine, progress)
    except KeyboardInterrupt:
        run.update(status="cancelled")
        click.echo(f"interrupted; resume with: {resume_command(run, 'generate')}", err=True)
        return 130
    run.update(status="success", missing=missing)
    click.echo(str(run.path))
    return outcome(run, missing, "generate")
