"""``modebench summarize``: numbers of graded runs."""

from __future__ import annotations

from pathlib import Path

import click

from modebench.analysis.summary import summary_document
from modebench.analysis.table import FORMATS, render
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.samples import Run, load_runs
from modebench.verifiers import Reading


@click.command("summarize")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@click.option(
    "--by", metavar="NAME[,NAME]", callback=shared.names, default="model,domain,level", show_default=True,
    help="What makes a cell: model, domain, level, split, seed, step, arm, temperature, prefix.",
)  # fmt: skip
@click.option("--format", "layout", type=click.Choice((*FORMATS, "table")), default="text", show_default=True)
@click.option("--bootstrap", type=int, default=0, show_default=True, help="Bootstrap draws over prompts.")
@click.option(
    "--upper-level", metavar="NAME",
    help="With --bootstrap: draw this first, then prompts; seed for runs of several seeds in one cell.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@click.option(
    "--min-eligible", type=int, default=30, show_default=True, help="Prompts that make PCMD reportable."
)
@click.option(
    "--distinct-streams", is_flag=True,
    help="Below every cell its numbers without samples that are copies of others.",
)  # fmt: skip
@click.option("--chance/--no-chance", default=True, help="Chance rows below every cell of a table.")
@shared.reading_option
def command(
    sources: tuple[Path, ...],
    by: tuple[str, ...],
    layout: str,
    bootstrap: int,
    upper_level: str | None,
    seed: int,
    min_eligible: int,
    distinct_streams: bool,
    chance: bool,
    reading: Reading,
) -> int:
    """Summarise SOURCES: run folders, folders of runs, or JSON Lines files of judged samples."""
    runs = load_runs(sources)
    samples = runs.samples(reading, texts=False)
    profiles = {run.folder.manifest["profile"] for run in runs if isinstance(run, Run)}
    try:
        document = summary_document(
            samples,
            by=[name for name in by if name != "model" or samples["model"].nunique() > 1] or ["domain"],
            min_eligible=min_eligible,
            bootstrap=bootstrap,
            upper_level=upper_level,
            seed=seed,
            reading=reading,
            profile=", ".join(sorted(profiles)) or None,
            chance=runs.chance(reading),
            distinct_streams=distinct_streams,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    click.echo(render(document, "text" if layout == "table" else layout, chance=chance))
    return 0
