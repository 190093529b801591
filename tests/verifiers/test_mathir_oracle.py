"""MathIR normal forms against sympy: same reduced fraction, same canonical text."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from modebench.verifiers import mathir, rational
from modebench.verifiers.mathir import Expression
from tests.reference.mathir_pairs import cancelling, expression, symbols

sympy = pytest.importorskip("sympy")

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def to_sympy(node: Expression) -> Any:
    if node.op == "sym":
        return sympy.Symbol(node.symbol)
    parts = [to_sympy(child) for child in node.children]
    if node.op == "neg":
        return -parts[0]
    left, right = parts
    return {"add": lambda: left + right, "sub": lambda: left - right, "mul": lambda: left * right}.get(
        node.op, lambda: left / right
    )()


class PowerError(Exception):
    """A power other than −1, which has no text."""


def text_of(value: Any) -> str:
    """Canonical text of a sympy expression, by walking its tree."""
    if value.is_Symbol:
        return str(value)
    if value.is_Integer:
        return str(int(value))
    if value.is_Rational:
        return f"rat({int(value.p)},{int(value.q)})"
    if value.is_Pow and value.exp == -1:
        return f"inv({text_of(value.base)})"
    if value.is_Add or value.is_Mul:
        parts = sorted(text_of(part) for part in value.args)
        return f"{'add' if value.is_Add else 'mul'}({','.join(parts)})"
    raise PowerError


def divides_by_nothing(node: Expression, names: tuple[str, ...]) -> bool:
    """Whether some divisor is zero whatever the symbols stand for."""
    if node.op == "div" and not rational_of(node.children[1], names).numerator:
        return True
    return any(divides_by_nothing(child, names) for child in node.children)


def rational_of(node: Expression, names: tuple[str, ...]) -> rational.Rational:
    return mathir.build(node, names)


def random_expression(rng: random.Random) -> str:
    names = "".join(rng.sample(LETTERS, rng.randint(1, 5)))
    kind = rng.randrange(6)
    if kind == 0:
        return cancelling(rng, names)
    if kind == 1:
        op, sides = rng.choice(("add", "sub", "mul", "div")), [cancelling(rng, names) for _ in range(2)]
        return f"{op}({','.join(sides)})"
    if kind == 2:
        common = expression(rng, names, 1, "as")
        return f"div(mul({common},{expression(rng, names, 1)}),mul({expression(rng, names, 1)},{common}))"
    return expression(rng, names, rng.choice((2, 3, 3, 4)), rng.choice(("asmd", "asmdn", "asd", "md", "amd")))


def compare(seed: int, count: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for index in range(count):
        text = random_expression(random.Random(f"{seed}/{index}"))
        names = rational.sort_symbols(sorted(symbols(text)))
        tree = mathir.parse_expression(text, names, max_nodes=1_000)
        if divides_by_nothing(tree, names):
            found["divides by zero"] += 1
            continue
        form = rational.cancel(rational_of(tree, names))
        try:
            wanted = text_of(sympy.cancel(to_sympy(tree)))
        except PowerError:
            wanted = None
        assert (None if form is None else rational.text(form, names)) == wanted, text
        found["power" if form is None else "form"] += 1
    return found


def test_normal_forms_equal_sympy() -> None:
    found = compare(seed=1, count=500)
    assert found["form"] > 200
    assert found["power"] > 30


@pytest.mark.slow
def test_normal_forms_equal_sympy_at_length() -> None:
    assert compare(seed=2, count=12_000)["form"] > 6_000


def check_same_value(seed: int, count: int) -> int:
    """A normal form has the value of the expression, wherever both are defined."""
    checked = 0
    for index in range(count):
        rng = random.Random(f"value/{seed}/{index}")
        text = random_expression(rng)
        names = rational.sort_symbols(sorted(symbols(text)))
        tree = mathir.parse_expression(text, names, max_nodes=1_000)
        if divides_by_nothing(tree, names):
            continue
        form = rational.cancel(rational_of(tree, names))
        values = {name: Fraction(rng.randint(-50, 50), rng.randint(1, 7)) for name in names}
        plain = evaluate(tree, values)
        if form is None or plain is None:
            continue
        above, below = (evaluate_polynomial(part, names, values) for part in form)
        assert below != 0
        assert above / below == plain, text
        checked += 1
    return checked


def evaluate(node: Expression, values: dict[str, Fraction]) -> Fraction | None:
    if node.op == "sym":
        return values[node.symbol]
    parts = [evaluate(child, values) for child in node.children]
    if None in parts:
        return None
    if node.op == "neg":
        return -parts[0]  # type: ignore[operator]
    left, right = (part for part in parts if part is not None)
    if node.op == "div":
        return left / right if right else None
    return {"add": left + right, "sub": left - right, "mul": left * right}[node.op]


def evaluate_polynomial(
    polynomial: rational.Polynomial, names: tuple[str, ...], values: dict[str, Fraction]
) -> Fraction:
    total = Fraction(0)
    for monomial, coefficient in polynomial.items():
        term = Fraction(coefficient)
        for name, exponent in zip(names, monomial, strict=True):
            term *= values[name] ** exponent
        total += term
    return total


def test_normal_forms_keep_the_value() -> None:
    assert check_same_value(seed=1, count=1_500) > 600


def test_normal_forms_are_fixed_points_and_meet_their_conditions() -> None:
    """Normalising twice changes nothing; no exponent above 1; leading coefficient below positive."""
    for index in range(1_000):
        text = random_expression(random.Random(f"fixed/{index}"))
        names = rational.sort_symbols(sorted(symbols(text)))
        form = rational.cancel(rational_of(mathir.parse_expression(text, names, max_nodes=1_000), names))
        if form is not None:
            assert rational.cancel(form) == form
            assert form.denominator[max(form.denominator)] > 0
            assert all(exponent <= 1 for part in form for monomial in part for exponent in monomial)
