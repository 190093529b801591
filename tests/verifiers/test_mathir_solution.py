"""Degenerate MathIR references: zeros below the line, as the published reference takes them (observed)."""

from __future__ import annotations

import pytest

from modebench.verifiers import InvalidReference, verify

BINDINGS = {"a": 2, "b": 3, "c": 5, "d": 7, "f": 0, "g": 0}
X_OVER_0, SUM_OVER_0, NUMBER_OVER_0 = "div(mul(a,x),f)", "div(add(mul(a,x),b),f)", "div(b,f)"
MINUS_OVER_0 = "div(sub(mul(c,x),b),g)"


def accepted(lhs: str, rhs: str, bindings: dict[str, int] = BINDINGS) -> bool:
    used = {name: value for name, value in bindings.items() if name in set(lhs + rhs)}
    used = {name: value for name, value in used.items() if f"({name}" in lhs + rhs or f",{name}" in lhs + rhs}
    reference = {
        "verifier": "mathir_algebra", "mathir_version": "linear-v0", "bindings": used, "initial_lhs": lhs,
        "initial_rhs": rhs,
    }  # fmt: skip
    try:
        verify({"domain": "mathir", "level": 5, "reference": reference}, "")
    except InvalidReference:
        return False
    return True


@pytest.mark.parametrize("rhs", ["mul(c,d)", "mul(c,mul(d,x))", "add(mul(c,mul(d,x)),d)", "div(mul(c,x),g)"])
def test_a_multiple_of_x_over_zero_is_accepted(rhs: str) -> None:
    assert accepted(X_OVER_0, rhs)


@pytest.mark.parametrize("rhs", ["div(add(mul(c,x),d),g)", "div(mul(c,d),g)"])
def test_a_multiple_of_x_over_zero_and_another_over_zero_is_not(rhs: str) -> None:
    assert not accepted(X_OVER_0, rhs)


@pytest.mark.parametrize("rhs", ["mul(c,d)", "mul(c,mul(d,x))", "div(mul(c,x),g)", "div(add(mul(c,x),d),g)"])
@pytest.mark.parametrize("lhs", [SUM_OVER_0, NUMBER_OVER_0])
def test_anything_else_over_zero_is_not(lhs: str, rhs: str) -> None:
    assert not accepted(lhs, rhs)


def test_sums_over_zero_whose_constants_cancel_are_accepted() -> None:
    assert accepted(SUM_OVER_0, MINUS_OVER_0)
    assert not accepted(SUM_OVER_0, "div(sub(mul(c,x),d),g)")


def test_zero_above_x_vanishes() -> None:
    assert accepted("sub(x,sub(v,sub(v,v)))", "div(v,x)", {"v": 0})
    assert not accepted("sub(x,sub(v,sub(v,v)))", "div(v,x)", {"v": 1})


def test_symbols_are_replaced_in_the_order_of_their_names() -> None:
    """0/0 is 0 where the number above is put in first, and nothing where the one below is."""
    lhs, rhs = "add(mul(d,x),c)", "add(div(mul(a,x),add(a,e)),div({},{}))"
    assert accepted(lhs, rhs.format("b", "f"), {"a": 0, "b": 0, "c": 3, "d": -9, "e": 3, "f": 0})
    assert not accepted(lhs, rhs.format("g", "f"), {"a": 0, "c": 3, "d": -9, "e": 3, "f": 0, "g": 0})
