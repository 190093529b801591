"""How new a written task is: Jaccard distance of canonical instances, and exact copies.

SynCo (arXiv:2610.11345) compares the characters of problem texts. Here the tasks themselves are compared, so
that renamed vertices, another order of numbers or other letters in a menu make nothing new.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from modebench.domains.base import Reference
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation

Features = frozenset[str]

WINDOW = 500
"""Tasks that are remembered, as in the released code of SynCo."""
HELD_OUT = ("eval", "dev")
"""Frozen splits whose tasks nobody may train on."""


def features(domain: str, reference: Reference) -> Features:
    """What a task is made of, the same for copies of it up to names and order.

    Edges and shown colours of the canonical graph; numbers and target; cases; equation, values, steps and
    commands; bounds and ingredients. What occurs twice counts twice.

    Args:
        domain: full name of a domain with variations.
        reference: an executable task of it.

    Raises:
        Unsolvable: the task is too symmetric for a canonical form.
    """
    counts = Counter(_INSTANCES[domain](reference))
    return frozenset(f"{text} #{number}" for text, count in counts.items() for number in range(count))


def jaccard(one: Features, other: Features) -> float:
    """Shared over all features; 1 for two empty sets.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(one & other) / len(one | other) if one | other else 1.0


def held_out_forms(tasks: Iterable[Task]) -> frozenset[tuple[str, str]]:
    """Domain and canonical form of every frozen task of `HELD_OUT` in the cells of these tasks."""
    cells = dict.fromkeys((task.domain, task.level) for task in tasks)
    return frozenset(
        (task.domain, get_variation(task.domain).canonical_form(task.reference))
        for domain, level in cells
        for split in HELD_OUT
        for task in load_tasks(domain, level, split)
    )


class Recent:
    """The tasks that were written last, and those that must never be.

    Args:
        held_out: domain and canonical form of the latter; see `held_out_forms`.
        window: how many written tasks are remembered.
    """

    def __init__(self, held_out: Iterable[tuple[str, str]] = (), window: int = WINDOW) -> None:
        self.held_out = frozenset(held_out)
        self._known: deque[tuple[str, str, str, Features]] = deque(maxlen=window)

    def novelty(self, domain: str, reference: Reference) -> float:
        """1 minus the greatest Jaccard similarity with a remembered task; 0 exactly for a copy.

        Raises:
            Unsolvable: the task is too symmetric for a canonical form.
        """
        form = get_variation(domain).canonical_form(reference)
        own, nearest = features(domain, reference), 0.0
        for known_domain, _, known_form, known in self._known:
            if known_domain == domain:
                nearest = max(nearest, 1.0 if known_form == form else jaccard(own, known))
        return 1 - nearest

    def is_held_out(self, domain: str, reference: Reference) -> bool:
        """Whether it is a task that nobody may train on, up to names and order."""
        return (domain, get_variation(domain).canonical_form(reference)) in self.held_out

    def add(self, domain: str, text: str) -> None:
        """Remember a task by its compact text."""
        variation = get_variation(domain)
        reference = variation.parse(text)
        self._known.append((domain, text, variation.canonical_form(reference), features(domain, reference)))

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Domain and compact text of what is remembered, the oldest first: `add` makes the same memory."""
        return [(domain, text) for domain, text, _, _ in self._known]


def _graph(reference: Reference) -> Iterator[str]:
    edges, _, colours = get_variation("graph_coloring").canonical_form(reference).partition(":")
    yield f"{len(colours)} vertices"
    yield from edges.split()
    yield from (f"{place} shows {colour}" for place, colour in enumerate(colours) if colour != "?")


def _countdown(reference: Reference) -> Iterator[str]:
    yield f"target {reference['target']}"
    yield from map(str, reference["numbers"])


def _cases(reference: Reference) -> Iterator[str]:
    yield from map(str, reference["cases"])


def _equation(reference: Reference) -> Iterator[str]:
    yield f"{reference['initial_lhs']}={reference['initial_rhs']}"
    yield f"{reference.get('max_steps', 4)} steps"
    yield from (f"{symbol}={value}" for symbol, value in reference["bindings"].items())
    yield from reference.get("actions", {}).values()


def _pantry(reference: Reference) -> Iterator[str]:
    yield f"{reference['min_ingredients']}-{reference['max_ingredients']} ingredients"
    for attribute, sides in reference["targets"].items():
        yield from (f"{attribute} {side} {value}" for side, value in sides.items())
    for row in reference["ingredients"]:
        yield f"{row['id']} {row['available_g']} {row['step_g']} {row['min_if_used_g']}"
    yield from (f"no {tag}" for tag in reference.get("forbidden_tags", ()))


_INSTANCES: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = MappingProxyType(
    {
        "graph_coloring": _graph,
        "countdown": _countdown,
        "python_factors": _cases,
        "mathir": _equation,
        "pantry_plan": _pantry,
    }
)
