"""Countdown, `clean`: one expression, counted once however it is spelled.

The mode is an algebraic normal form. Sums are flattened into signed terms and products into factors and
divisors; a minus of a factor goes to its product, a minus of a sum to its terms, and a sum that is a
factor is turned so that its value is positive (its minus goes to the product). Nothing is multiplied out
and nothing is computed, so ``2*(3+4)`` keeps its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from modebench.verifiers.clean.extraction import plain_answer
from modebench.verifiers.countdown import Expression, Spec, compile_reference, parse
from modebench.verifiers.verdict import Verdict, correct, incorrect, malformed

PREFIX = "countdown:clean:"
_SPARE_INTEGERS = 8
_BLANKS = re.compile(r"\s+")
_CLAIM = re.compile(r"-?[0-9]+")
_OPPOSITE = {"+": "-", "-": "+"}
_INVERSE = {"*": "/", "/": "*"}


class Core(NamedTuple):
    """An expression in normal form, its sign apart.

    Attributes:
        text: canonical text.
        value: exact value.
        parts: signed terms of a sum (``+``, ``-``), factors and divisors of a product (``*``, ``/``),
            in the order of their texts; empty for an integer.
        symmetric: its negation is the same form, as of ``9-9``, so a sign on it says nothing.
    """

    text: str
    value: Fraction
    parts: tuple[tuple[str, Core], ...] = ()
    symmetric: bool = False

    @property
    def kind(self) -> str:
        return self.text.partition("(")[0] if self.parts else "int"


class Form(NamedTuple):
    """A core and whether it is negated; a sum never is, its terms are."""

    negative: bool
    core: Core

    @property
    def value(self) -> Fraction:
        return -self.core.value if self.negative else self.core.value

    @property
    def text(self) -> str:
        return f"-{self.core.text}" if self.negative else self.core.text


def judge(spec: Spec, response: str, truncated: bool = False) -> Verdict:
    """The `clean` verdict on a response."""
    answer = plain_answer(response, truncated)
    if answer is None:
        return malformed("no answer found")
    text, claim = _claim(answer)
    expression = None if text is None else parse(_BLANKS.sub(" ", text).strip())
    if expression is None or not expression.supported or "pos" in expression.code:
        return malformed("not one arithmetic expression")
    if len(expression.literals) > 2 * len(spec.numbers) + _SPARE_INTEGERS:
        return malformed("far more integers than were given")
    if claim is not None and claim != str(spec.target):
        return incorrect(f"claims a value other than {spec.target}")
    if sorted(expression.literals) != spec.digits:
        return incorrect("does not use each number exactly once")
    form = normal_form(expression)
    if form is None:
        return incorrect("divides by zero")
    if form.value != spec.target:
        return incorrect("does not reach the target")
    return correct(PREFIX + form.text)


def _claim(answer: str) -> tuple[str | None, str | None]:
    """The expression and the integer that stands beside it after or before ``=``; (None, None) for more.

    An integer stays text: the interpreter may be set to refuse long ones.
    """
    sides = [side.strip() for side in answer.split("=")]
    if len(sides) == 1:
        return answer, None
    if len(sides) == 2:
        for text, value in (sides, sides[::-1]):
            if _CLAIM.fullmatch(value) and text:
                digits = value.lstrip("-0") or "0"
                return text, f"-{digits}" if value[0] == "-" and digits != "0" else digits
    return None, None


def normal_form(expression: Expression) -> Form | None:
    """The normal form of a supported expression; None where it divides by zero.

    >>> normal_form(parse("3--6+9")).text
    'sum(+3,+6,+9)'
    >>> normal_form(parse("-(4+3)*-2")).text
    'prod(*2,*sum(+3,+4))'
    """
    stack: list[Form] = []
    for item in expression.code:
        if item == "neg":
            stack.append(negated(stack.pop()))
        elif item in "+-*/":
            right, left = stack.pop(), stack.pop()
            joined = join(item, left, right)
            if joined is None:
                return None
            stack.append(joined)
        else:
            stack.append(integer(int(item)))
    return stack.pop()


def integer(value: int) -> Form:
    """The form of an integer literal."""
    return Form(False, Core(str(value), Fraction(value)))


def negated(form: Form) -> Form:
    """The form with the opposite value, spelled with one more unary minus."""
    if form.core.kind == "sum":
        return Form(False, _core("sum", _negated_terms(form.core.parts)))
    return _form(not form.negative, form.core)


def join(operator: str, left: Form, right: Form) -> Form | None:
    """The form of a binary operation; None for a division by zero."""
    if operator in "+-":
        terms = _terms(left) + (_terms(right) if operator == "+" else _negated_terms(_terms(right)))
        return Form(False, _core("sum", terms))
    if operator == "/" and right.value == 0:
        return None
    left_negative, factors = _factors(left)
    right_negative, others = _factors(right)
    factors += others if operator == "*" else tuple((_INVERSE[mark], core) for mark, core in others)
    return _form(left_negative != right_negative, _core("prod", factors))


Parts = tuple[tuple[str, Core], ...]


def _form(negative: bool, core: Core) -> Form:
    return Form(negative and not core.symmetric, core)


def _negated_terms(parts: Parts) -> Parts:
    return tuple((mark if core.symmetric else _OPPOSITE[mark], core) for mark, core in parts)


def _terms(form: Form) -> Parts:
    return form.core.parts if form.core.kind == "sum" else (("-" if form.negative else "+", form.core),)


def _factors(form: Form) -> tuple[bool, Parts]:
    """Sign and factors; a sum is turned towards a positive value, one of value 0 towards its first text."""
    negative, core = form
    if core.kind == "prod":
        return negative, core.parts
    if core.kind == "sum":
        turned = negated(form).core
        if core.value < 0 or (core.value == 0 and turned.text < core.text):
            return True, (("*", turned),)
    return negative, (("*", core),)


def _core(kind: str, parts: Parts) -> Core:
    parts = _sorted(parts)
    text = _text(kind, parts)
    value = Fraction(0) if kind == "sum" else Fraction(1)
    for mark, core in parts:
        if kind == "sum":
            value += core.value if mark == "+" else -core.value
        else:
            value = value * core.value if mark == "*" else value / core.value
    if kind == "sum":
        symmetric = value == 0 and _text(kind, _sorted(_negated_terms(parts))) == text
    else:
        symmetric = any(core.symmetric for _, core in parts)
    return Core(text, value, parts, symmetric)


def _sorted(parts: Parts) -> Parts:
    return tuple(sorted(parts, key=lambda part: part[0] + part[1].text))


def _text(kind: str, parts: Parts) -> str:
    return f"{kind}({','.join(mark + core.text for mark, core in parts)})"


def clean_modes(reference: Mapping[str, Any], level: int) -> set[str]:
    """Every clean mode of a task, by building all forms over its numbers, unary minus included."""
    spec = compile_reference(reference, level)
    return {PREFIX + form.text for form in _forms(spec.numbers) if form.value == spec.target}


@lru_cache(maxsize=256)
def _forms(numbers: tuple[int, ...]) -> frozenset[Form]:
    """Every form that uses exactly these numbers, and its negation."""
    if len(numbers) == 1:
        [number] = numbers
        # A literal has no sign, so a negative number cannot be written.
        return frozenset({integer(number), negated(integer(number))}) if number >= 0 else frozenset()
    found: set[Form] = set()
    for left, right in _splits(numbers):
        for p, q in product(_forms(left), _forms(right)):
            for form in (*map(join, "+-*/", (p,) * 4, (q,) * 4), join("-", q, p), join("/", q, p)):
                if form is not None:
                    found |= {form, negated(form)}
    return frozenset(found)


def _splits(numbers: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Both parts of every way to part the numbers in two; a part holding the first number comes first."""
    for chosen in range(1, 1 << (len(numbers) - 1)):
        right = tuple(number for index, number in enumerate(numbers[1:]) if chosen >> index & 1)
        left = (numbers[0], *(n for index, n in enumerate(numbers[1:]) if not chosen >> index & 1))
        yield left, right
