"""The figures; see the package for what they have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from modebench.analysis.plots.series import (
    COLORS,
    LINES,
    add_legend,
    axes_or_new,
    draw_band,
    draw_point,
    error_sides,
    from_zero,
    has_hollow,
    legend_entry,
    named_value,
    of_metric,
    require,
    say,
    series_columns,
    series_of,
    style_of,
    title_of,
    whole_numbers,
    wrapped,
)
from modebench.analysis.prompts import prompt_table


def collapse_curve(
    summary: pd.DataFrame,
    ax: Axes | None = None,
    *,
    metrics: Sequence[str] = ("pcmd", "accuracy"),
    by: str | Sequence[str] | None = None,
) -> Axes:
    """Metrics over training steps, with bands: an arm a colour and marker, a metric a line style.

    Args:
        summary: from ``mb.summarize(samples, by=[…, "step"])``.
        ax: axes to draw on.
        metrics: names of metrics, the first with a solid line.
        by: columns that name a series; None for all that differ.

    Raises:
        ValueError: a column is missing, or a series has two values at one step.
    """
    ax, names = axes_or_new(ax), series_columns(summary, by, "step")
    drawn: dict[str, Line2D] = {}
    for metric, line in zip(metrics, LINES, strict=False):
        for series in series_of(of_metric(summary, metric, "step"), "step", names):
            shown = series._replace(style=series.style._replace(line=line))
            if draw_band(ax, shown, "step"):
                drawn.setdefault(series.label, legend_entry(series.label, series.style._replace(line="")))
    if not drawn:
        return say(ax, f"no value of {' or '.join(map(title_of, metrics))} is defined")
    lines = [
        Line2D([], [], color="0.3", linestyle=line, label=title_of(metric))
        for metric, line in zip(metrics, LINES, strict=False)
    ]
    arms = list(drawn.values()) if len(drawn) > 1 or names else []
    ax.set(xlabel="training step", ylabel=" / ".join(map(title_of, metrics)))
    whole_numbers(ax, summary["step"])
    from_zero(ax)
    return add_legend(ax, [*arms, *lines], has_hollow(summary, metrics))


def accuracy_diversity(
    summary: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x: str = "accuracy",
    y: str = "pcmd",
    by: str | Sequence[str] | None = None,
) -> Axes:
    """One point a cell in the plane of two metrics, with both intervals: up and right is better.

    Args:
        summary: from ``mb.summarize``.
        ax: axes to draw on.
        x, y: names of metrics.
        by: columns that name a point; None for all that differ.

    Raises:
        ValueError: a column is missing, or a point has two values.
    """
    ax, names = axes_or_new(ax), series_columns(summary, by)
    keys = []
    for series in series_of(_plane(summary, x, y, names), None, names):
        [(_, row)] = series.rows.iterrows()
        draw_point(ax, row, series.style)
        keys.append(legend_entry(series.label, series.style._replace(line="")))
    if not keys:
        return say(ax, f"no cell has both {title_of(x)} and {title_of(y)}")
    return add_legend(_label_plane(ax, x, y), keys if names else [], has_hollow(summary, (x, y)))


def temperature_frontier(
    summary: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x: str = "accuracy",
    y: str = "pcmd",
    by: str | Sequence[str] | None = None,
) -> Axes:
    """The plane of `accuracy_diversity`, the points of a series joined in the order of temperature.

    Args:
        summary: from ``mb.summarize(samples, by=[…, "temperature"])``.
        ax: axes to draw on.
        x, y: names of metrics.
        by: columns that name a series; None for all that differ.

    Raises:
        ValueError: a column is missing, or a series has two values at one temperature.
    """
    ax, names = axes_or_new(ax), series_columns(summary, by, "temperature")
    points = _plane(summary, x, y, [*names, "temperature"])
    keys = []
    for series in series_of(points, "temperature", names):
        ax.plot(series.rows["x"], series.rows["y"], color=series.style.color, linestyle=series.style.line)
        for _, row in series.rows.iterrows():
            draw_point(ax, row, series.style)
            text = f"T={row['temperature']:g}"
            ax.annotate(text, (row["x"], row["y"]), (5, 5), textcoords="offset points", fontsize="small")
        keys.append(legend_entry(series.label, series.style))
    if not keys:
        return say(ax, f"no temperature has both {title_of(x)} and {title_of(y)}")
    return add_legend(_label_plane(ax, x, y), keys if names else [], has_hollow(summary, (x, y)))


def k_curves(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    metric: str = "pass@k",
    by: str | Sequence[str] | None = None,
) -> Axes:
    """pass@k or modes@k against the number of attempts k, with bands.

    Args:
        table: from `modebench.analysis.curves` (columns metric, k, value, low, high), or from
            ``mb.summarize``, whose metrics ``pass@1``, ``pass@2``, … are the points.
        ax: axes to draw on.
        metric: ``pass@k`` or ``modes@k``.
        by: columns that name a series; None for all that differ.

    Raises:
        ValueError: a column is missing, or a series has two values at one k.
    """
    ax, points = axes_or_new(ax), table
    if "k" not in table:
        table = require(table, ["metric"])
        number = table["metric"].astype(str).str.extract(rf"^{metric.removesuffix('k')}(\d+)$")[0]
        points = table[number.notna()].assign(k=number.dropna().astype(int), metric=metric)
    names = series_columns(points, by, "k")
    keys, ks = [], set[int]()
    for series in series_of(of_metric(points, metric, "k"), "k", names):
        if draw_band(ax, series, "k", _marked):
            keys.append(legend_entry(series.label, series.style))
            ks |= set(series.rows.loc[series.rows["value"].notna(), "k"])
    if not keys:
        return say(ax, f"no value of {metric} is defined")
    ax.set_xscale("log", base=2)
    ax.set_xticks([k for k in sorted(ks) if _marked(k)] or sorted(ks))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set(xlabel="attempts k", ylabel=metric)
    from_zero(ax)
    return add_legend(ax, keys if names else [])


def _marked(k: int) -> bool:
    """Whether a point has a marker and a tick: the powers of two."""
    return k & (k - 1) == 0


def mode_spectrum(
    spectrum: pd.DataFrame, ax: Axes | None = None, *, by: str | Sequence[str] | None = None
) -> Axes:
    """Rank–abundance: the share of the correct samples in the most frequent mode, the second, and so on.

    Args:
        spectrum: from `modebench.analysis.curves`, with the columns rank, value, low, high.
        ax: axes to draw on.
        by: columns that name a series; None for all that differ.

    Raises:
        ValueError: a column is missing, or a series has two values at one rank.
    """
    ax, names = axes_or_new(ax), series_columns(spectrum, by, "rank")
    spectrum = require(spectrum, ["rank", "value", "low", "high"])
    keys = [
        legend_entry(s.label, s.style) for s in series_of(spectrum, "rank", names) if draw_band(ax, s, "rank")
    ]
    if not keys:
        return say(ax, "no prompt has a correct sample")
    ax.set(xlabel="rank of the mode in its prompt", ylabel="share of correct samples")
    whole_numbers(ax, spectrum["rank"])
    from_zero(ax)
    return add_legend(ax, keys if names else [])


def before_after(before: pd.DataFrame, after: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Modes of every prompt before and after, prompts sorted by what they had.

    Compared is modes@k at the largest k that every common prompt has in both tables, so that unequal
    numbers of samples do no harm.

    Args:
        before, after: long tables of samples; prompts are matched by domain, level, split and task_id.
        ax: axes to draw on.
    """
    ax = axes_or_new(ax)
    pairs, k = _paired_modes(before, after)
    if pairs.empty:
        return say(ax, "no prompt has graded samples in both tables")
    place = np.arange(1, len(pairs) + 1)
    old, new = pairs["before"].to_numpy(), pairs["after"].to_numpy()
    size = float(np.clip(400 / len(pairs), 3, 7))
    ax.vlines(place, old, new, color="0.7", linewidth=min(1.2, size / 4), zorder=1)
    ax.plot(place, old, "o", color=COLORS[0], markerfacecolor="white", markersize=size, label="before")
    ax.plot(place, new, "s", color=COLORS[1], markersize=size - 1, label="after")
    counts = f"{(new > old).sum()} more, {(new < old).sum()} fewer, {(new == old).sum()} equal"
    prompts = "1 prompt" if len(pairs) == 1 else f"{len(pairs)} prompts"
    ax.set(xlabel=f"{prompts}: {counts}", ylabel=f"modes@{k}")
    whole_numbers(ax, place)
    from_zero(ax)
    return add_legend(ax, ax.get_legend_handles_labels()[0])


