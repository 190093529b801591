"""Countdown: reach a target with + - * /, using each number exactly once.

The mode is the expression tree up to swapping the operands of one sum or product. Listed modes are
those of expressions without unary minus, as in the published counts. Laws: arXiv:2610.11064.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, islice, product
from typing import Any, NamedTuple

from modebench.domains.base import BOXED_SYSTEM, AnswerSpace, Constants, Reference, Solution, find_law
from modebench.laws import Cell
from modebench.laws import countdown as higher

name: str = "countdown"
aliases: tuple[str, ...] = ()

Numbers = tuple[int, ...]

_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


# Law --------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Parameters of a level.

    Attributes:
        text: the law in one sentence.
        operands: how many numbers, all different.
        values: smallest and largest number.
        max_target: largest target; targets are positive integers outside the numbers.
        modes: fewest and most modes of a task.
    """

    text: str
    operands: int
    values: tuple[int, int]
    max_target: int
    modes: tuple[int, int]


LAWS = {
    1: Law(
        "3 different numbers of 2 to 12, a target up to 36 outside the numbers, 2 to 8 modes; uniform",
        operands=3,
        values=(2, 12),
        max_target=36,
        modes=(2, 8),
    )
}

TEXTS = {**{level: rules.text for level, rules in LAWS.items()}, **higher.TEXTS}
"""Every level's law; levels 2 to 5 stand in `modebench.laws.countdown`."""


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(TEXTS, level, name)


def law_size(level: int) -> int | None:
    """How many tasks the law has; None where it was never enumerated."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.law_size(level)
    return len(_catalogue(find_law(LAWS, level, name)))


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference; at level 1 uniform over all tasks of the law."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.generate(rng, level, cell)
    numbers, target = rng.choice(_catalogue(find_law(LAWS, level, name)))
    return {"verifier": name, "numbers": list(numbers), "target": target}


@cache
def _catalogue(rules: Law) -> tuple[tuple[Numbers, int], ...]:
    """Every (numbers, target) of a law, in ascending order."""
    low, high = rules.values
    fewest, most = rules.modes
    tasks = []
    for numbers in combinations(range(low, high + 1), rules.operands):
        counts: dict[int, int] = {}
        for expression in _expressions(numbers):
            value = expression.value
            if value is not None and value.denominator == 1:
                counts[int(value)] = counts.get(int(value), 0) + 1
        for target in sorted(set(counts) - set(numbers)):
            if 1 <= target <= rules.max_target and fewest <= counts[target] <= most:
                tasks.append((numbers, target))
    return tuple(tasks)


def identity(reference: Reference) -> str:
    """The multiset of numbers and the target."""
    return f"{name}:{','.join(map(str, sorted(reference['numbers'])))}={reference['target']}"


# Prompt -----------------------------------------------------------------------------------------


def problem(reference: Reference, level: int) -> str:
    """The user message: numbers, target, allowed signs."""
    find_law(TEXTS, level, name)
    numbers = ", ".join(map(str, reference["numbers"]))
    return (
        f"Numbers: {numbers}\n"
        f"Target: {reference['target']}\n"
        "Write one arithmetic expression whose value is the target. Each of the numbers must occur in it "
        "exactly once, and no other number may occur. Allowed are + - * / and parentheses; division is "
        "exact, and intermediate results may be fractions.\n"
        "Several expressions can be valid; give one of them. Use plain characters instead of LaTeX commands, "
        "and no equals sign.\n"
        "Answer with the expression in \\boxed{}."
    )


def system(level: int) -> str:
    """The system message: the reply format in one sentence."""
    find_law(TEXTS, level, name)
    return BOXED_SYSTEM


# Modes ------------------------------------------------------------------------------------------


class Expression(NamedTuple):
    """An expression without unary signs.

    Attributes:
        key: its mode, without the domain's prefix.
        value: exact value; None where it divides by zero.
        text: a spelling that parses to exactly this tree.
    """

    key: str
    value: Fraction | None
    text: str


def count_modes(reference: Reference, level: int) -> int:
    """Number of distinct expressions without unary signs that reach the target."""
    return sum(1 for _ in _reaching(reference))


def solutions(reference: Reference, level: int) -> Iterator[Solution]:
    """Every listed mode once, in the order of construction."""
    for expression in _reaching(reference):
        yield Solution(f"{name}:{expression.key}", f"\\boxed{{{expression.text}}}")


def _reaching(reference: Reference) -> Iterator[Expression]:
    return (e for e in _expressions(_numbers(reference)) if e.value == reference["target"])


def _numbers(reference: Reference) -> Numbers:
    """The numbers in ascending order; a negative one can't be written without a sign."""
    numbers = tuple(sorted(reference["numbers"]))
    if not numbers or numbers[0] < 0:
        raise ValueError(
            f"reference.numbers: must be non-negative integers, at least one, not {list(numbers)}"
        )
    return numbers


