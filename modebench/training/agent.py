"""The policies of a run: the one that is evaluated, and those that a part needs beside it.

Each has weights, an optimizer and an updater of its own; all begin as the same model and learn in the same
step, each from the groups that it was sampled for. A policy beside the first writes tasks and does nothing
else, so of the method it has what credits written tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from accelerate import Accelerator

from modebench.training.batch import POLICY, Group, Row
from modebench.training.config import TrainConfig
from modebench.training.method import Method, MethodState
from modebench.training.policy import Policy
from modebench.training.recipe import StepReport, run_updates
from modebench.training.update import Updater


@dataclass(frozen=True)
class Agent:
    """A policy that learns.

    Attributes:
        policy: is sampled and trained.
        optimizer: over its parameters.
        updater: turns rows into steps of the optimizer.
    """

    policy: Policy
    optimizer: torch.optim.Optimizer
    updater: Updater

    @classmethod
    def make(
        cls,
        policy: Policy,
        config: TrainConfig,
        method: Method,
        accelerator: Accelerator,
        reference: Policy | None = None,
    ) -> Agent:
        """A policy with a new AdamW.

        Args:
            policy: on its device.
            config, method: of the run.
            accelerator: knows the processes.
            reference: that divergences are measured from; None without any.
        """
        given = config.optimizer
        optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=given.learning_rate,
            betas=(given.beta1, given.beta2),
            eps=given.eps,
            weight_decay=given.weight_decay,
        )
        scorer = None if reference is None else reference.scorer
        updater = Updater(policy.scorer, optimizer, accelerator, config, method.surrogate, scorer)
        return cls(policy, optimizer, updater)


@dataclass(frozen=True)
class Learned:
    """What the agents learned in a step.

    Attributes:
        reports: of each agent, by name; that of the first policy leads.
        groups: that each was trained on, to which the rows of its report point.
    """

    reports: dict[str, StepReport]
    groups: dict[str, list[Group]]

    @property
    def trained(self) -> list[Group]:
        """The groups of all agents."""
        return [group for own in self.groups.values() for group in own]

    @property
    def rows(self) -> list[Row]:
        """The fresh rows of all agents, pointing to `trained`."""
        found: list[Row] = []
        first = 0
        for name, report in self.reports.items():
            found += [replace(row, group=row.group + first) for row in report.rows]
            first += len(self.groups[name])
        return found

    def metrics(self) -> dict[str, Any]:
        """Of the first policy; those of the others with their names before them."""
        logged: dict[str, Any] = {}
        for name, report in self.reports.items():
            told = report.metrics()
            logged |= told if name == POLICY else {f"{name}/{key}": value for key, value in told.items()}
        return logged

    def counts(self) -> dict[str, int]:
        """Updates and responses scored without a gradient; updates of the others by their names."""
        found = {"updates": 0, "scored": sum(report.scored for report in self.reports.values())}
        for name, report in self.reports.items():
            found["updates" if name == POLICY else f"{name}_updates"] = len(report.updates)
        return found


def learn(
    agents: dict[str, Agent],
    method: Method,
    state: MethodState,
    groups: Sequence[Group],
    config: TrainConfig,
    step: int,
) -> Learned:
    """The updates of one step, every agent's from its own groups.

    Args:
        agents: by name, the first policy among them.
        method, state: the method and what it remembers.
        groups: that are trained on.
        config: of the run.
        step: number of the step, from 1.

    Raises:
        TrainingError: a loss that is not finite.
    """
    written = method.of_written()
    learned = Learned({}, {})
    for name, agent in agents.items():
        own = learned.groups[name] = [group for group in groups if group.agent == name]
        chosen = method if name == POLICY else written
        learned.reports[name] = run_updates(chosen, state, agent.updater, own, config, step)
    return learned
