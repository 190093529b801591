"""The metrics of a cell: what each is called, how its interval is made, why it may be undefined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

NO_SAMPLE = "no prompt has a graded sample"
NO_CORRECT = "no prompt has a correct sample"
NO_PAIR = "no prompt has two graded samples"
NO_CORRECT_PAIR = "no prompt has two correct samples"
NO_WRONG_PAIR = "no prompt has two wrong answers with a recorded text"
UNKNOWN_MODES = "the number of existing modes is not known"
NOT_RECORDED = "not recorded"


class Metric(NamedTuple):
    """One metric of a cell: the equal mean over prompts of a column of the prompt table.

    Attributes:
        name: key in a cell and column of the prompt table.
        kind: ``rate`` (in [0, 1]; Wilson on the effective sample size) or ``mean`` (t over prompts).
        undefined: why the value is null when no prompt defines it.
        lower: smallest possible value.
        upper: largest possible value of a ``mean``.
    """

    name: str
    kind: Literal["rate", "mean"]
    undefined: str
    lower: float = 0.0
    upper: float = float("inf")

    @property
    def most(self) -> float:
        """Largest possible value."""
        return 1.0 if self.kind == "rate" else self.upper


def cell_metrics(ks: Sequence[int], group_size: int) -> tuple[Metric, ...]:
    """The metrics of every cell, in the order in which they are written.

    >>> [m.name for m in cell_metrics((1, 2), 8)][:5]
    ['accuracy', 'pass@1', 'pass@2', 'modes@1', 'modes@2']
    """
    too_few = {k: f"no prompt has {k} graded samples" if k > 1 else NO_SAMPLE for k in ks}
    no_group = f"no group has exactly {group_size} graded samples"
    return (
        Metric("accuracy", "rate", NO_SAMPLE),
        *(Metric(f"pass@{k}", "rate", too_few[k]) for k in ks),
        *(Metric(f"modes@{k}", "mean", too_few[k], upper=k) for k in ks),
        Metric("distinct_pair_rate", "rate", NO_PAIR),
        Metric("pcmd", "mean", NO_CORRECT_PAIR, upper=1.0),
        Metric("pcmd_per_group", "mean", "no group has two correct samples", upper=1.0),
        Metric("hill_0", "mean", NO_CORRECT, lower=1.0),
        Metric("hill_1", "mean", NO_CORRECT, lower=1.0),
        Metric("hill_2", "mean", NO_CORRECT, lower=1.0),
        Metric("coverage_good_turing", "rate", NO_CORRECT_PAIR),
        Metric("chao1", "mean", NO_CORRECT_PAIR, lower=1.0),
        Metric("certified_coverage", "rate", UNKNOWN_MODES),
        Metric(f"pass@{group_size}_group", "rate", no_group),
        Metric(f"distinct@{group_size}_group", "mean", no_group, upper=group_size),
        Metric("wrong_distinct_pair_rate", "rate", NO_WRONG_PAIR),
        Metric("malformed_rate", "rate", NO_SAMPLE),
        Metric("truncated_rate", "rate", NOT_RECORDED),
        Metric("error_rate", "rate", "no sample at all"),
        Metric("duplicate_rate", "rate", NOT_RECORDED),
        Metric("tokens", "mean", NOT_RECORDED),
        Metric("entropy", "mean", NOT_RECORDED),
    )


# Metrics that rest on prompts with two correct samples, a choice of prompts that differs between models.
ELIGIBLE_ONLY = ("pcmd", "pcmd_per_group", "effective_modes")
