"""What a method costs beside another of the same sweep: seconds, rollouts, tokens, scored responses, state.

Costs of a run are means a step, sizes those of its last checkpoint. Against a base arm they are ratios of
runs of one domain and seed, averaged as logarithms (ratios of r and 1/r are then opposites). Seconds are
those of the machine on which a run happened to share its cores; counts and sizes are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.intervals import Interval, run_interval
from modebench.errors import UsageError

PER_STEP = ("learner_seconds", "wall_seconds", "rollouts", "tokens", "discarded", "updates", "scored")
SIZES = ("state_bytes", "checkpoint_bytes")


def overhead(costs: pd.DataFrame, base: str | None = None, *, interval: float = 0.95) -> pd.DataFrame:
    """Costs of every arm, and their ratios to those of the base arm.

    Args:
        costs: a row a run: domain, arm, seed, steps, and the columns of `PER_STEP` (totals of the run) and
            `SIZES` (bytes); see `modebench.training_runs.TrainingRun.costs`.
        base: the arm that the others are held against; None for no ratios.
        interval: level of the intervals.

    Returns:
        a row a domain, arm and cost: ``cost``, ``value`` (mean over runs of the mean a step, or of bytes),
        ``low``, ``high`` (t over runs, NaN below three), ``runs``; with a base ``ratio``, ``ratio_low``,
        ``ratio_high`` (geometric mean and t on logarithms, over the seeds that both have), NaN where either
        cost is 0 or unknown.

    Raises:
        UsageError: a domain has no run of the base arm, or none of a seed that another arm has.
    """
    frame = costs.assign(**{name: costs[name] / costs["steps"] for name in PER_STEP})
    rows: list[dict[str, Any]] = []
    for (domain, arm), cell in frame.groupby(["domain", "arm"], sort=True):
        paired = None if base is None else _paired(frame, str(domain), str(arm), base)
        for cost in (*PER_STEP, *SIZES):
            # NaN where a checkpoint is gone, also if all are.
            values = cell[cost].astype(np.float64).to_numpy()
            found = run_interval(values, interval, 0.0)
            row = {"domain": domain, "arm": arm, "cost": cost, "value": found.value, "low": found.low}
            row |= {"high": found.high, "runs": int((~np.isnan(values)).sum())}
            if paired is not None:
                ratio = _ratio(paired, cost, interval)
                row |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
            rows.append(row)
    return pd.DataFrame(rows)


def _paired(frame: pd.DataFrame, domain: str, arm: str, base: str) -> pd.DataFrame:
    """Runs of an arm beside those of the base, by seed."""
    of_domain = frame[frame["domain"] == domain]
    sides = [of_domain[of_domain["arm"] == name].set_index("seed") for name in (arm, base)]
    if not len(sides[1]):
        arms = ", ".join(sorted(of_domain["arm"].unique()))
        raise UsageError(f"{domain} has no finished run of the base arm {base}; it has {arms}")
    joined = sides[0].join(sides[1].add_suffix("_base"), how="inner")
    if not len(joined):
        raise UsageError(f"{domain}/{arm} and {domain}/{base} share no seed")
    return joined


def _ratio(paired: pd.DataFrame, cost: str, level: float) -> Interval:
    own, beside = (paired[name].astype(np.float64).to_numpy() for name in (cost, f"{cost}_base"))
    logs = np.full(len(own), np.nan)
    both = (own > 0) & (beside > 0)
    logs[both] = np.log(own[both]) - np.log(beside[both])
    found = run_interval(logs, level)
    value, low, high = (float(np.exp(limit)) for limit in found[:3])
    return Interval(value, low, high, found.n)
