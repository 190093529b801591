"""Tasks that are made around a right solution of another, and what comes out when they are executed.

A variant comes from an operator of the domain (`modebench.variation`) or from a text. SVS (Liang et al. 2025,
arXiv:2508.14029) has the text only, and takes the old answer for that of the new problem. Here a variant is
valid when execution says so: the solution is right on it (of Countdown, where an expression determines its
task: the target stays), it is no copy up to names and order, and its modes can be counted.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from modebench.domains import get_domain
from modebench.domains.base import Reference
from modebench.synthesis.cards import shows_answer
from modebench.synthesis.validity import free_failure
from modebench.tasks import Task
from modebench.variation import CompactError, NotExecutable, Unsolvable, get_variation
from modebench.verifiers.verdict import InvalidReference

Failure = Literal[
    "truncated", "unreadable", "no_variation", "unsolvable", "wrong", "copy", "leak", "off_level"
]
_PARTS = MappingProxyType(
    {
        "countdown": "numbers",
        "python_factors": "cases",
        "mathir": "actions",
        "pantry_plan": "ingredients",
    }
)
"""What an answer speaks of, by domain; of graph colouring it is the missing colours."""


@dataclass(frozen=True)
class Variant:
    """A task around a solution.

    Attributes:
        failure: the first check that it does not pass; None where it is valid.
        operator: that made it; None for a text.
        reference: what the verifier executes; None where there is no such task.
        form: canonical form of the reference; None without one.
        modes: how many it has, exactly; None unless it is valid.
    """

    failure: Failure | None = None
    operator: str | None = None
    reference: Mapping[str, Any] | None = None
    form: str | None = None
    modes: int | None = None

    def as_task(self, identity: str, source: Task) -> Task:
        """It as a task of the level of its source; solvers are shown its problem and nothing else of it."""
        assert self.reference is not None  # whoever poses it has looked
        problem = get_domain(source.domain).problem(self.reference, source.level)
        return Task(identity, source.domain, source.level, "synthetic", problem, self.reference, self.modes)


def from_operator(rng: random.Random, name: str, task: Task, solution: str) -> Variant:
    """The variation that an operator draws, which is valid by its own check.

    Args:
        rng: the only source of randomness.
        name: of the operator.
        task: the source task.
        solution: a response that is right on it.
    """
    operators = {operator.name: operator for operator in get_variation(task.domain).operators}
    reference = operators[name].apply(rng, task.reference, solution)
    if reference is None:
        return Variant("no_variation", name)
    return _counted(task, Variant(operator=name, reference=reference))


def from_text(task: Task, solution: str, text: str) -> Variant:
    """The task that a compact text spells, checked.

    Args:
        task: the source task.
        solution: as it was shown to the writer, with or without a box.
        text: of the writer.
    """
    try:
        reference = get_variation(task.domain).parse(text)
    except NotExecutable:
        return Variant("unsolvable")
    except CompactError:
        return Variant("unreadable")
    failure: Failure | None = free_failure(task, solution, reference)
    if failure is None and _size(task.domain, reference) != _size(task.domain, task.reference):
        failure = "off_level"
    if failure is None and _leaks(task.domain, reference):
        failure = "leak"
    return _counted(task, Variant(failure, reference=reference))


def _counted(task: Task, variant: Variant) -> Variant:
    """With canonical form and, of a valid one, the number of modes."""
    reference, variation = variant.reference, get_variation(task.domain)
    assert reference is not None  # the makers above have one
    try:
        variant = replace(variant, form=variation.canonical_form(reference))
        if variant.failure is not None:
            return variant
        return replace(variant, modes=variation.validate(reference, task.level))
    except (InvalidReference, Unsolvable):
        return replace(variant, failure=variant.failure or "unsolvable")


def _leaks(domain: str, reference: Reference) -> bool:
    """Whether it gives its answer away, of Countdown by the target among the numbers."""
    if domain == "countdown" and reference["target"] in reference["numbers"]:
        return True
    return shows_answer(domain, reference)


def _size(domain: str, reference: Reference) -> int:
    """How much there is to answer: the same in all variants of a task, as its level has it."""
    if domain == "graph_coloring":
        return (reference.get("partial_colors") or [None] * reference["n"]).count(None)
    return len(reference.get(_PARTS[domain], ()))
