"""``modebench power``: how many prompts and samples a difference needs to be seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pandas as pd

from modebench.analysis.grid import LAYOUTS, Grid, render_grid
from modebench.analysis.power import METRICS, MetricName, Power, power
from modebench.cli import options as shared
from modebench.errors import UsageError
from modebench.samples import load_samples
from modebench.verifiers.registry import READINGS

_FORMATS = (*(name for name in LAYOUTS if name != "html"), "csv", "json", "table")
_COLUMNS = ("samples", "prompts", "eligible", "between_variance", "sampling_variance")


def _counts(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(dict.fromkeys(int(piece) for piece in value.split(",")))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of counts", ctx, param) from None


@click.command("power")
@click.option("--delta", type=float, required=True, help="The true difference to be seen.")
@click.option("--metric", type=click.Choice(METRICS), default="pcmd", show_default=True)
@click.option("--pilot", type=shared.PATH, help="A run (or a file of judged samples) to take variances from.")
@click.option("--between-variance", type=float, help="Without a pilot: of the prompts' true differences.")
@click.option("--sampling-variance", type=float, help="Without a pilot: of one sample of one model.")
@click.option(
    "--samples", metavar="K[,K]", callback=_counts, default="8,16,32,64", show_default=True,
    help="Samples a prompt of each model.",
)  # fmt: skip
@click.option(
    "--correlation", type=float, default=0.5, show_default=True,
    help="Assumed between the two models' true values over prompts; a pilot of one cannot tell.",
)  # fmt: skip
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the two-sided test.")
@click.option("--power", "chance", type=float, default=0.8, show_default=True, help="Chance to see it.")
@click.option("--reading", type=click.Choice(READINGS), help="Whose verdicts  [default: the run's reading]")
@click.option("--format", "layout", type=click.Choice(_FORMATS), default="text", show_default=True)
def command(
    delta: float,
    metric: MetricName,
    pilot: Path | None,
    between_variance: float | None,
    sampling_variance: float | None,
    samples: tuple[int, ...],
    correlation: float,
    alpha: float,
    chance: float,
    reading: str | None,
    layout: str,
) -> int:
    """Prompts that a paired comparison of two models needs to see a difference.

    With a pilot there is a row for each of its domains and levels, and each K.
    """
    rows = []
    for cell, table in _cells(pilot, reading):
        for k in samples:
            try:
                found = power(
                    delta,
                    metric,
                    pilot=table,
                    between_variance=between_variance,
                    sampling_variance=sampling_variance,
                    samples=k,
                    correlation=correlation,
                    alpha=alpha,
                    power=chance,
                )
            except ValueError as error:
                where = "".join(f"{name} {value}, " for name, value in cell.items())
                raise UsageError(f"{where.removesuffix(', ')}{': ' if where else ''}{error}") from None
            rows.append((cell, found))
    assumed = None if pilot is None else correlation
    click.echo(_rendered(rows, assumed, "text" if layout == "table" else layout))
    return 0


def _cells(pilot: Path | None, reading: str | None) -> Iterator[tuple[dict[str, Any], pd.DataFrame | None]]:
    """The cells of the pilot with their samples; a nameless one without a pilot."""
    if pilot is None:
        yield {}, None
        return
    samples = load_samples(pilot, reading, texts=False)
    for _, table in samples.groupby(["domain", "level"], observed=True):
        yield {name: str(table[name].iloc[0]) for name in ("domain", "level")}, table


def _rendered(rows: list[tuple[dict[str, Any], Power]], correlation: float | None, layout: str) -> str:
    records = [{**cell, **asdict(found)} for cell, found in rows]
    if layout == "json":
        return json.dumps({"correlation": correlation, "rows": records}, indent=2)
    if layout == "csv":
        return str(pd.DataFrame(records).to_csv(index=False))
    keys = list(rows[0][0])
    body = [
        [*(str(record[key]) for key in keys), *(_text(record[name]) for name in _COLUMNS)]
        for record in records
    ]
    header = [*keys, *(name.replace("_", " ") for name in _COLUMNS)]
    first = rows[0][1]
    notes = [
        f"prompts: to see a true difference of {first.delta:g} in {first.metric} with chance {first.power:g} "
        f"at level {first.alpha:g}, each model drawing that many samples a prompt (Miller 2024, "
        "arXiv:2411.00640); eligible: share of the prompts on which both define the metric"
    ]
    if correlation is not None:
        notes.append(f"assumed: both vary over prompts as the pilot does, with correlation {correlation:g}")
    left = [True] * len(keys) + [False] * len(_COLUMNS)
    return render_grid(Grid(header, body, None, notes, left), layout)


def _text(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4f}"
