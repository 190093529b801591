"""Chance rows of both sides of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from modebench.analysis.chance import NO_CHANCE, ROWS
from modebench.analysis.summary import summary_document


def add_chance(
    cells: Sequence[dict[str, Any]],
    name: str,
    table: pd.DataFrame,
    side: Any,
    keys: Sequence[str],
    level: str | None,
    reading: str | None,
    ks: Sequence[int],
) -> None:
    """Give every cell the chance rows of one side, in place: ``{row: {metric: value}}``.

    Over several units (seeds) a value is their mean, None where one of them has none.

    Args:
        cells: of the comparison.
        name: ``a`` or ``b``.
        table: long table of the side.
        side: what the table came from; a bare table knows no chance.
        keys: columns that make the cells.
        level: column of the units, None with one.
        reading: whose verdicts.
        ks: the k of pass@k and modes@k.
    """
    chance = NO_CHANCE if isinstance(side, pd.DataFrame) else side.chance(reading)
    by = [*keys, *([level] if level else [])]
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for cell in summary_document(table, by, ks, chance=chance)["cells"]:
        found.setdefault(tuple(str(cell[key]) for key in keys), []).append(cell["chance"])
    for cell in cells:
        units = found[tuple(str(cell[key]) for key in keys)]
        cell["chance"][name] = {
            row: {
                metric: _mean([unit[row][metric]["value"] for unit in units])
                for metric in units[0][row]
                if _is_metric(units[0][row][metric])
            }
            for row in ROWS
        }


def _is_metric(entry: Any) -> bool:
    return isinstance(entry, dict) and "value" in entry


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
