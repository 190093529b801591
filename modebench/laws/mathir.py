"""MathIR, levels 2 to 5 (arXiv:2610.11064): equations and their menus.

Every family has 6 commands and exactly 5 modes, whatever the values. As published: the families of
levels 2 and 5, the products with sign conditions and the equation ``a(x+b)/e = (c-dx)/f`` of level 3,
and the ranges of the values. Inferred: at level 2, ``||a|-|d|| <= 1`` in place of a sorted pool; at
level 3, level 1's ranges for products; at level 4, ``two_quotients`` and ``bracket``, which are the
families that its rows show, equally often; the menu of ``bracket``, which follows that of
``two_quotients``. Not reproduced: the published tier weights, fitted to answers of 3B to 14B models;
tiers are equally frequent here. The published level 4 is not matched in difficulty to level 1, and
neither is ours.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

from modebench.laws import Cell, draw_cell

MODES = 5
"""Modes of every task."""
_EVEN = (0, 1, 2, 3)
CYCLES: Mapping[int, tuple[int, ...]] = MappingProxyType({2: (0, 1), 3: _EVEN, 4: (0, 1), 5: _EVEN})
TEXTS: Mapping[int, str] = MappingProxyType(
    {
        2: "a*x + b = d*x + c or a*x + b = c - d*x with |a| and |d| at most 1 apart and an integer solution "
        "of -9 to 9, its 6 commands shuffled",
        3: "a*x + b = c with a > 0 > b, a < 0 < b, or either, or a*(x + b)/e = (c - d*x)/f, equally often, "
        "its 6 commands shuffled",
        4: "(a*x + b)/e = (d*x + c)/f or a*(x + b)/e = (c - d*x)/f, equally often, its 6 commands shuffled; "
        "difficulty not matched to level 1",
        5: "a*x/D + b/E = d*x + c, D being e or a + e and E being f or b - f, equally often, its 6 commands "
        "shuffled",
    }
)

Bindings = dict[str, int]


class Family(NamedTuple):
    """A kind of equation and its menu.

    Attributes:
        lhs, rhs: the two sides, in the expression language of references.
        commands: the menu before it is shuffled.
        combined: at level 1, the coefficient that x has in the end, as multiples of (a, d); None for
            x / a.
    """

    lhs: str
    rhs: str
    commands: tuple[str, ...]
    combined: tuple[int, int] | None = None


FAMILIES = {
    "product": Family(
        "add(mul(a,x),b)",
        "c",
        ("sub(b)", "div(a)", "add(b)", "mul(a)", "sub(c)", "sub(div(b,a))"),
        (1, 0),
    ),
    "quotient": Family(
        "add(div(x,a),b)",
        "c",
        ("sub(b)", "mul(a)", "add(b)", "div(a)", "sub(c)", "sub(mul(a,b))"),
        None,
    ),
    "two_sided": Family(
        "add(mul(a,x),b)",
        "add(mul(d,x),c)",
        ("sub(b)", "sub(mul(d,x))", "div(sub(a,d))", "sub(add(mul(d,x),b))", "add(b)", "div(a)"),
        (1, -1),
    ),
    "two_sided_minus": Family(
        "add(mul(a,x),b)",
        "sub(c,mul(d,x))",
        ("sub(b)", "add(mul(d,x))", "div(add(a,d))", "sub(sub(b,mul(d,x)))", "add(b)", "div(a)"),
        (1, 1),
    ),
    "two_quotients": Family(
        "div(add(mul(a,x),b),e)",
        "div(add(mul(d,x),c),f)",
        (
            "sub(div(b,e))",
            "sub(mul(div(d,f),x))",
            "div(sub(div(a,e),div(d,f)))",
            "sub(add(mul(div(d,f),x),div(b,e)))",
            "add(div(b,e))",
            "div(div(a,e))",
        ),
    ),
    "bracket": Family(
        "div(mul(a,add(x,b)),e)",
        "div(sub(c,mul(d,x)),f)",
        (
            "sub(div(mul(a,b),e))",
            "add(mul(div(d,f),x))",
            "div(add(div(a,e),div(d,f)))",
            "sub(sub(div(mul(a,b),e),mul(div(d,f),x)))",
            "add(div(mul(a,b),e))",
            "div(div(a,e))",
        ),
    ),
}


def _scaled(below: str, offset_below: str) -> Family:
    """``a*x/below + b/offset_below = d*x + c``."""
    slope, offset = f"div(a,{below})", f"div(b,{offset_below})"
    return Family(
        f"add(div(mul(a,x),{below}),{offset})",
        "add(mul(d,x),c)",
        (
            f"sub({offset})",
            "sub(mul(d,x))",
            f"div(sub({slope},d))",
            f"sub(add(mul(d,x),{offset}))",
            f"add({offset})",
            f"div({slope})",
        ),
    )


SCALED = (
    _scaled("e", "f"),
    _scaled("add(a,e)", "f"),
    _scaled("e", "sub(b,f)"),
    _scaled("add(a,e)", "sub(b,f)"),
)
"""The tiers of level 5."""


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`; every one has 5 modes."""
    tier = (cell or draw_cell(rng, "mathir", CYCLES[level])).tier
    draw = {2: _draw2, 3: _draw3, 4: _draw4, 5: _draw5}[level]
    title, family, bindings = draw(rng, tier)
    commands = rng.sample(family.commands, len(family.commands))
    return reference(title, family, commands, bindings, max_steps=4)


