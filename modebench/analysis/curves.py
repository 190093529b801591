"""Curves over the number of attempts, and the spectrum of modes: tidy tables with a band over prompts.

Every point is the mean over the prompts of a cell that define it, with the interval of the point metrics:
Wilson on the effective sample size for pass@k and pass^k, t over prompts for the others, or the bootstrap.
The points of a curve come from the same samples, so a curve may leave its band as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from modebench.analysis.cells import Cells, interval_settings
from modebench.analysis.diversity import modes_at_k, rarefied_modes
from modebench.analysis.long_table import LongTable, columns_of, distinct_counts, over_counts, read_long_table
from modebench.analysis.metrics import Metric
from modebench.analysis.pass_at_k import FloatArray, IntArray, pass_at_k, pass_hat_k
from modebench.analysis.prompts import checked_ks

CURVES = ("pass@k", "pass^k", "modes@k", "rarefied@k", "found@k")


def curves(
    samples: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "level"),
    ks: Sequence[int] | None = None,
    *,
    interval: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Every curve of `CURVES` in every cell.

    * ``pass@k``, ``pass^k``: one, or all, of k attempts correct (Chen et al. 2021; Yao et al. 2024).
    * ``modes@k``: distinct correct modes expected in k attempts, wrong ones included; over all orders of the
      attempts this is the mean accumulation curve (Hurlbert 1971).
    * ``rarefied@k``: distinct modes expected in k *correct* attempts: prompts and models compared at equal
      numbers of correct answers. Fewer prompts reach each further k, see ``n``.
    * ``found@k``: distinct correct modes among the first k attempts as they were recorded, one order instead
      of all. It strays from ``modes@k`` where the order matters, as with copies among the samples.

    Args:
        samples: long table, see `modebench.analysis.long_table.read_long_table`.
        by: columns that make the cells.
        ks: points; None for every k up to the largest number of graded attempts of a prompt.
        interval: level of the bands.
        bootstrap: bootstrap draws over prompts in place of the closed-form bands; 0 for none.
        seed: of the bootstrap.

    Returns:
        a row a cell, curve and point: the `by` columns, ``metric``, ``k``, ``value``, ``low``, ``high`` (NaN
        where undefined), ``n`` (prompts that define the point).

    Raises:
        ValueError: as `read_long_table`; a k that is not a positive integer.

    >>> rows = [("t", "d", 1, s, status, mode) for s, (status, mode) in enumerate(
    ...     [("correct", "a"), ("correct", "b"), ("correct", "a"), ("incorrect", None)])]
    >>> names = ["task_id", "domain", "level", "sample", "status", "mode"]
    >>> table = curves(pd.DataFrame(rows, columns=names)).pivot(index="k", columns="metric", values="value")
    >>> table["modes@k"].round(3).tolist()  # k=2: (1 - 1/6) + (1 - 3/6)
    [0.75, 1.333, 1.75, 2.0]
    >>> table["rarefied@k"].round(3).tolist(), table["found@k"].tolist()
    ([1.0, 1.667, 2.0, nan], [1.0, 2.0, 2.0, 2.0])
    """
    keys = columns_of(by)
    table = read_long_table(samples, keys)
    graded = table.per_prompt(table.graded)
    most = int(graded.max(initial=0))
    points = tuple(range(1, most + 1)) if ks is None else checked_ks(ks, most)
    metrics = [metric for k in points for metric in _metrics(k)]
    columns = _at_k(table, graded, points) | _found(table, graded, points)
    return _means(table, keys, metrics, columns, interval, bootstrap, seed, "k")


