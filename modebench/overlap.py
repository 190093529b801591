"""What two sets of tasks share: tasks that are the same, and tasks that are the same but for labels.

Splits are disjoint by labelled identity (`Domain.identity`), as the published ones are
(arXiv:2610.11064). Two such tasks can still be one task with other names for vertices and colours or the
letters of a menu; how many are is counted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations, product
from typing import Any, NamedTuple

from modebench.domains import get_domain
from modebench.tasks import Task

RELABELLINGS = {
    "graph_coloring": "vertices and colours renamed",
    "countdown": "same numbers and target",
    "python_factors": "same set of inputs",
    "mathir": "same equation, menu in any order",
    "pantry_plan": "same menu",
}
"""What makes two tasks the same up to relabelling, by domain."""


class Overlap(NamedTuple):
    """Shared tasks of one domain.

    Attributes:
        domain: its name.
        first, second: tasks of each set.
        labelled: tasks of the first set that are in the second.
        relabelled: tasks of the first set that are in the second up to relabelling.
    """

    domain: str
    first: int
    second: int
    labelled: int
    relabelled: int


def overlap(first: Iterable[Task], second: Iterable[Task]) -> list[Overlap]:
    """Shared tasks by domain, for the domains of the first set in their order.

    >>> from modebench.tasks import load_tasks
    >>> tasks = load_tasks("countdown").head(3)
    >>> overlap(tasks, tasks.head(2))
    [Overlap(domain='countdown', first=3, second=2, labelled=2, relabelled=2)]
    """
    left, right = _by_domain(first), _by_domain(second)
    return [
        Overlap(
            domain,
            len(tasks),
            len(right.get(domain, ())),
            _shared(map(identity, tasks), map(identity, right.get(domain, ()))),
            _shared(map(unlabelled, tasks), map(unlabelled, right.get(domain, ()))),
        )
        for domain, tasks in left.items()
    ]


def _by_domain(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.domain, []).append(task)
    return found


def _shared(first: Iterable[object], second: Iterable[object]) -> int:
    known = set(second)
    return sum(key in known for key in first)


def identity(task: Task) -> str:
    """Labelled identity of a task."""
    return get_domain(task.domain).identity(task.reference)


def unlabelled(task: Task) -> object:
    """A value that tasks share exactly when they are the same up to relabelling (`RELABELLINGS`)."""
    reference = task.reference
    match task.domain:
        case "graph_coloring":
            return canonical_graph(reference)
        case "python_factors":
            return tuple(sorted(reference["cases"]))
        case "mathir" if "actions" in reference:
            sides = (
                reference["initial_lhs"],
                reference["initial_rhs"],
                *sorted(reference["actions"].values()),
            )
            return tuple("".join(text.split()) for text in sides)
        case "pantry_plan":
            return tuple(sorted(row["id"] for row in reference["ingredients"]))
    return identity(task)


def canonical_graph(reference: Mapping[str, Any]) -> object:
    """The least spelling of a graph with shown colours over all names of vertices and colours.

    Vertices are first told apart by colour and, round by round, by their neighbours; only orders that
    keep these classes sorted are tried.
    """
    n = reference["n"]
    edges = {(u - 1, v - 1) for pair in reference["edges"] for u, v in (pair, pair[::-1])}
    shown = reference.get("partial_colors") or [None] * n
    spellings = []
    for renaming in permutations((1, 2, 3)):
        colours = [0 if colour is None else renaming[colour - 1] for colour in shown]
        for order in _orders(colours, edges):
            place = {vertex: index for index, vertex in enumerate(order)}
            spelled = sorted((place[u], place[v]) for u, v in edges if place[u] < place[v])
            spellings.append((tuple(colours[vertex] for vertex in order), tuple(spelled)))
    return n, min(spellings)


def _orders(colours: list[int], edges: set[tuple[int, int]]) -> Iterator[list[int]]:
    """Orders of the vertices in which their classes ascend."""
    n = len(colours)
    classes = colours
    for _ in range(n):
        keys = [(classes[v], sorted(classes[u] for u in range(n) if (u, v) in edges)) for v in range(n)]
        ranks = sorted(keys)
        classes = [ranks.index(key) for key in keys]
    groups = [[v for v in range(n) if classes[v] == value] for value in sorted(set(classes))]
    for arrangement in product(*map(permutations, groups)):
        yield [vertex for group in arrangement for vertex in group]
