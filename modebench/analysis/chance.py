"""Chance rows: what can be had of a cell without reading its tasks.

* ``shuffled``: the model's own answers, every prompt's answers judged on another prompt of the cell. What is
  left is what the form of the answers and their commonest values earn.
* ``uniform``: a uniform draw from the well-formed answers of each task. The answers are counted, not drawn,
  so per prompt the numbers are exact expectations.
* ``best_constant``: one answer for all tasks, the one that is right on the most of them.

Their intervals are those of the measured metrics: over prompts, as if these were drawn from a larger set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.diversity import modes_at_k, pcmd
from modebench.analysis.metrics import Metric
from modebench.analysis.pass_at_k import FloatArray, pass_at_k

NO_CHANCE = "the samples came without the tasks and responses that chance rows need"
NONE_RIGHT = "no such answer is right"
ROWS = {
    "shuffled": "no prompt's answers were judged on another prompt of the cell",
    "uniform": "the well-formed answers of these tasks are not enumerated",
    "best_constant": "no answer was tried on all prompts of the cell",
}
"""The rows, and why one is undefined where nothing is known of it."""
COLUMNS = (
    "shuffled_counts",
    "shuffled_graded",
    "space",
    "right",
    "constant_right",
    "constant_answer",
    "constant_exact",
)
"""What a chance table states of each prompt, see `aligned`."""


def chance_metrics(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Those of a cell's metrics that chance rows have: accuracy, pass@k, modes@k and PCMD."""
    return tuple(
        m
        for m in metrics
        if m.name in ("accuracy", "pcmd") or (m.name.startswith(("pass@", "modes@")) and "_" not in m.name)
    )


def shuffled_statistics(
    counts: Sequence[Sequence[int] | None], graded: Sequence[int | None], ks: Sequence[int]
) -> dict[str, FloatArray]:
    """The estimators of measured samples, on answers judged on another prompt.

    Args:
        counts: how many answers fell in each correct mode, a list for each of P prompts; None where none
            were judged.
        graded: number of answers judged on each prompt; None likewise.
        ks: the k of pass@k and modes@k.

    Returns:
        column name -> float64 [P], NaN where undefined.

    >>> rows = shuffled_statistics([[2, 1], None], [4, None], ks=(2,))
    >>> rows["accuracy"].tolist(), round(float(rows["modes@2"][0]), 4)
    ([0.75, nan], 1.3333)
    """
    known = np.array([c is not None and bool(g) for c, g in zip(counts, graded, strict=True)], dtype=bool)
    rows = [list(c or ()) for c in counts]
    dense = np.zeros((len(rows), max(map(len, rows), default=0)), dtype=np.int64)
    for place, row in enumerate(rows):
        dense[place, : len(row)] = row
    attempts = np.array([int(g or 0) for g in graded], dtype=np.int64)
    correct = dense.sum(axis=1)
    columns = {"accuracy": correct / np.maximum(attempts, 1), "pcmd": pcmd(dense)}
    for k in ks:
        columns[f"pass@{k}"] = pass_at_k(correct, attempts, k)
        columns[f"modes@{k}"] = modes_at_k(dense, attempts, k)
    return {name: np.where(known, values, np.nan) for name, values in columns.items()}


def uniform_statistics(
    size: Sequence[int | None], right: Sequence[Mapping[int, int] | None], ks: Sequence[int]
) -> dict[str, FloatArray]:
    """What uniform draws from a task's well-formed answers get in expectation, exactly.

    With N answers, a_m of them in correct mode m and A = sum a_m: accuracy A/N; pass@k 1 - (1 - A/N)^k;
    modes@k sum_m [1 - (1 - a_m/N)^k]; PCMD 1 - sum (a_m/A)^2, the value that the estimator is unbiased for.

    Args:
        size: N of each of P tasks; None where the answers are not counted.
        right: how many modes have how many answers, {a: number of modes with a_m = a}; None likewise.
        ks: the k of pass@k and modes@k.

    Returns:
        column name -> float64 [P], NaN where undefined (PCMD also where no answer is right).

    >>> rows = uniform_statistics([27], [{1: 6}], ks=(1, 2))
    >>> [round(float(rows[name][0]), 4) for name in ("accuracy", "pass@2", "modes@1", "pcmd")]
    [0.2222, 0.3951, 0.2222, 0.8333]
    """
    names = ["accuracy", "pcmd", *(f"{name}@{k}" for k in ks for name in ("pass", "modes"))]
    columns = {name: np.full(len(size), np.nan) for name in names}
    for place, (n, modes) in enumerate(zip(size, right, strict=True)):
        if n is None or modes is None:
            continue
        total = sum(a * number for a, number in modes.items())
        columns["accuracy"][place] = total / n
        if total:
            same = sum(a * a * number for a, number in modes.items())
            columns["pcmd"][place] = 1 - same / total**2
        for k in ks:
            columns[f"pass@{k}"][place] = 1 - (1 - total / n) ** k
            columns[f"modes@{k}"][place] = sum(f * (1 - (1 - a / n) ** k) for a, f in modes.items())
    return columns


def constant_statistics(right: Sequence[bool | None], ks: Sequence[int]) -> dict[str, FloatArray]:
    """One answer given every time: right always or never, in one mode.

    Args:
        right: whether the answer is right on each of P tasks; None where no answer was tried.
        ks: the k of pass@k and modes@k.

    Returns:
        column name -> float64 [P]; PCMD is 0 where the answer is right, else undefined.

    >>> constant_statistics([True, False], ks=(8,))["modes@8"].tolist()
    [1.0, 0.0]
    """
    hit = np.array([np.nan if value is None else float(value) for value in right], dtype=np.float64)
    names = ["accuracy", *(f"{name}@{k}" for k in ks for name in ("pass", "modes"))]
    return {**{name: hit.copy() for name in names}, "pcmd": np.where(hit == 1, 0.0, np.nan)}


def aligned(chance: pd.DataFrame, prompts: pd.DataFrame) -> dict[str, list[Any]]:
    """What a chance table says of the given prompts: its `COLUMNS`, each of length P, None where nothing.

    A prompt that several rows speak of (parts of one run, say) gets none: their counts can't be joined.

    Args:
        chance: a row a prompt, with columns task_id, any other columns of `prompts`, and shuffled_counts,
            shuffled_graded (see `shuffled_statistics`), space, right (see `uniform_statistics`),
            constant_right, constant_answer, constant_exact.
        prompts: the identifying columns of P prompts.
    """
    keys = [name for name in prompts if name in chance]
    unique = chance.astype(dict.fromkeys(keys, object)).drop_duplicates(keys, keep=False)
    found = prompts[keys].astype(object).merge(unique, on=keys, how="left")
    return {
        name: [None if value is pd.NA or value != value else value for value in found[name]]
        for name in COLUMNS
    }
