"""What a training run comes to: its last evaluation, and the policy before it as the base of all arms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from modebench.samples import Run, Runs, SampleFile, Source
from modebench.training_runs import load_training

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
    training = load_training(sources)
    warnings = list(training.warnings)
    for run in training:
        if base:
            of_seed = first.setdefault(_policy_and_seed(run.first), run.first)
            if of_seed is run.first:
                found.append(BaseRun(run.first.folder))
            else:
                warnings += _unlike(of_seed, run.first)
        found.append(run.last)
    return Runs(found), warnings


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
