"""Sweeps: arms × domains × seeds, every run an ordinary run of ``modebench train`` in a folder of its own.

The runs of a sweep stand at DIR/DOMAIN/ARM/seed-N. Arms are compared at equal budgets, counted in generated
rollouts: arms of a domain that plan other numbers of rollouts are refused, and a `budget` ends every run when
it is spent, whatever it was spent on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from modebench.errors import UsageError
from modebench.provenance import versions
from modebench.runs import file_sha256, in_use, write_atomically
from modebench.training.folder import TrainingFolder
from modebench.training.settings import Setting, from_assignments
from modebench.training.setup import Plan, plan, recorded
from modebench.training.sweep_file import Settings, SweepFile

SCHEMA = "modebench-sweep-v1"
MANIFEST = "sweep.json"
_FLAGS = {
    "method": "--method",
    "model": "--model",
    "steps": "--steps",
    "data.domains": "--domain",
    "run.seed": "--seed",
}
"""Settings that have an option of their own."""

State = Literal["new", "interrupted", "finished"]


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep.

    Attributes:
        domain, arm, seed: which one.
        settings: what the sweep file sets, and what makes it this run.
        plan: the run, resolved and checked.
    """

    domain: str
    arm: str
    seed: int
    settings: dict[str, Any]
    plan: Plan

    @property
    def name(self) -> str:
        """Its folder in that of the sweep."""
        return f"{self.domain}/{self.arm}/seed-{self.seed}"

    @property
    def rollouts(self) -> int:
        """Rollouts that it plans to generate."""
        budget = self.plan.config.budget
        return self.plan.config.steps * _rollouts_of_step(self.plan) if budget is None else budget

    def arguments(self, path: Path) -> list[str]:
        """Arguments of ``modebench`` that make this run in the folder `path`."""
        words = ["train"]
        for name, value in self.settings.items():
            flag = _FLAGS.get(name)
            words += [flag, str(value)] if flag else ["--set", assignment(name, value)]
        return [*words, "--output", str(path)]


def assignment(name: str, value: Any) -> str:
    """``name=value`` that ``--set`` reads back as the same value: as it stands, else as JSON."""
    plain = f"{name}={value}"
    read = from_assignments([plain])[name].value
    return (
        plain
        if read == value and type(read) is type(value)
        else f"{name}={json.dumps(value, ensure_ascii=False)}"
    )


def plan_sweep(file: SweepFile) -> list[SweepRun]:
    """Every run, checked; all arms of a seed before the next seed.

    Raises:
        UsageError, InputError: as `modebench.training.setup.plan`; arms of a domain that plan other numbers
            of rollouts; a budget that is no whole number of steps.
        EngineUnavailable: there is no such model.
    """
    runs = []
    for domain, own in file.domains.items():
        arms = [_planned(file, domain, own, arm) for arm in file.arms]
        _check_rollouts(domain, {run.arm: run.rollouts for run in arms})
        runs += [_with_seed(run, seed) for seed in file.seeds for run in arms]
    return runs


def _planned(file: SweepFile, domain: str, own: Settings, arm: str) -> SweepRun:
    """The run of the first seed."""
    names = {"data.domains": domain, "run.seed": file.seeds[0], "run.arm": arm}
    settings = file.common | own | file.arms[arm]
    settings |= {name: Setting(value, "sweep") for name, value in names.items()}
    planned = plan([settings])
    if file.budget is not None:
        if "steps" in settings:
            raise settings["steps"].refuse("steps", "stands beside budget, which makes the steps")
        one = _rollouts_of_step(planned)
        steps, rest = divmod(file.budget.value, one)
        if rest or not steps:
            problem = (
                f"is {file.budget.value}, not a multiple of the {one} rollouts of a step of {domain}/{arm}"
            )
            raise file.budget.refuse("budget", problem)
        settings |= {"steps": replace(file.budget, value=steps), "budget": file.budget}
        planned = plan([settings])
    values = {name: setting.value for name, setting in settings.items()}
    return SweepRun(domain, arm, file.seeds[0], values, planned)


def _with_seed(run: SweepRun, seed: int) -> SweepRun:
    """The same run with another seed, on which nothing else of a plan depends."""
    config = replace(run.plan.config, run=replace(run.plan.config.run, seed=seed))
    planned = replace(run.plan, config=config, values=run.plan.values | {"run.seed": seed})
    return replace(run, seed=seed, settings=run.settings | {"run.seed": seed}, plan=planned)


def _rollouts_of_step(planned: Plan) -> int:
    rollout = planned.config.rollout
    return planned.method.least_rollouts(rollout.num_prompts * rollout.group_size)


def _check_rollouts(domain: str, rollouts: Mapping[str, int]) -> None:
    if len(set(rollouts.values())) > 1:
        told = ", ".join(f"{arm} {count}" for arm, count in rollouts.items())
        raise UsageError(
            f"the arms of {domain} plan other numbers of rollouts: {told}; make them equal, or give `budget: "
            "N` in place of `steps`: N rollouts for every run"
        )


def state_of(run: SweepRun, path: Path) -> State:
    """How a run stands in its folder.

    Raises:
        UsageError: it was made with other settings.
    """
    if not in_use(path):
        return "new"
    folder = TrainingFolder.open(path)
    made, asked = recorded(folder).values, run.plan.values
    for name in asked:
        if made.get(name) != asked[name]:
            raise UsageError(
                f"{path} was made with {name} {made.get(name)}, now {asked[name]} is asked; choose another "
                "--output, or delete it"
            )
    return "finished" if folder.summary().get("status") == "success" else "interrupted"


def write_manifest(output: Path, file: SweepFile, runs: Sequence[SweepRun]) -> None:
    """Write sweep.json: the file, the arms as they were resolved, every run with its command, versions.

    Raises:
        UsageError: the folder holds something else, or cannot be written to.
    """
    if in_use(output) and not (output / MANIFEST).is_file():
        raise UsageError(f"output folder {output} is in use and holds no sweep; choose another")
    document = {
        "schema": SCHEMA,
        **versions(),
        "file": str(file.path),
        "file_sha256": file_sha256(file.path),
        "domains": list(file.domains),
        "seeds": list(file.seeds),
        "arms": {
            arm: {name: setting.value for name, setting in own.items()} for arm, own in file.arms.items()
        },
        "runs": [
            {
                "path": run.name,
                "domain": run.domain,
                "arm": run.arm,
                "seed": run.seed,
                "rollouts": run.rollouts,
                "config_sha256": hashlib.sha256(run.plan.to_yaml().encode()).hexdigest(),
                "command": ["modebench", *run.arguments(output / run.name)],
            }
            for run in runs
        ],
    }
    try:
        output.mkdir(parents=True, exist_ok=True)
        write_atomically(output / MANIFEST, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write to the output folder {output}: {error.strerror}") from None