def forest(
    comparison: pd.DataFrame,
    ax: Axes | None = None,
    *,
    metrics: Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
) -> Axes:
    """Paired differences with their intervals, one row each, and the line of no difference.

    A star: significant at 0.05 after Holm's adjustment.

    Args:
        comparison: from ``mb.compare(a, b)``: columns metric, difference, low, high, optionally p and p_holm,
            and those that name a row.
        ax: axes to draw on.
        metrics: which metrics, in this order; None for all.
        by: columns that name a row beside its metric; None for all that differ.

    Raises:
        ValueError: a column is missing.
    """
    comparison = require(comparison, ["metric", "difference", "low", "high"])
    ax, names = axes_or_new(ax), series_columns(comparison, by)
    order = list(dict.fromkeys(comparison["metric"])) if metrics is None else list(metrics)
    rows = comparison[comparison["metric"].isin(order)].sort_values(
        "metric", key=lambda column: column.map(order.index), kind="stable"
    )
    if rows["difference"].notna().sum() == 0:
        return say(ax, "no difference is defined")
    labels = []
    for place, (_, row) in enumerate(rows.iterrows()):
        style = style_of(order.index(row["metric"]))
        labels.append(
            wrapped(" · ".join([title_of(row["metric"]), *(named_value(name, row[name]) for name in names)]))
        )
        if pd.notna(row["difference"]):
            sides = error_sides(row["difference"], row["low"], row["high"])
            ax.errorbar(row["difference"], place, xerr=sides, fmt=style.marker, color=style.color, capsize=3)
        text = _difference_text(row)
        ax.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    ax.axvline(0, color="0.3", linewidth=0.8, linestyle="--", zorder=0)
    ax.set(xlabel="difference", ylim=(len(rows) - 0.5, -0.5))
    ax.set_yticks(range(len(rows)), labels)
    return ax


