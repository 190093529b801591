"""From a sweep to results/NAME: table, paired differences, figure and manifest.

    python results/make.py runs/sweep-collapse results/collapse --primary dr_grpo:re_dr --primary maxrl:re_max

Every number comes from the run folders, by the functions of the package:

table.csv, table.md  the base and every arm at its last step, t intervals over seeds
differences.csv      every pair of arms, and every arm against the base, paired by seed and prompt
primary.md           of these the primary contrasts, where there are any
logged.csv           with --logged: what training logged, in three parts of the run and as a whole
figure.png           PCMD and accuracy over training, or one against the other at its end; a panel a domain
manifest.json        sweep.json, and of every run versions, totals and the SHA-256 of settings and weights

A difference has an interval from a bootstrap of seeds and prompts (low, high), and a t interval and test over
seeds (seed_low, seed_high, seed_p). seed_p_holm is seed_p after Holm's adjustment over the primary contrasts
in all domains, for every metric by itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
from matplotlib import pyplot

import modebench as mb
from modebench.analysis.grid import DASH, Grid, render_grid
from modebench.analysis.sign_flip import holm
from modebench.analysis.summary import summary_document
from modebench.analysis.table import COLLAPSE_COLUMNS, COLLAPSE_LIMITS, render
from modebench.cli.errors import exit_code
from modebench.provenance import placeless_json, versions
from modebench.results import BASE
from modebench.runs import file_sha256, read_json_object, write_atomically

METRICS = ["pcmd", "accuracy", "pass@8", "modes@8", "distinct_pair_rate"]
Contrast = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the results of a sweep.

    Raises:
        UsageError: the folder holds no sweep or no finished run, a contrast names no arm, or no run has
            logged a name of --logged.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sweep", type=Path, help="folder of modebench sweep")
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument(
        "--primary", action="append", default=[], metavar="A:B", help="a primary contrast, B - A"
    )
    parser.add_argument(
        "--runs", action="append", type=Path, default=[], metavar="DIR",
        help="further training runs, beside those of the sweep",
    )  # fmt: skip
    parser.add_argument("--logged", default="", metavar="NAME[,NAME]", help="what of metrics.jsonl to report")
    parser.add_argument("--draws", type=int, default=10_000, help="of the bootstrap (default: %(default)s)")
    asked = parser.parse_args(arguments)
    sweep = _sweep(asked.sweep)
    runs, warnings = mb.load_results([asked.sweep, *asked.runs])
    folders = sorted({run.path.parent.parent for run in runs})
    _check_complete(asked.sweep, sweep, [path for path in folders if path.is_relative_to(asked.sweep)])
    samples = runs.samples(texts=False)
    arms = [BASE, *sorted(set(samples["arm"]) - {BASE})]
    primary = _contrasts(asked.primary, arms)
    names = [name for name in asked.logged.split(",") if name]
    told = logged(mb.load_training([asked.sweep, *asked.runs]).steps(), names) if names else None
    over = "seed" if samples["seed"].nunique() > 1 else None
    asked.output.mkdir(parents=True, exist_ok=True)
    document = summary_document(samples, ["domain", "arm"], upper_level=over, chance=runs.chance())
    document["cells"].sort(key=lambda cell: (cell["domain"], arms.index(cell["arm"])))
    document["warnings"] += warnings
    columns = ["domain", "arm", *(["units"] if over else []), "prompts×samples", *COLLAPSE_COLUMNS]
    for layout, name in (("csv", "table.csv"), ("markdown", "table.md")):
        text = render(document, layout, columns, chance=False, limits=COLLAPSE_LIMITS)
        write_atomically(asked.output / name, text.rstrip() + "\n")
    found = differences(samples, arms, primary, asked.draws)
    write_atomically(asked.output / "differences.csv", found.to_csv(index=False))
    if primary:
        write_atomically(asked.output / "primary.md", _primary_table(found, asked.draws) + "\n")
    if told is not None:
        write_atomically(asked.output / "logged.csv", told.to_csv(index=False, float_format="%.6g"))
    _draw(folders, samples, over, asked.output / "figure.png")
    manifest = {
        "made": versions(),
        "primary": primary,
        "draws": asked.draws,
        "warnings": warnings,
        "sweep": sweep,
        "runs": [_run(_path(folder, asked.sweep, asked.runs), folder) for folder in folders],
    }
    text = placeless_json(manifest, asked.sweep, *asked.runs, asked.output)
    write_atomically(asked.output / "manifest.json", text)


def _sweep(folder: Path) -> dict[str, Any]:
    if not (folder / "sweep.json").is_file():
        raise mb.UsageError(f"{folder} is no folder of modebench sweep: it has no sweep.json")
    return read_json_object(folder / "sweep.json")


def _check_complete(sweep: Path, asked: dict[str, Any], folders: Sequence[Path]) -> None:
    """Results are made of all runs of a sweep and of no others."""
    wanted, found = {run["path"] for run in asked["runs"]}, {str(path.relative_to(sweep)) for path in folders}
    for kind, paths in (("has not finished", wanted - found), ("is not of this sweep", found - wanted)):
        if paths:
            raise mb.UsageError(f"{sweep}: {min(paths)} {kind} ({len(paths)} such runs)")


def _contrasts(texts: Sequence[str], arms: Sequence[str]) -> list[Contrast]:
    found = []
    for text in texts:
        a, _, b = text.partition(":")
        if a not in arms or b not in arms or a == b:
            raise mb.UsageError(f"--primary {text} is not A:B of two arms; there are {', '.join(arms)}")
        found.append((a, b))
    return found


def differences(
    samples: pd.DataFrame, arms: Sequence[str], primary: Sequence[Contrast], draws: int
) -> pd.DataFrame:
    """B - A of every pair of arms in every domain: a row a contrast, domain and metric.

    Args:
        samples: of the base and of all arms at their last steps.
        arms: names, the base first.
        primary: contrasts whose tests are adjusted together; they have the direction given here.
        draws: of the bootstrap.
    """
    flipped = {(b, a) for a, b in primary}
    pairs = [(b, a) if (a, b) in flipped else (a, b) for a, b in combinations(arms, 2)]
    tables = []
    for a, b in pairs:
        sides = (samples[samples["arm"] == arm] for arm in (a, b))
        table = mb.compare(*sides, by=["domain"], bootstrap=draws, starred=METRICS)
        table = table[table["metric"].isin(METRICS)].assign(a=a, b=b, primary=(a, b) in primary)
        tables.append(table)
    columns = ["a", "b", "domain", "metric", "primary", "value_a", "value_b", "difference", "low", "high"]
    columns += ["seed_low", "seed_high", "seed_p", "seed_p_holm", "seeds", "prompts", "pairs", "n"]
    found = pd.concat(tables, ignore_index=True).reindex(columns=columns)
    for metric in METRICS:
        tested = found.index[found["primary"] & (found["metric"] == metric) & found["seed_p"].notna()]
        if len(tested):
            found.loc[tested, "seed_p_holm"] = holm(found.loc[tested, "seed_p"].tolist())
    return found


def logged(steps: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """What the training of every arm logged.

    Args:
        steps: log of all runs; see `modebench.training_runs.TrainingRuns.steps`.
        names: columns of it; steps that have none, and arms without such a part, are left out.

    Returns:
        a row a domain, arm, name and part of the steps (thirds of the longest run, and all behind the
        first): from_step, to_step, runs, and mean and median over the steps of a run, averaged over the runs.

    Raises:
        UsageError: no run has logged a name.
    """
    unknown = [name for name in names if name not in steps]
    if unknown:
        raise mb.UsageError(f"no run has logged {unknown[0]}")
    last = int(steps["step"].max())
    cuts = [round(last * third / 3) for third in range(4)]
    rows = []
    for first, to in [*((low + 1, high) for low, high in pairwise(cuts)), (2, last)]:
        part = steps[steps["step"].between(first, to)]
        for (domain, arm), cell in part.groupby(["domain", "arm"]):
            for name in names:
                values = cell.dropna(subset=name).groupby("seed")[name]
                if len(values):
                    row = {"domain": domain, "arm": arm, "name": name, "from_step": first, "to_step": to}
                    row |= {"runs": len(values), "mean": values.mean().mean()}
                    rows.append({**row, "median": values.median().mean()})
    return pd.DataFrame(rows)


def _primary_table(found: pd.DataFrame, draws: int) -> str:
    """The primary contrasts in Markdown."""

    def limits(low: float, high: float) -> str:
        return DASH if np.isnan(low) else f"[{low:+.3f}, {high:+.3f}]"

    def p(value: float) -> str:
        return DASH if np.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"

    header = [
        "contrast",
        "domain",
        "metric",
        "A",
        "B",
        "B − A",
        "seeds and prompts",
        "over seeds",
        "p",
        "p (Holm)",
        "n",
    ]
    rows = [
        [
            f"{row.b} − {row.a}", row.domain, row.metric, f"{row.value_a:.3f}", f"{row.value_b:.3f}",
            f"{row.difference:+.3f}", limits(row.low, row.high), limits(row.seed_low, row.seed_high),
            p(row.seed_p), p(row.seed_p_holm), str(row.n),
        ]
        for row in found[found["primary"]].sort_values(["metric", "a", "domain"], kind="stable").itertuples()
    ]  # fmt: skip
    notes = [
        f"95% intervals: a bootstrap of seeds and prompts ({draws} draws), and t over seeds; p: t test over "
        "seeds, adjusted by Holm's method over contrasts and domains, for every metric by itself; n: prompts "
        f"× seeds that define the metric on both sides; {DASH}: undefined, or all seeds agree"
    ]
    return render_grid(Grid(header, rows, None, notes, [True] * 3 + [False] * 8), "markdown")


def _draw(folders: Sequence[Path], ends: pd.DataFrame, over: str | None, path: Path) -> None:
    """A panel a domain: the collapse curves, or where nothing was evaluated between, the ends in a plane."""
    samples = mb.load_samples([folder / "eval" for folder in folders], texts=False)
    curves = has_curves(samples)
    if curves:
        summary = mb.summarize(samples, ["domain", "arm", "step"], upper_level=over)
    else:
        summary = mb.summarize(ends, ["domain", "arm"], upper_level=over)
    domains = sorted(summary["domain"].unique())
    figure, axes = pyplot.subplots(1, len(domains), figsize=(8 * len(domains), 4.5), squeeze=False)
    for domain, ax in zip(domains, axes[0], strict=True):
        draw = mb.plots.collapse_curve if curves else mb.plots.accuracy_diversity
        draw(summary[summary["domain"] == domain], ax, by="arm")
        ax.set_title(domain)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def has_curves(samples: pd.DataFrame) -> bool:
    """Whether a run was evaluated between its first and its last step, which need not be those of others."""
    return bool(samples.groupby(["domain", "arm", "seed"])["step"].nunique().max() > 2)


def _path(folder: Path, sweep: Path, beside: Sequence[Path]) -> str:
    """Where a run lies: in the sweep, or in a folder beside it, which is named then."""
    if folder.is_relative_to(sweep):
        return str(folder.relative_to(sweep))
    root = next(path for path in beside if folder.is_relative_to(path))
    return f"{root.name}/{folder.relative_to(root)}"


def _run(path: str, folder: Path) -> dict[str, Any]:
    """What the results rest on, of one run."""
    summary = read_json_object(folder / "summary.json")
    weights = folder / summary["last_checkpoint"] / "model.safetensors"
    kept = ("method", "model", "seed", "steps", "totals", "last_checkpoint", "versions", "git", "platform")
    return {
        "path": path,
        "config_sha256": file_sha256(folder / "config.yaml"),
        "weights_sha256": file_sha256(weights) if weights.is_file() else None,
        **{name: summary[name] for name in kept},
    }


if __name__ == "__main__":
    sys.exit(exit_code(main))
