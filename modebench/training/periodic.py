"""Periodic evaluation: the present policy, measured by the ordinary harness into ordinary run folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modebench.config import EvalConfig
from modebench.evaluation import Progress, create_run, finish
from modebench.runs import MANIFEST, RunFolder, read_json_object
from modebench.sampling.base import Engine, GenerationSettings
from modebench.training.checkpoint import checkpoints_in
from modebench.training.config import TrainConfig
from modebench.training.folder import TrainingFolder


def is_due(config: TrainConfig, step: int) -> bool:
    """Whether the policy is evaluated after this step; step 0 is the untrained one."""
    every = config.eval.every
    return step in (0, config.steps) or (every > 0 and step % every == 0)


def evaluate_step(
    engine: Engine, folder: TrainingFolder, config: TrainConfig, step: int, progress: Progress | None = None
) -> dict[str, dict[str, Any]]:
    """Measure the policy after `step`; what is recorded already is kept.

    Returns:
        summary documents by split: ``eval`` and, where it is measured, ``dev``.
    """
    summaries = {}
    for split, evaluation in evaluations(config, step).items():
        path = folder.evaluation(split, step)
        if (path / MANIFEST).exists():
            run = RunFolder.open(path)
        else:
            run = create_run(path, engine, config.model, evaluation)
        if run.manifest["status"] != "success":
            finish(run, engine, progress)
        summaries[split] = read_json_object(run.summary_path)
    return summaries


def evaluations(config: TrainConfig, step: int) -> dict[str, EvalConfig]:
    """What is asked of the policy, by the name of its folder."""

    def asked(split: str, limit: int | None, samples: int) -> EvalConfig:
        return EvalConfig(
            selection=config.data.selection(split, limit),
            samples=samples,
            settings=GenerationSettings(
                temperature=config.rollout.temperature, max_tokens=config.rollout.max_completion_length
            ),
            seed=config.run.seed,
            profile=config.rollout.profile,
            arm=config.run.arm or config.method,
            step=step,
        )

    found = {"eval": asked(config.eval.split, config.eval.limit, config.eval.samples)}
    if config.eval.dev_limit:
        found["dev"] = asked("dev", config.eval.dev_limit, config.eval.dev_samples)
    return found


def mean_accuracy(summary: Mapping[str, Any]) -> float | None:
    """Mean over the cells of a summary document; None where a cell has none."""
    values = [cell["accuracy"]["value"] for cell in summary["cells"]]
    return None if not values or None in values else sum(values) / len(values)


def best_on_dev(folder: TrainingFolder) -> dict[str, Any] | None:
    """The evaluated step with the highest mean accuracy on dev, the earliest of equals.

    A function of the run folders alone. None where dev is not measured.
    """
    best: dict[str, Any] | None = None
    for path in sorted((folder.path / "dev").glob("step-*")):
        run = RunFolder.open(path) if (path / MANIFEST).exists() else None
        if run is None or run.manifest["status"] != "success":
            continue
        value = mean_accuracy(read_json_object(run.summary_path))
        if value is not None and (best is None or value > best["accuracy"]):
            step = run.manifest["step"]
            best = {"step": step, "accuracy": value, "checkpoint": _checkpoint(folder, step)}
    return best


def _checkpoint(folder: TrainingFolder, step: int) -> str | None:
    """Path of a step's checkpoint in the folder."""
    path: Path | None = checkpoints_in(folder.checkpoints).get(step)
    return None if path is None else str(path.relative_to(folder.path))
