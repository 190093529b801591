"""What a training run comes to: its last evaluation, and the policy before it as the base of all arms."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from modebench.errors import UsageError
from modebench.runs import read_json_object
from modebench.samples import Run, Runs, SampleFile, Source, is_training_folder, load_runs

BASE = "base"
"""The arm that the evaluations at step 0 make."""


class BaseRun(Run):
    """An evaluation at step 0, under the name that it has beside the arms."""

    def origin(self) -> dict[str, Any]:
        """As of any run, with arm `BASE`."""
        return {**super().origin(), "arm": BASE}


def load_results(sources: Source | Iterable[Source], *, base: bool = True) -> tuple[Runs, list[str]]:
    """The results of training runs: the evaluation at the last step of each, and once a seed that at step 0.

    Arms of one seed draw the same samples at step 0 from the same policy, so one of them stands for all.
    Runs that have not finished are left out.

    Args:
        sources: training folders, or folders of them, searched to any depth.
        base: with the evaluations at step 0, as arm `BASE`.

    Returns:
        the evaluations, and warnings: runs left out, and arms whose step 0 is not the same as another's.

    Raises:
        UsageError: nothing at a path, a run that is no evaluation of a training run, evaluations at step 0
            that were made with other settings, or no run that has finished.
    """
    found: list[Run | SampleFile] = []
    first: dict[tuple[Any, ...], Run] = {}
    warnings = []
    for folder, evaluations in _by_training(load_runs(sources)).items():
        summary = read_json_object(folder / "summary.json") if (folder / "summary.json").is_file() else {}
        if summary.get("status") != "success":
            where = f"step {summary.get('step', 0)} of {summary.get('steps', 'unknown')}"
            warnings.append(f"unfinished: {folder} stands at {where} and is left out")
            continue
        steps = {run.folder.manifest["step"]: run for run in evaluations}
        for step in (0, summary["steps"]):
            if step not in steps:
                raise UsageError(f"{folder} has finished, but has no evaluation of step {step}")
        if base:
            start = steps[0]
            of_seed = first.setdefault(_policy_and_seed(start), start)
            if of_seed is start:
                found.append(BaseRun(start.folder))
            else:
                warnings += _unlike(of_seed, start)
        found.append(steps[summary["steps"]])
    if not found:
        raise UsageError(f"no training run has finished; {'; '.join(warnings)}")
    return Runs(found), warnings


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


def _policy_and_seed(run: Run) -> tuple[Any, ...]:
    manifest = run.folder.manifest
    asked = manifest["selection"]
    return manifest["model"], manifest["seed"], tuple(asked["domains"]), tuple(asked["levels"])


def _unlike(one: Run, other: Run) -> list[str]:
    """A warning where two evaluations of one policy with one seed do not have the same responses.

    Raises:
        UsageError: they were asked with other settings.
    """
    Runs([one, other]).settings()
    responses = [run.folder.manifest["graded"][run.reading]["responses_sha256"] for run in (one, other)]
    if responses[0] == responses[1]:
        return []
    return [
        f"base: {one.path} and {other.path} have one model and seed, but other responses (other weights, "
        "another machine, or a device that does not repeat itself); the first stands for both"
    ]
