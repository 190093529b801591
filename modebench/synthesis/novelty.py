"""How new a written task is: Jaccard distance of canonical instances, and exact copies.

SynCo (arXiv:2610.11345) compares the characters of problem texts. Here the tasks themselves are compared, so
that renamed vertices, another order of numbers or other letters in a menu make nothing new.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from modebench.compact import compact_problem
from modebench.domains import get_domain
from modebench.domains.base import Reference
from modebench.splits import LEVELS
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


class HeldOut:
    """The frozen tasks that nobody may train on: those of `HELD_OUT`, at every level.

    A task is one of them by its labelled identity, as the splits are disjoint, or where the tiny policy would
    read the same prompt.

    Args:
        domains: full names.
    """

    def __init__(self, domains: Iterable[str]) -> None:
        self._keys = {
            key
            for domain in dict.fromkeys(domains)
            for level in LEVELS
            for split in HELD_OUT
            for task in load_tasks(domain, level, split)
            for key in _keys(task)
        }

    def holds(self, domain: str, level: int, reference: Reference) -> bool:
        """Whether a task is one of them."""
        return not self._keys.isdisjoint(_keys(Task("", domain, level, "", "", reference)))


def _keys(task: Task) -> tuple[tuple[str, str, str], ...]:
    identity = get_domain(task.domain).identity(task.reference)
    return (task.domain, "identity", identity), (task.domain, "prompt", compact_problem(task))


class Recent:
    """The tasks that were written last.

    Args:
        window: how many are remembered.
    """

    def __init__(self, window: int = WINDOW) -> None:
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
