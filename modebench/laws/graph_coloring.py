"""Graph coloring, levels 2 to 5 (arXiv:2610.11064): graphs and shown colours, by number of modes.

As published: the numbers of vertices and hidden vertices, the numbers of modes of level 1, at level 4
planted colourings with an edge probability of .32 to .65, at level 5 three shown vertices with the
colours 1, 2, 3, allowed colours of a hidden vertex fixed by edges to them, and the rule for how many
are hidden. Inferred: 5 or 6 vertices at level 2, the exact borders of the four kinds of graph at level
3, that everything not said is uniform, at most 10 edges at every level (the most that occurs). Not
reproduced: the published tier weights, fitted to answers of 3B to 14B models, and the balanced rounds
of colours and positions; tiers are equally frequent here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, NamedTuple

from modebench.laws import SPLITS, Cell, Impossible, draw_cell, level1_supports

Edges = list[tuple[int, int]]
"""Pairs of vertices, counted from 0."""

MAX_EDGES = 10
MAX_DRAWS = 100_000
COLOURS = (1, 2, 3)
_EVEN = (0, 1, 2, 3)
CYCLES: Mapping[int, tuple[int, ...]] = MappingProxyType({2: (0,), 3: _EVEN, 4: _EVEN, 5: _EVEN})
TEXTS: Mapping[int, str] = MappingProxyType(
    {
        2: "5 or 6 vertices, n-2 to 10 edges, 4 hidden vertices; modes as at level 1",
        3: "5 vertices, 3 hidden; hidden ones joined to shown ones only, forests, shown ones joined, or "
        "cycles, equally often; modes as at level 1",
        4: "planted colourings: 5 vertices with the last 3 or any 3 hidden, 6 with 3 or 4 hidden, equally "
        "often; modes as at level 1",
        5: "3 shown vertices with the colours 1, 2, 3 and 3 or 4 hidden ones, each with some colours ruled "
        "out; modes as at level 1",
    }
)

PLANTED = ((5, 3), (5, 3), (6, 3), (6, 4))
"""Vertices and hidden vertices of the tiers of level 4; the first tier hides the last vertices."""
EDGE_PROBABILITY = (0.32, 0.65)
SHARES = (0.21, 0.152, 0.123, 0.0816)
"""Share of valid colourings among all 3^h fillings that a tier of level 5 aims at."""


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`, conditioned on the cell.

    Raises:
        Impossible: no graph of many had that number of modes.
    """
    cell = cell or draw_cell(rng, "graph_coloring", CYCLES[level])
    if level == 3:
        return _from_catalogue(rng, cell)
    draw = {2: _draw_sparse, 4: _draw_planted, 5: _draw_anchored}[level]
    for _ in range(MAX_DRAWS):
        drawn = draw(rng, cell)
        if drawn is not None and len(drawn[0]) <= MAX_EDGES and completions(*drawn) == cell.support:
            return _reference(*drawn)
    raise Impossible(f"no graph of level {level}, tier {cell.tier}, has {cell.support} modes")


def law_size(level: int) -> int | None:
    """How many tasks level 3 has with the numbers of modes of level 1; not known for the others."""
    if level != 3:
        return None
    supports = {support for split in SPLITS for support in level1_supports("graph_coloring", split)}
    structures = [s for members in _structures().values() for s in members if s.modes in supports]
    return sum(10 * s.colourings for s in structures)


def _reference(edges: Edges, partial: Sequence[int | None]) -> dict[str, Any]:
    return {
        "verifier": "graph_coloring",
        "n": len(partial),
        "edges": [[u + 1, v + 1] for u, v in sorted(edges)],
        "partial_colors": list(partial),
    }


def completions(edges: Edges, partial: Sequence[int | None]) -> int:
    """Number of colourings that agree with properly coloured shown vertices."""
    domains = {vertex: set(COLOURS) for vertex, colour in enumerate(partial) if colour is None}
    inner = []
    for u, v in edges:
        if u in domains and v in domains:
            inner.append((u, v))
        elif u in domains or v in domains:
            hidden, shown = (u, v) if u in domains else (v, u)
            domains[hidden] -= {partial[shown] or 0}
    place = {vertex: index for index, vertex in enumerate(domains)}
    pairs = [(place[u], place[v]) for u, v in inner]
    return sum(all(c[i] != c[j] for i, j in pairs) for c in product(*domains.values()))


# Level 2 ----------------------------------------------------------------------------------------


def _draw_sparse(rng: random.Random, cell: Cell) -> tuple[Edges, list[int | None]] | None:
    """Vertices, number of edges, edge set, proper colouring and hidden vertices, each uniform."""
    n = rng.randint(5, 6)
    pairs = list(combinations(range(n), 2))
    edges = rng.sample(pairs, rng.randint(n - 2, MAX_EDGES))
    proper = [c for c in product(COLOURS, repeat=n) if all(c[u] != c[v] for u, v in edges)]
    if not proper:
        return None
    return edges, _hide(rng.choice(proper), rng.sample(range(n), 4))


