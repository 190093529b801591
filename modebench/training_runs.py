"""Finished training runs on disk: their evaluations, logs, proposed tasks and costs, as tables.

Reads what `modebench.training.folder` writes, and needs no torch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from modebench.errors import InputError, UsageError
from modebench.proposals import read_proposals
from modebench.runs import read_json_object, read_jsonl
from modebench.samples import Run, Runs, Source, is_training_folder, load_runs

METRICS, TIMING, PROPOSALS, SUMMARY = "metrics.jsonl", "timing.jsonl", "tasks.jsonl", "summary.json"
TRAINER = "trainer.json"
SECONDS, UPDATE = "seconds/", "seconds/update"
COUNTS = ("rollouts", "tokens", "discarded", "updates", "scored")
"""Totals of a run that are counted, as `summary.json` names them."""


@dataclass(frozen=True)
class TrainingRun:
    """A training run that has finished.

    Attributes:
        path: its folder.
        summary: content of its summary.json.
        evaluations: its evaluations by step; step 0 and the last are among them.
    """

    path: Path
    summary: Mapping[str, Any]
    evaluations: Mapping[int, Run]

    @property
    def first(self) -> Run:
        """The evaluation of the policy that it began with."""
        return self.evaluations[0]

    @property
    def last(self) -> Run:
        """The evaluation of its result: of its last step, which a budget may have set."""
        return self.evaluations[self.summary["step"]]

    def identity(self) -> dict[str, Any]:
        """Domain (several are joined by +, a file of tasks stands under its name), arm and seed."""
        manifest = self.first.folder.manifest
        asked = manifest["selection"]
        domain = "+".join(asked["domains"]) if asked["file"] is None else Path(asked["file"]).stem
        return {"domain": domain, "arm": manifest["arm"], "seed": manifest["seed"]}

    def steps(self) -> pd.DataFrame:
        """A row a step: its identity, and the metrics and seconds that were logged.

        Raises:
            InputError: a line that is not of its step, or a step without seconds.
        """
        metrics, timing = (_lines(self.path / name) for name in (METRICS, TIMING))
        if len(timing) < len(metrics):
            raise InputError(self.path / TIMING, len(timing) + 1, "step", f"{len(timing) + 1} is missing")
        rows = [{**self.identity(), **one, **other} for one, other in zip(metrics, timing, strict=False)]
        return pd.DataFrame(rows)

    def proposals(self) -> pd.DataFrame:
        """The tasks that its method proposed, a row each, with its identity; none where it proposes none."""
        path = self.path / PROPOSALS
        found = read_proposals(path) if path.is_file() else pd.DataFrame()
        # The domain of a proposed task is its own.
        return found.assign(**{name: self.identity()[name] for name in ("arm", "seed")})

    def costs(self) -> dict[str, Any]:
        """What it took.

        Returns:
            identity, steps; learner_seconds (updates) and wall_seconds (all timed stages, so neither
            evaluations nor checkpoints); rollouts, tokens, discarded, updates, scored; state_bytes (the
            state of the method in the last checkpoint, as compact JSON) and checkpoint_bytes (the whole
            checkpoint with all policies and optimizers), None where the checkpoint is gone.
        """
        steps = self.steps()
        stages = [name for name in map(str, steps) if name.startswith(SECONDS)]
        seconds = {
            "learner_seconds": float(steps[UPDATE].sum()),
            "wall_seconds": float(steps[stages].sum().sum()),
        }
        counts = {name: self.summary["totals"][name] for name in COUNTS}
        return {**self.identity(), "steps": len(steps), **seconds, **counts, **self._bytes()}

    def _bytes(self) -> dict[str, int | None]:
        checkpoint = self.path / str(self.summary.get("last_checkpoint"))
        if not (checkpoint / TRAINER).is_file():
            return {"state_bytes": None, "checkpoint_bytes": None}
        state = read_json_object(checkpoint / TRAINER).get("method", {})
        written = json.dumps(state, separators=(",", ":"), ensure_ascii=False).encode()
        files = [path.stat().st_size for path in checkpoint.rglob("*") if path.is_file()]
        return {"state_bytes": len(written), "checkpoint_bytes": sum(files)}


class TrainingRuns(Sequence[TrainingRun]):
    """Several finished training runs, in one table each.

    Attributes:
        members: each of them.
        warnings: what was left out, in words.
    """

    def __init__(self, members: Sequence[TrainingRun], warnings: Sequence[str] = ()) -> None:
        self.members = tuple(members)
        self.warnings = tuple(warnings)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: Any) -> Any:
        return (
            TrainingRuns(self.members[index], self.warnings)
            if isinstance(index, slice)
            else self.members[index]
        )

    def first(self, reading: str | None = None) -> pd.DataFrame:
        """Long table of the samples at step 0 of every run; see `modebench.samples.Runs.samples`."""
        return Runs([run.first for run in self.members]).samples(reading, texts=False)

    def last(self, reading: str | None = None) -> pd.DataFrame:
        """Likewise at the last step."""
        return Runs([run.last for run in self.members]).samples(reading, texts=False)

    def steps(self) -> pd.DataFrame:
        """The logs of all; see `TrainingRun.steps`."""
        return pd.concat([run.steps() for run in self.members], ignore_index=True)

    def proposals(self) -> pd.DataFrame:
        """The proposed tasks of all; see `TrainingRun.proposals`.

        Raises:
            UsageError: none of the runs proposed any.
        """
        found = pd.concat([run.proposals() for run in self.members], ignore_index=True)
        if not len(found):
            raise UsageError(
                f"no tasks were proposed in {self.members[0].path}: it has no {PROPOSALS}, or an empty one"
            )
        return found

    def costs(self) -> pd.DataFrame:
        """What each took, a row a run; see `TrainingRun.costs`."""
        return pd.DataFrame([run.costs() for run in self.members])


def load_training(sources: Source | Iterable[Source]) -> TrainingRuns:
    """The finished training runs among these folders; the others are named in its warnings.

    Args:
        sources: training folders, or folders of them such as that of a sweep, searched to any depth.

    Raises:
        UsageError: nothing at a path, a run that is no evaluation of a training run, or no finished run.
        InputError: a manifest that cannot be read.
    """
    given = [sources] if isinstance(sources, str | PathLike) else list(sources)
    found, warnings = [], []
    for folder, evaluations in _by_training(load_runs(given)).items():
        summary = read_json_object(folder / SUMMARY) if (folder / SUMMARY).is_file() else {}
        if summary.get("status") != "success":
            where = f"step {summary.get('step', 0)} of {summary.get('steps', 'unknown')}"
            warnings.append(f"unfinished: {folder} stands at {where} and is left out")
            continue
        steps = {run.folder.manifest["step"]: run for run in evaluations}
        for step in (0, summary["step"]):
            if step not in steps:
                raise UsageError(f"{folder} has finished, but has no evaluation of step {step}")
        found.append(TrainingRun(folder, summary, steps))
    if not found:
        raise UsageError(f"no training run has finished; {'; '.join(warnings)}")
    return TrainingRuns(found, warnings)


def _by_training(runs: Runs) -> dict[Path, list[Run]]:
    """Evaluations by the folder of their training run."""
    found: dict[Path, list[Run]] = {}
    for run in runs:
        folder = run.path.parent.parent
        if not isinstance(run, Run) or run.path.parent.name != "eval" or not is_training_folder(folder):
            raise UsageError(
                f"{run.path} is not an evaluation of a training run; give folders of modebench train"
            )
        found.setdefault(folder, []).append(run)
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, a step each."""
    if not path.is_file():
        raise UsageError(f"there is no {path.name} in {path.parent}")
    found: list[dict[str, Any]] = []
    for line, record in read_jsonl(path, torn_end=True):
        if record.get("step") != len(found) + 1:
            raise InputError(path, line, "step", f"is {record.get('step')!r}, expected {len(found) + 1}")
        found.append(record)
    return found
