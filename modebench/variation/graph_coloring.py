"""Graph coloring: compact text, variations around a colouring, option removal.

Text: ``G152334-?3??1``: edges as pairs of vertices (1 to 9, then a to z), each pair and the list of
pairs ascending, then the shown colours. A solution is read as the full colouring that it completes, so
every change that respects this colouring keeps the solution right (SVS, arXiv:2508.14029). The number
of hidden vertices never changes in a variation: the reply is one digit a hidden vertex.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, groupby, islice
from typing import Any

from modebench.domains.base import Reference
from modebench.variation.base import (
    COPY,
    CompactError,
    Operator,
    Scanner,
    Unsolvable,
    count_valid,
    listed_modes,
    mode_of,
    require_mode,
    strict_failure,
    strict_parse,
    write_checked,
)

name: str = "graph_coloring"

MAX_HIDDEN = 12
"""Most hidden vertices of a task whose colourings are counted one by one (3^12 fillings)."""
MAX_ORDERS = 1_000
"""Most orders of the vertices that a canonical form compares; frozen tasks have a few at most."""

Edge = tuple[int, int]
Partial = Sequence[int | None]

_VERTICES = "123456789abcdefghijklmnopqrstuvwxyz"
_VERTEX = re.compile("[1-9a-z]")
_SHOWN = re.compile("[123?]+")


# Compact text -----------------------------------------------------------------------------------


def write(reference: Reference) -> str:
    """One line; order, orientation and repetition of edges are lost, as no verdict depends on them."""
    return write_checked(name, reference, _spell, digits_are_numbers=False)


def _spell(reference: Reference) -> str:
    if reference["n"] > len(_VERTICES):
        raise CompactError(None, f"at most {len(_VERTICES)} vertices, not {reference['n']}")
    pairs = "".join(_VERTICES[u - 1] + _VERTICES[v - 1] for u, v in _edges(reference))
    return f"G{pairs}-{_shown(_partial(reference))}"


def parse(text: str) -> dict[str, Any]:
    """The reference of a text of exactly the spelling that `write` gives."""
    return strict_parse(text, _read, write)


def _read(scanner: Scanner) -> dict[str, Any]:
    scanner.take("G")
    edges = []
    while not scanner.skip("-"):
        ends = [scanner.read(_VERTEX, "a vertex 1-9 or a-z, or '-'") for _ in range(2)]
        edges.append([_VERTICES.index(end) + 1 for end in ends])
    shown = scanner.read(_SHOWN, "the shown colours: 1, 2, 3 or ?")
    return _reference(len(shown), edges, [None if colour == "?" else int(colour) for colour in shown])


def validate(reference: Reference, level: int) -> int:
    """The exact number of colourings that agree with the shown colours."""
    hidden = _partial(reference).count(None)
    if hidden > MAX_HIDDEN:
        raise Unsolvable(f"{hidden} hidden vertices; colourings are counted up to {MAX_HIDDEN}")
    return count_valid(name, reference, level)


def _reference(n: int, edges: Sequence[Sequence[int]], partial: Partial) -> dict[str, Any]:
    return {
        "verifier": name,
        "n": n,
        "edges": [list(edge) for edge in edges],
        "partial_colors": list(partial),
    }


def _edges(reference: Reference) -> list[Edge]:
    return sorted({(min(edge), max(edge)) for edge in reference["edges"]})


def _partial(reference: Reference) -> list[int | None]:
    shown = reference.get("partial_colors")
    return [None] * reference["n"] if shown is None else list(shown)


def _shown(partial: Partial) -> str:
    return "".join("?" if colour is None else str(colour) for colour in partial)


# Canonical form ---------------------------------------------------------------------------------


def canonical_form(reference: Reference) -> str:
    """The least text over all renamings of vertices and colours.

    Found by refinement: vertices are told apart by what no renaming changes, and where some stay alike
    each is tried in front, except those that a swap of two vertices maps to one another.

    Raises:
        Unsolvable: more than `MAX_ORDERS` orders would have to be tried.
    """
    n, partial = reference["n"], _partial(reference)
    near: list[set[int]] = [set() for _ in range(n)]
    for u, v in _edges(reference):
        near[u - 1].add(v - 1)
        near[v - 1].add(u - 1)
    alike = [
        {j for j in range(n) if j != i and partial[i] is not None and partial[j] == partial[i]}
        for i in range(n)
    ]
    start = [int(colour is None) for colour in partial]
    orders = list(islice(_orders(start, near, alike), MAX_ORDERS + 1))
    if len(orders) > MAX_ORDERS:
        raise Unsolvable(f"a graph with more than {MAX_ORDERS} symmetries that are no swaps of two vertices")
    return min(_text(order, near, partial) for order in orders)


def _orders(classes: Sequence[int], near: list[set[int]], alike: list[set[int]]) -> Iterator[list[int]]:
    """Orders of the vertices, among which every renaming of the task meets the same texts."""
    classes = _refined(classes, near, alike)
    members = sorted(range(len(classes)), key=lambda vertex: classes[vertex])
    groups = [list(group) for _, group in groupby(members, key=lambda vertex: classes[vertex])]
    crowd = next((group for group in groups if len(group) > 1), None)
    if crowd is None:
        yield members
        return
    tried: list[int] = []
    for vertex in crowd:
        if any(_swappable(vertex, other, near, alike) for other in tried):
            continue
        tried.append(vertex)
        # Doubling leaves a free number just below the class of the vertex that goes in front.
        yield from _orders([2 * c - (v == vertex) for v, c in enumerate(classes)], near, alike)


def _refined(classes: Sequence[int], near: list[set[int]], alike: list[set[int]]) -> list[int]:
    """Classes split by the classes of neighbours and of vertices of the same shown colour."""
    count = 0
    while True:
        marks = [
            (own, tuple(sorted(classes[j] for j in near[i])), tuple(sorted(classes[j] for j in alike[i])))
            for i, own in enumerate(classes)
        ]
        ranks = sorted(set(marks))
        classes = [ranks.index(mark) for mark in marks]
        if len(ranks) == count:
            return classes
        count = len(ranks)


def _swappable(u: int, v: int, near: list[set[int]], alike: list[set[int]]) -> bool:
    return near[u] - {v} == near[v] - {u} and alike[u] - {v} == alike[v] - {u}


def _text(order: Sequence[int], near: list[set[int]], partial: Partial) -> str:
    place = {vertex: position for position, vertex in enumerate(order)}
    edges = sorted((place[u], place[v]) for u in place for v in near[u] if place[u] < place[v])
    names: dict[int, int] = {}
    shown = [
        "?" if colour is None else str(names.setdefault(colour, len(names) + 1))
        for colour in (partial[vertex] for vertex in order)
    ]
    return f"{' '.join(f'{u + 1}-{v + 1}' for u, v in edges)}:{''.join(shown)}"


# Variations -------------------------------------------------------------------------------------


def _colours(reference: Reference, solution: str) -> str:
    return require_mode(name, reference, 1, solution).removeprefix(f"{name}:")


def _free_pairs(reference: Reference, colours: str, equal: bool) -> list[Edge]:
    """Pairs that are no edge and whose colours are equal, or differ."""
    present = set(_edges(reference))
    return [
        (u, v)
        for u, v in combinations(range(1, reference["n"] + 1), 2)
        if (u, v) not in present and (colours[u - 1] == colours[v - 1]) == equal
    ]


def _with_edges(reference: Reference, edges: Sequence[Edge]) -> dict[str, Any]:
    return _reference(reference["n"], sorted(edges), _partial(reference))


def _add_edge(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    free = _free_pairs(reference, _colours(reference, solution), equal=False)
    return _with_edges(reference, [*_edges(reference), rng.choice(free)]) if free else None


def _delete_edge(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    require_mode(name, reference, 1, solution)
    edges = _edges(reference)
    if len(edges) < 2:
        return None
    edges.remove(rng.choice(edges))
    return _with_edges(reference, edges)


def _move_edge(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    edges = _edges(reference)
    free = _free_pairs(reference, _colours(reference, solution), equal=False)
    if not free or not edges:
        return None
    edges[rng.randrange(len(edges))] = rng.choice(free)
    return _with_edges(reference, edges)


def _swap_shown(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    colours, partial = _colours(reference, solution), _partial(reference)
    hidden = [vertex for vertex, colour in enumerate(partial) if colour is None]
    shown = [vertex for vertex, colour in enumerate(partial) if colour is not None]
    if not hidden or not shown:
        return None
    partial[rng.choice(shown)] = None
    vertex = rng.choice(hidden)
    partial[vertex] = int(colours[vertex])
    return _reference(reference["n"], _edges(reference), partial)


def _carry(before: Reference, solution: str, after: Reference) -> str:
    """The full colouring: a fill says nothing once other vertices are hidden."""
    return _colours(before, solution)


def _check(edges_in: int, edges_out: int, moved: int) -> Callable[[Reference, str, Reference], str | None]:
    """The check of an operator that adds and deletes so many edges, and shows and hides `moved` vertices."""

    def check(before: Reference, solution: str, after: Reference) -> str | None:
        old, new = set(_edges(before)), set(_edges(after))
        shown = list(zip(_partial(before), _partial(after), strict=False))
        if before["n"] != after["n"] or (len(new - old), len(old - new)) != (edges_in, edges_out):
            return "not the step of this operator: other edges"
        revealed = sum(a is None and b is not None for a, b in shown)
        covered = sum(a is not None and b is None for a, b in shown)
        if (revealed, covered) != (moved, moved) or sum(a != b for a, b in shown) != 2 * moved:
            return "not the step of this operator: other shown vertices"
        if canonical_form(before) == canonical_form(after):
            return COPY
        mode = mode_of(name, before, 1, solution)
        if mode is None:
            return "the solution is not correct on the source task"
        # While the hidden vertices stay, the solution's own text must be right; else its colouring.
        text = mode.removeprefix(f"{name}:") if moved else solution
        return strict_failure(name, 1, before, text, after)

    return check


operators: tuple[Operator, ...] = (
    Operator("add_edge", "strict", _add_edge, _check(1, 0, 0)),
    Operator("delete_edge", "strict", _delete_edge, _check(0, 1, 0)),
    Operator("move_edge", "strict", _move_edge, _check(1, 1, 0)),
    Operator("swap_shown", "strict", _swap_shown, _check(0, 0, 1), _carry),
)


# Option removal ---------------------------------------------------------------------------------


def remove_option(
    reference: Reference, level: int, mode: str, answer: str | None = None
) -> dict[str, Any] | None:
    """One more edge between two vertices that `mode` colours alike, or one hidden vertex shown otherwise.

    Both steps leave a subset of the old colourings. The step that leaves most of them is taken, an edge
    before a shown vertex, because an edge keeps the number of digits in the reply; a shown vertex comes
    first only where every edge leaves less than two.

    Raises:
        ValueError: `mode` is not a mode of the task.
    """
    colours = mode.removeprefix(f"{name}:")
    if mode not in listed_modes(name, reference, level):
        raise ValueError(f"mode: {mode!r} is not a mode of this task")
    answer = colours if answer is None else answer
    ranked = []
    for kind, step in enumerate((_edge_steps, _shown_steps)):
        for after in step(reference, colours):
            left = listed_modes(name, after, level)
            if left and mode not in left and mode_of(name, after, level, answer) is None:
                ranked.append((min(len(left), 2), -kind, len(left), after))
    return max(ranked, key=lambda item: item[:3])[3] if ranked else None


def _edge_steps(reference: Reference, colours: str) -> Iterator[dict[str, Any]]:
    for pair in _free_pairs(reference, colours, equal=True):
        yield _with_edges(reference, [*_edges(reference), pair])


def _shown_steps(reference: Reference, colours: str) -> Iterator[dict[str, Any]]:
    partial = _partial(reference)
    for vertex, shown in enumerate(partial):
        for colour in (1, 2, 3):
            if shown is None and str(colour) != colours[vertex]:
                after = [*partial[:vertex], colour, *partial[vertex + 1 :]]
                yield _reference(reference["n"], _edges(reference), after)
