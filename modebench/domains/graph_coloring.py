"""Graph coloring: complete a proper colouring of a small graph with colours 1, 2, 3.

The mode is the full colour vector; colourings that differ by renaming colours are different modes.
Laws: arXiv:2610.11064.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from modebench.domains.base import BOXED_SYSTEM, AnswerSpace, Constants, Reference, Solution, find_law
from modebench.laws import Cell
from modebench.laws import graph_coloring as higher

name: str = "graph_coloring"
aliases: tuple[str, ...] = ("graph",)

Partial = Sequence[int | None]


# Law --------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Parameters of a level.

    Attributes:
        text: the law in one sentence.
        vertices: fewest and most vertices.
        max_edges: most edges.
        hidden: number of vertices without a shown colour.
        completions: fewest and most colourings that agree with the shown colours.
        tries: hidden sets tried on one colouring before the graph is drawn again.
    """

    text: str
    vertices: tuple[int, int]
    max_edges: int
    hidden: int
    completions: tuple[int, int]
    tries: int


LAWS = {
    1: Law(
        "4 to 6 vertices, n-2 to 8 edges, 3 hidden vertices, 4 to 24 completions",
        vertices=(4, 6),
        max_edges=8,
        hidden=3,
        completions=(4, 24),
        tries=128,
    )
}

TEXTS = {**{level: rules.text for level, rules in LAWS.items()}, **higher.TEXTS}
"""Every level's law; levels 2 to 5 stand in `modebench.laws.graph_coloring`."""


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(TEXTS, level, name)


def law_size(level: int) -> int | None:
    """How many tasks the law has; None where it was never enumerated."""
    find_law(TEXTS, level, name)
    return higher.law_size(level) if level in higher.TEXTS else None


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`.

    At level 1 vertices, number of edges and edge set are uniform in turn; one proper colouring is drawn, then
    hidden sets until the number of completions fits; a graph without a fitting one is drawn again.
    """
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.generate(rng, level, cell)
    rules = find_law(LAWS, level, name)
    while True:
        n = rng.randint(*rules.vertices)
        pairs = list(combinations(range(1, n + 1), 2))
        size = rng.randint(max(1, n - 2), min(rules.max_edges, len(pairs)))
        edges = [list(edge) for edge in sorted(rng.sample(pairs, size))]
        partial = _draw_partial(rng, n, edges, rules)
        if partial is not None:
            return {"verifier": name, "n": n, "edges": edges, "partial_colors": partial}


def _draw_partial(rng: random.Random, n: int, edges: list[list[int]], rules: Law) -> list[int | None] | None:
    fewest, most = rules.completions
    colourings = list(_colourings(n, edges, [None] * n))
    if len(colourings) < fewest:
        return None
    colouring = rng.choice(colourings)
    for _ in range(rules.tries):
        hidden = rng.sample(range(n), rules.hidden)
        partial = [None if vertex in hidden else colour for vertex, colour in enumerate(colouring)]
        if fewest <= sum(1 for _ in _colourings(n, edges, partial)) <= most:
            return partial
    return None


def identity(reference: Reference) -> str:
    """Vertices, edges as a set and shown colours; renaming vertices or colours makes another task."""
    edges = sorted({tuple(sorted(edge)) for edge in reference["edges"]})
    shown = "".join("?" if colour is None else str(colour) for colour in _partial(reference))
    return f"{name}:{reference['n']}:{' '.join(f'{u}-{v}' for u, v in edges)}:{shown}"


# Prompt -----------------------------------------------------------------------------------------


def problem(reference: Reference, level: int) -> str:
    """The user message: the graph, the shown colours, how many digits to reply with."""
    find_law(TEXTS, level, name)
    partial = _partial(reference)
    edges = ", ".join(f"{u}-{v}" for u, v in reference["edges"])
    shown = "".join("?" if colour is None else str(colour) for colour in partial)
    hidden = partial.count(None)
    return (
        f"A graph has the vertices 1 to {reference['n']} and these edges: {edges}.\n"
        "Every vertex gets one of the colors 1, 2 and 3, and the two ends of an edge must differ.\n"
        f"The colors of vertices 1 to {reference['n']} in order, with ? where one is missing: {shown}\n"
        f"Keep the given colors and fill in the {hidden} missing ones. Several fillings can be valid; "
        "give one of them.\n"
        f"Answer with exactly {hidden} digits, one for each ? from left to right, without spaces or commas, "
        "in \\boxed{}."
    )


def system(level: int) -> str:
    """The system message: the reply format in one sentence."""
    find_law(TEXTS, level, name)
    return BOXED_SYSTEM


# Modes ------------------------------------------------------------------------------------------


def count_modes(reference: Reference, level: int) -> int:
    """Number of proper colourings that agree with the shown colours."""
    return sum(1 for _ in _colourings(reference["n"], reference["edges"], _partial(reference)))


def solutions(reference: Reference, level: int) -> Iterator[Solution]:
    """Every completion in lexicographic order; the answer is the missing digits."""
    partial = _partial(reference)
    for colouring in _colourings(reference["n"], reference["edges"], partial):
        colours = "".join(map(str, colouring))
        missing = "".join(c for c, shown in zip(colours, partial, strict=True) if shown is None)
        # With nothing hidden an empty box would be no answer; the full colouring always is one.
        yield Solution(f"{name}:{colours}", f"\\boxed{{{missing or colours}}}")


def _partial(reference: Reference) -> list[int | None]:
    shown = reference.get("partial_colors")
    return [None] * reference["n"] if shown is None else list(shown)


def _colourings(n: int, edges: Sequence[Sequence[int]], partial: Partial) -> Iterator[list[int]]:
    """Proper colourings that agree with `partial`, in lexicographic order, by backtracking."""
    earlier: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        earlier[max(u, v) - 1].append(min(u, v) - 1)
    colours = [0] * n
    vertex = 0
    while vertex >= 0:
        if vertex == n:
            yield colours.copy()
            vertex -= 1
            continue
        taken = {colours[neighbour] for neighbour in earlier[vertex]}
        shown = partial[vertex]
        choices = range(colours[vertex] + 1, 4)
        free = [c for c in choices if c not in taken and (shown is None or c == shown)]
        colours[vertex] = free[0] if free else 0
        vertex += 1 if free else -1


def listed(mode: str) -> bool:
    """Every correct mode is one of those counted."""
    return True


# Chance -----------------------------------------------------------------------------------------


def random_answer(rng: random.Random, reference: Reference, level: int) -> str:
    """Uniform over the 3^h strings of h digits, h the number of hidden vertices."""
    return f"\\boxed{{{''.join(rng.choices('123', k=_digits(reference)))}}}"


def _digits(reference: Reference) -> int:
    """Digits of an answer: the hidden vertices, or all of them where none is hidden."""
    return _partial(reference).count(None) or int(reference["n"])


def answer_space(reference: Reference, level: int, modes: int) -> AnswerSpace:
    """The 3^h fills; every completion is one of them."""
    return AnswerSpace(3 ** _digits(reference), {1: modes})


def constants(reference: Reference, level: int) -> Constants:
    """All right fills."""
    return Constants((solution.answer for solution in solutions(reference, level)), complete=True)
