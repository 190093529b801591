"""Countdown expressions read by CPython's parser and computed with fractions, against our own parser."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

from modebench.verifiers import countdown, verify
from tests.reference.countdown_pairs import SOUP, SYNTAX, answer, reference, soup

NAMES = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
DEEP = ("(", ")", "1", "-", "+", "*", "2", "/", "\n", " ")


class UnsupportedError(Exception):
    """What the evaluator of the published contract does not take."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tree_of(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def key_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value)
    if isinstance(node, ast.UnaryOp):
        inside = key_of(node.operand)
        return inside if isinstance(node.op, ast.UAdd) else f"neg({inside})"
    if isinstance(node, ast.BinOp) and type(node.op) in NAMES:
        name, sides = NAMES[type(node.op)], [key_of(node.left), key_of(node.right)]
        return f"{name}({','.join(sorted(sides) if name in ('add', 'mul') else sides)})"
    raise UnsupportedError


def value_of(node: ast.expr, used: list[int]) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        used.append(node.value)
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp):
        value = value_of(node.operand, used)
        return value if isinstance(node.op, ast.UAdd) else -value
    if isinstance(node, ast.BinOp) and type(node.op) in NAMES:
        left, right = value_of(node.left, used), value_of(node.right, used)
        if isinstance(node.op, ast.Div):
            return left / right
        return {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)]
    raise UnsupportedError


def judged(candidate: str, numbers: list[int], target: int) -> tuple[str, str | None]:
    """The contract's verdict on a candidate, written from its prose."""
    text = candidate.strip()
    for old, new in (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("÷", "/"), ("×", "*"), ("^", "**")):
        text = text.replace(old, new)
    text = re.sub(r"^\s*(?:expression|answer)\s*(?:is|=|:)\s*", "", text, flags=re.IGNORECASE).strip()
    evaluable = False
    for part in filter(None, map(str.strip, text.split("="))):
        tree = tree_of(part) if re.fullmatch(r"[0-9+\-*/().\s*]+", part) else None
        if tree is None:
            continue
        used: list[int] = []
        try:
            value = value_of(tree, used)
        except UnsupportedError:
            continue
        except ZeroDivisionError:
            evaluable = True
            continue
        evaluable = True
        if value == target and sorted(used) == sorted(numbers):
            return "correct", f"countdown:{key_of(tree)}"
    return ("incorrect" if evaluable else "malformed"), None


def check_syntax(seed: int, count: int) -> Counter[str]:
    """Acceptance and tree of random texts over the alphabet of expressions."""
    found: Counter[str] = Counter()
    for index in range(count):
        rng = random.Random(f"syntax/{seed}/{index}")
        text = soup(rng, rng.choice((SYNTAX, SYNTAX, DEEP)), rng.choice((5, 9, 14))).strip()
        tree, ours = (tree_of(text), countdown.parse(text)) if text else (None, None)
        assert (tree is None) == (ours is None), text
        if tree is None or ours is None:
            found["refused"] += 1
            continue
        try:
            key = key_of(tree)
        except UnsupportedError:
            found["unsupported"] += 1
            assert not ours.supported, text
        else:
            found["supported"] += 1
            assert ours.supported, text
            assert countdown.key(ours) == key, text
    return found


def test_syntax_equals_cpython() -> None:
    found = check_syntax(seed=1, count=8_000)
    assert min(found[name] for name in ("refused", "unsupported", "supported")) > 200


@pytest.mark.slow
def test_syntax_equals_cpython_at_length() -> None:
    assert check_syntax(seed=2, count=400_000).total() == 400_000


def check_verdicts(seed: int, count: int) -> Counter[str]:
    statuses: Counter[str] = Counter()
    for index in range(count):
        rng = random.Random(f"verdict/{seed}/{index}")
        task = reference(rng, 1)
        candidate = answer(rng, task, 1) if rng.random() < 0.8 else soup(rng, SOUP, 12)
        if len(candidate) > 600 or "{" in candidate or "}" in candidate or "\\boxed" in candidate:
            continue
        wanted = judged(candidate, task["numbers"], task["target"]) if candidate else ("malformed", None)
        verdict = verify({"domain": "countdown", "level": 1, "reference": task}, f"\\boxed{{{candidate}}}")
        assert (verdict.status, verdict.mode) == wanted, (task["numbers"], task["target"], candidate)
        statuses[verdict.status] += 1
    return statuses


def test_verdicts_equal_cpython_with_fractions() -> None:
    statuses = check_verdicts(seed=1, count=1_500)
    assert min(statuses[name] for name in ("correct", "incorrect", "malformed")) > 150


@pytest.mark.slow
def test_verdicts_equal_cpython_with_fractions_at_length() -> None:
    assert check_verdicts(seed=2, count=60_000).total() > 40_000


@pytest.mark.parametrize("depth", [2, 100, 199, 200, 201, 300])
@pytest.mark.parametrize("inside", ["3", "3+6", "()", "-3"])
def test_nested_parentheses_equal_cpython(depth: int, inside: str) -> None:
    text = "(" * depth + inside + ")" * depth
    assert (countdown.parse(text) is None) == (tree_of(text) is None)


@pytest.mark.parametrize("digits", [1, 640, 4_299, 4_300, 4_301, 9_000])
@pytest.mark.parametrize("shape", ["{}", "-{}", "3*{}", "{}.5", "({})", "0/{}"])
@pytest.mark.parametrize("digit", ["0", "9"])
def test_long_literals_equal_cpython(digits: int, shape: str, digit: str) -> None:
    text = shape.format(digit * digits)
    assert (countdown.parse(text) is None) == (tree_of(text) is None)


def test_trees_are_read_to_a_fixed_depth() -> None:
    """Not to whatever depth the interpreter's stack allows."""
    limit = countdown.MAX_TREE_DEPTH
    for read, text in (
        (True, "-" * (limit - 1) + "3"),
        (False, "-" * limit + "3"),
        (True, "+".join(["1"] * limit)),
        (False, "+".join(["1"] * (limit + 1))),
        (True, "-" * (limit - 3) + "3+6+9"),
        (False, "-" * (limit - 2) + "3+6+9"),
        (False, "-" * 100_000 + "3"),
        (False, "+".join(["1"] * 60_000)),
    ):
        assert (countdown.parse(text) is not None) == read, (text[:20], len(text))
