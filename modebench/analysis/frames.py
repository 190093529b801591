"""Tidy tables as text: chosen columns with their limits, and what they rest on below."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modebench.analysis.grid import DASH, LAYOUTS, Grid, render_grid

FORMATS = (*LAYOUTS, "csv", "json")


class Shown(NamedTuple):
    """A column of numbers as it is printed.

    Attributes:
        name: in the table.
        title: in the header.
        limits: names of the columns of its lower and upper limits; None for no limits.
        form: format of a number.
    """

    name: str
    title: str
    limits: tuple[str, str] | None = None
    form: str = ".3f"


def beside(table: pd.DataFrame, keys: Sequence[str], across: str) -> pd.DataFrame:
    """One row for rows that share their keys: a column VALUE stands once for each X of `across`, as VALUE.X.

    >>> long = pd.DataFrame({"arm": ["a", "a"], "metric": ["x", "y"], "value": [1, 2]})
    >>> beside(long, ["arm"], "metric").to_dict("records")
    [{'arm': 'a', 'value.x': 1, 'value.y': 2}]
    """
    wide: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table.to_dict("records"):
        one = wide.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys})
        one |= {f"{name}.{row[across]}": row[name] for name in row if name not in (*keys, across)}
    return pd.DataFrame(list(wide.values()))


def render_frame(
    table: pd.DataFrame, keys: Sequence[str], shown: Sequence[Shown], notes: Sequence[str], layout: str
) -> str:
    """A table in one of `FORMATS`; csv and json hold every column.

    Args:
        table: a row a line.
        keys: columns that name a row, set flush left.
        shown: columns of numbers.
        notes: lines below the table; in json they stand beside the rows.
        layout: the format.
    """
    if layout == "csv":
        return str(table.to_csv(index=False))
    if layout == "json":
        plain = table.astype(object).where(table.notna(), None)
        document = {"rows": plain.to_dict("records"), "notes": list(notes)}
        return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=_plain)
    rows = [
        [*(_text(row[key]) for key in keys), *(_number(row, column) for column in shown)]
        for row in table.to_dict("records")
    ]
    left = [True] * len(keys) + [False] * len(shown)
    return render_grid(Grid([*keys, *(c.title for c in shown)], rows, None, list(notes), left), layout)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _text(value: Any) -> str:
    return DASH if pd.isna(value) else str(value)


def _number(row: dict[Any, Any], column: Shown) -> str:
    value = row[column.name]
    if pd.isna(value):
        return DASH
    text = format(value, column.form)
    if column.limits is None:
        return text
    low, high = (row[name] for name in column.limits)
    return text if pd.isna(low) else f"{text} [{format(low, column.form)}, {format(high, column.form)}]"
