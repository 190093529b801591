"""From a sweep of SynCo to results/NAME: do scores of proposed tasks tell what further rollouts of them do?

    python results/teachability.py runs/sweep-forty-synco results/synco-teachability

Of every checkpoint that a run has kept, the tasks of the step after it are asked again of that very policy,
by ``modebench eval``; `modebench.analysis.teachability` then holds every score against three targets: the
logged rollouts are mixed (same), as many others are (fresh), and the chance of that from the rest (estimate).

asked.csv     a row a task: domain, arm, seed, step, its scores and targets
table.csv     a row a domain, arm, score and target: r, and the share of mixed tasks in the highest quarter
table.md      the same, a row a score
manifest.json of every run the steps asked, and the SHA-256 of its tasks and of the weights
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import modebench as mb
from modebench.analysis.frames import Shown, beside, render_frame
from modebench.analysis.teachability import TARGETS, asked_again, teachability
from modebench.cli import cli
from modebench.cli.errors import exit_code
from modebench.proposals import check_asked, choose_asked, proposed_tasks, read_proposals
from modebench.provenance import placeless_json, versions
from modebench.runs import MANIFEST, file_sha256, write_atomically
from modebench.samples import Run, load_run
from modebench.tasks import write_tasks
from modebench.training.checkpoint import checkpoints_in
from modebench.training_runs import PROPOSALS, TrainingRun, load_training

KEYS = ["domain", "arm"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the tasks again and write the results.

    Raises:
        UsageError: no finished run, none that proposed tasks, or no kept checkpoint with tasks after it.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sweep", type=Path, help="folder of modebench sweep, or of one run")
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument("--samples", type=int, default=68, help="rollouts a task (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=2000, help="of the bootstrap (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder of the evaluations (default: SWEEP-asked)")
    asked = parser.parse_args(arguments)
    work = asked.work or asked.sweep.with_name(f"{asked.sweep.name}-asked")
    tables, manifest = [], []
    for run in load_training(asked.sweep):
        found, told = _of_run(run, work / run.path.relative_to(asked.sweep), asked.samples)
        tables += found
        manifest.append({"path": str(run.path.relative_to(asked.sweep)), **told})
    if not tables:
        raise mb.UsageError(f"{asked.sweep}: no kept checkpoint has valid tasks in the step after it")
    rows = pd.concat(tables, ignore_index=True)
    cells = [
        teachability(cell, draws=asked.draws).assign(**dict(zip(KEYS, names, strict=True)))
        for names, cell in rows.groupby(KEYS, sort=True)
    ]
    table = pd.concat(cells, ignore_index=True)
    table = table[[*KEYS, *(name for name in table if name not in KEYS)]]
    asked.output.mkdir(parents=True, exist_ok=True)
    write_atomically(asked.output / "asked.csv", rows.to_csv(index=False))
    write_atomically(asked.output / "table.csv", table.to_csv(index=False))
    write_atomically(asked.output / "table.md", _markdown(table, asked.samples).rstrip() + "\n")
    document = {"made": versions(), "samples": asked.samples, "draws": asked.draws, "runs": manifest}
    write_atomically(
        asked.output / "manifest.json", placeless_json(document, asked.sweep, asked.output, work)
    )
    return 0


def _of_run(run: TrainingRun, work: Path, samples: int) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """A run's tasks with what further rollouts say of them, a table a checkpoint; and what they rest on."""
    path = run.path / PROPOSALS
    if not path.is_file():
        raise mb.UsageError(f"{run.path} proposed no tasks: it has no {PROPOSALS}")
    proposals = read_proposals(path)
    tables, steps = [], {}
    for step, checkpoint in checkpoints_in(run.path / "checkpoints").items():
        try:
            chosen = choose_asked(proposals, (step + 1, step + 1))
        except mb.UsageError:  # the last checkpoint, or a step without a valid task
            continue
        again = _asked(checkpoint, path, chosen, work / f"step-{step:06d}", samples)
        identity = {name: run.identity()[name] for name in (*KEYS, "seed")}
        tables.append(asked_again(chosen, again.samples(texts=False)).assign(**identity, step=step + 1))
        steps[step + 1] = file_sha256(checkpoint / "model.safetensors")
    return tables, {"tasks_sha256": file_sha256(path), "weights_sha256_by_step": steps}


def _asked(checkpoint: Path, path: Path, chosen: pd.DataFrame, folder: Path, samples: int) -> Run:
    """The evaluation of a checkpoint on these tasks; one that was begun goes on."""
    tasks, evaluation = folder / "tasks.jsonl", folder / "evaluation"
    if (evaluation / MANIFEST).is_file():
        command = ["eval", "--resume", str(evaluation)]
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_tasks(tasks, proposed_tasks(path, chosen))
        command = ["eval", "--model", f"hf/{checkpoint}", "--tasks", str(tasks)]
        command += ["--samples", str(samples), "--output", str(evaluation)]
    code = exit_code(lambda: cli.main(command, standalone_mode=False))
    if code != 0:
        raise mb.UsageError(f"modebench {' '.join(command)} ended with exit code {code}")
    again = load_run(evaluation)
    assert isinstance(again, Run)
    check_asked(again.folder.manifest, chosen)
    return again


def _markdown(table: pd.DataFrame, samples: int) -> str:
    shown = [Shown("n.fresh", "tasks", form="d"), Shown("mixed.fresh", "mixed")]
    for value, title in (("r", "r"), ("top", "top quarter")):
        for target in TARGETS:
            limits = (f"{value}_low.{target}", f"{value}_high.{target}")
            shown.append(Shown(f"{value}.{target}", f"{title}, {target}", limits))
    notes = [
        f"same: the logged rollouts are mixed; fresh: as many of {samples} further ones of the same policy; "
        "estimate: the chance of that from the rest of these; top quarter: share of mixed tasks in the "
        "highest quarter by a score; 95% intervals: bootstrap over tasks"
    ]
    return render_frame(beside(table, [*KEYS, "score"], "target"), [*KEYS, "score"], shown, notes, "markdown")


if __name__ == "__main__":
    sys.exit(exit_code(main))
