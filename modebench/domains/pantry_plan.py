"""Pantry plan: choose ingredients that can meet nutrition bounds.

The mode is the set of chosen ingredients. At level 1 the answer is one bit an ingredient, and the
environment looks for quantities; a set is valid when some quantities on the grid meet every bound.
Laws: arXiv:2610.11064. Figures: USDA National Nutrient Database for Standard Reference, release 26.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm
from typing import Any, NamedTuple

from modebench.domains.base import BOXED_SYSTEM, AnswerSpace, Constants, Reference, Solution, find_law
from modebench.laws import Cell
from modebench.laws import pantry_plan as higher
from modebench.laws.pantry_menu import ALLERGENS, FAMILIES, PLAN_SIZES, bounds, grid
from modebench.laws.pantry_menu import per_gram as rate
from modebench.laws.pantry_menu import reference as make_reference
from modebench.laws.pantry_menu import row as make_row
from modebench.verifiers.pantry_plan import compile_reference

name: str = "pantry_plan"
aliases: tuple[str, ...] = ("pantry",)


# Law --------------------------------------------------------------------------------------------


class Law(NamedTuple):
    """Parameters of a level. Masses are grams.

    Attributes:
        text: the law in one sentence.
        menu: ingredients of a task.
        step: grid of quantities.
        minimum: least quantity of an ingredient that is used.
        available: quantities of an ingredient that may be at hand.
        forbidding: probability that a tag is forbidden, where an ingredient has one that may be.
        min_allowed: fewest ingredients without a forbidden tag.
        modes: fewest and most modes of a task.
    """

    text: str
    menu: int
    step: int
    minimum: int
    available: tuple[int, ...]
    forbidding: float
    min_allowed: int
    modes: tuple[int, int]


LAWS = {
    1: Law(
        "6 ingredients of one of 4 families, bounds around a hidden plan of 2 to 4, 8 to 64 modes",
        menu=6,
        step=25,
        minimum=50,
        available=(100, 125, 150),
        forbidding=0.25,
        min_allowed=4,
        modes=(8, 64),
    )
}

TEXTS = {**{level: rules.text for level, rules in LAWS.items()}, **higher.TEXTS}
"""Every level's law; levels 2 to 5 stand in `modebench.laws.pantry_plan`."""


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(TEXTS, level, name)


