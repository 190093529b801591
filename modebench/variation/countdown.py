"""Countdown: compact text, variations that keep the target, option removal.

Text: ``C3,9,12=6``, the numbers ascending. An expression and its value determine numbers and target, so
no other task can keep a solution right. What is kept instead is the target, and a right answer exists by
construction: in the tree of the solution a pair of numbers is replaced by its value and a number by a
pair of that value, so that as many numbers remain (variation around a solution: SVS, arXiv:2508.14029).
New numbers stay in the published range that holds the old ones, and are different where those were.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from modebench.domains.base import Reference
from modebench.variation.base import (
    COPY,
    Operator,
    Scanner,
    Unsolvable,
    count_valid,
    integer,
    listed_modes,
    mode_of,
    numbers,
    require_mode,
    strict_parse,
    write_checked,
)

name: str = "countdown"

MAX_NUMBERS = 5
"""Most numbers of a task whose expressions are counted one by one."""
RANGES = (12, 14, 18, 32, 64, 99, 192)
"""Largest numbers of the published laws; their smallest number is 2."""
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


class Tree(NamedTuple):
    """An expression: a number (`sign` empty), an operation on two trees, or ``neg`` of one."""

    number: int
    sign: str = ""
    sides: tuple[Tree, ...] = ()


# Compact text -----------------------------------------------------------------------------------


def write(reference: Reference) -> str:
    """One line; the order of the numbers is lost, as no verdict depends on it."""
    return write_checked(name, reference, canonical_form)


def parse(text: str) -> dict[str, Any]:
    """The reference of a text of exactly the spelling that `write` gives."""
    return strict_parse(text, _read, write)


def _read(scanner: Scanner) -> dict[str, Any]:
    scanner.take("C")
    given = numbers(scanner, "a number")
    scanner.take("=")
    return _reference(given, integer(scanner, "the target, an integer"))


def validate(reference: Reference, level: int) -> int:
    """The exact number of expressions without unary signs that reach the target."""
    if len(reference["numbers"]) > MAX_NUMBERS:
        raise Unsolvable(f"{len(reference['numbers'])} numbers; expressions are counted up to {MAX_NUMBERS}")
    return count_valid(name, reference, level)


def canonical_form(reference: Reference) -> str:
    """The compact text: numbers in ascending order and target."""
    return f"C{','.join(map(str, sorted(reference['numbers'])))}={reference['target']}"


def _reference(given: list[int], target: int) -> dict[str, Any]:
    return {"verifier": name, "numbers": sorted(given), "target": target}


# Trees ------------------------------------------------------------------------------------------


def _tree(mode: str) -> Tree:
    """The expression of a mode key."""
    return _read_key(Scanner(mode.removeprefix(f"{name}:")))


def _read_key(scanner: Scanner) -> Tree:
    if scanner.skip("neg("):
        side = _read_key(scanner)
        scanner.take(")")
        return Tree(0, "neg", (side,))
    for word, sign in SIGNS.items():
        if scanner.skip(f"{word}("):
            left = _read_key(scanner)
            scanner.take(",")
            right = _read_key(scanner)
            scanner.take(")")
            return Tree(0, sign, (left, right))
    return Tree(integer(scanner, "a number"))


def _value(tree: Tree) -> Fraction | None:
    """The exact value; None where it divides by zero."""
    if not tree.sign:
        return Fraction(tree.number)
    if tree.sign == "neg":
        inner = _value(tree.sides[0])
        return None if inner is None else -inner
    left, right = map(_value, tree.sides)
    if left is None or right is None or (tree.sign == "/" and right == 0):
        return None
    match tree.sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right


def _leaves(tree: Tree) -> list[int]:
    return [n for side in tree.sides for n in _leaves(side)] if tree.sign else [tree.number]


def _infix(tree: Tree) -> str:
    if not tree.sign:
        return str(tree.number)
    if tree.sign == "neg":
        return f"(-{_infix(tree.sides[0])})"
    return f"({_infix(tree.sides[0])}{tree.sign}{_infix(tree.sides[1])})"


def _paths(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Tree]]:
    """Every subtree with the sides that lead to it."""
    yield path, tree
    for index, side in enumerate(tree.sides):
        yield from _paths(side, (*path, index))


def _put(tree: Tree, path: tuple[int, ...], new: Tree) -> Tree:
    """The tree with another subtree at `path`."""
    if not path:
        return new
    sides = list(tree.sides)
    sides[path[0]] = _put(sides[path[0]], path[1:], new)
    return Tree(0, tree.sign, tuple(sides))


# Variations -------------------------------------------------------------------------------------


def _ceiling(given: list[int]) -> int:
    return next((top for top in RANGES if top >= max(given)), max(given))


def _pairs_of(value: int, top: int) -> list[Tree]:
    """Two numbers of 2 to `top` and a sign that make `value`."""
    found = []
    for a in range(2, top + 1):
        for b in range(2, top + 1):
            results = [("+", a + b), ("-", a - b), ("*", a * b), ("/", a // b if a % b == 0 else None)]
            found += [
                Tree(0, sign, (Tree(a), Tree(b)))
                for sign, result in results
                if result == value and (sign in "-/" or a <= b)
            ]
    return found


def _contracted(tree: Tree) -> Iterator[tuple[Tree, tuple[int, ...]]]:
    """The tree with one pair of numbers replaced by its whole value, and where."""
    for path, pair in _paths(tree):
        if len(pair.sides) == 2 and not any(side.sign for side in pair.sides):
            value = _value(pair)
            if value is not None and value.denominator == 1:
                yield _put(tree, path, Tree(int(value))), path


def _varied(
    rng: random.Random, reference: Reference, solution: str, elsewhere: bool
) -> dict[str, Any] | None:
    """One of all tasks that a contraction and an expansion lead to, on the same number or `elsewhere`."""
    tree, top = _tree(require_mode(name, reference, 1, solution)), _ceiling(reference["numbers"])
    if len(reference["numbers"]) > MAX_NUMBERS:
        return None
    witnesses = [
        _put(smaller, at, pair)
        for smaller, path in _contracted(tree)
        for at, leaf in _paths(smaller)
        if not leaf.sign and (at != path) == elsewhere
        for pair in _pairs_of(leaf.number, top)
    ]
    tasks = [_reference(_leaves(witness), reference["target"]) for witness in witnesses]
    tasks = [after for after in tasks if _failure(reference, after) is None]
    return rng.choice(tasks) if tasks else None


def _regroup(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _varied(rng, reference, solution, elsewhere=False)


def _contract_and_expand(rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
    return _varied(rng, reference, solution, elsewhere=True)


def _failure(before: Reference, after: Reference) -> str | None:
    """What can be seen without counting modes."""
    old, new = before["numbers"], after["numbers"]
    if before["target"] != after["target"] or len(old) != len(new):
        return "another target, or another count of numbers"
    if canonical_form(before) == canonical_form(after):
        return COPY
    if after["target"] in new:
        return "the target is one of the numbers"
    if min(new) < min(2, *old) or max(new) > _ceiling(old):
        return "a number outside the published range of the source"
    if len(set(new)) < len(new) and len(set(old)) == len(old):
        return "a number occurs twice"
    return None


def _check(most_new: int) -> Any:
    """The check of an operator that replaces at most so many numbers."""

    def check(before: Reference, solution: str, after: Reference) -> str | None:
        if mode_of(name, before, 1, solution) is None:
            return "the solution is not correct on the source task"
        failure = _failure(before, after)
        if failure is not None:
            return failure
        if (Counter(after["numbers"]) - Counter(before["numbers"])).total() > most_new:
            return "not the step of this operator: other numbers"
        try:
            validate(after, 1)
            answer = _carry(before, solution, after)
        except ValueError as error:
            return str(error)
        return None if mode_of(name, after, 1, answer) else "no listed answer is correct on the varied task"

    return check


def _carry(before: Reference, solution: str, after: Reference) -> str:
    """The first listed answer of the varied task: the source solution can't be right on it."""
    return next(iter(listed_modes(name, after, 1).values()))