def law_size(level: int) -> int | None:
    """Equations times orders of the menu, because tasks are told apart by these alone."""
    return {2: 2, 3: 2, 4: 2, 5: 4}[level] * 720


def reference(
    title: str, family: Family, commands: Sequence[str], bindings: Bindings, max_steps: int
) -> dict[str, Any]:
    """A reference with the commands as its menu, in their order."""
    return {
        "verifier": "mathir_action_menu",
        "mathir_version": "linear-menu-v1",
        "family": title,
        "bindings": bindings,
        "initial_lhs": family.lhs,
        "initial_rhs": family.rhs,
        "max_steps": max_steps,
        "actions": dict(zip("ABCDEFGH", commands, strict=False)),
    }


Drawn = tuple[str, Family, Bindings]


def _draw2(rng: random.Random, tier: int) -> Drawn:
    title, sign = (("two_sided", -1), ("two_sided_minus", 1))[tier]
    values = _until(
        rng,
        {"a": (-9, 9), "d": (-9, 9)},
        lambda v: abs(abs(v["a"]) - abs(v["d"])) <= 1 and v["a"] + sign * v["d"],
    )
    a, d, b, x = values["a"], values["d"], rng.randint(-12, 12), _nonzero(rng, -9, 9)
    return title, FAMILIES[title], {"a": a, "b": b, "c": (a + sign * d) * x + b, "d": d}


def _draw3(rng: random.Random, tier: int) -> Drawn:
    if tier == 3:
        return _draw_bracket(rng)
    sign = (1, -1, rng.choice((1, -1)))[tier]
    a, b, x = sign * rng.randint(1, 9), -sign * rng.randint(1, 12), _nonzero(rng, -9, 9)
    return "product", FAMILIES["product"], {"a": a, "b": b, "c": a * x + b}


def _draw4(rng: random.Random, tier: int) -> Drawn:
    if tier == 1:
        return _draw_bracket(rng)
    ranges = _ranges("abcd", (-19, 19)) | _ranges("ef", (1, 19))
    values = _until(rng, ranges, lambda v: v["a"] * v["f"] - v["d"] * v["e"])
    return "two_quotients", FAMILIES["two_quotients"], values


def _draw_bracket(rng: random.Random) -> Drawn:
    ranges = _ranges("abcd", (-29, 29)) | _ranges("ef", (1, 29))
    return "bracket", FAMILIES["bracket"], _until(rng, ranges, lambda v: v["a"] * v["f"] + v["d"] * v["e"])


def _draw5(rng: random.Random, tier: int) -> Drawn:
    def fits(v: Bindings) -> bool:
        below = v["a"] + v["e"] if tier & 1 else v["e"]
        offset_below = v["b"] - v["f"] if tier & 2 else v["f"]
        return bool(below and offset_below and Fraction(v["a"], below) != v["d"])

    return f"scaled_{tier}", SCALED[tier], _until(rng, _ranges("abcdef", (-13, 13)), fits)


def _ranges(names: str, limits: tuple[int, int]) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(names, limits)


def _until(
    rng: random.Random, ranges: Mapping[str, tuple[int, int]], fits: Callable[[Bindings], object]
) -> Bindings:
    """Values uniform over those, none of them 0, that fit."""
    while True:
        values = {name: _nonzero(rng, *limits) for name, limits in ranges.items()}
        if fits(values):
            return values


def _nonzero(rng: random.Random, low: int, high: int) -> int:
    return rng.choice([value for value in range(low, high + 1) if value])
