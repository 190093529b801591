"""``modebench eval``: generate, grade and summarise in one go."""

from __future__ import annotations

from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.progress import progress_reporter
from modebench.cli.running import announce, dry_run, open_run, outcome, resume_command
from modebench.evaluation import finish


@click.command("eval")
@click.option("--model", "-m", help=shared.MODEL_HELP)
@shared.selection_options
@shared.sampling_options
@shared.reading_option
@shared.engine_options
@shared.server_options
@shared.output_option
@shared.resume_option
@click.option("--dry-run", "dry", is_flag=True, help="Print the resolved settings and the first prompt.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary document instead of the table.")
@shared.progress_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Measure a model over executable tasks.

    Writes a run folder (run.json, responses.jsonl, verdicts.<reading>.jsonl, summary.json) and prints
    accuracy, pass@k, modes@k, PCMD, effective modes and coverage with intervals. A killed run goes on
    with --resume DIR.
    """
    if options["dry"]:
        dry_run(options, ctx)
        return 0
    run, engine = open_run(ctx, options)
    announce(run)
    try:
        with progress_reporter(options["progress"]) as progress:
            missing = finish(run, engine, progress)
    except KeyboardInterrupt:
        click.echo(f"interrupted; resume with: {resume_command(run, 'eval')}", err=True)
        return 130
    from modebench.analysis.table import render
    from modebench.samples import load_run

    document = load_run(run.path).summary()
    click.echo(render(document, "json" if options["as_json"] else "text"))
    return outcome(run, missing, "eval")
