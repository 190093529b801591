from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.domains import countdown
from modebench.verifiers import verify


def reference(numbers: list[int], target: int) -> dict[str, object]:
    return {"verifier": "countdown", "numbers": numbers, "target": target}


def trees(numbers: tuple[int, ...]) -> Iterator[tuple[str, Fraction]]:
    """Every parenthesisation of the numbers in this order: an independent enumeration."""
    if len(numbers) == 1:
        yield str(numbers[0]), Fraction(numbers[0])
    for cut in range(1, len(numbers)):
        for p, a in trees(numbers[:cut]):
            for q, b in trees(numbers[cut:]):
                low, high = sorted((p, q))
                yield f"add({low},{high})", a + b
                yield f"mul({low},{high})", a * b
                yield f"sub({p},{q})", a - b
                if b:
                    yield f"div({p},{q})", a / b


def test_level_1_has_787_tasks() -> None:
    assert countdown.law_size(1) == 787


def test_published_row_has_8_modes() -> None:
    listed = list(countdown.solutions(reference([3, 6, 9], 18), 1))
    assert {s.mode.removeprefix("countdown:") for s in listed} == {
        "add(3,add(6,9))",
        "add(6,add(3,9))",
        "add(9,add(3,6))",
        "div(mul(6,9),3)",
        "mul(6,div(9,3))",
        "mul(9,div(6,3))",
        "div(6,div(3,9))",
        "div(9,div(3,6))",
    }


def test_two_numbers_by_hand() -> None:
    def modes(numbers: list[int], target: int) -> list[str]:
        return [s.mode.removeprefix("countdown:") for s in countdown.solutions(reference(numbers, target), 1)]

    assert modes([2, 3], 6) == ["mul(2,3)"]
    assert modes([3, 2], 1) == ["sub(3,2)"]
    assert modes([2, 2], 4) == ["add(2,2)", "mul(2,2)"]
    assert modes([2, 2], 1) == ["div(2,2)"]
    assert modes([9, 10], 19) == ["add(10,9)"]
    assert modes([7], 7) == ["7"]
    assert modes([7], 8) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=4), st.integers(-5, 30))
def test_keys_agree_with_plain_enumeration(numbers: list[int], target: int) -> None:
    plain = {key for order in set(permutations(numbers)) for key, value in trees(order) if value == target}
    listed = Counter(
        s.mode.removeprefix("countdown:") for s in countdown.solutions(reference(numbers, target), 1)
    )
    assert set(listed) == plain
    assert set(listed.values()) <= {1}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=4), st.integers(0, 40))
def test_every_listed_mode_verifies(numbers: list[int], target: int) -> None:
    task = {"domain": "countdown", "level": 1, "reference": reference(numbers, target)}
    for mode, answer in countdown.solutions(task["reference"], 1):
        assert verify(task, answer).mode == mode


def test_chance_is_uniform_over_distinct_expressions() -> None:
    rng = random.Random(0)
    drawn = Counter(countdown.random_answer(rng, reference([2, 3, 4], 10), 1) for _ in range(5_000))
    assert len(drawn) == 108
    assert max(drawn.values()) < 100


def test_a_negative_number_cannot_be_written() -> None:
    with pytest.raises(ValueError, match=r"reference\.numbers"):
        countdown.count_modes(reference([-3, 4], 1), 1)


def test_law() -> None:
    rng = random.Random(2)
    for _ in range(200):
        drawn = countdown.generate(rng, 1)
        a, b, c = drawn["numbers"]
        assert 2 <= a < b < c <= 12
        assert 1 <= drawn["target"] <= 36
        assert drawn["target"] not in drawn["numbers"]
