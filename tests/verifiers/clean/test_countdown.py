"""Clean modes of Countdown: finite, listable, and the same for every spelling."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations

from modebench.verifiers.clean.countdown import clean_modes
from tests.verifiers.clean.vectors import clean, solutions

Tree = int | tuple[str, "Tree", "Tree"] | tuple[str, "Tree"]


def test_listed_published_modes_map_onto_the_clean_modes() -> None:
    tasks = 0
    for task, listed in solutions("countdown", 200):
        image = {clean(task, answer).mode for _, answer in listed}
        assert image == clean_modes(task.reference, 1), task.id
        assert None not in image
        assert len(image) <= len(listed) == task.modes
        tasks += 1
    assert tasks == 200


def random_tree(rng: random.Random, numbers: list[int]) -> Tree:
    if rng.random() < 0.15:
        return ("neg", random_tree(rng, numbers))
    if len(numbers) == 1:
        return numbers[0]
    cut = rng.randrange(1, len(numbers))
    return (rng.choice("+-*/"), random_tree(rng, numbers[:cut]), random_tree(rng, numbers[cut:]))


def text(tree: Tree) -> str:
    if isinstance(tree, int):
        return str(tree)
    if len(tree) == 2:
        return f"(-{text(tree[1])})"
    return f"({text(tree[1])}{tree[0]}{text(tree[2])})"


def value(tree: Tree) -> Fraction | None:
    if isinstance(tree, int):
        return Fraction(tree)
    values = [value(child) for child in tree[1:]]  # type: ignore[arg-type]
    if None in values:
        return None
    if len(tree) == 2:
        return -values[0]  # type: ignore[operator]
    left, right = values
    if tree[0] == "/":
        return left / right if right else None  # type: ignore[operator]
    return {"+": left + right, "-": left - right, "*": left * right}[tree[0]]  # type: ignore[operator]


def respelled(rng: random.Random, tree: Tree) -> Tree:
    """The same solution with one rule used somewhere: swap, regroup, move or double a minus."""
    if isinstance(tree, int) or rng.random() < 0.4:
        return spelled_at_root(rng, tree)
    at = rng.randrange(1, len(tree))
    return tuple(respelled(rng, part) if i == at else part for i, part in enumerate(tree))  # type: ignore


def spelled_at_root(rng: random.Random, tree: Tree) -> Tree:
    found: list[Tree] = [("neg", ("neg", tree))]
    match tree:
        case ("neg", ("neg", a)):
            found.append(a)
        case ("neg", (("*" | "/") as sign, a, b)):
            found += [(sign, ("neg", a), b), (sign, a, ("neg", b))]
        case ("neg", ("+", a, b)):
            found.append(("-", ("neg", a), b))
        case ("neg", ("-", a, b)):
            found.append(("-", b, a))
    match tree:
        case ("+", a, b):
            found += [("+", b, a), ("-", a, ("neg", b))]
        case ("*", a, b):
            found += [("*", b, a), ("*", ("neg", a), ("neg", b)), ("neg", ("*", ("neg", a), b))]
        case ("-", a, b):
            found += [("neg", ("-", b, a)), ("+", a, ("neg", b)), ("+", ("neg", b), a)]
        case ("/", a, b):
            found.append(("neg", ("/", a, ("neg", b))))
    match tree:
        case (("+" | "*") as sign, (inner, a, b), c) if inner == sign:
            found.append((sign, a, (sign, b, c)))
        case ("-", a, ("+", b, c)):
            found.append(("-", ("-", a, b), c))
        case ("-", a, ("-", b, c)):
            found.append(("+", ("-", a, b), c))
        case ("/", ("/", a, b), c):
            found.append(("/", a, ("*", b, c)))
        case ("/", a, ("/", b, c)):
            found.append(("/", ("*", a, c), b))
        case ("*", a, ("/", b, c)):
            found.append(("/", ("*", a, b), c))
    return rng.choice(found)


def reference(numbers: list[int], target: Fraction) -> dict[str, object]:
    return {
        "domain": "countdown",
        "level": 2,
        "reference": {"verifier": "countdown", "numbers": numbers, "target": int(target)},
    }


def test_respelling_never_changes_the_mode() -> None:
    rng = random.Random(11)
    checked = 0
    while checked < 250:
        numbers = [rng.randrange(0, 13) for _ in range(rng.randrange(2, 7))]
        tree = random_tree(rng, numbers)
        target = value(tree)
        if target is None or target.denominator != 1:
            continue
        task = reference(numbers, target)
        first = clean(task, text(tree))
        assert first.status == "correct"
        for _ in range(12):
            tree = respelled(rng, tree)
            assert clean(task, text(tree)) == first, text(tree)
        checked += 1


def test_random_expressions_have_listed_modes() -> None:
    rng = random.Random(12)
    found = 0
    while found < 300:
        numbers = [rng.randrange(0, 13) for _ in range(rng.randrange(1, 4))]
        tree = random_tree(rng, numbers)
        target = value(tree)
        if target is None or target.denominator != 1:
            continue
        found += 1
        task = reference(numbers, target)
        assert clean(task, text(tree)).mode in clean_modes(task["reference"], 2)  # type: ignore[arg-type]


def test_different_algebra_is_another_mode() -> None:
    """Multiplying out, computing and cancelling are not spelling."""
    pairs = [
        ([2, 2, 3, 4], 14, "2*(3+4)+2-2", "2*3+2*4"),
        ([1, 2, 3], 6, "1*2*3", "1+2+3"),
        ([1, 2, 3], 6, "2*3*1", "2*3/1"),
        ([2, 2, 5], 5, "5+2-2", "5*2/2"),
        ([0, 3, 5], 8, "3+5+0", "3+5-0"),
        ([1, 4, 6], 6, "(6*1+4)-4", "6"),
        ([2, 3, 4, 10], 10, "10+2-(2)", "10"),
    ]
    for numbers, target, one, other in pairs:
        task = reference(numbers, Fraction(target))
        verdicts = clean(task, one), clean(task, other)
        assert verdicts[0].mode is None or verdicts[0].mode != verdicts[1].mode
    sharp = reference([2, 2, 3, 4], Fraction(14))
    assert clean(sharp, "2*3+2*4").mode == "countdown:clean:sum(+prod(*2,*3),+prod(*2,*4))"
    assert clean(sharp, "2*(3+4+2-2)").status == "incorrect"


def test_every_order_and_grouping_of_a_sum_is_one_mode() -> None:
    task = reference([1, 2, 3, 4], Fraction(10))
    shapes = ("{}+{}+{}+{}", "({}+{})+({}+{})", "{}+({}+({}+{}))", "({}+({}+{}))+{}", "-(-{}-{})-(-{}-{})")
    modes = {
        clean(task, shape.format(*order)).mode for order in permutations([1, 2, 3, 4]) for shape in shapes
    }
    assert modes == {"countdown:clean:sum(+1,+2,+3,+4)"}
