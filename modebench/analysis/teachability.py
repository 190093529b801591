"""Does a score of a proposed task tell whether it teaches? Held against rollouts that did not make the score.

SynCo (arXiv:2610.11345) pays the writer of a task for its teachability, from the accuracy mu of K rollouts,

    T(mu) = 2 mu for mu <= 1/2, else max(0, 1 - slope (2 mu - 1)),

and reports that T correlates with whether those rollouts bear a gradient (some right, some wrong). Of the
*same* K rollouts that is a definition: T > 0 just when 0 < mu < 1. Tasks that are all alike show it as well,
though nothing can be told about them. So every score is held against three targets:

* ``same``: the K rollouts that were logged are mixed;
* ``fresh``: K further rollouts are mixed;
* ``estimate``: the chance that K rollouts are mixed, from all R further ones that are left,
  1 - C(R-c, K)/C(R, K) - C(c, K)/C(R, K) with c of them right (unbiased; Hoeffding 1948).

The further rollouts of a task are those of an evaluation, in the order of their numbers: the first K are the
fresh ones, the rest makes the estimate. They are independent of the score, but of the policy that is
evaluated: the checkpoint after step s wrote the rollouts of step s + 1, and for those tasks alone it is the
same policy.

Beside the correlation stands the re-ranking: of the tasks of the highest quarter by a score, the share that
is mixed. Where a score ties across the edge of the quarter the tied tasks count in equal parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from modebench.analysis.bootstrap import resampled_counts
from modebench.analysis.intervals import tail_of
from modebench.analysis.long_table import read_long_table
from modebench.analysis.pass_at_k import FloatArray, draw_none
from modebench.errors import UsageError

TARGETS = ("same", "fresh", "estimate")
SCORES = ("teachability", "reward", "quality", "reliability", "novelty", "difficulty", "modes")
ESTIMATE = "estimate"
"""Row of the estimate itself as a score: about what the best score could reach on the fresh rollouts."""
DIFFICULTIES = ("easy", "learnable", "hard")
QUARTER = 0.25


def teaching_value(accuracy: npt.ArrayLike, slope: float = 1.0) -> FloatArray:
    """T of a group accuracy in [0, 1].

    >>> teaching_value([0.0, 0.25, 0.5, 0.75, 1.0]).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    mu = np.asarray(accuracy, dtype=np.float64)
    return np.where(mu <= 0.5, 2 * mu, np.maximum(0.0, 1 - slope * (2 * mu - 1)))


def chance_mixed(correct: npt.ArrayLike, attempts: npt.ArrayLike, k: npt.ArrayLike) -> FloatArray:
    """Unbiased estimate of the chance that k rollouts are neither all right nor all wrong, [N].

    Args:
        correct: right ones of `attempts`, integers [N].
        attempts: rollouts, integers [N].
        k: size of the group, integers [N].

    Returns:
        float64 [N]; NaN where attempts < k.

    >>> chance_mixed([1, 4], [4, 4], [2, 2]).tolist()  # of 6 pairs 3 hold the right one and a wrong one
    [0.5, 0.0]
    """
    right, total, size = (np.asarray(x, dtype=np.int64) for x in (correct, attempts, k))
    found = np.full(len(right), np.nan)
    for group in np.unique(size):
        at = size == group
        all_wrong, all_right = (draw_none(part[at], total[at], int(group)) for part in (right, total - right))
        # A single rollout is one or the other; rounding must not leave less than no chance.
        found[at] = np.maximum(1 - all_wrong - all_right, 0.0)
    return found


