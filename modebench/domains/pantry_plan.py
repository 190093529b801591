"""Pantry plan: choose ingredients that can meet nutrition bounds.

The mode is the set of chosen ingredients. At level 1 the answer is one bit an ingredient, and the
environment looks for quantities; a set is valid when some quantities on the grid meet every bound.
Laws: arXiv:2610.11064. Figures: USDA National Nutrient Database for Standard Reference, release 26.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import combinations
from math import lcm
from typing import Any, NamedTuple

from modebench.domains.base import Reference, Solution, find_law

name: str = "pantry_plan"
aliases: tuple[str, ...] = ("pantry",)

ATTRIBUTES = ("energy_kcal", "protein_g", "fiber_g", "sodium_mg")


# Law --------------------------------------------------------------------------------------------


class Family(NamedTuple):
    """A theme of tasks.

    Attributes:
        sodium_cap: sodium that a whole plan may have at most, mg.
        pool: ids of the ingredients that a menu is drawn from.
    """

    sodium_cap: int
    pool: tuple[str, ...]


class Law(NamedTuple):
    """Parameters of a level. Masses are grams.

    Attributes:
        text: the law in one sentence.
        menu: ingredients of a task.
        step: grid of quantities.
        minimum: least quantity of an ingredient that is used.
        available: quantities of an ingredient that may be at hand.
        forbidding: probability that a tag is forbidden, where an ingredient has one of `allergens`.
        allergens: tags that may be forbidden.
        min_allowed: fewest ingredients without a forbidden tag.
        chosen: fewest and most ingredients of a plan.
        seed_sizes: sizes, equally likely, of the plan that the bounds are built around.
        modes: fewest and most modes of a task.
    """

    text: str
    menu: int
    step: int
    minimum: int
    available: tuple[int, ...]
    forbidding: float
    allergens: tuple[str, ...]
    min_allowed: int
    chosen: tuple[int, int]
    seed_sizes: tuple[int, ...]
    modes: tuple[int, int]


LAWS = {
    1: Law(
        "6 ingredients of one of 4 families, bounds around a hidden plan of 2 to 4, 8 to 64 modes",
        menu=6,
        step=25,
        minimum=50,
        available=(100, 125, 150),
        forbidding=0.25,
        allergens=("peanut", "tree_nut"),
        min_allowed=4,
        chosen=(2, 4),
        seed_sizes=(2, 3, 3, 4),
        modes=(8, 64),
    )
}

# fmt: off
FAMILIES = {
    "plant_protein_bowl": Family(700, (
        "almonds", "black_beans", "brown_rice", "chickpeas", "firm_tofu",
        "lentils", "peanuts", "pumpkin_seeds", "quinoa", "soybeans",
    )),
    "breakfast_formulation": Family(100, (
        "banana", "blueberries", "chia_seeds", "greek_yogurt", "lowfat_yogurt",
        "oat_bran", "oats", "peanut_butter", "raisins", "walnuts",
    )),
    "low_sodium_pantry_meal": Family(300, (
        "bulgur", "cashews", "green_peas", "kidney_beans", "mushrooms",
        "navy_beans", "spaghetti", "sweet_corn", "tomatoes", "white_rice",
    )),
    "high_fiber_snack": Family(200, (
        "almonds", "apple", "dates", "dried_apricots", "dried_coconut",
        "flaxseed", "peanuts", "pistachios", "raisins", "sunflower_seeds",
    )),
}
# fmt: on


def law(level: int) -> str:
    """The distribution of `level` in one sentence."""
    return find_law(LAWS, level, name).text


def law_size(level: int) -> int | None:
    """Not known: the law was never enumerated."""
    find_law(LAWS, level, name)
    return None


def generate(rng: random.Random, level: int) -> dict[str, Any]:
    """One reference drawn from the law of `level`; families are equally likely."""
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
    table = _table()
    menu: list[dict[str, Any]] = [
        {
            "id": food,
            "available_g": rng.choice(rules.available),
            "step_g": rules.step,
            "min_if_used_g": rules.minimum,
            "attributes_per_100g": {attribute: table[food][attribute] for attribute in ATTRIBUTES},
            "tags": table[food]["tags"].split(";"),
        }
        for food in sorted(rng.sample(FAMILIES[family].pool, rules.menu))
    ]
    present = [tag for tag in rules.allergens if any(tag in row["tags"] for row in menu)]
    forbidden = [rng.choice(present)] if rng.random() < rules.forbidding and present else []
    allowed = [row for row in menu if not set(row["tags"]) & set(forbidden)]
    if len(allowed) < rules.min_allowed:
        return None
    seed = {row["id"]: rng.choice(_grid(row)) for row in rng.sample(allowed, rng.choice(rules.seed_sizes))}
    return {
        "verifier": name,
        "pantry_version": "pantry-v1",
        "family": family,
        "ingredients": menu,
        "targets": _bounds(menu, seed, FAMILIES[family].sodium_cap),
        "min_ingredients": rules.chosen[0],
        "max_ingredients": rules.chosen[1],
        "forbidden_tags": forbidden,
    }


def _bounds(
    menu: Sequence[Mapping[str, Any]], plan: Mapping[str, int], sodium_cap: int
) -> dict[str, dict[str, str]]:
    """Bounds around the totals of a plan (id to grams), as decimal text with at most 3 places."""
    mass = sum(plan.values())
    energy, protein, fiber, sodium = (
        sum(_per_gram(row, attribute) * plan.get(row["id"], 0) for row in menu) for attribute in ATTRIBUTES
    )
    return {
        "mass_g": {"min": str(max(100, mass - 25)), "max": str(mass + 50)},
        "energy_kcal": {
            "min": _decimal(energy * Fraction(72, 100)),
            "max": _decimal(energy * Fraction(130, 100)),
        },
        "protein_g": {"min": _decimal(protein * Fraction(62, 100))},
        "fiber_g": {"min": _decimal(fiber * Fraction(62, 100))},
        "sodium_mg": {"max": _decimal(min(Fraction(sodium_cap), sodium * Fraction(14, 10) + 25))},
    }


def _decimal(value: Fraction) -> str:
    """Decimal text, rounded half up to 0.001, without trailing zeros."""
    thousandths = int(value * 1000 + Fraction(1, 2))
    return f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    """The food table, id to column to text; amounts are per 100 g of edible portion."""
    text = files("modebench.data").joinpath("usda_sr26.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(text.splitlines())}


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
    """The user message: rows, bounds, what is chosen and what the environment does."""
    find_law(LAWS, level, name)
    rows = reference["ingredients"]
    forbidden = ", ".join(reference.get("forbidden_tags", ())) or "none"
    low, high = reference["min_ingredients"], reference["max_ingredients"]
    title = str(reference.get("family", "pantry plan")).replace("_", " ")
    lines = [
        f"Plan a {title}: choose {low} to {high} of these {len(rows)} ingredients.",
        *(f"{number}. {_row_text(row)}" for number, row in enumerate(rows, 1)),
        f"Forbidden tags: {forbidden}. An ingredient with a forbidden tag must not be chosen.",
        "Totals of the plan: " + "; ".join(_bound_text(*item) for item in reference["targets"].items()) + ".",
        "You do not choose quantities. The environment looks for a quantity for each chosen ingredient, and "
        "for no other, from its minimum to its available grams in its steps. Your choice is valid if some "
        "such quantities keep every total within its limits. Several choices can be valid; give one of them.",
        f"Answer with exactly {len(rows)} digits and nothing else, without a box, spaces or commas: digit "
        f"number i is 1 if ingredient i is chosen and 0 if not. Between {low} and {high} digits must be 1.",
    ]
    return "\n".join(lines)


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
    """Every valid set once, smaller sets first, rows in listed order; the answer is the mask."""
    find_law(LAWS, level, name)
    rows = reference["ingredients"]
    for support in _supports(reference):
        ids = "+".join(sorted(rows[i]["id"] for i in support))
        yield Solution(f"{name}:pantry-v1:{ids}", _mask(len(rows), support))


def _mask(size: int, support: Sequence[int]) -> str:
    return "".join("1" if i in support else "0" for i in range(size))


def _supports(reference: Reference) -> Iterator[tuple[int, ...]]:
    """Valid sets of row positions."""
    rows = reference["ingredients"]
    forbidden = set(reference.get("forbidden_tags", ()))
    allowed = [i for i, row in enumerate(rows) if not set(row.get("tags", ())) & forbidden]
    totals = [_total(rows, key, limits) for key, limits in reference["targets"].items()]
    grids = [_grid(row) for row in rows]
    for size in range(reference["min_ingredients"], reference["max_ingredients"] + 1):
        for support in combinations(allowed, size):
            if _feasible(support, grids, totals):
                yield support


def _grid(row: Mapping[str, Any]) -> range:
    """The quantities that a used ingredient may have, grams."""
    return range(row["min_if_used_g"], row["available_g"] + 1, row["step_g"])


def _per_gram(row: Mapping[str, Any], attribute: str) -> Fraction:
    if attribute == "mass_g":
        return Fraction(1)
    return Fraction(str(row["attributes_per_100g"][attribute])) / 100


def _total(rows: Sequence[Mapping[str, Any]], key: str, limits: Mapping[str, Any]) -> Total:
    """One bound in integers, so that no rounding can decide a verdict."""
    rates = [_per_gram(row, key) for row in rows]
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
    """Uniform over the masks with an allowed number of ones."""
    find_law(LAWS, level, name)
    size = len(reference["ingredients"])
    sizes = range(reference["min_ingredients"], reference["max_ingredients"] + 1)
    return _mask(size, rng.choice([s for k in sizes for s in combinations(range(size), k)]))
