"""What is a valid task around a solution, by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.synthesis.validity import free_failure
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation


def task(domain: str, text: str) -> Task:
    return Task("t", domain, 1, "x", "", get_variation(domain).parse(text))


@pytest.mark.parametrize(
    ("domain", "source", "solution", "written", "failure"),
    [
        ("graph_coloring", "G1223-?2?", "13", "G121323-12?", None),
        ("graph_coloring", "G1223-?2?", "13", "G1213-?21", "wrong"),
        ("graph_coloring", "G1223-?2?", "13", "G1223-?3?", "copy"),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C2,4,12=6", None),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C2,4,12=10", "wrong"),
        ("countdown", "C3,9,12=6", "(12-9)+3", "C3,9,12=6", "copy"),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,25", None),
        ("python_factors", "P6,35", "lambda n: 2 if n%2==0 else 5", "P8,21", "wrong"),
        ("mathir", "Ma*x+b=c -bA /aB +bC;a=3,b=2,c=8;4", "A;B", "Ma*x+b=c -bA /aB *aC;a=3,b=2,c=8;4", None),
        (
            "mathir",
            "Ma*x+b=c -bA /aB +bC;a=3,b=2,c=8;4",
            "A;B",
            "Ma*x+b=c -bA *aB +bC;a=3,b=2,c=8;4",
            "wrong",
        ),
    ],
)
def test_by_hand(domain: str, source: str, solution: str, written: str, failure: str | None) -> None:
    assert free_failure(task(domain, source), solution, get_variation(domain).parse(written)) == failure


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_operators_make_is_valid(domain: str) -> None:
    """All but those that carry the solution into another spelling."""
    rng = random.Random(1)
    for known in load_tasks(domain, 1, "dev").tasks[:6]:
        solution = next(iter(get_domain(domain).solutions(known.reference, 1))).answer
        for operator in get_variation(domain).operators:
            after: dict[str, Any] | None = operator.apply(rng, known.reference, solution)
            if after is not None and operator.invariant != "set":
                assert free_failure(known, solution, after) is None