def asked_again(tasks: pd.DataFrame, samples: pd.DataFrame, slope: float = 1.0) -> pd.DataFrame:
    """Proposed tasks beside what further rollouts say of them.

    Args:
        tasks: a row a task that was asked: task_id (unique), size (K), correct, and any of `SCORES` but
            teachability; difficulty is a number or one of `DIFFICULTIES`.
        samples: long table of further rollouts; see `modebench.analysis.long_table.read_long_table`.
        slope: of T.

    Returns:
        a row a task with at least 2K further graded rollouts, in the order of `tasks`: task_id, size, the
        columns `SCORES` that there are, as float64 (other words of difficulty are NaN), same, fresh,
        estimate, and rollouts (how many make the estimate, at least K).

    Raises:
        UsageError: a task stands twice, or none has 2K further rollouts.
        ValueError: as `read_long_table`.
    """
    if tasks["task_id"].duplicated().any():
        raise UsageError(
            f"{tasks['task_id'][tasks['task_id'].duplicated()].iloc[0]} stands twice among the tasks"
        )
    known = samples["task_id"].isin(tasks["task_id"])
    if not known.any():
        raise UsageError("the evaluation has no sample of the proposed tasks")
    table = read_long_table(samples[known], "task_id")
    graded = pd.DataFrame({"prompt": table.prompt, "position": table.position, "right": table.mode >= 0})
    graded = graded[table.graded].sort_values(["prompt", "position"])
    place = graded.groupby("prompt").cumcount().to_numpy()
    at = pd.Index(table.prompts["task_id"]).get_indexer(pd.Index(tasks["task_id"]))
    size = tasks["size"].to_numpy(dtype=np.int64)
    wanted = np.zeros(len(table.prompts), dtype=np.int64)
    wanted[at[at >= 0]] = size[at >= 0]
    prompt, right = graded["prompt"].to_numpy(), graded["right"].to_numpy()
    early = place < wanted[prompt]

    def counted(which: npt.NDArray[np.bool_]) -> FloatArray:
        """Per task, 0 where it has no sample."""
        counts = np.bincount(prompt[which], minlength=len(wanted))
        return np.where(at >= 0, counts[at], 0)

    fresh, first, right_left, left = (
        counted(which) for which in (early & right, early, ~early & right, ~early)
    )
    correct = tasks["correct"].to_numpy(dtype=np.int64)
    columns = ["task_id", "size", *(name for name in SCORES if name in tasks)]
    found: pd.DataFrame = tasks[columns].reset_index(drop=True)
    found["teachability"] = teaching_value(correct / size, slope)
    if "difficulty" in tasks:
        found["difficulty"] = _difficulties(tasks["difficulty"])
    found["same"] = ((correct > 0) & (correct < size)).astype(np.float64)
    found["fresh"] = ((fresh > 0) & (fresh < size)).astype(np.float64)
    found["estimate"], found["rollouts"] = chance_mixed(right_left, left, size), left
    found = found.loc[(first == size) & (left >= size)]
    if not len(found):
        raise UsageError(
            f"no task has {2 * int(size.min())} further graded rollouts: as many as it had, and as many again"
        )
    numbers = [name for name in SCORES if name in found]
    return found.astype(dict.fromkeys(numbers, np.float64)).reset_index(drop=True)


def _difficulties(labels: pd.Series) -> FloatArray:
    """Labels as numbers, ascending; NaN for other words."""
    named = labels.map({name: float(place) for place, name in enumerate(DIFFICULTIES)})
    return pd.to_numeric(labels, errors="coerce").fillna(named).to_numpy(dtype=np.float64)


