"""``modebench summarize``: numbers of graded runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from modebench.analysis.summary import summary_document
from modebench.analysis.table import COLLAPSE_COLUMNS, COLLAPSE_LIMITS, FORMATS, render
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.results import BASE, load_results
from modebench.samples import Run, load_runs
from modebench.verifiers import Reading

_BY, _COLLAPSE_BY = ("model", "domain", "level"), ("domain", "arm")


@click.command("summarize")
@click.argument("sources", nargs=-1, required=True, type=shared.PATH)
@click.option(
    "--by", metavar="NAME[,NAME]", callback=shared.names,
    help="What makes a cell: model, domain, level, split, seed, step, arm, temperature, prefix  "
    f"[default: {','.join(_BY)}; with --collapse {','.join(_COLLAPSE_BY)}]",
)  # fmt: skip
@click.option(
    "--collapse", is_flag=True,
    help="Of training runs the collapse table: the arms at their last step, beside the policy that they all "
    "started from (arm base).",
)  # fmt: skip
@click.option("--format", "layout", type=click.Choice((*FORMATS, "table")), default="text", show_default=True)
@click.option("--bootstrap", type=int, default=0, show_default=True, help="Bootstrap draws over prompts.")
@click.option(
    "--upper-level", metavar="NAME",
    help="What the observations are in place of prompts; a bootstrap draws it first, then prompts  [default: "
    "seed where there are several in a cell]",
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
    collapse: bool,
    layout: str,
    bootstrap: int,
    upper_level: str | None,
    seed: int,
    min_eligible: int,
    distinct_streams: bool,
    chance: bool,
    reading: Reading,
) -> int:
    """Summarise SOURCES: run folders, folders of runs (training folders, sweeps), or JSON Lines files of
    judged samples.

    Runs of several seeds are summarised over seeds: intervals are t over the seeds.
    """
    runs, warnings = load_results(sources) if collapse else (load_runs(sources), [])
    samples = runs.samples(reading, texts=False)
    by = by or (_COLLAPSE_BY if collapse else _BY)
    by = tuple(name for name in by if name != "model" or samples["model"].nunique() > 1) or ("domain",)
    profiles = {run.folder.manifest["profile"] for run in runs if isinstance(run, Run)}
    if upper_level is None and "seed" not in by and samples["seed"].nunique() > 1:
        upper_level = "seed"
    try:
        document = summary_document(
            samples,
            by=by,
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
    layout = "text" if layout == "table" else layout
    if not collapse:
        click.echo(render(document, layout, chance=chance))
        return 0
    document["warnings"] += warnings
    _base_first(document["cells"], by)
    units = ["units"] if upper_level is not None else []
    columns = [*by, *units, "prompts×samples", *COLLAPSE_COLUMNS]
    click.echo(render(document, layout, columns, chance=False, limits=COLLAPSE_LIMITS))
    return 0


def _base_first(cells: list[dict[str, Any]], by: Sequence[str]) -> None:
    """Cells sorted by their keys, the arm that all others started from before them."""
    cells.sort(key=lambda cell: [cell[name] != BASE if name == "arm" else str(cell[name]) for name in by])
