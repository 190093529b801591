"""Figures: what is drawn is what the table says; single points, undefined values and nothing at all."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import modebench as mb
from modebench.analysis import plots
from modebench.analysis.plots.series import COLORS, LINES, MARKERS

LONG = "a-very-long-name-without-any-blank-Qwen2.5-0.5B-Instruct-after-3072-updates seed 43"


@pytest.fixture
def ax() -> Axes:
    axes: Axes = Figure(layout="constrained").subplots()
    return axes


def summary(arms: dict[str, list[float]], column: str = "step", **extra: object) -> pd.DataFrame:
    """PCMD as given and accuracy one minus it, at steps 0, 10, 20, …"""
    rows = [
        {
            "arm": arm,
            column: 10 * place,
            "metric": metric,
            "value": shown,
            "low": shown - 0.1,
            "high": shown + 0.1,
            "n": 50,
            "reportable": True,
        }
        for arm, values in arms.items()
        for place, value in enumerate(values)
        for metric, shown in (("pcmd", value), ("accuracy", 1 - value))
    ]
    return pd.DataFrame(rows).assign(**extra)


def drawn(ax: Axes) -> list[list[tuple[float, float]]]:
    """The points of every line that has a line style, rounded."""
    return [
        [(round(float(x), 9), round(float(y), 9)) for x, y in zip(*line.get_data(), strict=True)]
        for line in ax.get_lines()
        if line.get_linestyle() != "None" and len(line.get_xdata())
    ]


def message(ax: Axes) -> str:
    return " ".join(text.get_text() for text in ax.texts).replace("\n", " ")


def labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


ALL: dict[str, Callable[[pd.DataFrame, Axes], Axes]] = {
    "collapse_curve": plots.collapse_curve,
    "accuracy_diversity": plots.accuracy_diversity,
    "temperature_frontier": plots.temperature_frontier,
    "k_curves": plots.k_curves,
    "mode_spectrum": plots.mode_spectrum,
    "forest": plots.forest,
}


@pytest.mark.parametrize("name", ALL)
def test_an_empty_table_says_so_in_the_axes(name: str, ax: Axes) -> None:
    assert ALL[name](pd.DataFrame(), ax) is ax
    assert message(ax).startswith("no ")
    assert not ax.get_lines()


@pytest.mark.parametrize("name", ALL)
def test_a_table_of_another_kind_is_refused(name: str, ax: Axes) -> None:
    with pytest.raises(ValueError, match="the table lacks the columns"):
        ALL[name](pd.DataFrame({"colour": ["red"]}), ax)


def test_public_functions_are_those_of_the_package() -> None:
    assert mb.plots.__all__ == [*sorted([*ALL, "before_after"])]


def test_collapse_curve_draws_metrics_by_line_style_and_arms_by_colour(ax: Axes) -> None:
    plots.collapse_curve(summary({"a": [0.8, 0.2], "b": [0.9, 0.9]}), ax)
    assert drawn(ax) == [
        [(0, 0.8), (10, 0.2)],
        [(0, 0.9), (10, 0.9)],
        [(0, 0.2), (10, 0.8)],
        [(0, 0.1), (10, 0.1)],
    ]
    lines = [line for line in ax.get_lines() if line.get_linestyle() != "None"]
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--", "--"]
    assert [line.get_color() for line in lines] == [COLORS[0], COLORS[1]] * 2
    assert labels(ax) == ["a", "b", "PCMD", "accuracy"]
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0.1, 0.9))


def test_a_single_point_has_its_interval(ax: Axes) -> None:
    plots.collapse_curve(summary({"a": [0.5]}), ax)
    bars = [container.lines[2][0].get_segments()[0][:, 1].tolist() for container in ax.containers]
    assert bars == [pytest.approx([0.4, 0.6])] * 2
    assert ax.get_xticks().tolist() == [0]


def test_undefined_values_are_gaps_and_nothing_defined_is_said(ax: Axes) -> None:
    plots.collapse_curve(summary({"a": [0.8, np.nan, 0.2]}), ax, metrics=["pcmd"])
    [line] = drawn(ax)
    assert np.isnan(line[1][1])
    other = Figure().subplots()
    plots.collapse_curve(summary({"a": [np.nan, np.nan]}), other)
    assert message(other) == "no value of PCMD or accuracy is defined"


def test_values_that_rest_on_too_few_prompts_are_hollow_and_explained(ax: Axes) -> None:
    table = summary({"a": [0.8, 0.2]})
    table["reportable"] = (table["step"] == 0) | (table["metric"] == "accuracy")
    plots.collapse_curve(table, ax, metrics=["pcmd"])
    marks = {
        float(line.get_xdata()[0]): line.get_markerfacecolor()
        for line in ax.get_lines()
        if line.get_linestyle() == "None" and len(line.get_xdata())
    }
    assert marks == {0.0: COLORS[0], 10.0: "white"}
    assert labels(ax)[-1] == "hollow: too few prompts"


def test_two_values_at_one_place_are_refused_by_name(ax: Axes) -> None:
    table = pd.concat([summary({"a": [0.8]}, seed=1), summary({"a": [0.7]}, seed=2)])
    with pytest.raises(ValueError, match=r"several values at step 0 for one series \(a\)"):
        plots.collapse_curve(table, ax, by="arm")
    plots.collapse_curve(table, ax)
    assert "seed 1" in labels(ax)[0]


def test_plane_and_frontier_pair_the_metrics_of_a_cell(ax: Axes) -> None:
    table = summary({"a": [0.8, 0.2], "b": [0.9, np.nan]}, column="temperature")
    plots.temperature_frontier(table, ax)
    assert drawn(ax)[0] == [(0.2, 0.8), (0.8, 0.2)]
    assert message(ax) == "T=0 T=10 T=0"  # b has no PCMD at T=10, so no point there
    other = Figure().subplots()
    plots.accuracy_diversity(table, other)
    assert labels(other) == ["a, temperature 0", "a, temperature 10", "b, temperature 0"]
    with pytest.raises(ValueError, match="several values of accuracy for one point"):
        plots.accuracy_diversity(table, other, by="arm")


def test_k_curves_read_summaries_and_curve_tables(
    ax: Axes, make_samples: Callable[..., pd.DataFrame]
) -> None:
    samples = make_samples(["AAB.", "....", "ABCD"])
    plots.k_curves(mb.summarize(samples), ax)
    # pass@1 = (3/4 + 0 + 1)/3, pass@2 = pass@4 = 2/3, each prompt with more than k-1 right ones.
    points = [(x, y) for x, y in drawn(ax)[0] if not np.isnan(y)]
    assert points == [(1, round(7 / 12, 9)), (2, round(2 / 3, 9)), (4, round(2 / 3, 9))]
    assert ax.get_xticks().tolist() == [1, 2, 4]
    curve = pd.DataFrame({"metric": "modes@k", "k": [3, 1, 2], "value": [3.0, 1, 2], "low": 0.5, "high": 3.0})
    other = Figure().subplots()
    plots.k_curves(curve, other, metric="modes@k")
    assert drawn(other) == [[(1, 1), (2, 2), (3, 3)]]


def test_before_after_compares_at_the_smaller_number_of_samples(
    ax: Axes, make_samples: Callable[..., pd.DataFrame]
) -> None:
    before, after = make_samples(["ABCD", "AAAA", "AB!!"]), make_samples(["AA", "AB", "AA"])
    plots.before_after(before, after, ax)
    assert ax.get_ylabel() == "modes@2"
    assert ax.get_xlabel() == "3 prompts: 1 more, 2 fewer, 0 equal"
    points = {line.get_label(): line.get_ydata().tolist() for line in ax.get_lines()}
    assert points == {"before": [2, 2, 1], "after": [1, 1, 2]}
    other = Figure().subplots()
    plots.before_after(before.assign(task_id="elsewhere" + before["task_id"]), after, other)
    assert message(other) == "no prompt has graded samples in both tables"


def test_forest_rows_stand_in_order_with_their_numbers(ax: Axes) -> None:
    table = pd.DataFrame(
        {
            "domain": ["graph", "graph", "maths"],
            "metric": ["accuracy", "pcmd", "pcmd"],
            "difference": [0.2, -0.3, np.nan],
            "low": [0.1, np.nan, np.nan],
            "high": [0.3, np.nan, np.nan],
            "p": [0.0004, 0.04, np.nan],
        }
    )
    plots.forest(table, ax, metrics=["pcmd", "accuracy"])
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "PCMD · graph",
        "PCMD · maths",
        "accuracy · graph",
    ]
    assert [text.get_text() for text in ax.texts] == [
        "-0.300  p = 0.040",
        "undefined",
        "+0.200 [+0.100, +0.300]  p < 0.001",
    ]


def test_series_differ_in_more_than_colour() -> None:
    looks = {(MARKERS[n % len(MARKERS)], str(LINES[n % len(LINES)])) for n in range(30)}
    assert len(looks) == 30


def test_long_names_are_wrapped_and_stay_inside_the_picture() -> None:
    figure = Figure(figsize=(8, 3), layout="constrained")
    ax = figure.subplots()
    plots.collapse_curve(summary({LONG: [0.5, 0.4], LONG + " other": [0.3, 0.2]}), ax)
    figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert max(len(line) for label in labels(ax) for line in label.split("\n")) <= 34
    assert box.x1 <= figure.bbox.x1 + 1
    assert ax.get_window_extent().width > 200


def test_the_same_table_gives_the_same_bytes() -> None:
    def picture() -> bytes:
        figure = Figure()
        plots.accuracy_diversity(summary({"a": [0.5], "b": [0.1]}), figure.subplots())
        target = io.BytesIO()
        with mpl.rc_context({"svg.hashsalt": "x"}):
            figure.savefig(target, format="svg", metadata={"Date": None})
        return target.getvalue()

    assert picture() == picture()


def test_without_matplotlib_the_error_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import modebench as mb\n"
        "try: mb.plots\n"
        "except mb.UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'figures need matplotlib: pip install "modebench-toolkit[plots]"\n'
