"""Countdown: references and answers."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from tests.reference.texts import BLANKS, edit, guesses, nonsense

# fmt: off
SOUP = (
    "0", "1", "2", "3", "9", "10", "03", "00", "007", ".", ".5", "3.", "3.0", "...", "+", "-", "*", "/", "**",
    "//", "(", ")", "()", " ", "\n", "\t", "\r", "\x0c", "\x0b", "\xa0", "\u3000", "=", "==", "2+3", "-",
    "*2", "(1)", ")(", "1", "* *", "/ /", ".. .", "+-", "--", "1 2", "(\n", "\n)", "1e5", "1_0", "0x1", "1j",
    ",", "^", "\\times", "÷", "×",
)
SYNTAX = (
    "0", "1", "2", "9", "10", "03", "00", ".", "+", "-", "*", "/", "**", "//", "(", ")", " ", "\n", "\t",
    "...", "2",
)
# fmt: on


def reference(rng: random.Random, level: int) -> dict[str, Any]:
    low, high = rng.choice(((2, 12), (2, 12), (1, 4), (0, 3), (8, 99), (1, 1000), (-3, 5)))
    numbers = [rng.randint(low, high) for _ in range(rng.choice((1, 2, 3, 3, 3, 4, 4, 5)))]
    target = rng.randint(-5, 40)
    for _ in range(20):
        value = _value(_tree(rng, list(numbers), 0.1))
        if value is not None and value.denominator == 1:
            target = int(value)
            break
    result: dict[str, Any] = {"verifier": "countdown", "numbers": numbers, "target": target}
    if rng.random() < 0.5:
        result |= {"num_completions": 8, "num_expressions": 8, "source": "test", "instance_id": "t-0"}
    return result


Tree = Any
"""An int, ("neg", tree), or (sign, tree, tree)."""


def _tree(rng: random.Random, numbers: list[int], signs: float) -> Tree:
    if len(numbers) == 1:
        tree: Tree = numbers[0]
    else:
        rng.shuffle(numbers)
        cut = rng.randint(1, len(numbers) - 1)
        tree = (rng.choice("+-*/"), _tree(rng, numbers[:cut], signs), _tree(rng, numbers[cut:], signs))
    return ("neg", tree) if rng.random() < signs else tree


def _value(tree: Tree) -> Fraction | None:
    if isinstance(tree, int):
        return Fraction(tree)
    values = [_value(child) for child in tree[1:]]
    if any(value is None for value in values):
        return None
    if tree[0] == "neg":
        return -values[0]
    left, right = values
    if tree[0] == "/":
        return left / right if right else None
    return {"+": left + right, "-": left - right, "*": left * right}[tree[0]]


def _reaching(rng: random.Random, numbers: list[int], target: int, signs: float) -> Tree:
    """A tree over the numbers, one that reaches the target when a few hundred tries find it."""
    tree: Tree = numbers[0]
    for _ in range(25):
        tree = _tree(rng, list(numbers), signs)
        if _value(tree) == target:
            break
    return tree


def _spell(rng: random.Random, tree: Tree, style: dict[str, str], tight: bool = False) -> str:
    if isinstance(tree, int):
        text = str(tree)
    elif tree[0] == "neg":
        text = f"{rng.choice(('-', '-', '- ', '-+', '+-'))}{_spell(rng, tree[1], style, True)}"
    else:
        blank = style["blank"]
        sides = [_spell(rng, child, style, style["parentheses"] != "few") for child in tree[1:]]
        text = f"{sides[0]}{blank}{style[tree[0]]}{blank}{sides[1]}"
    wrap = tight and not isinstance(tree, int)
    return f"{style['open']}{text}{style['close']}" if wrap or rng.random() < 0.03 else text


def spell(rng: random.Random, tree: Tree) -> str:
    """A tree in one of many spellings, some of which no parser accepts."""
    plain = rng.random() < 0.75
    blank = rng.choice(("", "", " ")) if plain else rng.choice(BLANKS)
    return _spell(
        rng,
        tree,
        {
            "+": "+" if plain else rng.choice(("+", "+", "＋", "+ +", "++")),
            "-": "-" if plain else rng.choice(("-", "-", "−", "–", "--")),
            "*": rng.choice("**×")
            if plain
            else rng.choice(("\\times", "\\times ", "\\cdot ", "×", "x", "·", "**", "^")),
            "/": "/" if plain else rng.choice(("÷", "\\div", "\\div ", "//", "∕", ":")),
            "blank": blank,
            "open": "(" if plain else rng.choice(("(", "\\left(", "[", "{", "((")),
            "close": ")" if plain else rng.choice((")", "\\right)", "]", "}", "))")),
            "parentheses": rng.choice(("all", "all", "few")),
        },
    )


def soup(rng: random.Random, pieces: tuple[str, ...] = SYNTAX, most: int = 9) -> str:
    return "".join(rng.choice(pieces) for _ in range(rng.randint(1, most)))


def _large(rng: random.Random) -> str:
    """Long or deep text, at limits where they stand."""
    size = rng.choice((5, 60, 150, 198, 199, 200, 201, 400, 700, 900, 980))
    return rng.choice(
        (
            lambda: "+".join(["1"] * size),
            lambda: "-" * size + "18",
            lambda: "(" * size + "3" + ")" * size,
            lambda: "3+(" * size + "6" + ")" * size,
            lambda: "9" * rng.choice((4_299, 4_300, 4_301, 5_000)) + "-1",
            lambda: "0" * 5_000 + "+3",
            lambda: "1/0+" + "9" * 4_301,
            lambda: "3*" * size + "6",
            lambda: "=".join(["3+6"] * size + ["3+6+9"]),
            lambda: "2**" * min(size, 90) + "2",
            lambda: "(1)" * min(size, 90),
        )
    )()


def answer(rng: random.Random, reference: dict[str, Any], level: int) -> str:
    numbers, target = reference.get("numbers"), reference.get("target")
    usable = isinstance(numbers, list) and 0 < len(numbers) < 8 and all(type(v) is int for v in numbers)
    numbers = list(numbers) if usable else [3, 6, 9]
    target = target if type(target) is int else 18
    kind = rng.randrange(14)
    tree = _reaching(rng, numbers, target, rng.choice((0, 0, 0.15)))
    if kind < 4:
        return spell(rng, tree)
    if kind == 4:
        return spell(rng, _tree(rng, numbers, 0.1))
    if kind == 5:
        return guesses(
            rng, [spell(rng, _tree(rng, numbers, 0)), spell(rng, tree), str(target)][: rng.randint(1, 3)]
        )
    if kind == 6:
        sides = [spell(rng, tree), rng.choice((str(target), str(target + 1), "x", "", "1/0", "?", "2.0"))]
        rng.shuffle(sides)
        return rng.choice((" = ", "=", "==", "=\n")).join(sides)
    if kind == 7:
        return spell(rng, _tree(rng, [*numbers, rng.choice(numbers)][rng.randint(0, 1) :], 0))
    if kind < 10:
        return edit(rng, spell(rng, tree), SOUP, rng.randint(1, 3))
    if kind == 10:
        return soup(rng, rng.choice((SYNTAX, SOUP)))
    if kind == 11:
        parts = [soup(rng), spell(rng, tree), "1/0", "2.0+1/0", "1/0+2.0", "(1/(3-3))", "()", "..."]
        return "=".join(rng.sample(parts, rng.randint(1, 4)))
    if kind == 12:
        return nonsense(rng, SOUP)
    return _large(rng)
