"""Python factors: compact text, variations around a program, option removal.

Text: ``P8,35,54,91``; the order of the cases is kept, because a mode is the outputs in this order. A
program says what it returns on other inputs too, so a case may be swapped for another on which the same
program, run by the verifier, still returns a proper divisor (SVS, arXiv:2508.14029). The modes of the
two tasks are not comparable: their vectors belong to different inputs.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from modebench.domains.base import Reference
from modebench.variation.base import (
    COPY,
    Operator,
    Scanner,
    count_valid,
    mode_of,
    numbers,
    require_mode,
    strict_failure,
    strict_parse,
    write_checked,
)
from modebench.verifiers.python_factors import Spec, judge

name: str = "python_factors"

RANGES = (96, 192, 384, 1000)
"""Largest inputs of the published laws."""
SMALLEST = 6


# Compact text -----------------------------------------------------------------------------------


def write(reference: Reference) -> str:
    """One line that holds the cases in their order."""
    return write_checked(name, reference, _spell)


def _spell(reference: Reference) -> str:
    return f"P{','.join(map(str, reference['cases']))}"


def parse(text: str) -> dict[str, Any]:
    """The reference of a text of exactly the spelling that `write` gives."""
    return strict_parse(text, _read, write)


def _read(scanner: Scanner) -> dict[str, Any]:
    scanner.take("P")
    return _reference(numbers(scanner, "a case, an integer"))


def validate(reference: Reference, level: int) -> int:
    """The exact number of vectors of proper divisors."""
    return count_valid(name, reference, level)


def canonical_form(reference: Reference) -> str:
    """The cases in ascending order: their order changes no program's verdict."""
    return f"P{','.join(map(str, sorted(reference['cases'])))}"


def _reference(cases: Sequence[int]) -> dict[str, Any]:
    return {"verifier": "python_factor_function", "python_version": "factor-v1", "cases": list(cases)}


# Variations -------------------------------------------------------------------------------------


def _window(cases: Sequence[int]) -> range:
    """The published range of inputs that holds these cases."""
    return range(min(SMALLEST, *cases), next(top for top in RANGES if top >= max(cases)) + 1)


def _divisors(value: int) -> list[int]:
    """Divisors d with 1 < d < value, ascending."""
    small = [d for d in range(2, math.isqrt(value) + 1) if value % d == 0]
    return sorted({*small, *(value // d for d in small)})


def _swap(rng: random.Random, reference: Reference, solution: str, count: int) -> dict[str, Any] | None:
    """`count` cases swapped for others on which the program is right, none with fewer divisors than all."""
    require_mode(name, reference, 1, solution)
    cases = list(reference["cases"])
    fewest = min(len(_divisors(case)) for case in cases)
    good = [
        value
        for value in _window(cases)
        if value not in cases
        and len(_divisors(value)) >= fewest
        and judge(Spec((value,)), solution).status == "correct"
    ]
    if len(good) < count or len(cases) < count:
        return None
    ordered = cases == sorted(cases)
    for position, value in zip(rng.sample(range(len(cases)), count), rng.sample(good, count), strict=True):
        cases[position] = value
    return _reference(sorted(cases) if ordered else cases)


def _swap_case(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _swap(rng, reference, solution, 1)


def _swap_two_cases(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _swap(rng, reference, solution, 2)


def _check(count: int) -> Callable[[Reference, str, Reference], str | None]:
    """The check of an operator that swaps `count` cases."""

    def check(before: Reference, solution: str, after: Reference) -> str | None:
        if canonical_form(before) == canonical_form(after):
            return COPY
        new: Counter[int] = Counter(after["cases"]) - Counter(before["cases"])
        if len(before["cases"]) != len(after["cases"]) or new.total() != count:
            return "not the step of this operator: other cases"
        return strict_failure(name, 1, before, solution, after)

    return check


operators: tuple[Operator, ...] = (
    Operator("swap_case", "strict", _swap_case, _check(1)),
    Operator("swap_two_cases", "strict", _swap_two_cases, _check(2)),
)


# Option removal ---------------------------------------------------------------------------------


def remove_option(
    reference: Reference, level: int, mode: str, answer: str | None = None
) -> dict[str, Any] | None:
    """One case swapped for an input that the favourite's output there doesn't divide.

    The new case stands where the old one stood in the order of size, so that a vector of outputs means
    the same on both tasks: the favourite's can no longer be returned, and a vector survives where its
    output at the new case divides both. The swap that keeps the largest share of modes is taken, then
    the nearest input. A program that follows a rule, such as the least divisor, may be right again with
    another vector: give it as `answer`, and it must fail too.

    Raises:
        ValueError: `mode` is not a mode of the task.
    """
    outputs = _outputs(reference, mode)
    answer = _program(reference["cases"], outputs) if answer is None else answer
    for *_, after in sorted(_steps(reference["cases"], outputs)):
        task = _reference(after)
        if mode_of(name, task, level, answer) is None:
            return task
    return None


def _outputs(reference: Reference, mode: str) -> list[int]:
    prefix, cases = "python_factor:", reference["cases"]
    words = mode.removeprefix(prefix).split(",")
    outputs = [int(word) for word in words if word.isdecimal()]
    valid = len(outputs) == len(cases) and all(
        d in _divisors(v) for d, v in zip(outputs, cases, strict=False)
    )
    if not valid or mode != f"{prefix}{','.join(map(str, outputs))}":
        raise ValueError(f"mode: {mode!r} is not a mode of this task")
    return outputs


def _program(cases: Sequence[int], outputs: Sequence[int]) -> str:
    """A response that returns `outputs` on `cases`."""
    tests = [f"{d} if n=={v} else " for v, d in zip(cases[:-1], outputs[:-1], strict=True)]
    return f"\\boxed{{lambda n: {''.join(tests)}{outputs[-1]}}}"


def _steps(cases: list[int], outputs: Sequence[int]) -> Iterator[tuple[float, int, int, list[int]]]:
    """Lost share of modes, distance, position and the new cases."""
    for position, (case, output) in enumerate(zip(cases, outputs, strict=True)):
        for value in _window(cases):
            after = [*cases[:position], value, *cases[position + 1 :]]
            if value in cases or output in _divisors(value) or _order(after) != _order(cases):
                continue
            old = _divisors(case)
            shared = len(set(old) & set(_divisors(value)))
            if shared:
                yield 1 - shared / len(old), abs(value - case), position, after


def _order(cases: Sequence[int]) -> list[bool]:
    """Which pairs stand in ascending order."""
    return [a < b for a, b in combinations(cases, 2)]
