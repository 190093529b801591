"""The figures of a report: which ones a set of samples calls for, as SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import NamedTuple

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from modebench.analysis import plots
from modebench.analysis.curves import mode_spectrum
from modebench.analysis.plots.series import named_value

_Draw = Callable[[pd.DataFrame, Axes, list[str]], Axes]

_WIDTH, _HEIGHT = 3.6, 3.0
_MOST_COLUMNS = 3


class Figure(NamedTuple):
    """A picture.

    Attributes:
        title: what it shows.
        caption: how to read it.
        svg: the picture, the same bytes for the same numbers.
    """

    title: str
    caption: str
    svg: bytes


# Title, caption and drawing of the figures that every report has.
_ALWAYS: tuple[tuple[str, str, _Draw], ...] = (
    (
        "pass@k",
        "The chance that k attempts hold a correct one, unbiased; bands are intervals over prompts.",
        lambda part, ax, by: plots.k_curves(part, ax, metric="pass@k", by=by),
    ),
    (
        "modes@k",
        "Distinct correct modes expected in k attempts; a curve that flattens early has few modes.",
        lambda part, ax, by: plots.k_curves(part, ax, metric="modes@k", by=by),
    ),
    (
        "Accuracy and diversity",
        "Right is more accurate, up is more diverse (PCMD: do two correct answers differ?).",
        lambda part, ax, by: plots.accuracy_diversity(part, ax, by=by),
    ),
)
_SPECTRUM: tuple[str, str, _Draw] = (
    "Mode spectrum",
    "The share of a prompt's correct answers in its commonest mode, the next, and so on; steep is collapsed.",
    lambda part, ax, by: plots.mode_spectrum(part, ax, by=by),
)
# The same of those that are drawn along a column in which runs differ.
_ALONG: dict[str, tuple[str, str, _Draw]] = {
    "step": (
        "Collapse curve",
        "PCMD (solid) and accuracy (dashed) over training; PCMD falling is collapse.",
        lambda part, ax, by: plots.collapse_curve(part, ax, by=by),
    ),
    "temperature": (
        "Temperature frontier",
        "What sampling temperature trades: each point is one temperature.",
        lambda part, ax, by: plots.temperature_frontier(part, ax, by=by),
    ),
}


def report_figures(
    samples: pd.DataFrame, summary: pd.DataFrame, comparison: pd.DataFrame | None = None
) -> list[Figure]:
    """The figures that these samples call for, a panel a domain and level.

    pass@k, modes@k, the accuracy–diversity plane and the mode spectrum always; the collapse curve where runs
    differ in their step, the frontier where they differ in their temperature; modes before and after where
    there are two runs, and their paired differences.

    Args:
        samples: long table, with the column run where there are several.
        summary: the tidy table of its summary document, by domain, level and what tells the runs apart.
        comparison: what `modebench.compare` says of two runs, by domain and level; None without.
    """
    varying = [
        name
        for name in ("model", "arm", "seed", "step", "temperature", "prefix")
        if name in summary and summary[name].nunique(dropna=False) > 1
    ]
    panels = _Panels(summary)
    figures = [panels.series(*figure, _ends(summary), varying) for figure in _ALWAYS]
    spectrum = mode_spectrum(samples, by=[*varying, "domain", "level"])
    figures.append(panels.series(*_SPECTRUM, _ends(spectrum), varying))
    for column, figure in _ALONG.items():
        if column in varying:
            others = [name for name in varying if name != column]
            figures.append(panels.series(*figure, summary, others))
    figures += _before_after(samples, panels)
    return figures if comparison is None else [*figures, _differences(comparison)]


def _ends(summary: pd.DataFrame) -> pd.DataFrame:
    """The first and the last step where there are several: curves of all would hide each other."""
    if "step" not in summary or not len(summary):
        return summary
    return summary[
        summary["step"].isna() | summary["step"].isin({summary["step"].min(), summary["step"].max()})
    ]


def _before_after(samples: pd.DataFrame, panels: _Panels) -> list[Figure]:
    runs = list(dict.fromkeys(samples["run"])) if "run" in samples else []
    if len(runs) != 2:
        return []

    def draw(part: pd.DataFrame, ax: Axes) -> Axes:
        return plots.before_after(part[part["run"] == runs[0]], part[part["run"] == runs[1]], ax)

    caption = f"Distinct modes of every prompt, before ({runs[0]}) and after ({runs[1]})."
    return [panels.figure("Modes of each prompt", caption, draw, samples)]


def _differences(comparison: pd.DataFrame) -> Figure:
    names = [name for name in ("domain", "level") if comparison[name].nunique() > 1]
    # Counts of modes have another scale than shares.
    counts = comparison["metric"].str.startswith("modes@")
    parts = [part for part in (comparison[~counts], comparison[counts]) if len(part)]
    canvas = Canvas(figsize=(10, 1.5 + 0.32 * len(comparison)), layout="constrained")
    sizes = [len(part) for part in parts]
    axes = canvas.subplots(len(parts), 1, squeeze=False, height_ratios=sizes).flatten()
    for part, ax in zip(parts, axes, strict=True):
        plots.forest(part, ax, by=names)
    caption = (
        "Second run − first run over the same prompts, with intervals over prompts and the p-value of a "
        "sign-flip test; a star: significant at 0.05 after Holm's adjustment."
    )
    return Figure("Paired differences", caption, svg(canvas))


class _Panels:
    """Lays figures out, a panel a cell of domain and level."""

    def __init__(self, summary: pd.DataFrame) -> None:
        cells = summary[["domain", "level"]].drop_duplicates() if len(summary) else pd.DataFrame()
        self.cells = [(str(domain), level) for domain, level in cells.itertuples(index=False)]

    def series(
        self, title: str, caption: str, draw: _Draw, summary: pd.DataFrame, names: Sequence[str]
    ) -> Figure:
        """Draw every cell's part of a summary, a series a combination of these columns.

        A series looks the same in every panel.
        """
        by = ["series"] if names else []
        if by:
            labels = [
                ", ".join(map(named_value, names, values))
                for values in summary[list(names)].itertuples(index=False)
            ]
            summary = summary.assign(series=pd.Categorical(labels, categories=list(dict.fromkeys(labels))))
        return self.figure(title, caption, lambda part, ax: draw(part, ax, by), summary)

    def figure(
        self, title: str, caption: str, draw: Callable[[pd.DataFrame, Axes], Axes], table: pd.DataFrame
    ) -> Figure:
        """Draw every cell's part of a table."""
        columns = max(1, min(_MOST_COLUMNS, len(self.cells)))
        rows = max(1, -(-len(self.cells) // columns))
        canvas = Canvas(figsize=(_WIDTH * columns + 1.5, _HEIGHT * rows), layout="constrained")
        grid = canvas.subplots(rows, columns, squeeze=False).flatten().tolist()
        for ax, (domain, level) in zip(grid, self.cells, strict=False):
            draw(table[(table["domain"] == domain) & (table["level"] == level)], ax)
            ax.set_title(f"{domain}, level {level}", fontsize="medium")
        for ax in grid[len(self.cells) :]:
            ax.set_axis_off()
        _share_legend(grid[: len(self.cells)])
        return Figure(title, caption, svg(canvas))


def _share_legend(panels: Sequence[Axes]) -> None:
    """One legend where all panels have the same one."""
    legends = [ax.get_legend() for ax in panels]
    texts = [[entry.get_text() for entry in legend.get_texts()] if legend else [] for legend in legends]
    if len(panels) > 1 and all(found == texts[0] for found in texts):
        for legend in legends[:-1]:
            if legend:
                legend.remove()


def svg(canvas: Canvas) -> bytes:
    """A figure as SVG that depends on nothing but what is drawn."""
    target = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "modebench", "svg.fonttype": "path"}):
        canvas.savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()
