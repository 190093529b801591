"""Which answers follow a strategy, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from modebench.compact import compact_answer
from modebench.domains import DOMAINS, get_domain
from modebench.pretraining.preferences import outputs_of, preferred
from modebench.strategies import STRATEGIES
from modebench.tasks import load_tasks

GRAPH = {"n": 4, "edges": [[1, 2], [3, 4], [2, 4]], "partial_colors": [1, None, None, None]}
# Vertex 2 may not be 1; 4 differs from 2 and 3.
FILLS = ["211", "212", "213", "221", "223", "231", "321", "322", "323", "331", "332", "312"]
FILLS = [f for f in FILLS if f[1] != f[2] and f[0] != f[2]]
COUNTDOWN = {"numbers": [3, 4, 6], "target": 6}


@pytest.mark.parametrize(
    ("domain", "strategy", "reference", "answers", "expected"),
    [
        ("graph_coloring", "lowest", GRAPH, ["312", "213", "231"], ["213"]),
        ("graph_coloring", "highest", GRAPH, ["312", "213", "223"], ["223"]),
        ("graph_coloring", "tightest", GRAPH, ["312", "213", "231"], ["213"]),
        ("graph_coloring", "one_class", GRAPH, ["213", "331", "223"], ["331", "223"]),
        ("countdown", "sums", COUNTDOWN, ["(6-4)*3", "(6+4)-3"], ["(6+4)-3"]),
        ("countdown", "sums", COUNTDOWN, ["(6-4)*3"], ["(6-4)*3"]),
        ("countdown", "product", COUNTDOWN, ["(6-4)*3", "6*(4-3)", "(6+4)-3"], ["(6-4)*3", "6*(4-3)"]),
        ("countdown", "undo_largest", COUNTDOWN, ["6*(4-3)", "(6-4)*3", "(6/4)*3"], ["6*(4-3)"]),
        ("countdown", "small_helper", COUNTDOWN, ["(6-4)*3", "6*(4-3)", "(6-3)+4"], ["(6-4)*3", "6*(4-3)"]),
    ],
)
def test_by_hand(
    domain: str, strategy: str, reference: dict[str, Any], answers: list[str], expected: list[str]
) -> None:
    assert list(preferred(domain, strategy, reference, answers)) == expected


def table(*outputs: int) -> str:
    cases = (12, 45, 70, 91)
    *tests, last = outputs
    head = "".join(f"{d} if n=={case} else " for d, case in zip(tests, cases, strict=False))
    return f"lambda n: {head}{last}"


@pytest.mark.parametrize(
    ("strategy", "right", "wrong"),
    [
        ("smallest", (2, 3, 2, 7), (2, 3, 2, 13)),
        ("largest", (6, 15, 35, 13), (6, 15, 10, 13)),
        ("parity", (6, 5, 35, 7), (6, 5, 10, 7)),
        ("size", (2, 3, 35, 13), (2, 3, 2, 13)),
    ],
)
def test_tables_of_factors(strategy: str, right: tuple[int, ...], wrong: tuple[int, ...]) -> None:
    assert outputs_of(table(*right)) == list(right)
    chosen = preferred(
        "python_factors", strategy, {"cases": [12, 45, 70, 91]}, [table(*wrong), table(*right)]
    )
    assert list(chosen) == [table(*right)]


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_strategy_leaves_right_answers_and_some_choose(domain: str) -> None:
    chosen = dict.fromkeys((strategy.name for strategy in STRATEGIES[domain]), 0)
    for task in load_tasks(domain, 1, "dev").tasks[:20]:
        found = get_domain(domain).solutions(task.reference, 1)
        answers = [compact_answer(solution.answer) for solution in found]
        for name in chosen:
            left = preferred(domain, name, task.reference, answers)
            assert left
            assert set(left) <= set(answers)
            chosen[name] += len(left) < len(answers)
    assert all(chosen.values())
