"""Every variation is executed against its source solution."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import pytest

from modebench.domains import get_domain
from modebench.variation import Operator, get_variation
from tests.variation.cases import draw, every_domain, judge, pantry_of_other_levels

# Countdown can't always stay inside the range of its numbers, and a program may divide nothing else.
FEWEST = {"countdown": 0.15, "python_factors": 0.65, "pantry_plan": 0.7}
SPELLED_ANEW = {"swap_shown", "permute_menu"}


def check_operators(domain: str, count: int) -> None:
    module = get_variation(domain)
    assert 2 <= len(module.operators) <= 8
    assert len({operator.name for operator in module.operators}) == len(module.operators)
    found: Counter[str] = Counter()
    for rng, reference, solution in draw(domain, count):
        before = copy.deepcopy(reference)
        for operator in module.operators:
            after = operator.apply(rng, reference, solution.answer)
            assert reference == before
            if after is not None:
                found[operator.name] += 1
                check_variation(domain, operator, reference, solution.answer, after)
    shares = {operator.name: found[operator.name] / count for operator in module.operators}
    print(domain, shares)
    assert min(shares.values()) >= FEWEST.get(domain, 0.9)


def check_variation(domain: str, operator: Operator, before: Any, solution: str, after: Any) -> None:
    module = get_variation(domain)
    assert operator.check(before, solution, after) is None
    carried = operator.carry(before, solution, after)
    assert judge(domain, after, carried).status == "correct"
    if operator.invariant == "strict" and operator.name not in SPELLED_ANEW:
        assert carried == solution
    if operator.invariant != "set":
        assert module.canonical_form(after) != module.canonical_form(before)
        assert operator.check(before, solution, before) is not None
    assert module.write(module.parse(module.write(after))) == module.write(after)


@every_domain
def test_variations_of_random_tasks(domain: str) -> None:
    check_operators(domain, {"mathir": 3, "pantry_plan": 12}.get(domain, 60))


@pytest.mark.slow
@every_domain
def test_variations_of_a_thousand_random_tasks(domain: str) -> None:
    check_operators(domain, 1_000)


@every_domain
def test_the_same_seed_gives_the_same_variation(domain: str) -> None:
    for _, reference, solution in draw(domain, 3):
        for operator in get_variation(domain).operators:
            twice = [operator.apply(random.Random(5), reference, solution.answer) for _ in range(2)]
            assert twice[0] == twice[1]


@every_domain
def test_a_wrong_solution_is_refused(domain: str) -> None:
    _, reference, solution = next(iter(draw(domain, 1)))
    for operator in get_variation(domain).operators:
        with pytest.raises(ValueError, match="solution"):
            operator.apply(random.Random(1), reference, "\\boxed{nothing}")
        after = operator.apply(random.Random(1), reference, solution.answer)
        if after is not None:
            assert operator.check(reference, "\\boxed{nothing}", after) is not None


COPIES = {
    "graph_coloring": ("G1223-1???", "G1323-?2??"),
    "countdown": None,
    "python_factors": ("P8,35,54,91", "P35,8,54,91"),
    "mathir": ("Ma*x=b -bA /aB;a=1,b=2;4", "Ma*x=b /aA -bB;a=1,b=2;4"),
    "pantry_plan": ("K1-2/25/50m50-;pe100al100", "K1-2/25/50m50-;al100pe100;!oi"),
}


@every_domain
def test_copies_have_one_canonical_form_and_are_refused(domain: str) -> None:
    module = get_variation(domain)
    if domain == "countdown":
        before: Any = {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18}
        after: Any = before | {"numbers": [9, 3, 6]}
    else:
        before, after = map(module.parse, COPIES[domain] or ())
    assert module.canonical_form(before) == module.canonical_form(after)
    answer = next(iter(get_domain(domain).solutions(before, 1))).answer
    for operator in module.operators:
        if operator.invariant != "set":
            assert operator.check(before, answer, after) is not None


def test_canonical_graphs_under_all_renamings() -> None:
    module = get_variation("graph")
    for rng, reference, _ in draw("graph_coloring", 100):
        n = reference["n"]
        names, colours = rng.sample(range(1, n + 1), n), [None, *rng.sample((1, 2, 3), 3)]
        partial: list[Any] = [None] * n
        for vertex, colour in enumerate(reference["partial_colors"]):
            partial[names[vertex] - 1] = colours[colour or 0]
        edges = [[names[u - 1], names[v - 1]] for u, v in reference["edges"]]
        renamed = reference | {"edges": rng.sample(edges, len(edges)), "partial_colors": partial}
        assert module.canonical_form(renamed) == module.canonical_form(reference)


def test_canonical_form_tells_graphs_apart_that_refinement_does_not() -> None:
    module = get_variation("graph")
    hexagon, triangles = (module.parse(f"G{edges}-??????") for edges in ("121623344556", "121323454656"))
    assert module.canonical_form(hexagon) != module.canonical_form(triangles)


def test_hidden_vertices_keep_their_number() -> None:
    for rng, reference, solution in draw("graph_coloring", 60):
        for operator in get_variation("graph").operators:
            after = operator.apply(rng, reference, solution.answer)
            assert after is None or after["partial_colors"].count(None) == 3


def test_stated_quantities_stay_right() -> None:
    reference, plan = pantry_of_other_levels(), "lentils=75; quinoa=75; kale=100"
    assert judge("pantry_plan", reference, plan, 2).status == "correct"
    for operator in get_variation("pantry").operators:
        for seed in range(8):
            after = operator.apply(random.Random(seed), reference, plan)
            assert after is not None
            assert judge("pantry_plan", after, plan, 2).status == "correct"


def test_a_varied_task_states_nothing_that_was_counted_before() -> None:
    for domain in ("graph_coloring", "python_factors", "pantry_plan"):
        rng, reference, solution = next(iter(draw(domain, 1)))
        for operator in get_variation(domain).operators:
            after = operator.apply(rng, reference | {"num_modes": 5, "instance_id": "x"}, solution.answer)
            assert after is None or not {"num_modes", "instance_id"} & set(after)
