"""Our own tasks, shown to the published reference: accepted, and every listed mode correct with our key."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from modebench.domains import get_domain
from modebench.splits import fresh_split
from modebench.tasks import Task, load_tasks
from tests.reference.pairs import Pair

LEVELS = (1, 2, 3, 4, 5)


class Cell(NamedTuple):
    """What the published reference said of some tasks of one cell.

    Attributes:
        tasks: how many it was shown.
        modes: listed modes, each with one answer, that it was shown.
        faults: where it disagreed, one record a fault.
    """

    domain: str
    level: int
    tasks: int
    modes: int
    faults: list[dict[str, Any]]


def tasks_of_cell(domain: str, level: int, count: int, seed: int) -> list[Task]:
    """Half of the tasks from the frozen evaluation split, half freshly drawn from the same law."""
    frozen = list(load_tasks(domain, level))
    chosen = random.Random(f"{seed}/{domain}/{level}").sample(frozen, count // 2)
    return [*chosen, *fresh_split(domain, level, "eval", count - len(chosen), seed)]


def check_cell(
    domain: str, level: int, count: int, seed: int, grade: Callable[[Pair], tuple[Any, ...]]
) -> Cell:
    """Show every listed mode of some tasks; `grade` returns status, mode and detail."""
    faults: list[dict[str, Any]] = []
    shown = 0
    for task in tasks_of_cell(domain, level, count, seed):
        keys = set()
        for mode, answer in get_domain(domain).solutions(task.reference, level):
            status, key, detail = grade(Pair(domain, level, task.reference, answer))
            shown += 1
            keys.add(key)
            if (status, key) != ("correct", mode):
                faults.append(
                    {"task": task.id, "response": answer, "ours": mode, "published": [status, key, detail]}
                )
        if len(keys) != task.modes:
            faults.append({"task": task.id, "ours": f"{task.modes} modes", "published": f"{len(keys)} keys"})
    return Cell(domain, level, count, shown, faults)


def lines(cells: list[Cell]) -> Iterator[str]:
    """One line a cell, then the total."""
    yield f"{'our tasks':20} {'tasks':>8} {'modes':>8} {'faults':>8}"
    for cell in cells:
        yield f"{cell.domain + ' ' + str(cell.level):20} {cell.tasks:8} {cell.modes:8} {len(cell.faults):8}"
    tasks, modes, faults = (
        sum(x) for x in zip(*((c.tasks, c.modes, len(c.faults)) for c in cells), strict=True)
    )
    yield f"{'all':20} {tasks:8} {modes:8} {faults:8}"