def _expressions(numbers: Numbers) -> Iterator[Expression]:
    """Every expression over the sorted `numbers`, each key once.

    A tree is its operator and its two subtrees, and a key names the numbers below each subtree, so
    going over unordered splits of the multiset meets each key exactly once.
    """
    if len(numbers) == 1:
        yield Expression(str(numbers[0]), Fraction(numbers[0]), str(numbers[0]))
        return
    for left, right in _splits(numbers):
        for p, q in product(_stored(left), _stored(right)):
            first, second = sorted((p, q), key=lambda side: side.key)
            # Equal halves meet every pair in both orders by themselves.
            if left != right or p.key <= q.key:
                yield _join("+", first, second)
                yield _join("*", first, second)
            for operator in "-/":
                yield _join(operator, p, q)
                if left != right:
                    yield _join(operator, q, p)


@lru_cache(maxsize=256)
def _stored(numbers: Numbers) -> tuple[Expression, ...]:
    return tuple(_expressions(numbers))


def _splits(numbers: Numbers) -> list[tuple[Numbers, Numbers]]:
    """Unordered partitions of a sorted multiset into two non-empty sorted multisets."""
    found: dict[tuple[Numbers, Numbers], None] = {}
    positions = range(len(numbers))
    for size in range(1, len(numbers) // 2 + 1):
        for chosen in combinations(positions, size):
            left = tuple(numbers[i] for i in chosen)
            right = tuple(numbers[i] for i in positions if i not in chosen)
            found[min((left, right), (right, left))] = None
    return list(found)


def _join(operator: str, p: Expression, q: Expression) -> Expression:
    value = None if p.value is None or q.value is None else _apply(operator, p.value, q.value)
    return Expression(f"{_NAMES[operator]}({p.key},{q.key})", value, f"{_side(p)}{operator}{_side(q)}")


def _apply(operator: str, a: Fraction, b: Fraction) -> Fraction | None:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case _:
            return a / b if b else None


def _side(expression: Expression) -> str:
    """An operand's text: everything but a lone number stands in parentheses."""
    return expression.text if expression.text.isdigit() else f"({expression.text})"


def listed(mode: str) -> bool:
    """Whether a correct mode is one of those counted: expressions without unary minus."""
    return "neg(" not in mode


# Chance -----------------------------------------------------------------------------------------


def random_answer(rng: random.Random, reference: Reference, level: int) -> str:
    """Uniform over the distinct expressions without unary signs that use each number once."""
    return f"\\boxed{{{rng.choice(_stored(_numbers(reference))).text}}}"


def answer_space(reference: Reference, level: int, modes: int) -> AnswerSpace:
    """The distinct expressions without unary signs that use each number once; each mode is one of them."""
    numbers = _numbers(reference)
    return AnswerSpace(_count_expressions(numbers), {1: modes})


@lru_cache(maxsize=4096)
def _count_expressions(numbers: Numbers) -> int:
    """The length of `_expressions`, without building them."""
    if len(numbers) == 1:
        return 1
    total = 0
    for left, right in _splits(numbers):
        p, q = _count_expressions(left), _count_expressions(right)
        # Sums and products of equal halves are unordered pairs; differences and quotients are ordered ones.
        total += p * (p + 1) + 2 * p * p if left == right else 6 * p * q
    return total


def constants(reference: Reference, level: int) -> Constants:
    """One solution stands for all: each is right exactly on the tasks with these numbers and this target."""
    return Constants((solution.answer for solution in islice(solutions(reference, level), 1)), complete=True)
