"""From a sweep with the part `mei` to results/NAME: does MEI warn of collapse, and earlier than entropy?

    python results/alarm.py runs/sweep-mesh-alarm results/mesh-alarm

The readings of a signal are those that every step logged; its threshold is set from the arm `frozen`, whose
policy is the base: mean + 3 sd, or - 3 sd for entropy (`modebench.analysis.alarm`). A frozen run is judged by
the frozen runs of the other seeds, so that what sounds there is a false alarm. What may fall is PCMD and
pass@8 of the evaluations.

leads.csv     a row a run, signal and measure: threshold, step of the alarm, step of the fall, lead
alarm.md      the same by arm and signal: alarms, falls, median lead
figure.png    the signals over the steps with their thresholds, and PCMD
manifest.json SHA-256 of what was read, and the versions
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import pandas as pd
from matplotlib import pyplot

import modebench as mb
from modebench.analysis.alarm import Side, Threshold, calibrate, lead_times
from modebench.analysis.grid import DASH, Grid, render_grid
from modebench.cli.errors import exit_code
from modebench.provenance import placeless_json, versions
from modebench.runs import file_sha256, read_json_object, read_jsonl, write_atomically

FROZEN = "frozen"
SIGNALS: dict[str, Side] = {
    "mei/mean": "above",
    "mei/ratio_of_sums": "above",
    "mei/advantage": "above",
    "mei/correct": "above",
    "mei/largest_strategy": "above",
    "entropy": "below",
}
PUBLISHED = 1.013
"""Of mei/mean, in arXiv:2610.02835; of other models, domains and group sizes."""
DROPS = {"pcmd": 0.1, "pass@8": 0.05}
"""How far a measure must fall below its highest value to count."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the results of a sweep.

    Raises:
        UsageError: no finished runs, none of the arm `frozen`, or a run without the part `mei`.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sweep", type=Path, help="folder of modebench sweep")
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument("--patience", type=int, default=1, help="readings in a row (default: %(default)s)")
    asked = parser.parse_args(arguments)
    folders = sorted(path.parent for path in asked.sweep.glob("*/*/seed-*/metrics.jsonl"))
    if not folders:
        raise mb.UsageError(f"{asked.sweep} holds no runs of a sweep")
    logged = {folder: _logged(folder) for folder in folders}
    table = pd.DataFrame(row for folder in folders for row in _leads(folder, logged, asked.patience))
    asked.output.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.output / "leads.csv", table.to_csv(index=False))
    write_atomically(asked.output / "alarm.md", _summary(table) + "\n")
    _draw(logged, asked.output / "figure.png")
    manifest = {
        "made": versions(),
        "patience": asked.patience,
        "drops": DROPS,
        "runs": {
            str(folder.relative_to(asked.sweep)): file_sha256(folder / "metrics.jsonl") for folder in folders
        },
    }
    write_atomically(asked.output / "manifest.json", placeless_json(manifest, asked.sweep, asked.output))


def _logged(folder: Path) -> pd.DataFrame:
    """What a finished run logged, a row a step."""
    status = read_json_object(folder / "summary.json").get("status")
    if status != "success":
        raise mb.UsageError(f"{folder} has not finished: {status}")
    found = pd.DataFrame([line for _, line in read_jsonl(folder / "metrics.jsonl")])
    missing = set(SIGNALS) - set(found)
    if missing:
        raise mb.UsageError(f"{folder} did not log {min(missing)}: it was trained without --add mei")
    return found


def _arm(folder: Path) -> str:
    return folder.parent.name


def thresholds(folder: Path, logged: dict[Path, pd.DataFrame]) -> dict[str, Threshold]:
    """Of every signal for one run, from the frozen runs of its domain, a frozen run itself left out."""
    base = [
        table
        for other, table in logged.items()
        if _arm(other) == FROZEN and other.parent.parent == folder.parent.parent and other != folder
    ]
    if not base:
        raise mb.UsageError(f"{folder.parent.parent} has no other run of the arm {FROZEN} to set thresholds")
    readings = pd.concat(base)
    return {name: calibrate(readings[name].dropna().tolist(), side) for name, side in SIGNALS.items()}


