"""Counted answers against judging every well-formed answer there is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from modebench.domains import (
    DOMAINS,
    countdown,
    get_domain,
    graph_coloring,
    mathir,
    pantry_plan,
    python_factors,
)
from modebench.tasks import load_tasks
from modebench.verifiers import verify

CASES = [6, 8, 12]


def every_answer(name: str, reference: Any) -> Iterator[str]:
    """The well-formed answers, written out without help from the code under test."""
    if name == "graph_coloring":
        hidden = reference["partial_colors"].count(None)
        yield from (f"\\boxed{{{''.join(digits)}}}" for digits in product("123", repeat=hidden))
    elif name == "pantry_plan":
        yield from (f"{mask:06b}" for mask in range(64))
    elif name == "mathir":
        for length in range(1, reference["max_steps"] + 1):
            for letters in product(reference["actions"], repeat=length):
                yield f"\\boxed{{{';'.join(letters)}}}"
    elif name == "python_factors":
        first, second, _ = reference["cases"]
        for a, b, c in product(*(range(2, value) for value in reference["cases"])):
            yield f"\\boxed{{lambda n: {a} if n=={first} else {b} if n=={second} else {c}}}"
    else:
        yield from {
            f"\\boxed{{{text}}}"
            for text in (e.text for e in countdown._expressions(tuple(sorted(reference["numbers"]))))
        }


def references(name: str, level: int) -> list[Any]:
    if name == "python_factors":
        return [{"verifier": "python_factor_function", "python_version": "factor-v1", "cases": CASES}]
    return [task.reference for task in list(load_tasks(name, level))[::50]]


# The plans of pantry levels 2 to 5 are not counted.
COUNTED = [
    (name, level) for name in DOMAINS for level in (1, 2, 4) if (name, level > 1) != ("pantry_plan", True)
]


@pytest.mark.parametrize(("name", "level"), COUNTED)
def test_answers_are_counted_exactly(name: str, level: int) -> None:
    domain: Any = get_domain(name)
    for reference in references(name, level):
        space = domain.answer_space(reference, level, domain.count_modes(reference, level))
        task = {"domain": name, "level": level, "reference": reference}
        verdicts = {answer: verify(task, answer) for answer in every_answer(name, reference)}
        assert space.size == len(verdicts)
        modes = Counter(verdict.mode for verdict in verdicts.values() if verdict.mode is not None)
        assert Counter(space.right) == Counter(modes.values())
        found = domain.constants(reference, level)
        right = {answer for answer, verdict in verdicts.items() if verdict.status == "correct"}
        answers = list(found.answers)
        assert all(verify(task, answer).status == "correct" for answer in answers)
        if name in ("graph_coloring", "mathir", "pantry_plan"):
            assert found.complete
            assert sorted(answers) == sorted(right)


@pytest.mark.parametrize(
    "numbers", [(5,), (2, 2), (2, 3), (3, 3, 3), (2, 2, 7), (1, 2, 2, 3), (2, 2, 3, 3), (4, 4, 4, 4)]
)
def test_expressions_are_counted_without_building_them(numbers: tuple[int, ...]) -> None:
    assert countdown._count_expressions(numbers) == sum(1 for _ in countdown._expressions(numbers))
    assert len({e.key for e in countdown._expressions(numbers)}) == countdown._count_expressions(numbers)


def test_plans_above_level_1_are_not_counted() -> None:
    reference = load_tasks("pantry_plan", 2)[0].reference
    assert pantry_plan.answer_space(reference, 2, 8) is None
    assert pantry_plan.constants(reference, 2) is None


def test_the_smallest_prime_factor_is_tried_where_it_is_right() -> None:
    (answer,) = python_factors.constants({"cases": CASES}, 1).answers
    task = {"domain": "python_factors", "level": 1, "reference": references("python_factors", 1)[0]}
    assert verify(task, answer).mode == "python_factor:2,2,2"
    for value in (529, 31 * 29, 841):
        fits = bool(list(python_factors.constants({"cases": [6, value]}, 1).answers))
        cases = {**task["reference"], "cases": [6, value]}
        assert fits == (verify({**task, "reference": cases}, answer).status == "correct")


def test_menus_share_paths_unless_a_zero_parts_them() -> None:
    """Where c is 0, dividing by it is refused, and fewer sequences solve a*x = c."""
    found = []
    for c in (6, 0, 8):
        reference = {
            "verifier": "mathir_action_menu",
            "mathir_version": "linear-menu-v1",
            "bindings": {"a": 2, "c": c},
            "initial_lhs": "mul(a,x)",
            "initial_rhs": "c",
            "max_steps": 4,
            "actions": {"A": "div(a)", "B": "div(c)", "C": "mul(c)"},
        }
        task = {"domain": "mathir", "level": 1, "reference": reference}
        answers = set(mathir.constants(reference, 1).answers)
        verdicts = {answer: verify(task, answer) for answer in every_answer("mathir", reference)}
        assert answers == {answer for answer, verdict in verdicts.items() if verdict.status == "correct"}
        found.append(answers)
    assert found[0] == found[2]
    assert found[1] < found[0]


@pytest.mark.parametrize("name", DOMAINS)
def test_random_answers_hit_as_often_as_counted(name: str) -> None:
    domain: Any = get_domain(name)
    rng = random.Random(3)
    task = load_tasks(name)[1] if name != "python_factors" else None
    reference = references(name, 1)[0] if task is None else task.reference
    modes = domain.count_modes(reference, 1)
    space = domain.answer_space(reference, 1, modes)
    chance = sum(answers * number for answers, number in space.right.items()) / space.size
    judged = {"domain": name, "level": 1, "reference": reference}
    draws = 3_000
    hits = sum(
        verify(judged, domain.random_answer(rng, reference, 1)).status == "correct" for _ in range(draws)
    )
    assert abs(hits / draws - chance) < 4 * (chance * (1 - chance) / draws) ** 0.5


def test_a_graph_without_shown_colours_asks_for_all() -> None:
    assert graph_coloring.answer_space({"n": 3, "edges": [], "partial_colors": None}, 1, 27).size == 27
