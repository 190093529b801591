"""The rollouts of one step: who draws them, from which seeds, and how many the run may still draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from accelerate import Accelerator
from accelerate.utils import gather_object

from modebench.evaluation import sample_seed
from modebench.sampling.base import GenerationSettings
from modebench.training.batch import POLICY, Group, Purpose
from modebench.training.config import TrainConfig
from modebench.training.part import Asked
from modebench.training.policy import Policy
from modebench.training.sampling import rollouts


class StepRollouts:
    """Draws what a step asks for, and keeps count.

    A rollout's seed is made of run seed, step, task, what the task is asked for, and the rollout's number
    among those; the numbers go on where a step asks again, so no seed is drawn from twice.

    Args:
        policies: by name.
        accelerator: knows the processes, which share the work.
        config: of the run.
        step: number of the step, from 1.
        left: rollouts that the run may still draw; None for any number.

    Attributes:
        generated: every group so far.
        cut: something that was asked was left out for want of budget.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        accelerator: Accelerator,
        config: TrainConfig,
        step: int,
        left: int | None = None,
    ) -> None:
        self._policies, self._accelerator, self._config = policies, accelerator, config
        self._step, self._left = step, left
        self._used: Counter[str] = Counter()
        self.generated: list[Group] = []
        self.cut = False

    def __call__(self, source: str, asked: Sequence[Asked]) -> list[Group]:
        """A group for every prompt, in order, on every process the same; what the budget has no room for is
        missing from the end.

        Args:
            source: of the groups.
            asked: the prompts.
        """
        asked = self._within_budget(asked)
        seeds = [self._seeds(ask) for ask in asked]
        own: dict[tuple[str, Purpose, int], list[int]] = {}
        for place in range(self._accelerator.process_index, len(asked), self._accelerator.num_processes):
            ask = asked[place]
            length = ask.max_tokens or self._config.rollout.max_completion_length
            own.setdefault((ask.agent, ask.purpose, length), []).append(place)
        found: list[tuple[int, Group]] = []
        for (agent, purpose, length), places in own.items():
            groups = rollouts(
                self._policies[agent],
                [asked[place].task for place in places],
                [seeds[place] for place in places],
                GenerationSettings(temperature=self._config.rollout.temperature, max_tokens=length),
                prefixes=[asked[place].prefix for place in places],
                messages=[asked[place].messages for place in places],
                purpose=purpose,
                agent=agent,
                groups_per_batch=self._config.rollout.groups_per_batch,
            )
            found += zip(places, groups, strict=True)
        everyone = sorted(gather_object(found), key=lambda entry: entry[0])
        drawn = [replace(group, source=source) for _, group in everyone]
        self.generated += drawn
        return drawn

    def _within_budget(self, asked: Sequence[Asked]) -> Sequence[Asked]:
        if self._left is None:
            return asked
        for number, ask in enumerate(asked):
            if ask.size > self._left:
                self.cut, self._left = True, 0  # what is asked later does not go before what was left out
                return asked[:number]
            self._left -= ask.size
        return asked

    def _seeds(self, ask: Asked) -> list[int]:
        usual = ask.agent == POLICY and ask.purpose == "solve"
        key = ask.task.id if usual else f"{ask.agent}|{ask.purpose}|{ask.task.id}"
        first = self._used[key]
        self._used[key] += ask.size
        numbers = range(first, first + ask.size)
        return [sample_seed(self._config.run.seed, self._step, key, number) for number in numbers]