def law_size(level: int) -> int | None:
    """Not known: the laws were never enumerated."""
    find_law(TEXTS, level, name)
    return None


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`; families are equally likely at level 1."""
    find_law(TEXTS, level, name)
    if level in higher.TEXTS:
        return higher.generate(rng, level, cell)
    rules = find_law(LAWS, level, name)
    family = rng.choice(sorted(FAMILIES))
    while True:
        reference = _draw(rng, family, rules)
        if reference is None:
            continue
        modes = count_modes(reference, level)
        if rules.modes[0] <= modes <= rules.modes[1]:
            return reference | {"certified_mode_count": modes}


def _draw(rng: random.Random, family: str, rules: Law) -> dict[str, Any] | None:
    """A task of any number of modes; None where too few ingredients are left after forbidding."""
    menu = [
        make_row(food, rng.choice(rules.available), rules.step, rules.minimum)
        for food in sorted(rng.sample(FAMILIES[family].pool, rules.menu))
    ]
    present = [tag for tag in ALLERGENS if any(tag in row["tags"] for row in menu)]
    forbidden = [rng.choice(present)] if rng.random() < rules.forbidding and present else []
    allowed = [row for row in menu if not set(row["tags"]) & set(forbidden)]
    if len(allowed) < rules.min_allowed:
        return None
    plan = {row["id"]: rng.choice(grid(row)) for row in rng.sample(allowed, rng.choice(PLAN_SIZES))}
    targets = bounds(menu, plan, FAMILIES[family].sodium_cap)
    return make_reference(family, menu, targets, forbidden)


def identity(reference: Reference) -> str:
    """Everything that is executed: rows in their order with all figures, targets, limits, tags."""
    rows = ";".join(
        f"{row['id']}={row['available_g']}/{row['step_g']}/{row['min_if_used_g']}"
        f"[{_pairs(row['attributes_per_100g'])}|{','.join(sorted(row.get('tags', ())))}]"
        for row in reference["ingredients"]
    )
    bounds = ";".join(f"{key}:{_pairs(limits)}" for key, limits in sorted(reference["targets"].items()))
    size = f"{reference['min_ingredients']}-{reference['max_ingredients']}"
    return f"{name}:{size}:!{','.join(sorted(reference.get('forbidden_tags', ())))}:{bounds}:{rows}"


def _pairs(figures: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={Fraction(str(value))}" for key, value in sorted(figures.items()))


# Prompt -----------------------------------------------------------------------------------------

UNITS = {
    "mass_g": ("g", "total mass"),
    "energy_kcal": ("kcal", "energy"),
    "protein_g": ("g", "protein"),
    "fiber_g": ("g", "fiber"),
    "fat_g": ("g", "fat"),
    "carbohydrate_g": ("g", "carbohydrate"),
    "sodium_mg": ("mg", "sodium"),
    "cost_cents": ("cents", "cost"),
}


def problem(reference: Reference, level: int) -> str:
    """The user message: rows, bounds, what is chosen, who sets the quantities, the reply format."""
    find_law(TEXTS, level, name)
    rows = reference["ingredients"]
    forbidden = ", ".join(reference.get("forbidden_tags", ())) or "none"
    low, high = reference["min_ingredients"], reference["max_ingredients"]
    title = str(reference.get("family", "pantry plan")).replace("_", " ")
    lines = [
        f"Plan a {title}: choose {low} to {high} of these {len(rows)} ingredients.",
        *(f"{number}. {_row_text(row)}" for number, row in enumerate(rows, 1)),
        f"Forbidden tags: {forbidden}. An ingredient with a forbidden tag must not be chosen.",
        "Totals of the plan: " + "; ".join(_bound_text(*item) for item in reference["targets"].items()) + ".",
        *(_mask_request(rows, low, high) if level == 1 else _plan_request(rows)),
    ]
    return "\n".join(lines)


def _mask_request(rows: Sequence[Mapping[str, Any]], low: int, high: int) -> tuple[str, str]:
    return (
        "You do not choose quantities. The environment looks for a quantity for each chosen ingredient, and "
        "for no other, from its minimum to its available grams in its steps. Your choice is valid if some "
        "such quantities keep every total within its limits. Several choices can be valid; give one of them.",
        f"Answer with exactly {len(rows)} digits and nothing else, without a box, spaces or commas: digit "
        f"number i is 1 if ingredient i is chosen and 0 if not. Between {low} and {high} digits must be 1.",
    )


def _plan_request(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    first, second = rows[0]["id"], rows[1]["id"]
    return (
        "You choose the quantities too. The grams of a chosen ingredient are a whole multiple of its step, "
        "from its minimum to what is available. Every total of your plan must be within its limits. Several "
        "plans can be valid; give one of them.",
        "Answer with the chosen ingredients and their grams in \\boxed{}, as id=grams with semicolons "
        f"between and no unit. The form, with letters for numbers, is \\boxed{{{first}=M;{second}=N}}.",
    )


def _row_text(row: Mapping[str, Any]) -> str:
    figures = ", ".join(
        f"{value} {UNITS[key][0]} {UNITS[key][1]}" for key, value in row["attributes_per_100g"].items()
    )
    tags = ", ".join(row.get("tags", ())) or "none"
    return (
        f"{row['id']}: minimum {row['min_if_used_g']} g, available {row['available_g']} g, "
        f"step {row['step_g']} g; per 100 g {figures}; tags: {tags}"
    )


def _bound_text(key: str, limits: Mapping[str, Any]) -> str:
    unit, label = UNITS[key]
    low, high = limits.get("min"), limits.get("max")
    if low is None:
        return f"{label} at most {high} {unit}"
    return f"{label} at least {low} {unit}" if high is None else f"{label} {low} to {high} {unit}"


def system(level: int) -> str:
    """The system message: the reply format in one sentence."""
    find_law(TEXTS, level, name)
    if level > 1:
        return BOXED_SYSTEM
    digits = find_law(LAWS, level, name).menu
    return (
        f"Reply with nothing but {digits} digits, each 0 or 1, one for each ingredient in the listed order."
    )


# Modes ------------------------------------------------------------------------------------------


class Total(NamedTuple):
    """One bounded total in whole multiples of a common unit.

    Attributes:
        low: least value, or None.
        high: greatest value, or None.
        per_gram: contribution of one gram of each ingredient.
    """

    low: int | None
    high: int | None
    per_gram: tuple[int, ...]


def count_modes(reference: Reference, level: int) -> int:
    """Number of sets of ingredients for which some quantities on the grid meet every bound."""
    return sum(1 for _ in _supports(reference))


def solutions(reference: Reference, level: int) -> Iterator[Solution]:
    """Every valid set once, smaller sets first, rows in listed order.

    The answer is the mask at level 1 and the verifier's first feasible quantities above it.
    """
    find_law(TEXTS, level, name)
    rows = reference["ingredients"]
    spec = compile_reference(reference, level) if level > 1 else None
    for support in _supports(reference):
        ids = sorted(rows[i]["id"] for i in support)
        answer = _mask(len(rows), support) if spec is None else _box(spec.plan_for(ids) or {})
        yield Solution(f"{name}:pantry-v1:{'+'.join(ids)}", answer)


def _box(plan: Mapping[str, int]) -> str:
    return f"\\boxed{{{';'.join(f'{food}={grams}' for food, grams in plan.items())}}}"


def _mask(size: int, support: Sequence[int]) -> str:
    return "".join("1" if i in support else "0" for i in range(size))


def _supports(reference: Reference) -> Iterator[tuple[int, ...]]:
    """Valid sets of row positions."""
    rows = reference["ingredients"]
    forbidden = set(reference.get("forbidden_tags", ()))
    allowed = [i for i, row in enumerate(rows) if not set(row.get("tags", ())) & forbidden]
    totals = [_total(rows, key, limits) for key, limits in reference["targets"].items()]
    grids = [grid(row) for row in rows]
    for size in range(reference["min_ingredients"], reference["max_ingredients"] + 1):
        for support in combinations(allowed, size):
            if _feasible(support, grids, totals):
                yield support


def _total(rows: Sequence[Mapping[str, Any]], key: str, limits: Mapping[str, Any]) -> Total:
    """One bound in integers, so that no rounding can decide a verdict."""
    rates = [rate(row, key) for row in rows]
    bounds = {side: Fraction(str(value)) for side, value in limits.items()}
    scale = lcm(*(number.denominator for number in (*rates, *bounds.values())))
    whole = {side: int(value * scale) for side, value in bounds.items()}
    return Total(whole.get("min"), whole.get("max"), tuple(int(rate * scale) for rate in rates))


def _feasible(
    support: Sequence[int], grids: Sequence[range], totals: Sequence[Total], sums: Sequence[int] | None = None
) -> bool:
    """Whether some quantities of `support` on top of `sums` meet every bound.

    Contributions are never negative, so a branch whose least total is too high, or whose greatest is
    too low, is left at once; with no ingredient left that test is the bound itself.
    """
    sums = sums or [0] * len(totals)
    for (low, high, per_gram), base in zip(totals, sums, strict=True):
        if high is not None and base + sum(per_gram[i] * grids[i][0] for i in support) > high:
            return False
        if low is not None and base + sum(per_gram[i] * grids[i][-1] for i in support) < low:
            return False
    if not support:
        return True
    first, rest = support[0], support[1:]
    return any(
        _feasible(
            rest,
            grids,
            totals,
            [base + total.per_gram[first] * grams for total, base in zip(totals, sums, strict=True)],
        )
        for grams in grids[first]
    )


def listed(mode: str) -> bool:
    """Every correct mode is one of those counted."""
    return True


# Chance -----------------------------------------------------------------------------------------


def random_answer(rng: random.Random, reference: Reference, level: int) -> str:
    """Uniform over the 2^6 masks at level 1; above it a plan.

    There the number of ingredients, which ones, and each quantity on its grid are uniform in turn;
    forbidden ingredients are not left out.
    """
    find_law(TEXTS, level, name)
    rows = reference["ingredients"]
    if level == 1:
        return "".join(rng.choices("01", k=len(rows)))
    sizes = range(reference["min_ingredients"], reference["max_ingredients"] + 1)
    chosen = rng.sample(rows, rng.choice(sizes))
    return _box({row["id"]: rng.choice(grid(row)) for row in chosen})


def answer_space(reference: Reference, level: int, modes: int) -> AnswerSpace | None:
    """The 2^6 masks at level 1; plans of higher levels aren't counted."""
    if level > 1:
        return None
    return AnswerSpace(2 ** len(reference["ingredients"]), {1: modes})


def constants(reference: Reference, level: int) -> Constants | None:
    """All right masks at level 1."""
    if level > 1:
        return None
    return Constants((solution.answer for solution in solutions(reference, level)), complete=True)
