"""Each clause of a pantry plan, by plans that miss it alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from modebench.verifiers import verify
from tests.verifiers.examples import RIGHT, task


def status(answer: str, **changes: Any) -> str:
    example = copy.deepcopy(task("pantry_plan"))
    example["reference"] |= changes
    return verify(example, f"\\boxed{{{answer}}}").status


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("oats=50;lentils=75", "correct"),
        ("oats=50;lentils=76", "incorrect"),
        ("oats=50;lentils=99", "incorrect"),
        ("oats=25;lentils=75", "incorrect"),
        ("oats=50;lentils=1000", "incorrect"),
        ("oats=100", "incorrect"),
        ("oats=50;gravel=75", "incorrect"),
        ("oats=50;almonds=75", "incorrect"),
        ("oats=50;lentils=0", "malformed"),
        ("oats=50;oats=75", "malformed"),
    ],
)
def test_clauses_of_amounts(answer: str, wanted: str) -> None:
    assert status(answer) == wanted


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(125, 125, "correct"), (126, 200, "incorrect"), (100, 124, "incorrect"), (None, 125, "correct")],
)
def test_bounds_are_inclusive(low: int | None, high: int, wanted: str) -> None:
    bounds = {"max": high} if low is None else {"min": low, "max": high}
    assert status("oats=50;lentils=75", targets={"mass_g": bounds}) == wanted


def test_only_forbidden_tags_are_forbidden() -> None:
    free = {"forbidden_tags": [], "targets": {"mass_g": {"min": 100}}}
    assert status("oats=50;almonds=75", **free) == "correct"
    assert RIGHT["pantry_plan"][0] == "\\boxed{oats=50;lentils=75}"