def _leads(folder: Path, logged: dict[Path, pd.DataFrame], patience: int) -> Iterator[dict[str, Any]]:
    """The rows of one run."""
    found = logged[folder]
    known = thresholds(folder, logged)
    mei = known["mei/mean"]
    signals = {name: (_values(found[name]), limit) for name, limit in known.items()}
    signals["mei/mean, published"] = (
        _values(found["mei/mean"]),
        Threshold(PUBLISHED, "above", mei.mean, mei.sd, 0),
    )
    summary = mb.summarize(mb.load_samples([folder / "eval"], texts=False), ["step"])
    for measure, drop in DROPS.items():
        values = summary[summary["metric"] == measure].sort_values("step")
        curve = (values["step"].tolist(), _values(values["value"]))
        for row in lead_times(found["step"].tolist(), signals, {measure: curve}, drop, patience):
            head = {"domain": folder.parent.parent.name, "arm": _arm(folder), "seed": folder.name}
            yield {**head, "G": found["mei/G"].iloc[0], **row}


def _values(column: pd.Series) -> list[float | None]:
    return [None if pd.isna(value) else float(value) for value in column]


def _summary(table: pd.DataFrame) -> str:
    """By domain, measure, arm and signal, in Markdown."""
    header = ["domain", "measure", "arm", "signal", "alarms", "step", "falls", "at", "lead", "leads of each"]
    rows = []
    keys = ["domain", "measure", "arm", "signal"]
    for names, part in table.groupby(keys, sort=False):
        leads = part["lead"].dropna()
        each = ", ".join(DASH if pd.isna(lead) else f"{lead:+.0f}" for lead in part["lead"])
        counts = [f"{part[name].notna().sum()} of {len(part)}" for name in ("sounds", "falls")]
        steps = [_median(part[name].dropna()) for name in ("sounds", "falls")]
        told = [counts[0], steps[0], counts[1], steps[1], _median(leads), each]
        rows.append([*map(str, names if isinstance(names, tuple) else (names,)), *told])
    notes = [
        f"thresholds: mean and 3 sd of the steps of {FROZEN}, for its own runs those of the other seeds; the "
        f"published one is {PUBLISHED}; falls: PCMD by {DROPS['pcmd']}, pass@8 by {DROPS['pass@8']} below "
        "its highest value and not back; lead: steps from alarm to fall, median over the runs that have both"
    ]
    return render_grid(Grid(header, rows, None, notes, [True] * 4 + [False] * 6), "markdown")


def _median(values: pd.Series) -> str:
    return f"{values.median():g}" if len(values) else DASH


def _draw(logged: dict[Path, pd.DataFrame], path: Path) -> None:
    """MEI, entropy and PCMD of the steps, a row a domain, runs of an arm in one colour."""
    domains = sorted({folder.parent.parent.name for folder in logged})
    arms = sorted({_arm(folder) for folder in logged})
    shown = ("mei/mean", "mei/ratio_of_sums", "entropy", "pcmd")
    size = (4.2 * len(shown), 3.6 * len(domains))
    figure, axes = pyplot.subplots(len(domains), len(shown), figsize=size, squeeze=False)
    for folder, table in logged.items():
        for name, ax in zip(shown, axes[domains.index(folder.parent.parent.name)], strict=True):
            colour = f"C{arms.index(_arm(folder))}"
            label = _arm(folder) if folder.name == "seed-0" else None
            ax.plot(table["step"], table[name], color=colour, linewidth=0.9, label=label)
            ax.set(title=f"{folder.parent.parent.name}: {name}", xlabel="training step")
            if _arm(folder) == FROZEN and name in SIGNALS:
                ax.axhline(thresholds(folder, logged)[name].value, color="grey", linewidth=0.6)
    axes[0][0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(exit_code(main))
