"""Python factors: one lambda that returns a proper divisor of every listed input.

The mode is the tuple of outputs in case order. Laws: arXiv:2610.11064.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

from modebench.domains.base import BOXED_SYSTEM, AnswerSpace, Constants, Reference, Solution, find_law
from modebench.laws import Cell
from modebench.laws import python_factors as higher

name: str = "python_factors"
aliases: tuple[str, ...] = ("python",)


# Law --------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Parameters of a level.

    Attributes:
        text: the law in one sentence.
        cases: how many inputs, all different.
        values: smallest and largest input.
        min_divisors: fewest divisors d of an input v with 1 < d < v.
        min_modes: fewest modes of a task.
    """

    text: str
    cases: int
    values: tuple[int, int]
    min_divisors: int
    min_modes: int


LAWS = {
    1: Law(
        "4 different inputs of 6 to 96, each with 2 or more divisors between 1 and itself; uniform",
        cases=4,
        values=(6, 96),
        min_divisors=2,
        min_modes=16,
    )
}

TEXTS = {**{level: rules.text for level, rules in LAWS.items()}, **higher.TEXTS}
"""Every level's law; levels 2 to 5 stand in `modebench.laws.python_factors`."""


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(TEXTS, level, name)


def law_size(level: int) -> int | None:
    """How many tasks the law has; None where a bound on the modes makes that unknown."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.law_size(level)
    rules = find_law(LAWS, level, name)
    if rules.min_divisors**rules.cases < rules.min_modes:
        return None
    return math.comb(len(_inputs(rules)), rules.cases)


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference; at level 1 uniform over the sets of inputs that have enough modes."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.generate(rng, level, cell)
    rules = find_law(LAWS, level, name)
    inputs = _inputs(rules)
    while True:
        cases = sorted(rng.sample(inputs, rules.cases))
        if math.prod(len(_divisors(value)) for value in cases) >= rules.min_modes:
            return {"verifier": "python_factor_function", "python_version": "factor-v1", "cases": cases}


def _inputs(rules: Law) -> list[int]:
    low, high = rules.values
    return [value for value in range(low, high + 1) if len(_divisors(value)) >= rules.min_divisors]


def identity(reference: Reference) -> str:
    """The inputs in their order."""
    return f"{name}:{','.join(map(str, reference['cases']))}"


# Prompt -----------------------------------------------------------------------------------------


def problem(reference: Reference, level: int) -> str:
    """The user message: inputs, required property, allowed syntax and its limits."""
    find_law(TEXTS, level, name)
    cases = ", ".join(map(str, reference["cases"]))
    return (
        f"Inputs: {cases}\n"
        "Write one Python function of the exact form lambda n: EXPR that returns, for every input n above, "
        "an integer d with 1 < d < n and n % d == 0. Several functions can be valid; give one of them.\n"
        "EXPR may contain the name n, integers up to 10000, the operators + - * // %, the comparisons "
        "== != < <= > >=, the words and, or, not, and conditionals X if C else Y. Anything else is refused: "
        "no calls, no / and no **, no lists, no strings, no True or False.\n"
        "The whole lambda may have at most 240 characters and at most 64 syntax nodes, counted as the nodes "
        "of Python's ast.\n"
        "Answer with the lambda in \\boxed{}."
    )


def system(level: int) -> str:
    """The system message: the reply format in one sentence."""
    find_law(TEXTS, level, name)
    return BOXED_SYSTEM


# Modes ------------------------------------------------------------------------------------------


def count_modes(reference: Reference, level: int) -> int:
    """Product over the inputs v of the number of divisors d with 1 < d < v."""
    return math.prod(len(_divisors(value)) for value in reference["cases"])


def solutions(reference: Reference, level: int) -> Iterator[Solution]:
    """Every choice of one divisor a case, the last case fastest; the answer dispatches on the input."""
    cases = reference["cases"]
    for outputs in product(*map(_divisors, cases)):
        yield Solution(f"python_factor:{','.join(map(str, outputs))}", _dispatch(cases, outputs))


def _divisors(value: int) -> list[int]:
    """Divisors d of `value` with 1 < d < value, ascending."""
    small = [d for d in range(2, math.isqrt(value) + 1) if value % d == 0]
    return sorted({*small, *(value // d for d in small)})


def _dispatch(cases: Sequence[int], outputs: Sequence[int]) -> str:
    """A lambda that maps each case to its output.

    It has 7k - 2 syntax nodes for k cases: 26 of 64 for four. With cases of three digits, eight of
    them take 54 nodes and 136 characters of 240, so it fits every reference of the contract.
    """
    tests = [f"{output} if n=={case} else " for case, output in zip(cases[:-1], outputs[:-1], strict=True)]
    return f"\\boxed{{lambda n: {''.join(tests)}{outputs[-1]}}}"


def listed(mode: str) -> bool:
    """Every correct mode is one of those counted."""
    return True


# Chance -----------------------------------------------------------------------------------------


def random_answer(rng: random.Random, reference: Reference, level: int) -> str:
    """A dispatch on the input whose output for a case v is uniform over 2 to v-1."""
    cases = reference["cases"]
    return _dispatch(cases, [rng.randint(2, value - 1) for value in cases])


def answer_space(reference: Reference, level: int, modes: int) -> AnswerSpace:
    """The tables with an output of 2 to v-1 for each case v; every mode is one of them."""
    size = math.prod(value - 2 for value in reference["cases"])
    return AnswerSpace(size, {1: modes})


def constants(reference: Reference, level: int) -> Constants:
    """The smallest prime factor: right on every task whose inputs have one in `_PRIMES`.

    Functions can't be listed, so a better constant may exist.
    """
    right = all(any(value % p == 0 and p < value for p in _PRIMES) for value in reference["cases"])
    return Constants([f"\\boxed{{lambda n: {_SMALLEST_PRIME}}}"] if right else [], complete=False)


# As many as fit into 64 syntax nodes.
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)
_SMALLEST_PRIME = reduce(lambda rest, p: f"({rest}) if n%{p} else {p}", _PRIMES[-2::-1], str(_PRIMES[-1]))
