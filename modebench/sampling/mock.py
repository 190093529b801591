"""Scripted engines that know the answers: for tests, baselines and chance rows.

* ``mock/oracle``: right answers, a different mode for every sample while the modes last;
* ``mock/uniform``: right answers, the mode drawn uniformly: no collapse at all;
* ``mock/collapsed``: the same right answer every time: total collapse;
* ``mock/random``: a uniform well-formed answer, drawn without reading what makes it right: chance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from modebench.domains import get_domain
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group, Sample
from modebench.tasks import Task

POLICIES = ("oracle", "uniform", "collapsed", "random")


class MockEngine:
    """An engine that answers from the task itself; temperature and the like change nothing."""

    groups_per_batch = 16

    def __init__(self, policy: str) -> None:
        if policy not in POLICIES:
            raise EngineUnavailable(f"no mock is called {policy!r}; mocks: {', '.join(POLICIES)}")
        self.policy = policy
        self._answers: dict[str, list[str]] = {}

    def describe(self) -> dict[str, Any]:
        return {"engine": "mock", "policy": self.policy}

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        for index, group in enumerate(groups):
            texts = [self._answer(group.task, position, seed) for position, seed in enumerate(group.seeds)]
            yield index, [Sample(text, "stop") for text in texts]

    def _answer(self, task: Task, position: int, seed: int) -> str:
        domain = get_domain(task.domain)
        if self.policy == "random":
            return domain.random_answer(random.Random(seed), task.reference, task.level)
        if self.policy == "collapsed":
            return next(domain.solutions(task.reference, task.level)).answer
        answers = self._all_answers(task)
        place = position if self.policy == "oracle" else random.Random(seed).randrange(len(answers))
        return answers[place % len(answers)]

    def _all_answers(self, task: Task) -> list[str]:
        if task.id not in self._answers:
            self._answers.clear()  # one task at a time: a list of modes can be long
            solutions = get_domain(task.domain).solutions(task.reference, task.level)
            self._answers[task.id] = [solution.answer for solution in solutions]
        return self._answers[task.id]
