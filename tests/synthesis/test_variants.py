"""Variants of a task are what execution says."""

from __future__ import annotations

import random
from typing import Any

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.synthesis.variants import from_operator, from_text
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation
from modebench.variation.base import mode_of


def task(domain: str, text: str) -> Task:
    return Task("t", domain, 1, "x", "", get_variation(domain).parse(text))


@pytest.mark.parametrize(
    ("domain", "source", "solution", "written", "failure"),
    [
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,25", None),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8;25", "unreadable"),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,7", "unsolvable"),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,21", "wrong"),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P35,6", "copy"),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,25,35", "off_level"),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C2,4,12=6", None),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C2,8,12=6", None),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C6,9,9=6", "leak"),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C2,3=6", "off_level"),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C9,10,12=6", "unsolvable"),
        ("graph_coloring", "G1223-?2?", "13", "G12-?2?", None),
        ("graph_coloring", "G1223-?2?", "13", "G121323-12?", "off_level"),
        ("graph_coloring", "G1223-?2?", "13", "G1213-??1", "wrong"),
    ],
)
def test_texts_by_hand(domain: str, source: str, solution: str, written: str, failure: str | None) -> None:
    found = from_text(task(domain, source), f"\\boxed{{{solution}}}", written)
    assert found.failure == failure
    assert (found.modes is None) == (failure is not None)
    assert (found.reference is None) == (written in ("P8;25", "P8,7"))


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_operators_make_keeps_the_solution_and_can_be_asked(domain: str) -> None:
    generator = random.Random(3)
    made = 0
    for source in load_tasks(domain, 1, "train").tasks[:4]:
        solution = next(iter(get_domain(domain).solutions(source.reference, 1))).answer
        for operator in get_variation(domain).operators:
            found = from_operator(generator, operator.name, source, solution)
            assert found.operator == operator.name
            if found.failure == "no_variation":
                assert found.reference is None
                continue
            assert found.failure is None
            made += 1
            reference: Any = found.reference
            right = operator.carry(source.reference, solution, reference)
            assert mode_of(domain, reference, 1, right) is not None
            asked = found.as_task("made", source)
            assert asked.modes == found.modes == get_variation(domain).validate(reference, 1) > 0
            assert asked.problem == get_domain(domain).problem(reference, 1)
            assert "boxed" not in solution or solution not in asked.problem
    assert made >= 4
