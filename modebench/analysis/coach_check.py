"""Does a prefix give answers away? Accuracy with it beside accuracy without, under the untrained policy.

A prefix may name a method that the policy would have had to find, but a policy that is suddenly right because
of it has been told more. No text check finds that, so it is measured: the prefixes of a cell must not raise
accuracy by more than a margin that was set before.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from modebench.analysis.probing import probe
from modebench.errors import UsageError

MARGIN = 0.05


class Verdict(NamedTuple):
    """What was found.

    Attributes:
        passed: no difference is above the margin.
        text: one line.
    """

    passed: bool
    text: str


def step_zero(samples: pd.DataFrame, margin: float = MARGIN) -> Verdict:
    """Compare accuracy with each prefix and without, cell by cell.

    Args:
        samples: of a run with prefixes (``modebench eval --prefixes``), before any training.
        margin: by which accuracy may be higher with a prefix.

    Raises:
        UsageError: no samples with and without a prefix of one task, or a margin below 0.
    """
    if margin < 0:
        raise UsageError(f"the margin must not be negative, not {margin}")
    if "prefix" not in samples:
        raise UsageError("the run was not asked with prefixes: modebench eval --prefixes FILE")
    rows = [row for row in probe(samples)["rows"] if row["accuracy_difference"]["value"] is not None]
    if not rows:
        raise UsageError("no task of the run was answered both with a prefix and without")
    worst = max(rows, key=lambda row: float(row["accuracy_difference"]["value"]))
    found = worst["accuracy_difference"]
    passed = found["value"] <= margin
    limits = "" if found["low"] is None else f" [{found['low']:+.3f}, {found['high']:+.3f}]"
    place = f"{worst['prefix']!r}, {worst['domain']} level {worst['level']}, {worst['tasks']} tasks"
    said = "within" if passed else "ABOVE"
    return Verdict(
        passed, f"largest change of accuracy {found['value']:+.3f}{limits} ({place}): {said} {margin:+.3f}"
    )
