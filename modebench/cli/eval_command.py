"""``modebench eval``: generate, grade and summarise in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.errors import INTERRUPTED
from modebench.cli.running import dry_run, open_work
from modebench.evaluation import finish
from modebench.runs import RunFolder


@click.command("eval")
@click.option("--model", "-m", help=shared.MODEL_HELP)
@shared.selection_options
@shared.sampling_options
@shared.prefix_options
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
    with --resume DIR. Several temperatures make several run folders under --output, summarised by
    temperature; with --prefixes the numbers are given by prefix, and which modes a prefix brings back.
    """
    if options["dry"]:
        dry_run(options, ctx)
        return 0
    work = open_work(ctx, options, "eval")
    code = work.carry_out(finish, options["progress"])
    if code != INTERRUPTED:
        click.echo(_result(work.runs, as_json=options["as_json"]))
    return code


def _result(runs: Sequence[RunFolder], as_json: bool) -> str:
    """The numbers of finished runs, of several by temperature; in words also what the prefixes brought."""
    from modebench.analysis.probing import render_probe
    from modebench.analysis.summary import summary_document
    from modebench.analysis.table import render
    from modebench.samples import load_runs
    from modebench.usage import usage_text

    found = load_runs([run.path for run in runs])
    documents = [member.summary() for member in found]
    document = documents[0]
    if len(runs) > 1:
        samples = found.samples(texts=False)
        by = ["temperature", *(["prefix"] if "prefix" in samples else []), "domain", "level"]
        manifest = runs[0].manifest
        document = summary_document(
            samples, by=by, reading=manifest["reading"], profile=manifest["profile"], chance=found.chance()
        )
        document |= {"constrained": True} if manifest.get("constrained") else {}
    if as_json:
        return render(document, "json")
    probes = [entry["probing"] for entry in documents if "probing" in entry]
    used = usage_text(documents)
    return "\n\n".join([render(document), *map(render_probe, probes), *([used] if used else [])])
