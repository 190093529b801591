"""``modebench compare``: what changes from one model to another, prompt by prompt."""

from __future__ import annotations

from pathlib import Path

import click

from modebench.analysis.compare import comparison_document
from modebench.analysis.comparison_table import FORMATS, render_comparison
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.results import load_results
from modebench.samples import load_runs
from modebench.verifiers import Reading
from modebench.verifiers.registry import READINGS


@click.command("compare")
@click.argument("a", type=shared.PATH)
@click.argument("b", type=shared.PATH)
@click.option(
    "--by", metavar="NAME[,NAME]", callback=shared.names, default="domain,level", show_default=True,
    help="What makes a cell: domain, level, split.",
)  # fmt: skip
@click.option(
    "--metric", "starred", multiple=True, metavar="NAME",
    help="A metric to show and test; may be given again  [default: accuracy, pass@8, modes@8, "
    "distinct_pair_rate, pcmd]",
)  # fmt: skip
@click.option("--last", is_flag=True, help="Of training runs the evaluation at their last step.")
@click.option("--format", "layout", type=click.Choice((*FORMATS, "table")), default="text", show_default=True)
@click.option("--bootstrap", type=int, default=0, show_default=True, help="Draws in place of t intervals.")
@click.option(
    "--permutations", type=click.IntRange(1), default=10_000, show_default=True,
    help="Draws of the sign-flip test where its signs are too many to list.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of bootstrap and permutations.")
@click.option(
    "--min-eligible", type=int, default=30, show_default=True, help="Pairs that make ΔPCMD reportable."
)
@click.option("--reading", type=click.Choice(READINGS), help="Whose verdicts  [default: each run's reading]")
@click.option(
    "--allow-mismatch", "allow", multiple=True, metavar="NAME",
    help="A setting that may differ: temperature, top_p, top_k, max_tokens, stop, samples, reading, profile, "
    "system, prompts, template, tasks, seeds; may be given again.",
)  # fmt: skip
def command(
    a: Path,
    b: Path,
    by: tuple[str, ...],
    starred: tuple[str, ...],
    last: bool,
    layout: str,
    bootstrap: int,
    permutations: int,
    seed: int,
    min_eligible: int,
    reading: Reading | None,
    allow: tuple[str, ...],
) -> int:
    """Compare B with A: the same prompts, B − A.

    Each side is a run folder, a folder of runs that differ in their seed (paired by seed), or a JSON Lines
    file of judged samples; with --last a training folder, or a folder of them, such as an arm of a sweep.
    """
    (side_a, left_a), (side_b, left_b) = (
        load_results(side, base=False) if last else (load_runs(side), []) for side in (a, b)
    )
    try:
        document = comparison_document(
            side_a,
            side_b,
            by,
            reading=reading,
            allow=allow,
            starred=starred or None,
            bootstrap=bootstrap,
            permutations=permutations,
            seed=seed,
            min_eligible=min_eligible,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    document["warnings"] += [*left_a, *left_b]
    click.echo(render_comparison(document, "text" if layout == "table" else layout))
    return 0
