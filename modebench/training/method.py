"""A method: parts in order, and what the trainer calls on them.

Before the first step the trainer calls `prepare`. In every update it calls `plan`, samples and verifies the
groups, then `observe`, `credit`, where wanted `reweigh`, `extra_rows`, after the backward pass of those
`extra_gradient`, and `metrics`. Credit is `join`, `reward`, `advantage`, `select`, each through all parts
before the next. All of it is a function of its arguments and the state, so processes that hold the same
groups agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.part import Credit, Encode, Part, PartState, TokenWeight, options_of
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

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: MethodState) -> None:
        """Load what the parts need beside their state; before the first step and after a resume."""
        for part in self.parts:
            part.prepare(tasks, encode, state.parts.get(part.name))

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
        credits = self._credits(groups, state)
        return self.surrogate.rows(
            [each.group for each in credits],
            [each.advantage_G for each in credits],
            [each.kept_G for each in credits],
            self._token_weight(credits),
        )

    def reweigh(
        self, rows: list[Row], logp: Sequence[Floats], entropy: Sequence[Floats], state: MethodState
    ) -> list[Row]:
        """The fresh rows with token weights that depend on the policy's [T] log-probabilities, entropies."""
        for part in self.parts:
            rows = part.reweigh(rows, logp, entropy, state.parts.get(part.name))
        return rows

    def extra_rows(self, groups: Sequence[Group], state: MethodState) -> list[Row]:
        """Rows of the further terms of the loss; once an update, after `observe`."""
        fresh = self._token_weight(self._credits(groups, state))
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
        credits = self._credits(groups, state)
        fresh = self._token_weight(credits)
        for part in self.parts:
            logged |= part.metrics(groups, extra, fresh, state.parts.get(part.name))
            logged |= part.credit_metrics(credits, state.parts.get(part.name))
        return logged

    def headline(self, steps: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
        """The parts' headline metrics over a run: means weighted as they say, None where there was nothing.

        Args:
            steps: the logged metrics, a mapping a step.
        """
        weights = {name: weight for part in self.parts for name, weight in part.headline.items()}
        sums, totals = dict.fromkeys(weights, 0.0), dict.fromkeys(weights, 0.0)
        for step in steps:
            for name, weight in weights.items():
                if step.get(name) is not None:
                    sums[name] += step[name] * step[weight]
                    totals[name] += step[weight]
        return {name: sums[name] / totals[name] if totals[name] else None for name in weights}

    def _credits(self, groups: Sequence[Group], state: MethodState) -> list[Credit]:
        """How each group is credited and selected."""
        return [self._credit(group, state) for group in groups]

    def _credit(self, group: Group, state: MethodState) -> Credit:
        parts = [(part, state.parts.get(part.name)) for part in self.parts]
        joined = tuple(rollout for part, own in parts for rollout in part.join(group, own))
        group = replace(group, rollouts=group.rollouts + joined) if joined else group
        given_G = group.reward_G
        for part, own in parts:
            given_G = part.reward(group, given_G, own)
        for part, own in parts:
            given_G = part.advantage(group, given_G, own)
        advantage_G, kept_G = given_G, np.ones(group.size, dtype=np.bool_)
        for part, own in parts:
            advantage_G, kept_G = part.select(group, advantage_G, kept_G, own)
        return Credit(group, given_G, advantage_G, kept_G)

    def _token_weight(self, credits: Sequence[Credit]) -> TokenWeight:
        """The weight of a token in the fresh loss of these groups, by the length of its response."""
        groups, kept = [each.group for each in credits], [each.kept_G for each in credits]
        return self.surrogate.token_weight(groups, kept, self.max_completion_length)
