"""``modebench summarize``: numbers of graded runs."""

from __future__ import annotations

from pathlib import Path

import click

from modebench.analysis.summary import summary_document
from modebench.analysis.table import FORMATS, render
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.runs import RunFolder
from modebench.samples import load_samples
from modebench.verifiers import Reading


@click.command("summarize")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@click.option(
    "--by", metavar="NAME[,NAME]", callback=shared.names, default="model,domain,level", show_default=True,
    help="What makes a cell: model, domain, level, split, seed, step, arm.",
)  # fmt: skip
@click.option("--format", "layout", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--bootstrap", type=int, default=0, show_default=True, help="Bootstrap draws over prompts.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option(
    "--min-eligible", type=int, default=30, show_default=True, help="Prompts that make PCMD reportable."
)
@shared.reading_option
def command(
    sources: tuple[Path, ...],
    by: tuple[str, ...],
    layout: str,
    bootstrap: int,
    seed: int,
    min_eligible: int,
    reading: Reading,
) -> int:
    """Summarise SOURCES: run folders, or JSON Lines files that ``modebench grade`` wrote."""
    samples = load_samples(sources, reading)
    profiles = {RunFolder.open(path).manifest["profile"] for path in sources if path.is_dir()}
    try:
        document = summary_document(
            samples,
            by=[name for name in by if name != "model" or samples["model"].nunique() > 1] or ["domain"],
            min_eligible=min_eligible,
            bootstrap=bootstrap,
            seed=seed,
            reading=reading,
            profile=", ".join(sorted(profiles)) or None,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    click.echo(render(document, layout))
    return 0