def mode_spectrum(
    samples: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "level"),
    *,
    min_correct: int = 2,
    interval: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Rank-abundance: which share of a prompt's correct answers its commonest mode takes, its second, …

    Shares are c_m / n in descending order, averaged over prompts (Whittaker 1965, Science 147:250). They are
    plug-in values: with few correct answers the first ranks look larger and the tail shorter than they are,
    so compare models at like numbers of correct answers.

    Args:
        samples, by, interval, bootstrap, seed: as in `curves`.
        min_correct: prompts with fewer correct answers are left out.

    Returns:
        a row a cell and rank: the `by` columns, ``metric`` (``share``), ``rank`` from 1, ``value``, ``low``,
        ``high``, ``n``.

    Raises:
        ValueError: as `read_long_table`.

    >>> rows = [("t", "d", s, "correct", mode) for s, mode in enumerate("aabab")]
    >>> table = pd.DataFrame(rows, columns=["task_id", "domain", "sample", "status", "mode"])
    >>> mode_spectrum(table, by="domain")["value"].tolist()
    [0.6, 0.4]
    """
    keys = columns_of(by)
    table = read_long_table(samples, keys)
    row, count, _ = _modes(table)
    width = int(np.bincount(row, minlength=1).max(initial=0))

    def shares(counts: IntArray, _: IntArray) -> dict[str, FloatArray]:
        n = counts.sum(axis=1)
        padded = np.zeros((len(counts), width))
        padded[:, : counts.shape[1]] = counts[:, ::-1]  # rows come in ascending order
        values = np.where(n >= min_correct, padded.T / np.maximum(n, 1), np.nan)
        return {f"share{rank}": values[rank - 1] for rank in range(1, width + 1)}

    columns = over_counts(row, count, len(table.prompts), shares)
    reason = f"no prompt has {min_correct} correct samples"
    metrics = [Metric(f"share{rank}", "mean", reason, upper=1.0) for rank in range(1, width + 1)]
    return _means(table, keys, metrics, columns, interval, bootstrap, seed, "rank")


def _metrics(k: int) -> tuple[Metric, ...]:
    few = f"no prompt has {k} graded samples"
    most = float(k) if k > 1 else np.inf  # a single correct answer is one mode: no range to be uncertain in
    return (
        Metric(f"pass@{k}", "rate", few),
        Metric(f"pass^{k}", "rate", few),
        Metric(f"modes@{k}", "mean", few, upper=k),
        Metric(f"rarefied@{k}", "mean", f"no prompt has {k} correct samples", lower=1.0, upper=most),
        Metric(f"found@{k}", "mean", few, upper=k),
    )


def _modes(table: LongTable) -> tuple[IntArray, IntArray, IntArray]:
    """Prompt and count of every distinct mode of a prompt, and its first correct sample."""
    right = np.flatnonzero(table.mode >= 0)
    right = right[np.argsort(table.position[right], kind="stable")]
    row, count, first = distinct_counts(table.prompt[right], table.mode[right])
    return row, count, right[first]


def _at_k(table: LongTable, graded: IntArray, ks: Sequence[int]) -> dict[str, FloatArray]:
    row, count, _ = _modes(table)

    def estimates(counts: IntArray, block: IntArray) -> dict[str, FloatArray]:
        correct, attempts = counts.sum(axis=1), graded[block]
        found: dict[str, FloatArray] = {}
        for k in ks:
            found[f"pass@{k}"] = pass_at_k(correct, attempts, k)
            found[f"pass^{k}"] = pass_hat_k(correct, attempts, k)
            found[f"modes@{k}"] = modes_at_k(counts, attempts, k)
            found[f"rarefied@{k}"] = rarefied_modes(counts, k)
        return found

    return over_counts(row, count, len(table.prompts), estimates)


def _found(table: LongTable, graded: IntArray, ks: Sequence[int]) -> dict[str, FloatArray]:
    """Distinct modes among the first k graded attempts of each prompt, in the order of their positions."""
    judged = np.flatnonzero(table.graded)
    judged = judged[np.lexsort((table.position[judged], table.prompt[judged]))]
    starts = np.cumsum(graded) - graded
    place = np.empty(len(table.frame), dtype=np.int64)
    place[judged] = np.arange(len(judged)) - starts[table.prompt[judged]]
    row, _, first = _modes(table)
    prompts = len(table.prompts)
    seen = {k: np.bincount(row[place[first] < k], minlength=prompts) for k in ks}
    return {f"found@{k}": np.where(graded >= k, number, np.nan) for k, number in seen.items()}


def _means(
    table: LongTable,
    keys: list[str],
    metrics: Sequence[Metric],
    columns: dict[str, FloatArray],
    level: float,
    draws: int,
    seed: int,
    axis: str,
) -> pd.DataFrame:
    """Means over the prompts of each cell, a row a point; the number at a metric's end is its place."""
    counts = {
        "samples": table.per_prompt(np.ones(len(table.frame), dtype=np.bool_)),
        "graded": table.per_prompt(table.graded),
        "pcmd_variance": np.full(len(table.prompts), np.nan),
    }
    frame = pd.DataFrame({**counts, **columns}, index=table.prompts.index)
    cells = Cells(pd.concat([table.prompts, frame], axis=1), keys, metrics)
    found = cells.intervals(metrics, interval_settings(table.prompts, level, draws, seed, None))
    rows = []
    for number, prompts in enumerate(cells.rows):
        names = table.prompts.loc[prompts[0], keys].to_dict()
        for metric in metrics:
            title = metric.name.rstrip("0123456789")
            place = int(metric.name.removeprefix(title))
            title = title + "k" if axis == "k" else title
            rows.append({**names, "metric": title, axis: place, **found[metric.name][number]._asdict()})
    order = [*keys, "metric", axis, "value", "low", "high", "n"]
    result = pd.DataFrame(rows, columns=order)
    return result.sort_values([*keys, "metric", axis], ignore_index=True) if rows else result