def _hide(colouring: Sequence[int], hidden: Sequence[int]) -> list[int | None]:
    return [None if vertex in hidden else colour for vertex, colour in enumerate(colouring)]


# Level 3 ----------------------------------------------------------------------------------------


class Structure(NamedTuple):
    """A graph on the shown vertices 0 and 1 and the hidden vertices 2, 3, 4.

    Attributes:
        edges: its edges.
        equal: whether the shown vertices have one colour.
        modes: number of completions.
    """

    edges: Edges
    equal: bool
    modes: int

    @property
    def colourings(self) -> int:
        """How many pairs of shown colours it stands for."""
        return 3 if self.equal else 6


@cache
def _structures() -> Mapping[int, tuple[Structure, ...]]:
    """All structures by tier, so that every task of level 3 belongs to exactly one tier."""
    found: dict[int, list[Structure]] = {tier: [] for tier in _EVEN}
    pairs = list(combinations(range(5), 2))
    for chosen in product((False, True), repeat=len(pairs)):
        edges = [pair for pair, taken in zip(pairs, chosen, strict=True) if taken]
        for equal in (False, True):
            if not (equal and (0, 1) in edges):
                modes = completions(edges, [1, 1 if equal else 2, None, None, None])
                found[_kind(edges)].append(Structure(edges, equal, modes))
    return {tier: tuple(members) for tier, members in found.items()}


def _kind(edges: Edges) -> int:
    """Tier: 2 shown vertices joined, 0 no hidden ones joined, 1 a forest, 3 with a cycle."""
    if (0, 1) in edges:
        return 2
    if not any(u >= 2 for u, _ in edges):
        return 0
    return 3 if _has_cycle(edges) else 1


def _has_cycle(edges: Edges) -> bool:
    part = list(range(5))
    for u, v in edges:
        if part[u] == part[v]:
            return True
        part = [part[u] if p == part[v] else p for p in part]
    return False


def _from_catalogue(rng: random.Random, cell: Cell) -> dict[str, Any]:
    """Uniform over the tasks of the cell; a tier without that number of modes leaves it to the next."""
    for shift in _EVEN:
        members = [s for s in _structures()[(cell.tier + shift) % 4] if s.modes == cell.support]
        if members:
            [structure] = rng.choices(members, [s.colourings for s in members])
            first, second, _ = rng.sample(COLOURS, 3)
            shown = sorted(rng.sample(range(5), 2))
            order = [*shown, *(vertex for vertex in range(5) if vertex not in shown)]
            partial: list[int | None] = [None] * 5
            partial[shown[0]], partial[shown[1]] = first, first if structure.equal else second
            return _reference([_edge(order[u], order[v]) for u, v in structure.edges], partial)
    raise Impossible(f"no graph of level 3 has {cell.support} modes")


def _edge(u: int, v: int) -> tuple[int, int]:
    return min(u, v), max(u, v)


# Levels 4 and 5 ---------------------------------------------------------------------------------


def _draw_planted(rng: random.Random, cell: Cell) -> tuple[Edges, list[int | None]]:
    """A uniform colouring, then edges between different colours with one probability."""
    n, size = PLANTED[cell.tier]
    colouring = rng.choices(COLOURS, k=n)
    probability = rng.uniform(*EDGE_PROBABILITY)
    pairs = [(u, v) for u, v in combinations(range(n), 2) if colouring[u] != colouring[v]]
    edges = [pair for pair in pairs if rng.random() < probability]
    hidden = range(n - size, n) if cell.tier == 0 else rng.sample(range(n), size)
    return edges, _hide(colouring, hidden)


def _draw_anchored(rng: random.Random, cell: Cell) -> tuple[Edges, list[int | None]]:
    """Uniform allowed colours for each hidden vertex, a uniform graph among them, vertices shuffled."""
    hidden = min((3, 4), key=lambda h: abs(cell.support / 3**h - SHARES[cell.tier]))
    order = rng.sample(range(3 + hidden), 3 + hidden)
    partial: list[int | None] = [None] * len(order)
    for colour in COLOURS:
        partial[order[colour - 1]] = colour
    edges = [_edge(order[u], order[v]) for u, v in _anchors(rng, hidden)]
    inner = combinations(range(3, 3 + hidden), 2)
    edges += [_edge(order[u], order[v]) for u, v in inner if rng.random() < 0.5]
    return edges, partial


def _anchors(rng: random.Random, hidden: int) -> Iterator[tuple[int, int]]:
    """Edges to the shown vertices 0, 1, 2 that rule out some of their colours, never all."""
    for vertex in range(3, 3 + hidden):
        ruled_out = rng.randrange(7)
        yield from ((shown, vertex) for shown in range(3) if ruled_out >> shown & 1)