operators: tuple[Operator, ...] = (
    Operator("regroup", "value", _regroup, _check(2), _carry),
    Operator("contract_and_expand", "value", _contract_and_expand, _check(3), _carry),
)


# Option removal ---------------------------------------------------------------------------------


def remove_option(
    reference: Reference, level: int, mode: str, answer: str | None = None
) -> dict[str, Any] | None:
    """Another number in the place of one, and the target that other modes then reach and `mode` doesn't.

    No rule of the domain forbids one expression, and with one number replaced hardly any expression
    keeps its value. So a mode is followed by its operations: it survives where the same operations, the
    number replaced in them, reach the new target. The step that keeps most modes is taken, then the one
    that moves number and target least. Modes that differ in grouping alone live and die together.

    Raises:
        ValueError: `mode` is not a mode of the task.
    """
    favourite = _tree(mode)
    written = f"\\boxed{{{_infix(favourite)}}}"
    if mode_of(name, reference, level, written) != mode:
        raise ValueError(f"mode: {mode!r} is not a mode of this task")
    texts = [written] if answer is None else [written, answer]
    others = [_tree(other) for other in listed_modes(name, reference, level) if other != mode]
    for step in sorted(_steps(reference, others, favourite)):
        after = _reference(_swapped(reference["numbers"], step.old, step.new), step.target)
        followed = f"\\boxed{{{_infix(_follow(favourite, step.old, step.new))}}}"
        if all(mode_of(name, after, level, text) is None for text in (*texts, followed)):
            return after
    return None


class Step(NamedTuple):
    """One number replaced, and the new target; ascending from the best step on."""

    lost: int
    distance: int
    old: int
    new: int
    target: int


def _steps(reference: Reference, others: list[Tree], favourite: Tree) -> Iterator[Step]:
    given, target = reference["numbers"], reference["target"]
    top = _ceiling(given)
    for old in sorted(set(given)):
        # Of equal numbers it would be open which one an expression means.
        fresh = [n for n in range(2, top + 1) if n not in given] if given.count(old) == 1 else []
        for new in fresh:
            reached = Counter(_value(_follow(tree, old, new)) for tree in others)
            for value, count in reached.items():
                if value is None or value.denominator != 1 or value == _value(_follow(favourite, old, new)):
                    continue
                if 0 < value <= max(target, 3 * top) and int(value) not in _swapped(given, old, new):
                    distance = abs(new - old) + abs(int(value) - target)
                    yield Step(len(others) - count, distance, old, new, int(value))


def _swapped(given: list[int], old: int, new: int) -> list[int]:
    return [new if number == old else number for number in given]


def _follow(tree: Tree, old: int, new: int) -> Tree:
    """The same operations with one number replaced."""
    if not tree.sign:
        return Tree(new if tree.number == old else tree.number)
    return Tree(0, tree.sign, tuple(_follow(side, old, new) for side in tree.sides))