def teachability(
    asked: pd.DataFrame, *, interval: float = 0.95, draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Every score against every target: correlation, and the share of the highest quarter that is mixed.

    Args:
        asked: what `asked_again` returns; several runs may stand below each other.
        interval: level of the percentile intervals of a bootstrap over tasks.
        draws: of the bootstrap.
        seed: of a generator that this call owns.

    Returns:
        a row a score (those of `SCORES` that some task has, and `ESTIMATE`, which is held against fresh
        alone) and target: ``score``, ``target``; ``n`` (tasks that have the score); ``r`` (Pearson) with
        ``r_low``, ``r_high``, NaN where one of both is the same for all tasks (limits: in many draws);
        ``mixed`` (mean of the target over these tasks); ``top`` (mean over the highest quarter by the score)
        with ``top_low``, ``top_high``.

    Raises:
        UsageError: draws below 1.
        ValueError: a level outside (0, 1).
    """
    if draws < 1:
        raise UsageError(f"bootstrap draws must be at least 1, got {draws}")
    tail = tail_of(interval)
    scores = [name for name in SCORES if name in asked and asked[name].notna().any()]
    rows: list[dict[str, Any]] = []
    for name in [*scores, ESTIMATE]:
        has = asked[asked[name].notna()]
        targets = ["fresh"] if name == ESTIMATE else list(TARGETS)
        x, y = has[name].to_numpy(dtype=np.float64), has[targets].to_numpy(dtype=np.float64)
        whole = np.ones((1, len(has)))
        r, top = correlations(whole, x, y)[0], highest_quarter(whole, x, y)[0]
        drawn = list(resampled_counts(np.random.default_rng(seed), len(has), draws))
        of_r = np.concatenate([correlations(counts, x, y) for _, counts in drawn])
        of_top = np.concatenate([highest_quarter(counts, x, y) for _, counts in drawn])
        for place, target in enumerate(targets):
            r_low, r_high = _percentiles(of_r[:, place], tail)
            low, high = _percentiles(of_top[:, place], tail)
            row = {"score": name, "target": target, "n": len(has), "r": r[place], "r_low": r_low}
            row |= {"r_high": r_high, "mixed": y[:, place].mean(), "top": top[place]}
            rows.append({**row, "top_low": low, "top_high": high})
    return pd.DataFrame(rows)


def correlations(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Pearson's r of a score with every target, each task counted so often.

    Args:
        counts: [D, N] how often each task is counted.
        x: [N] score.
        y: [N, M] targets.

    Returns:
        [D, M]; NaN where score or target is constant.
    """
    total = counts.sum(axis=1, keepdims=True)
    # On one scale, so that what is constant in a draw can be told from what varies little.
    x, y = _standardised(x[:, None]), _standardised(y)
    mean_x, mean_y = counts @ x / total, counts @ y / total
    covariance = counts @ (x * y) / total - mean_x * mean_y
    spread = (counts @ x**2 / total - mean_x**2) * (counts @ y**2 / total - mean_y**2)
    found = np.full(covariance.shape, np.nan)
    known = spread > 1e-12
    found[known] = covariance[known] / np.sqrt(spread[known])
    return found


def _standardised(columns: FloatArray) -> FloatArray:
    spread = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def highest_quarter(counts: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Mean of every target over the quarter of the tasks with the highest score; ties count in equal parts.

    Args and returns as `correlations`.

    >>> score, target = np.array([1.0, 1.0, 0.0, 0.0]), np.array([[1.0], [0.0], [0.0], [0.0]])
    >>> highest_quarter(np.ones((1, 4)), score, target)
    array([[0.5]])
    """
    order = np.argsort(-x, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(x[order]) != 0])
    counted = counts[:, order]
    size = np.add.reduceat(counted, first, axis=1)
    wanted = QUARTER * counts.sum(axis=1, keepdims=True)
    taken = np.clip(wanted - (size.cumsum(axis=1) - size), 0.0, size)
    share = np.divide(taken, size, out=np.zeros_like(size), where=size > 0)
    sums = [np.add.reduceat(counted * column[order], first, axis=1) for column in y.T]
    return np.asarray(np.stack([(share * of_group).sum(axis=1) for of_group in sums], axis=1) / wanted)


def _percentiles(values: FloatArray, tail: float) -> tuple[float, float]:
    """Limits of the defined draws; NaN where so many are undefined that a limit could lie among them."""
    undefined = np.isnan(values)
    if undefined.mean() > 1 - tail:
        return np.nan, np.nan
    low, high = np.quantile(values[~undefined], [1 - tail, tail])
    return float(low), float(high)
