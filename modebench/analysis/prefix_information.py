"""How much a prefix says about the mode of a right answer: mutual information, beside its value by chance.

For one task with n_pm right samples of mode m under prefix p, n in all, I = Σ n_pm/n log2(n_pm n / (n_p n_m))
bits (Cover and Thomas 2006, equation 2.28). The estimate from few samples is too large, so the same is
computed with the prefixes of a task's right samples shuffled: what is left beyond that mean is information.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from math import log2
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.intervals import t_limits
from modebench.analysis.pass_at_k import FloatArray

SHUFFLES = 20


def mutual_information(pairs: Sequence[tuple[str, str]]) -> float:
    """Plug-in mutual information of pairs, bits; 0 for none."""
    both, first, second = Counter(pairs), Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    n = len(pairs)
    return sum(count / n * log2(count * n / (first[a] * second[b])) for (a, b), count in both.items())


def prefix_information(samples: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Information between prefix and mode by domain and level, over tasks with two right samples or more.

    Args:
        samples: long table with the columns domain, level, task_id, prefix, mode; samples without a prefix
            (``none``, ``control``) are left out.
        seed: of the shuffles.

    Returns:
        a row a cell: domain, level, tasks, bits (mean over tasks), bits_by_chance (prefixes shuffled), and
        bits_beyond with the limits low and high of its 95 % t interval over tasks.

    Raises:
        ValueError: a column is missing.
    """
    missing = [name for name in ("domain", "level", "task_id", "prefix", "mode") if name not in samples]
    if missing:
        raise ValueError(f"the table of samples lacks the columns {missing}; it has {list(samples.columns)}")
    coached = samples[~samples["prefix"].isin(("none", "control")) & samples["mode"].notna()]
    rows: list[dict[str, Any]] = []
    for (domain, level), cell in coached.groupby(["domain", "level"], sort=False, observed=True):
        told, chance = [], []
        for task_id, task in cell.groupby("task_id", sort=False, observed=True):
            pairs = list(zip(task["prefix"].astype(str), task["mode"].astype(str), strict=True))
            if len(pairs) > 1:
                told.append(mutual_information(pairs))
                chance.append(_shuffled(pairs, random.Random(f"{seed}|{task_id}")))
        if told:
            rows.append({"domain": domain, "level": level, **_row(np.array(told), np.array(chance))})
    return pd.DataFrame(rows)


def _row(told: FloatArray, chance: FloatArray) -> dict[str, Any]:
    beyond, n = told - chance, len(told)
    error = beyond.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    low, high = t_limits(beyond.mean(), error, n)
    means = {"bits": told.mean(), "bits_by_chance": chance.mean(), "bits_beyond": beyond.mean()}
    return {"tasks": n, **means, "low": float(low), "high": float(high)}


def _shuffled(pairs: Sequence[tuple[str, str]], rng: random.Random) -> float:
    prefixes, modes = [a for a, _ in pairs], [b for _, b in pairs]
    total = 0.0
    for _ in range(SHUFFLES):
        rng.shuffle(prefixes)
        total += mutual_information(list(zip(prefixes, modes, strict=True)))
    return total / SHUFFLES
