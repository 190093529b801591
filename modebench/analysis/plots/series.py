"""What the figures share: series and their styles, bands, points, legends, messages."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

# Okabe and Ito (2008), without their yellow, which is lost on white paper.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (7, 1, 1, 1, 1, 1)))

_TITLES = {"pcmd": "PCMD", "effective_modes": "effective modes", "distinct_pair_rate": "distinct-pair rate"}
# Columns of a tidy table that never name a series.
_NUMBERS = frozenset(
    {"split", "prompts", "prompts_without_samples", "samples_per_prompt", "metric", "value", "low", "high"}
    | {"n", "reportable", "k", "rank", "difference", "p", "p_holm", "value_a", "value_b"}
    | {"seeds", "seed_low", "seed_high", "seed_p", "units"}
)
_WIDTH = 34
_MOST_INSIDE = 5


class Style(NamedTuple):
    """How a series looks: a colour, a marker and a line style of its own."""

    color: str
    marker: str
    line: Any


class Series(NamedTuple):
    """Rows of a table that belong together, with their name and look."""

    label: str
    style: Style
    rows: pd.DataFrame


def draw_point(ax: Axes, row: pd.Series, style: Style) -> None:
    ax.errorbar(
        row["x"], row["y"],
        xerr=error_sides(row["x"], row["x_low"], row["x_high"]),
        yerr=error_sides(row["y"], row["y_low"], row["y_high"]),
        fmt=style.marker, color=style.color, elinewidth=0.9, markersize=7,
        markerfacecolor="white" if not reported(row) else style.color,
    )  # fmt: skip


def reported(row: pd.Series) -> bool:
    return all(bool(row.get(name, True)) for name in ("reportable", "x_reportable", "y_reportable"))


def draw_band(ax: Axes, series: Series, x: str, marked: Callable[[Any], bool] | None = None) -> bool:
    """A line with its band, or one point with its interval; False where nothing is defined.

    Args:
        ax: axes to draw on.
        series: rows sorted by x.
        x: column of the horizontal axis.
        marked: which x get a marker where there are several; None for all.
    """
    rows, style = series.rows, series.style
    known = rows[rows["value"].notna()]
    if known.empty:
        return False
    if len(known) == 1:
        [(_, row)] = known.iterrows()
        sides = error_sides(row["value"], row["low"], row["high"])
        ax.errorbar(row[x], row["value"], yerr=sides, color=style.color, capsize=4, fmt="none")
    elif known["low"].notna().any():
        lower, upper = rows["low"].astype(float), rows["high"].astype(float)
        ax.fill_between(rows[x].astype(float), lower, upper, color=style.color, alpha=0.15, linewidth=0)
    ax.plot(rows[x], rows["value"], color=style.color, linestyle=style.line, linewidth=1.6)
    if marked is not None and len(known) > 1:
        known = known[known[x].map(marked)]
    firm = np.array([reported(row) for _, row in known.iterrows()], dtype=np.bool_)
    for points, face in ((known[firm], style.color), (known[~firm], "white")):
        ax.plot(
            points[x], points["value"], style.marker, color=style.color, markerfacecolor=face, markersize=6
        )
    return True


def error_sides(value: float, low: float, high: float) -> Any:
    """Lengths of an error bar, [2, 1]; None where there is no interval."""
    if pd.isna(low) or pd.isna(high):
        return None
    return np.array([[max(0.0, value - low)], [max(0.0, high - value)]])


def series_of(rows: pd.DataFrame, x: str | None, names: Sequence[str]) -> Iterator[Series]:
    """The series of a table in the order of their first rows, each sorted by x.

    A single categorical column gives every series the look of its category's place, the same in every figure.
    """
    if not names:
        groups: dict[Any, pd.DataFrame] = {(): rows} if len(rows) else {}
    else:
        groups = dict(iter(rows.groupby(list(names), sort=False, dropna=False, observed=True)))
    fixed = len(names) == 1 and isinstance(rows[names[0]].dtype, pd.CategoricalDtype)
    for place, (key, part) in enumerate(groups.items()):
        number = int(part[names[0]].cat.codes.iloc[0]) if fixed else place
        label = ", ".join(map(named_value, names, key))
        if x is not None:
            part = part.sort_values(x, kind="stable")
            repeated = [a for a, b in pairwise(part[x]) if a == b]
            if repeated:
                raise ValueError(
                    f"several values at {x} {value_text(repeated[0])} for one series "
                    f"({label or 'all rows'}): choose rows, or name the column that tells them apart in `by`"
                )
        yield Series(label, style_of(number), part)


def series_columns(table: pd.DataFrame, by: str | Sequence[str] | None, x: str | None = None) -> list[str]:
    """The columns that name a series: those asked for, or all that differ."""
    if by is not None:
        names = [by] if isinstance(by, str) else list(by)
        return names if len(require(table, names)) else []
    return [
        str(name)
        for name in table.columns
        if name not in _NUMBERS and name != x and table[name].nunique(dropna=False) > 1
    ]


def of_metric(table: pd.DataFrame, metric: str, x: str | None = None) -> pd.DataFrame:
    """The rows of one metric, with the columns that a series needs."""
    table = require(table, ["metric", "value", "low", "high", *([x] if x else [])])
    return table[table["metric"] == metric]


def require(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table with these columns; one without rows gets them, as the summary of nothing has none.

    Raises:
        ValueError: it has rows and lacks a column.
    """
    missing = [name for name in columns if name not in table]
    if missing and len(table):
        raise ValueError(f"the table lacks the columns {missing}; it has {list(table.columns)}")
    return table.reindex(columns=[*table.columns, *missing]) if missing else table


