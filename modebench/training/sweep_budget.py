"""What the arms of a sweep have spent, beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modebench.analysis.grid import DASH, Grid
from modebench.training.folder import TrainingFolder
from modebench.training.sweep import SweepRun

_COUNTS = ("rollouts", "tokens", "updates")


def budget_grid(runs: Sequence[SweepRun], output: Path) -> Grid:
    """A row a domain and arm: runs finished, rollouts planned a run, and what its finished runs measured.

    A count is that of one run, ``least–most`` where runs differ. A warning stands below where arms of a
    domain generated other numbers of rollouts.

    Args:
        runs: of the sweep.
        output: its folder.
    """
    cells: dict[tuple[str, str], list[SweepRun]] = {}
    for run in runs:
        cells.setdefault((run.domain, run.arm), []).append(run)
    rows, spent = [], dict[str, dict[str, list[int]]]()
    for (domain, arm), members in cells.items():
        totals = [total for run in members if (total := _totals(output / run.name)) is not None]
        counts = {name: [int(total[name]) for total in totals] for name in _COUNTS}
        spent.setdefault(domain, {})[arm] = counts["rollouts"]
        shown = [_range(counts[name]) for name in _COUNTS]
        rows.append([domain, arm, f"{len(totals)}/{len(members)}", str(members[0].rollouts), *shown])
    header = ["domain", "arm", "finished", "planned", *_COUNTS]
    notes = ["rollouts generated, tokens and optimizer steps of one run, from least to most"]
    return Grid(header, rows, None, [*notes, *_warnings(spent)], [True, True, *[False] * 5])


def _totals(path: Path) -> Mapping[str, Any] | None:
    """What a run has spent, None where it has not finished."""
    summary = TrainingFolder(path).summary()
    return summary["totals"] if summary.get("status") == "success" else None


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return DASH
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least}–{most}"


def _warnings(spent: Mapping[str, Mapping[str, Sequence[int]]]) -> list[str]:
    found = []
    for domain, arms in spent.items():
        ranges = {arm: _range(counts) for arm, counts in arms.items() if counts}
        if len(set(ranges.values())) > 1:
            told = ", ".join(f"{arm} {shown}" for arm, shown in ranges.items())
            found.append(f"warning: budget: the arms of {domain} generated other numbers of rollouts: {told}")
    return found
