"""A method: parts in order, and what the trainer calls on them.

In every update the trainer calls `plan`, samples and verifies the groups, then `observe`, `credit`, where
wanted `reweigh`, `extra_rows`, after the backward pass of those `extra_gradient`, and `metrics`. All of it is
a function of its arguments and the state, so processes that hold the same groups agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.part import Kept, Part, PartState, TokenWeight, options_of
from modebench.training.surrogates import Surrogate

if TYPE_CHECKING:
    import torch

    from modebench.tasks import Task


class MethodState:
    """What the parts of a method remember, by part."""

    def __init__(self, parts: dict[str, PartState]) -> None:
        self.parts = parts

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: part.state_dict() for name, part in self.parts.items()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            UsageError: the state of a method with other parts.
        """
        if saved.keys() != self.parts.keys():
            raise UsageError(
                f"the saved state is of a method with {', '.join(saved) or 'no state'}, this one has "
                f"{', '.join(self.parts) or 'none'}"
            )
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])


@dataclass(frozen=True)
class Method:
    """A training method.

    Attributes:
        id: what it is called on the command line.
        name: what it is called in print.
        formula: what sets it apart, in one line.
        source: paper, and what else was read.
        parts: in the order in which their hooks are called.
        surrogate: how the fresh loss is clipped and averaged.
        max_completion_length: of the run, in tokens; `build` sets it.
    """

    id: str
    name: str
    formula: str
    source: str
    parts: tuple[Part, ...]
    surrogate: Surrogate = field(default_factory=Surrogate)
    max_completion_length: int = 0

    @property
    def epsilon(self) -> float:
        """Ratios are clipped at 1 - epsilon from below."""
        return self.surrogate.epsilon

    @property
    def epsilon_high(self) -> float:
        """Ratios are clipped at 1 + epsilon_high from above."""
        high = self.surrogate.epsilon_high
        return self.surrogate.epsilon if high is None else high

    @property
    def needs_statistics(self) -> bool:
        """The trainer makes a pass without gradient over the fresh rows and calls `reweigh`."""
        return any(part.needs_statistics for part in self.parts)

    def options(self) -> dict[str, dict[str, Any]]:
        """All options, by part."""
        return {part.name: options_of(part) for part in (*self.parts, self.surrogate)}

    def state(self, seed: int) -> MethodState:
        """What the method remembers, at the start of a run with this seed."""
        states = {part.name: part.state(seed) for part in self.parts}
        return MethodState({name: state for name, state in states.items() if state is not None})

    def plan(self, tasks: Sequence[Task], group_size: int, state: MethodState) -> list[tuple[Task, int]]:
        """Which tasks are asked in this update, and for how many rollouts each."""
        asked = [(task, group_size) for task in tasks]
        for part in self.parts:
            asked = part.plan(asked, state.parts.get(part.name))
        return asked

    def observe(self, groups: Sequence[Group], state: MethodState) -> None:
        """Take note of the verified groups, before any gradient.

        Raises:
            UsageError: a reward that is not a number; names task and sample.
        """
        for group in groups:
            if not np.isfinite(group.reward_G).all():
                sample = int(np.flatnonzero(~np.isfinite(group.reward_G))[0])
                raise UsageError(f"{group.task.id}, sample {sample}: reward is {group.reward_G[sample]}")
        for part in self.parts:
            part.observe(groups, state.parts.get(part.name))

    def credit(self, groups: Sequence[Group], state: MethodState) -> list[Row]:
        """The rows of the fresh loss of one update, a rollout each, in order."""
        advantages, kept = self._credited(groups, state)
        weight = self.surrogate.token_weight(groups, kept, self.max_completion_length)
        return self.surrogate.rows(groups, advantages, kept, weight)

    def reweigh(
        self, rows: list[Row], logp: Sequence[Floats], entropy: Sequence[Floats], state: MethodState
    ) -> list[Row]:
        """The fresh rows with token weights that depend on the policy's [T] log-probabilities, entropies."""
        for part in self.parts:
            rows = part.reweigh(rows, logp, entropy, state.parts.get(part.name))
        return rows

    def extra_rows(self, groups: Sequence[Group], state: MethodState) -> list[Row]:
        """Rows of the further terms of the loss; once an update, after `observe`."""
        fresh = self._fresh_weight(groups, state)
        return [
            row for part in self.parts for row in part.extra_rows(groups, fresh, state.parts.get(part.name))
        ]

    def extra_gradient(self, gradients: list[torch.Tensor], state: MethodState) -> list[torch.Tensor]:
        """What the gradient of the extra rows becomes before it is added, a tensor a parameter."""
        for part in self.parts:
            gradients = part.extra_gradient(gradients, state.parts.get(part.name))
        return gradients

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], state: MethodState
    ) -> dict[str, float | None]:
        """What to log of an update whose extra rows were `extra`."""
        logged: dict[str, float | None] = {"mixed_groups": sum(group.mixed for group in groups) / len(groups)}
        fresh = self._fresh_weight(groups, state)
        for part in self.parts:
            logged |= part.metrics(groups, extra, fresh, state.parts.get(part.name))
        return logged

    def _credited(self, groups: Sequence[Group], state: MethodState) -> tuple[list[Floats], list[Kept]]:
        """[G] advantages and [G] whether a rollout counts, a group each."""
        advantages, kept = [], []
        for group in groups:
            advantage_G, kept_G = group.reward_G, np.ones(group.size, dtype=np.bool_)
            for part in self.parts:
                advantage_G = part.advantage(group, advantage_G, state.parts.get(part.name))
            for part in self.parts:
                advantage_G, kept_G = part.select(group, advantage_G, kept_G, state.parts.get(part.name))
            advantages.append(advantage_G)
            kept.append(kept_G)
        return advantages, kept

    def _fresh_weight(self, groups: Sequence[Group], state: MethodState) -> TokenWeight:
        kept = self._credited(groups, state)[1]
        return self.surrogate.token_weight(groups, kept, self.max_completion_length)
