"""What pantry tasks of all levels are made of: families, rows of the food table, bounds around a plan.

Figures: USDA National Nutrient Database for Standard Reference, release 26.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

ATTRIBUTES = ("energy_kcal", "protein_g", "fiber_g", "sodium_mg")
ALLERGENS = ("peanut", "tree_nut")
"""Tags that may be forbidden."""
CHOSEN = (2, 4)
"""Fewest and most ingredients of a plan."""
PLAN_SIZES = (2, 3, 3, 4)
"""Sizes, equally likely, of the plan that bounds are built around."""


class Family(NamedTuple):
    """A theme of tasks.

    Attributes:
        sodium_cap: sodium that a whole plan may have at most, mg.
        pool: ids of the ingredients that a menu is drawn from.
    """

    sodium_cap: int
    pool: tuple[str, ...]


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


def row(food: str, available: int, step: int, minimum: int) -> dict[str, Any]:
    """An ingredient of a reference; quantities in grams."""
    figures = food_table()[food]
    return {
        "id": food,
        "available_g": available,
        "step_g": step,
        "min_if_used_g": minimum,
        "attributes_per_100g": {attribute: figures[attribute] for attribute in ATTRIBUTES},
        "tags": figures["tags"].split(";"),
    }


def grid(row: Mapping[str, Any]) -> range:
    """The quantities that a used ingredient may have, grams."""
    return range(row["min_if_used_g"], row["available_g"] + 1, row["step_g"])


def reference(
    family: str,
    menu: Sequence[Mapping[str, Any]],
    targets: Mapping[str, Mapping[str, str]],
    forbidden: Sequence[str],
) -> dict[str, Any]:
    """A reference without its number of modes."""
    return {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "family": family,
        "ingredients": list(menu),
        "targets": targets,
        "min_ingredients": CHOSEN[0],
        "max_ingredients": CHOSEN[1],
        "forbidden_tags": list(forbidden),
    }


def bounds(
    menu: Sequence[Mapping[str, Any]], plan: Mapping[str, int], sodium_cap: int
) -> dict[str, dict[str, str]]:
    """Bounds around the totals of a plan (id to grams), as decimal text with at most 3 places."""
    mass = sum(plan.values())
    energy, protein, fiber, sodium = (
        sum(per_gram(row, attribute) * plan.get(row["id"], 0) for row in menu) for attribute in ATTRIBUTES
    )
    return {
        "mass_g": {"min": str(max(100, mass - 25)), "max": str(mass + 50)},
        "energy_kcal": {
            "min": decimal_text(energy * Fraction(72, 100)),
            "max": decimal_text(energy * Fraction(130, 100)),
        },
        "protein_g": {"min": decimal_text(protein * Fraction(62, 100))},
        "fiber_g": {"min": decimal_text(fiber * Fraction(62, 100))},
        "sodium_mg": {"max": decimal_text(min(Fraction(sodium_cap), sodium * Fraction(14, 10) + 25))},
    }


def decimal_text(value: Fraction) -> str:
    """Decimal text, rounded half up to 0.001, without trailing zeros."""
    thousandths = int(value * 1000 + Fraction(1, 2))
    return f"{thousandths // 1000}.{thousandths % 1000:03}".rstrip("0").rstrip(".")


@cache
def food_table() -> Mapping[str, Mapping[str, str]]:
    """The food table, id to column to text; amounts are per 100 g of edible portion."""
    text = files("modebench.data").joinpath("usda_sr26.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(text.splitlines())}


def per_gram(row: Mapping[str, Any], attribute: str) -> Fraction:
    """Amount of an attribute in one gram of an ingredient."""
    if attribute == "mass_g":
        return Fraction(1)
    return Fraction(str(row["attributes_per_100g"][attribute])) / 100
