"""Whether a task that was written around a solution keeps it: the executable check of synthesis.

SVS (Liang et al. 2025, arXiv:2508.14029) lets a new problem inherit the answer of the old one unchecked. Here
the answer is executed.
"""

from __future__ import annotations

from typing import Literal

from modebench.compact import compact_answer
from modebench.domains.base import Reference
from modebench.synthesis.compact import evidence
from modebench.tasks import Task
from modebench.variation import Unsolvable, get_variation
from modebench.variation.base import mode_of
from modebench.verifiers.verdict import InvalidReference


def free_failure(
    task: Task, solution: str, reference: Reference
) -> Literal["copy", "wrong", "unsolvable"] | None:
    """Why a task that was written freely around a right solution is no valid one; None when it is.

    The solution itself must be right on it: of graph colouring as the full colouring, as it was shown. A
    Countdown expression determines its numbers and its value, so there the target must stay and the task be
    solvable. A copy, up to names and order, is no new task.

    Args:
        task: the source task, on which the solution is right.
        solution: as it was shown to the writer, with or without a box.
        reference: the task that was written.
    """
    variation = get_variation(task.domain)
    try:
        if variation.canonical_form(reference) == variation.canonical_form(task.reference):
            return "copy"
        if task.domain == "countdown":
            if reference["target"] != task.reference["target"]:
                return "wrong"
            variation.validate(reference, task.level)
            return None
        shown = evidence(task, solution) if task.domain == "graph_coloring" else compact_answer(solution)
        return None if mode_of(task.domain, reference, task.level, shown) is not None else "wrong"
    except (InvalidReference, Unsolvable):
        return "unsolvable"
