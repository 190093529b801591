"""A method: parts in order, and what the trainer calls on them.

Before the first step the trainer calls `prepare`. In every step it calls `plan` and `phrase`, samples and
verifies the groups, `filter` (and goes on from `plan` while groups are wanting and rounds are left), then
`extend`, `observe` and `credit`. In every update of the step it calls `normalise`, where wanted `reweigh`,
`extra_rows`, where wanted `further_rows`, after the backward pass of those rows `extra_gradient`, and `note`;
at last `metrics`, where wanted `gram_metrics`, and `effects`. Credit is `join`, `reward`, `advantage`,
`select`, each through all parts before the next, of written tasks through the parts that credit those. All of
it is a function of its arguments and the state, so processes that hold the same groups agree.

What each part does is counted where it is called: plans and gradients that it changed, rollouts that it
discarded, added, paid or credited otherwise or dropped, tokens whose loss it changed, rows that it added. A
part that was asked and changed nothing is inert, whatever its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Rollout, Row
from modebench.training.part import (
    Asked,
    Credit,
    Encode,
    Part,
    PartState,
    Sample,
    Seen,
    TokenWeight,
    options_of,
)
from modebench.training.proposals import Proposal
from modebench.training.surrogates import Surrogate

if TYPE_CHECKING:
    import torch

    from modebench.tasks import Task
    from modebench.training.loss import Statistics
    from modebench.training.update import Score


class MethodState:
    """What the parts of a method remember, by part, and what they did since `Method.effects` last told."""

    def __init__(self, parts: dict[str, PartState]) -> None:
        self.parts = parts
        self.changed: Counter[str] = Counter()

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
    def needs_statistics(self) -> bool:
        """The trainer makes a pass without gradient over the fresh rows and calls `reweigh`."""
        return any(part.needs_statistics for part in self.parts)

    @property
    def needs_reference(self) -> bool:
        """A frozen copy of the policy as the run began must be at hand."""
        return any(part.needs_reference for part in self.parts)

    @property
    def agents(self) -> list[str]:
        """Names of the policies that are needed beside the first."""
        return sorted(frozenset().union(*(part.agents for part in self.parts)))

    @property
    def compares_with_reference(self) -> bool:
        """That pass is made by the reference too."""
        return any(part.compares_with_reference for part in self.parts)

    @property
    def needs_residuals(self) -> bool:
        """That pass keeps the gradient of every row with respect to the logits."""
        return any(part.needs_residuals for part in self.parts)

    @property
    def needs_grams(self) -> bool:
        """The first update of a step notes how the responses of a group pull together."""
        return any(part.needs_grams for part in self.parts)

    @property
    def makers(self) -> tuple[str, ...]:
        """The parts that make tasks, by name."""
        return tuple(part.name for part in self.parts if part.makes_tasks)

    @property
    def rounds(self) -> int:
        """How often a step may ask for tasks."""
        return max((part.rounds for part in self.parts), default=1)

    @property
    def may_generate_more(self) -> bool:
        """A step may generate more rollouts than are planned for its own tasks."""
        return self.rounds > 1 or bool(self.makers)

    def least_rollouts(self, planned: int) -> int:
        """Rollouts that a step generates at least, where its own tasks are planned to have so many."""
        for part in self.parts:
            planned = part.least_rollouts(planned)
        return planned

    def whole_groups(self) -> str | None:
        """The first part that needs the rollouts of a group in one update; None where there is none."""
        return next((part.name for part in self.parts if part.needs_whole_groups), None)

    def of_written(self) -> Method:
        """What of it credits written tasks."""
        return replace(self, parts=tuple(part for part in self.parts if part.credits_written))

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
            before, asked = asked, part.plan(asked, state.parts.get(part.name))
            state.changed[part.name] += before != asked
        return asked

    def phrase(self, planned: Sequence[tuple[Task, int]], state: MethodState) -> list[Asked]:
        """How the planned tasks are asked, a group each."""
        asked = [Asked(task, size) for task, size in planned]
        for part in self.parts:
            before, asked = asked, part.phrase(asked, state.parts.get(part.name))
            state.changed[part.name] += before != asked
        return asked

    def filter(self, groups: list[Group], state: MethodState) -> list[Group]:
        """Which groups of a round are trained on."""
        for part in self.parts:
            before, groups = groups, part.filter(groups, state.parts.get(part.name))
            state.changed[part.name] += sum(group.size for group in before) - sum(g.size for g in groups)
        return groups

    def extend(
        self,
        groups: list[Group],
        draw: Callable[[str, Sequence[Asked]], list[Group]],
        profile: str,
        state: MethodState,
    ) -> list[Group]:
        """The groups of a step that are trained on, those of tasks that parts make among them.

        Args:
            groups: of the tasks that the run is given.
            draw: gives the groups of the prompts that a part, by its name, asks for.
            profile: prompt profile of the run.
            state: what the method remembers.
        """
        for part in self.parts:
            before, sample = groups, Sample(profile, part.name, draw)
            groups = part.extend(groups, sample, state.parts.get(part.name))
            state.changed[part.name] += before != groups
        return groups

    def proposals(self, state: MethodState) -> list[tuple[str, Proposal]]:
        """The tasks that were made in this step, each with the part that made it."""
        return [
            (part.name, proposal)
            for part in self.parts
            for proposal in part.proposals(state.parts.get(part.name))
        ]

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
        """The rows of the fresh loss of a step's groups, a rollout each, in order, as one update has them."""
        credits = self._credits(groups, state)
        for each in credits:
            state.changed.update(each.changed)
        rows = self.surrogate.rows(
            [each.group for each in credits],
            [each.advantage_G for each in credits],
            [each.kept_G for each in credits],
        )
        return self.normalise(rows, state)

    def normalise(self, rows: Sequence[Row], state: MethodState) -> list[Row]:
        """The rows of one update: token weights by these rows alone, and the regularisers in proportion."""
        fresh = self.surrogate.normalised(rows, self.max_completion_length)
        for part in self.parts:
            fresh = part.regularise(fresh, state.parts.get(part.name))
        return fresh

    def seen(self, rows: Sequence[Row], scores: Sequence[Score]) -> list[Seen]:
        """What the present policy says of the rows of an update, for `reweigh` and `further_rows`."""
        return [
            Seen(
                told.logp_T,
                told.entropy_T,
                self.surrogate.clipped(row, told.logp_T),
                told.reference_T,
                told.residual_V,
            )
            for row, told in zip(rows, scores, strict=True)
        ]

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: MethodState) -> list[Row]:
        """The fresh rows with token weights that depend on what the policy says of them."""
        for part in self.parts:
            before, rows = rows, part.reweigh(rows, seen, state.parts.get(part.name))
            state.changed[part.name] += sum(map(_changed_tokens, before, rows))
        return rows

    def extra_rows(self, groups: Sequence[Group], state: MethodState) -> list[Row]:
        """Rows of the further terms of the loss; once an update, after `observe`."""
        fresh = self._token_weight(self._credits(groups, state))
        rows = []
        for part in self.parts:
            own = part.extra_rows(groups, fresh, state.parts.get(part.name))
            state.changed[part.name] += sum(row.has_gradient for row in own)
            rows += own
        return rows

    def further_rows(
        self,
        groups: Sequence[Group],
        updated: Sequence[Group],
        rows: Sequence[Row],
        seen: Sequence[Seen],
        state: MethodState,
    ) -> list[Row]:
        """Rows of the further terms that depend on what the policy says; once an update, after `reweigh`.

        Args:
            groups: of the step.
            updated: those in this update.
            rows: the fresh ones of this update.
            seen: of these rows.
        """
        fresh = self._token_weight(self._credits(updated, state))
        found = []
        for part in self.parts:
            own = part.further_rows(groups, rows, seen, fresh, state.parts.get(part.name))
            state.changed[part.name] += sum(row.has_gradient for row in own)
            found += own
        return found

    def extra_gradient(self, gradients: list[torch.Tensor], state: MethodState) -> list[torch.Tensor]:
        """What the gradient of the extra rows becomes before it is added, a tensor a parameter."""
        for part in self.parts:
            before, gradients = gradients, part.extra_gradient(gradients, state.parts.get(part.name))
            state.changed[part.name] += before is not gradients
        return gradients

    def note(self, statistics: Statistics, state: MethodState) -> None:
        """Count what an update saw of clipping, of ratios and of the parts' regularisers."""
        state.changed.update(statistics.acting)
        state.changed["surrogate.clip"] += statistics.clipped
        state.changed["surrogate.ratio"] += statistics.off_policy_tokens

    def effects(self, state: MethodState) -> dict[str, int]:
        """What each part changed since this was last asked; of the surrogate, its clipping and its ratios."""
        names = [*(part.name for part in self.parts if not part.only_observes), "surrogate.ratio"]
        names += ["surrogate.clip"] if self.surrogate.clip else []
        told = {name: state.changed[name] for name in names}
        state.changed.clear()
        return told

    def metrics(
        self,
        groups: Sequence[Group],
        extra: Sequence[Row],
        state: MethodState,
        updated: Sequence[Group] | None = None,
    ) -> dict[str, float | None]:
        """What to log of a step: the parts' own metrics, and ``spread/mixed`` and ``spread/all_right``.

        Those are the mean of |A_i - mean of A over the right rollouts of its group| over the right rollouts
        that count, in groups that hold a wrong one and in groups that hold none; None where there are no
        such rollouts. By correctness alone it is 0: whatever tells right rollouts apart shows its strength
        there.

        Args:
            groups: that were trained on.
            extra: the extra rows of an update.
            updated: the groups of that update; None for all.
        """
        credits = self._credits(groups, state)
        logged = _spread([each for each in credits if each.group.purpose == "solve"])
        fresh = self._token_weight(credits if updated is None else self._credits(updated, state))
        for part in self.parts:
            own = state.parts.get(part.name)
            logged |= part.metrics(groups if updated is None else updated, extra, fresh, own)
            logged |= part.credit_metrics([each for each in credits if _is_for(part, each.group)], own)
        return logged

    def gram_metrics(
        self, groups: Sequence[Group], rows: Sequence[Row], grams: Mapping[int, Floats]
    ) -> dict[str, float | None]:
        """What to log of how the responses of a group pull together in the first update of a step."""
        logged: dict[str, float | None] = {}
        answered = {place: gram for place, gram in grams.items() if groups[place].purpose == "solve"}
        for part in self.parts:
            logged |= part.gram_metrics(groups, rows, answered)
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
        parts = [(part, state.parts.get(part.name)) for part in self.parts if _is_for(part, group)]
        changed: Counter[str] = Counter()
        joined: tuple[Rollout, ...] = ()
        for part, own in parts:
            more = part.join(group, own)
            changed[part.name] += len(more)
            joined += more
        group = replace(group, rollouts=group.rollouts + joined) if joined else group
        given_G = group.reward_G
        for hook in ("reward", "advantage"):
            for part, own in parts:
                before_G, given_G = given_G, getattr(part, hook)(group, given_G, own)
                changed[part.name] += int(np.count_nonzero(given_G != before_G))
        advantage_G, kept_G = given_G, np.ones(group.size, dtype=np.bool_)
        for part, own in parts:
            before = advantage_G, kept_G
            advantage_G, kept_G = part.select(group, advantage_G, kept_G, own)
            different_G = (advantage_G != before[0]) | (kept_G != before[1])
            changed[part.name] += int(np.count_nonzero(different_G))
        return Credit(group, given_G, advantage_G, kept_G, changed)

    def _token_weight(self, credits: Sequence[Credit]) -> TokenWeight:
        """The weight of a token in the fresh loss of these groups, by the length of its response."""
        rollouts = [
            (len(rollout.token_ids), counts)
            for each in credits
            for rollout, counts in zip(each.group.rollouts, each.kept_G, strict=True)
        ]
        lengths = [length for length, counts in rollouts if counts]
        return self.surrogate.token_weight(lengths, len(rollouts), self.max_completion_length)


def _spread(credits: Sequence[Credit]) -> dict[str, float | None]:
    """See `Method.metrics`."""
    found: dict[str, list[Floats]] = {"mixed": [], "all_right": []}
    for each in credits:
        right_G = each.group.reward_G > 0
        worth = each.advantage_G[right_G & each.kept_G]
        if worth.size:
            found["all_right" if right_G.all() else "mixed"].append(np.abs(worth - worth.mean()))
    return {f"spread/{name}": float(np.concatenate(v).mean()) if v else None for name, v in found.items()}


def _is_for(part: Part, group: Group) -> bool:
    """Whether the credit hooks of a part are meant for a group."""
    return group.purpose == "solve" or part.credits_written


def _changed_tokens(before: Row, after: Row) -> int:
    """Tokens of a row whose surrogate has another weight in the gradient."""
    assert before.advantage_T is not None
    assert after.advantage_T is not None
    different_T = before.weight_T * before.advantage_T != after.weight_T * after.advantage_T
    return int(np.count_nonzero(different_T))