def style_of(number: int) -> Style:
    return Style(COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)], LINES[number % len(LINES)])


def legend_entry(label: str, style: Style) -> Line2D:
    return Line2D(
        [], [], color=style.color, marker=style.marker, linestyle=style.line or "", label=wrapped(label)
    )


def has_hollow(summary: pd.DataFrame, metrics: Sequence[str]) -> bool:
    if "reportable" not in summary:
        return False
    shown = summary["metric"].isin(metrics) & summary["value"].notna()
    return bool((shown & ~summary["reportable"].astype(bool)).any())


def add_legend(ax: Axes, keys: Sequence[Any], hollow: bool = False) -> Axes:
    """A legend inside the axes, or to the right of them where it would cover the figure."""
    entries = list(keys)
    if hollow:
        label = "hollow: too few prompts"
        entries.append(Line2D([], [], color="0.3", marker="o", markerfacecolor="white", ls="", label=label))
    ax.spines[["top", "right"]].set_visible(False)
    if entries:
        outside = len(entries) > _MOST_INSIDE or any(len(str(key.get_label())) > 24 for key in entries)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1)} if outside else {}
        columns = 1 + len(entries) // 16
        ax.legend(handles=entries, frameon=False, fontsize="small", ncols=columns, **place)
    return ax


def from_zero(ax: Axes) -> None:
    """The vertical axis from 0 to a little above the data."""
    ax.set_ylim(0, 1.06 * ax.dataLim.y1 if ax.dataLim.y1 > 0 else 1)


def whole_numbers(ax: Axes, values: Iterable[float]) -> None:
    """Ticks of the horizontal axis at whole numbers."""
    distinct = sorted(set(values))
    if len(distinct) == 1:
        ax.set_xticks(distinct)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def say(ax: Axes, message: str) -> Axes:
    """Axes that hold a message and nothing else."""
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, textwrap.fill(message, 40), ha="center", va="center", transform=ax.transAxes)
    return ax


def axes_or_new(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def title_of(metric: str) -> str:
    return _TITLES.get(metric, metric.replace("_", " "))


def value_text(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "–" if np.isnan(value) else f"{value:g}"
    return "–" if value is None else str(value)


def named_value(name: str, value: object) -> str:
    """A value in a label: a text speaks for itself, a number needs its name."""
    return value if isinstance(value, str) else f"{name} {value_text(value)}"


def wrapped(label: str) -> str:
    """A label broken into lines, long words without a blank included."""
    return textwrap.fill(label, _WIDTH)
