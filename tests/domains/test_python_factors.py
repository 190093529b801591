from __future__ import annotations

import ast
import random
from collections import Counter
from itertools import islice

from modebench.domains import python_factors
from modebench.verifiers import verify

# A published row: 2, 3, 6, 9 divide 18; the other three inputs have two divisors each.
PUBLISHED = {
    "verifier": "python_factor_function",
    "python_version": "factor-v1",
    "cases": [18, 82, 91, 93],
}


def source(answer: str) -> str:
    return answer.removeprefix("\\boxed{").removesuffix("}")


def test_published_row_has_32_modes() -> None:
    listed = list(python_factors.solutions(PUBLISHED, 1))
    assert len(listed) == python_factors.count_modes(PUBLISHED, 1) == 32
    assert listed[0].mode == "python_factor:2,2,7,3"
    assert listed[0].answer == "\\boxed{lambda n: 2 if n==18 else 2 if n==82 else 7 if n==91 else 3}"
    assert listed[1].mode == "python_factor:2,2,7,31"
    assert listed[-1].mode == "python_factor:9,41,13,31"


def test_square_counts_its_root_once() -> None:
    assert python_factors.count_modes({"cases": [36, 25]}, 1) == 7


def test_dispatch_fits_the_largest_reference() -> None:
    cases = [900, 910, 920, 930, 940, 950, 960, 1000]
    reference = {**PUBLISHED, "cases": cases}
    longest = max(islice(python_factors.solutions(reference, 1), 1_000), key=lambda s: len(s.answer))
    text = source(longest.answer)
    assert len(text) <= 240
    assert sum(1 for _ in ast.walk(ast.parse(text, mode="eval"))) == 54
    assert (
        verify({"domain": "python", "level": 1, "reference": reference}, longest.answer).mode == longest.mode
    )


def test_every_mode_of_level_1_fits() -> None:
    rng = random.Random(4)
    for _ in range(20):
        reference = python_factors.generate(rng, 1)
        texts = [source(s.answer) for s in python_factors.solutions(reference, 1)]
        assert max(map(len, texts)) <= 80
        assert sum(1 for _ in ast.walk(ast.parse(texts[-1], mode="eval"))) == 26


def test_law() -> None:
    rng = random.Random(2)
    for _ in range(200):
        cases = python_factors.generate(rng, 1)["cases"]
        assert len(set(cases)) == 4
        assert cases == sorted(cases)
        assert all(6 <= v <= 96 and sum(v % d == 0 for d in range(2, v)) >= 2 for v in cases)
    # Of the 91 values 6 to 96, 21 are prime and 9, 25 and 49 have one divisor in between: 67 are left.
    assert python_factors.law_size(1) == 67 * 66 * 65 * 64 // 24


def test_chance_draws_each_output_uniformly() -> None:
    rng = random.Random(0)
    task = {"verifier": "python_factor_function", "python_version": "factor-v1", "cases": [6, 8]}
    drawn = Counter(source(python_factors.random_answer(rng, task, 1)) for _ in range(3_000))
    assert len(drawn) == 4 * 6
    assert set(drawn) == {f"lambda n: {p} if n==6 else {q}" for p in range(2, 6) for q in range(2, 8)}
    assert max(drawn.values()) < 2 * min(drawn.values())
