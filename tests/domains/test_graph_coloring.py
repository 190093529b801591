from __future__ import annotations

import random
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.domains import graph_coloring
from modebench.domains.base import Reference

# A published row: 48 proper colourings, 4 of them with these colours shown.
PUBLISHED = {
    "verifier": "graph_coloring",
    "n": 6,
    "edges": [[1, 2], [1, 3], [3, 5], [3, 6], [4, 6], [5, 6]],
    "partial_colors": [2, None, None, 1, None, 2],
}


def brute_force(reference: Reference) -> list[str]:
    shown = reference.get("partial_colors") or [None] * reference["n"]
    return [
        "".join(colours)
        for colours in product("123", repeat=reference["n"])
        if all(s is None or str(s) == c for s, c in zip(shown, colours, strict=True))
        and all(colours[u - 1] != colours[v - 1] for u, v in reference["edges"])
    ]


def test_published_row() -> None:
    # Vertex 3 differs from 2 (vertices 1 and 6) and so is 1 or 3, vertex 5 is the other; vertex 2 is 1 or 3.
    assert [tuple(s) for s in graph_coloring.solutions(PUBLISHED, 1)] == [
        ("graph_coloring:211132", "\\boxed{113}"),
        ("graph_coloring:213112", "\\boxed{131}"),
        ("graph_coloring:231132", "\\boxed{313}"),
        ("graph_coloring:233112", "\\boxed{331}"),
    ]
    assert graph_coloring.count_modes({**PUBLISHED, "partial_colors": None}, 1) == 48


def test_nothing_hidden() -> None:
    whole = {**PUBLISHED, "partial_colors": [2, 1, 1, 1, 3, 2]}
    assert [s.answer for s in graph_coloring.solutions(whole, 1)] == ["\\boxed{211132}"]
    assert len(graph_coloring.random_answer(random.Random(0), whole, 1)) == len("\\boxed{211132}")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_backtracking_agrees_with_brute_force(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 6))
    vertex = st.integers(1, n)
    edges = data.draw(st.lists(st.tuples(vertex, vertex).filter(lambda e: e[0] != e[1]), max_size=8))
    partial = data.draw(st.lists(st.sampled_from([None, None, 1, 2, 3]), min_size=n, max_size=n))
    reference = {"n": n, "edges": [list(e) for e in edges], "partial_colors": partial}
    listed = [s.mode.removeprefix("graph_coloring:") for s in graph_coloring.solutions(reference, 1)]
    assert listed == brute_force(reference)


def test_law() -> None:
    rng = random.Random(5)
    for _ in range(200):
        reference = graph_coloring.generate(rng, 1)
        n, edges = reference["n"], reference["edges"]
        assert 4 <= n <= 6
        assert n - 2 <= len(edges) <= 8
        assert edges == sorted(edges)
        assert all(1 <= u < v <= n for u, v in edges)
        assert reference["partial_colors"].count(None) == 3


def test_identity_ignores_the_spelling_of_edges_only() -> None:
    turned = {**PUBLISHED, "edges": [[v, u] for u, v in reversed(PUBLISHED["edges"])]}
    assert graph_coloring.identity(turned) == graph_coloring.identity(PUBLISHED)
    recoloured = {**PUBLISHED, "partial_colors": [3, None, None, 1, None, 3]}
    assert graph_coloring.identity(recoloured) != graph_coloring.identity(PUBLISHED)


def test_random_answers_are_uniform() -> None:
    rng = random.Random(0)
    drawn = [graph_coloring.random_answer(rng, PUBLISHED, 1) for _ in range(2_000)]
    assert len(set(drawn)) == 27
    assert max(map(drawn.count, set(drawn))) < 2 * min(map(drawn.count, set(drawn)))