_ALPHA = 0.05


def _difference_text(row: pd.Series) -> str:
    if pd.isna(row["difference"]):
        return "undefined"
    text = f"{row['difference']:+.3f}"
    if pd.notna(row["low"]):
        text += f" [{row['low']:+.3f}, {row['high']:+.3f}]"
    p, adjusted = row.get("p"), row.get("p_holm")
    if p is not None and pd.notna(p):
        text += f"  p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"
    return f"{text} *" if adjusted is not None and adjusted < _ALPHA else text


def _paired_modes(before: pd.DataFrame, after: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """modes@k of the prompts that both tables have (columns before, after), and k."""
    keys = [c for c in ("domain", "level", "split", "task_id") if c in before and c in after]
    plain = [t.astype(dict.fromkeys(keys, object)) for t in (before, after)]
    counts = [prompt_table(t, by=keys, ks=[1])[[*keys, "graded"]] for t in plain]
    common = counts[0].merge(counts[1], on=keys, suffixes=("_before", "_after"))
    graded = common[["graded_before", "graded_after"]].min(axis=1)
    common, k = common.loc[graded > 0, keys], int(graded[graded > 0].min()) if (graded > 0).any() else 0
    if common.empty:
        return common, k
    for table, name in zip(plain, ("before", "after"), strict=True):
        modes = prompt_table(table, by=keys, ks=[k]).rename(columns={f"modes@{k}": name})
        common = common.merge(modes[[*keys, name]], on=keys)
    return common.sort_values(["before", "after"], ascending=False, kind="stable"), k


def _plane(summary: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> pd.DataFrame:
    """Cells where both metrics are defined: the names, x, x_low, x_high, y, y_low, y_high, reportable."""
    summary = require(summary, [*names, "metric", "value", "low", "high"])
    sides = []
    for side, metric in (("x", x), ("y", y)):
        rows = of_metric(summary, metric).dropna(subset="value")
        if rows.duplicated(list(names)).any() if names else len(rows) > 1:
            raise ValueError(f"several values of {metric} for one point: name a column that tells them apart")
        limits = {"value": side, "low": f"{side}_low", "high": f"{side}_high"}
        keep = [*names, *limits, *(["reportable"] if "reportable" in rows else [])]
        sides.append(rows[keep].rename(columns=limits | {"reportable": f"{side}_reportable"}))
    return sides[0].merge(sides[1], on=list(names)) if names else sides[0].merge(sides[1], how="cross")


def _label_plane(ax: Axes, x: str, y: str) -> Axes:
    ax.set(xlabel=title_of(x), ylabel=title_of(y))
    ax.margins(0.08)
    return ax
