"""Exact rational functions over named symbols, and their canonical text.

The normal form is that of the published MathIR states (arXiv:2610.11064, package modebench 0.4.0):
P/Q with integer polynomials, common factors (the integer content included) cancelled, the leading
coefficient of Q positive in lexicographic order with x > y > z > p > … > w > a > … > o. Powers
have no text: a state with any exponent of 2 or more is None.

A polynomial is a dict from exponent tuple (one entry a symbol, in priority order) to a nonzero int.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

Monomial = tuple[int, ...]
Polynomial = dict[Monomial, int]

SYMBOL_ORDER = "xyzpqrstuvwabcdefghijklmno"


def sort_symbols(names: Sequence[str]) -> tuple[str, ...]:
    """Single-letter symbols in priority order."""
    return tuple(sorted(names, key=SYMBOL_ORDER.index))


class Rational(NamedTuple):
    """A quotient of integer polynomials, not necessarily in normal form."""

    numerator: Polynomial
    denominator: Polynomial


def constant(value: int, size: int) -> Polynomial:
    return {(0,) * size: value} if value else {}


def variable(index: int, size: int) -> Rational:
    """The symbol number `index` of `size` symbols."""
    return Rational({tuple(int(i == index) for i in range(size)): 1}, constant(1, size))


def combine(sign: str, left: Rational, right: Rational) -> Rational:
    """left `sign` right for add, sub, mul, div; not cancelled. The divisor is not zero."""
    (a, b), (c, d) = left, right
    if sign == "mul":
        return Rational(multiply(a, c), multiply(b, d))
    if sign == "div":
        return Rational(multiply(a, d), multiply(b, c))
    if b == d:
        return Rational(add(a, c, 1 if sign == "add" else -1), b)
    return Rational(add(multiply(a, d), multiply(c, b), 1 if sign == "add" else -1), multiply(b, d))


def add(p: Polynomial, q: Polynomial, sign: int) -> Polynomial:
    """p + sign·q."""
    result = dict(p)
    for monomial, coefficient in q.items():
        total = result.get(monomial, 0) + sign * coefficient
        if total:
            result[monomial] = total
        else:
            del result[monomial]
    return result


def multiply(p: Polynomial, q: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for m, a in p.items():
        for n, b in q.items():
            monomial = tuple([i + j for i, j in zip(m, n, strict=True)])
            result[monomial] = result.get(monomial, 0) + a * b
    return {monomial: coefficient for monomial, coefficient in result.items() if coefficient}


def cancel(value: Rational) -> Rational | None:
    """Normal form, or None where the denominator is zero or an exponent of 2 or more remains."""
    p, q = value
    if not q:
        return None
    if not p:
        return Rational({}, constant(1, len(next(iter(q)))))
    common = gcd(p, q)
    if q[max(q)] < 0:
        common = {monomial: -coefficient for monomial, coefficient in common.items()}
    p, q = divide(p, common), divide(q, common)
    if any(exponent > 1 for polynomial in (p, q) for monomial in polynomial for exponent in monomial):
        return None
    return Rational(p, q)


def divide(p: Polynomial, q: Polynomial) -> Polynomial:
    """p / q where q divides p exactly."""
    lead = max(q)
    coefficient = q[lead]
    if len(q) == 1:
        return {tuple([i - j for i, j in zip(m, lead, strict=True)]): c // coefficient for m, c in p.items()}
    rest, quotient = dict(p), {}
    while rest:
        top = max(rest)
        monomial = tuple([i - j for i, j in zip(top, lead, strict=True)])
        factor = rest[top] // coefficient
        quotient[monomial] = factor
        rest = add(rest, multiply({monomial: factor}, q), -1)
    return quotient


def gcd(p: Polynomial, q: Polynomial) -> Polynomial:
    """Greatest common divisor over the integers, content included, leading coefficient positive.

    Primitive Euclid in one variable at a time (Knuth, TAOCP 2, 4.6.1, Algorithm E); the inputs have
    a few dozen terms.
    """
    if not p or not q:
        return _positive(p or q)
    size = len(next(iter(p)))
    content = math.gcd(*p.values(), *q.values())
    shared = tuple(min(m[i] for f in (p, q) for m in f) for i in range(size))
    if len(p) == 1 or len(q) == 1:
        return {shared: content}
    index = _main_variable(p, q, size)
    if index is None:
        return {shared: content}
    return _positive(_gcd_in(p, q, index))


def _positive(p: Polynomial) -> Polynomial:
    if p and p[max(p)] < 0:
        return {monomial: -coefficient for monomial, coefficient in p.items()}
    return p


def _main_variable(p: Polynomial, q: Polynomial, size: int) -> int | None:
    """The variable of least degree that occurs in both; None where no variable does."""
    best: tuple[int, int] | None = None
    for i in range(size):
        degrees = max(m[i] for m in p), max(m[i] for m in q)
        if min(degrees) and (best is None or max(degrees) < best[0]):
            best = (max(degrees), i)
    return None if best is None else best[1]


def _gcd_in(p: Polynomial, q: Polynomial, index: int) -> Polynomial:
    content_p, content_q = _content(p, index), _content(q, index)
    content = gcd(content_p, content_q)
    a, b = divide(p, content_p), divide(q, content_q)
    if _degree(a, index) < _degree(b, index):
        a, b = b, a
    while b:
        if _degree(b, index) == 0:
            return content
        a, b = b, _remainder(a, b, index)
        if b:
            b = divide(b, _content(b, index))
    return multiply(content, a)


def _degree(p: Polynomial, index: int) -> int:
    return max(monomial[index] for monomial in p)


def _coefficients(p: Polynomial, index: int) -> dict[int, Polynomial]:
    """p as a polynomial in one variable, its coefficients free of that variable."""
    result: dict[int, Polynomial] = {}
    for monomial, coefficient in p.items():
        rest = (*monomial[:index], 0, *monomial[index + 1 :])
        result.setdefault(monomial[index], {})[rest] = coefficient
    return result


def _content(p: Polynomial, index: int) -> Polynomial:
    """Common divisor of the coefficients of p in one variable, integers included."""
    result: Polynomial = {}
    for coefficient in sorted(_coefficients(p, index).values(), key=len):
        result = gcd(result, coefficient)
        if len(result) == 1 and abs(next(iter(result.values()))) == 1 and not any(next(iter(result))):
            break
    return result


def _remainder(p: Polynomial, q: Polynomial, index: int) -> Polynomial:
    """Pseudo-remainder of p by q in one variable."""
    degree = _degree(q, index)
    lead = _coefficients(q, index)[degree]
    while p and (power := _degree(p, index)) >= degree:
        top = _coefficients(p, index)[power]
        shift = {(*m[:index], m[index] + power - degree, *m[index + 1 :]): c for m, c in top.items()}
        p = add(multiply(p, lead), multiply(q, shift), -1)
    return p


def text(value: Rational, names: Sequence[str]) -> str:
    """The canonical text of a normal form."""
    p, q = value
    if len(q) == 1:
        [(monomial, coefficient)] = q.items()
        below = [f"inv({name})" for name, exponent in zip(names, monomial, strict=True) if exponent]
    else:
        coefficient, below = 1, [f"inv({_sum(q, 1, names)})"]
    if not below:
        return _sum(p, coefficient, names)
    if len(p) == 1:
        [(monomial, number)] = p.items()
        return _product(_factors(Fraction(number, coefficient), monomial, names) + below)
    return _product([_sum(p, 1, names), *_number(Fraction(1, coefficient)), *below])


def _sum(p: Polynomial, divisor: int, names: Sequence[str]) -> str:
    if not p:
        return "0"
    terms = sorted(
        _product(_factors(Fraction(coefficient, divisor), monomial, names))
        for monomial, coefficient in p.items()
    )
    return terms[0] if len(terms) == 1 else f"add({','.join(terms)})"


def _factors(number: Fraction, monomial: Monomial, names: Sequence[str]) -> list[str]:
    return _number(number) + [name for name, exponent in zip(names, monomial, strict=True) if exponent]


def _number(number: Fraction) -> list[str]:
    if number == 1:
        return []
    if number.denominator == 1:
        return [str(number.numerator)]
    return [f"rat({number.numerator},{number.denominator})"]


def _product(factors: list[str]) -> str:
    if not factors:
        return "1"
    return factors[0] if len(factors) == 1 else f"mul({','.join(sorted(factors))})"


def substitute(p: Polynomial, names: Sequence[str], values: Mapping[str, Fraction]) -> dict[int, Fraction]:
    """p with every symbol but x replaced: coefficients by power of x, zeros left out."""
    bound: Mapping[Monomial, Fraction | int] = p
    for name, value in values.items():
        bound = _replace(bound, names.index(name), value)
    return by_power_of_x(bound, names)


def by_power_of_x(p: Mapping[Monomial, Fraction | int], names: Sequence[str]) -> dict[int, Fraction]:
    """Coefficients by power of x of a polynomial that holds no other symbol."""
    index = names.index("x")
    return {monomial[index]: Fraction(number) for monomial, number in p.items()}


def bind(
    value: Rational, names: Sequence[str], values: Mapping[str, Fraction]
) -> tuple[dict[Monomial, Fraction | int], dict[Monomial, Fraction | int]]:
    """Numerator and denominator with numbers for all symbols but x, as the published reference puts them in:
    one symbol after the other by name, and in between equal parts and powers cancel, but not factors.

    So 0/0 can come out as a number, as zero, or as nothing: then both parts are empty.
    """
    above: dict[Monomial, Fraction | int] = dict(value.numerator)
    below: dict[Monomial, Fraction | int] = dict(value.denominator)
    finite = True
    for name in sorted(values):
        index = names.index(name)
        above, below = _replace(above, index, values[name]), _replace(below, index, values[name])
        finite = finite and bool(below)
        if not above:
            return {}, {(0,) * len(names): 1} if finite else {}
        if len(above) == len(below) == 1:
            (high, a), (low, b) = *above.items(), *below.items()
            above = {tuple([max(i - j, 0) for i, j in zip(high, low, strict=True)]): a}
            below = {tuple([max(j - i, 0) for i, j in zip(high, low, strict=True)]): b}
        elif above == below:
            above, below = {(0,) * len(names): 1}, {(0,) * len(names): 1}
    return above, below


def _replace(
    p: Mapping[Monomial, Fraction | int], index: int, value: Fraction
) -> dict[Monomial, Fraction | int]:
    """p with one symbol replaced by a number, zeros left out."""
    result: dict[Monomial, Fraction | int] = {}
    for monomial, coefficient in p.items():
        rest = (*monomial[:index], 0, *monomial[index + 1 :])
        result[rest] = result.get(rest, 0) + coefficient * value ** monomial[index]
    return {monomial: number for monomial, number in result.items() if number}
