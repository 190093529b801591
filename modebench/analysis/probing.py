"""What a prefix brings back: modes reached with it and not without, beyond what more samples would bring.

A mode that a model no longer shows may be gone (pruned) or only unpreferred; a prefix that names the strategy
tells them apart. Finite samples blur this: asking a second time without any prefix finds new modes too. All
counts are therefore expectations at one budget h of samples on either side, beside the number that a second
unprefixed set of h samples adds (rarefaction; Hurlbert 1971, Ecology 52:577). For one task with c_m of N
unprefixed and d_m of K prefixed samples in the correct mode m, and miss(c, N) = C(N-c, h) / C(N, h):

    gained = sum_m (1 - miss(d_m, K)) miss(c_m, N)        reached with the prefix, not without
    lost   = sum_m (1 - miss(c_m, N)) miss(d_m, K)        reached without, not with the prefix
    chance = modes@2h - modes@h of the unprefixed samples

each unbiased for two independent sets of h samples. h is half the unprefixed samples, so a control (as many
unprefixed samples again) doubles the budget.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.intervals import effective_n, t_limits, wilson
from modebench.analysis.pass_at_k import draw_none

WITHOUT = ("none", "control")
_TASK = ["domain", "level", "task_id"]
_MEASURES = ("accuracy", "accuracy_without", "accuracy_difference")
_COUNTS = ("gained", "lost", "chance", "beyond_chance")
NOTE = (
    "gained: modes a task reaches with the prefix and not without, in the budget's number of samples on "
    "either side; lost: the reverse; chance: what as many samples again without a prefix add; beyond chance: "
    "gained − chance. A mode that no sample shows may still be there: that finite samples lack it does not "
    "prove it pruned."
)


def probe(samples: pd.DataFrame, level: float = 0.95) -> dict[str, Any]:
    """Compare the samples of every prefix with those without, on the tasks that were asked both ways.

    Args:
        samples: long table with the columns task_id, domain, level, status, mode and prefix, where ``none``
            and ``control`` stand for no prefix; optionally modes and listed.
        level: of the intervals, over tasks: Wilson on the effective number of tasks for the accuracies, t for
            the others.

    Returns:
        ``rows``, one a cell and prefix: domain, level, prefix, budget (h), tasks, tasks_left_out (fewer
        graded samples than the budget needs), and as ``{value, low, high, n}`` means over tasks of accuracy,
        accuracy_without, accuracy_difference, gained, lost, chance, beyond_chance;
        ``cells``, one a cell, sums over its tasks of what all samples show: modes existing (None where not
        known), found_without, only_with_prefix, never_found; ``modes``, one a task and prefix with a
        difference: the modes gained and lost in all samples; ``note``: how to read them.

    Raises:
        ValueError: a column is missing.
    """
    missing = [name for name in (*_TASK, "status", "mode", "prefix") if name not in samples]
    if missing:
        raise ValueError(f"the table of samples lacks the columns {missing}; it has {list(samples.columns)}")
    samples = samples.astype(dict.fromkeys(("domain", "task_id", "mode", "prefix"), object))
    without = samples["prefix"].isin(WITHOUT)
    names = list(dict.fromkeys(samples.loc[~without, "prefix"]))
    rows, modes = [], []
    for name in names:
        asked = samples[samples["prefix"] == name]
        for domain, stage in asked[["domain", "level"]].drop_duplicates().itertuples(index=False):
            part, base = (
                table[(table["domain"] == domain) & (table["level"] == stage)]
                for table in (asked, samples[without])
            )
            base = base[base["task_id"].isin(part["task_id"])]
            head = {"domain": domain, "level": int(stage), "prefix": name}
            rows.append(head | _row(_per_task(base, part), level))
            modes += _listing(base, part, name)
    return {"rows": rows, "cells": _cells(samples, without), "modes": modes, "note": NOTE}


def _per_task(base: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """One row a task of `part`: the numbers of the module docstring; NaN where its samples do not suffice."""
    graded = {"K": part[part["status"] != "error"], "N": base[base["status"] != "error"]}
    sizes = pd.DataFrame({name: rows.groupby("task_id").size() for name, rows in graded.items()})
    sizes = sizes.reindex(part["task_id"].unique()).fillna(0).astype(int)
    h = int(min(sizes["K"].max(), sizes["N"].max() // 2))
    counts = pd.DataFrame({"d": _counts(part), "c": _counts(base)}).fillna(0).astype(int)
    counts = counts.join(sizes, on="task_id")
    enough = (sizes["K"] >= h) & (sizes["N"] >= 2 * h) & (h > 0)
    counts = counts[enough.reindex(counts.index.get_level_values("task_id")).to_numpy(dtype=bool)]
    with_h = draw_none(counts["d"], counts["K"], max(h, 1))
    without_h = draw_none(counts["c"], counts["N"], max(h, 1))
    without_2h = draw_none(counts["c"], counts["N"], max(2 * h, 1))
    terms = pd.DataFrame(
        {
            "gained": (1 - with_h) * without_h,
            "lost": (1 - without_h) * with_h,
            "chance": without_h - without_2h,
        },
        index=counts.index,
    )
    table = terms.groupby("task_id").sum().reindex(sizes.index, fill_value=0.0)
    table["beyond_chance"] = table["gained"] - table["chance"]
    for column, rows in (("accuracy", graded["K"]), ("accuracy_without", graded["N"])):
        table[column] = (rows["status"] == "correct").groupby(rows["task_id"]).mean()
    table["accuracy_difference"] = table["accuracy"] - table["accuracy_without"]
    table.loc[~enough] = np.nan
    return table.assign(budget=h)


def _counts(rows: pd.DataFrame) -> pd.Series:
    """Number of correct samples of every (task, mode)."""
    return rows[rows["status"] == "correct"].groupby(["task_id", "mode"]).size()


def _row(per_task: pd.DataFrame, level: float) -> dict[str, Any]:
    used = per_task.dropna(subset="gained")
    row: dict[str, Any] = {
        "budget": int(per_task["budget"].max()),
        "tasks": len(used),
        "tasks_left_out": len(per_task) - len(used),
    }
    for name in (*_MEASURES, *_COUNTS):
        values = used[name].to_numpy(dtype=np.float64)
        value = float(values.mean()) if len(values) else float("nan")
        error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        if name in _RATES:
            low, high = wilson(value, effective_n(value, error, len(values)), level)
        else:
            low, high = t_limits(value, error, len(values), level, *_RANGES[name])
        limits = {"value": value, "low": float(low), "high": float(high)}
        row[name] = {key: x if np.isfinite(x) else None for key, x in limits.items()} | {"n": len(values)}
    return row


_RATES = ("accuracy", "accuracy_without")
_RANGES = {
    "accuracy_difference": (-1.0, 1.0),
    **dict.fromkeys(("gained", "lost", "chance"), (0.0, np.inf)),
    "beyond_chance": (-np.inf, np.inf),
}


def _listing(base: pd.DataFrame, part: pd.DataFrame, name: str) -> list[dict[str, Any]]:
    """The modes of every task that only one side shows in all its samples."""
    found: list[dict[str, Any]] = []
    reached, known = _modes(part), _modes(base)
    for task in dict.fromkeys(part["task_id"]):
        own, other = reached.get(task, set()), known.get(task, set())
        if own != other:
            found.append(
                {
                    "task_id": task,
                    "prefix": name,
                    "gained": sorted(own - other),
                    "lost": sorted(other - own),
                }
            )
    return found


def _modes(rows: pd.DataFrame) -> dict[str, set[str]]:
    right = rows[rows["status"] == "correct"]
    return {str(task): set(modes) for task, modes in right.groupby("task_id")["mode"]}


def _cells(samples: pd.DataFrame, without: pd.Series) -> list[dict[str, Any]]:
    """What all samples of a cell show, over the tasks that were asked with a prefix."""
    probed = samples["task_id"].isin(samples.loc[~without, "task_id"])
    cells = []
    for domain, stage in samples.loc[probed, ["domain", "level"]].drop_duplicates().itertuples(index=False):
        part = samples[probed & (samples["domain"] == domain) & (samples["level"] == stage)]
        right = part[part["status"] == "correct"]
        if "listed" in right:
            right = right[right["listed"].fillna(True).astype(bool)]
        pairs = right[["task_id", "mode"]].drop_duplicates()
        plain = right.loc[without[right.index], ["task_id", "mode"]].drop_duplicates()
        existing = None
        if "modes" in part:
            per_task = part.groupby("task_id")["modes"].first()
            existing = int(per_task.sum()) if per_task.notna().all() else None
        cells.append(
            {
                "domain": domain,
                "level": int(stage),
                "tasks": int(part["task_id"].nunique()),
                "existing": existing,
                "found_without": len(plain),
                "only_with_prefix": len(pairs) - len(plain),
                "never_found": None if existing is None else max(existing - len(pairs), 0),
            }
        )
    return cells


def render_probe(document: dict[str, Any]) -> str:
    """The result of `probe` as text: a line a prefix, then a line a cell, then how to read them."""
    titles = {"accuracy_without": "accuracy without", "accuracy": "with", "beyond_chance": "beyond chance"}
    shown = ("accuracy_without", "accuracy", *_COUNTS)
    grid = [["prefix", "cell", "tasks", "budget", *(titles.get(name, name) for name in shown)]]
    for row in document["rows"]:
        numbers = [_number(row[name], limits=name in ("accuracy", "beyond_chance")) for name in shown]
        cell = f"{row['domain']} {row['level']}"
        grid.append([row["prefix"], cell, str(row["tasks"]), str(row["budget"]), *numbers])
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if place < 2 else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in grid
    ]
    for cell in document["cells"]:
        existing = "an unknown number of" if cell["existing"] is None else cell["existing"]
        never = "" if cell["never_found"] is None else f", {cell['never_found']} never found"
        tasks = "1 task" if cell["tasks"] == 1 else f"{cell['tasks']} tasks"
        lines.append(
            f"{cell['domain']} {cell['level']}: of {existing} modes of {tasks} "
            f"{cell['found_without']} found without a prefix, {cell['only_with_prefix']} only with one{never}"
        )
    return "\n".join([*lines, *textwrap.wrap(document["note"], 110)])


def _number(entry: dict[str, Any], limits: bool) -> str:
    if entry["value"] is None:
        return "–"
    text = f"{entry['value']:.3f}"
    return text if not limits or entry["low"] is None else f"{text} [{entry['low']:.3f}, {entry['high']:.3f}]"
