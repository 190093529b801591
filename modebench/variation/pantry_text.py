"""Pantry plan: the food table's codes, and the compact text of a reference.

Text: ``K2-4/25/50m175-250e363.42-656.175p36.192-s-104.3;le125ch100al150/20/40;!pe``: fewest and most
ingredients, step and minimum of the first row, bounds (mass, energy, protein, fiber, fat, carbohydrate,
sodium; a side may be open), rows as code and available grams (with step and minimum where they are not
those of the first), forbidden tags. Figures and tags of a food are those of the packaged USDA table; a
reference with other foods, figures or tags has no compact text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from modebench.domains.base import Reference
from modebench.variation.base import CompactError, Scanner, integer

ATTRIBUTES = {
    "mass_g": "m",
    "energy_kcal": "e",
    "protein_g": "p",
    "fiber_g": "f",
    "fat_g": "a",
    "carbohydrate_g": "c",
    "sodium_mg": "s",
}
"""Bounded totals in the order of the text, with their letters."""
SHOWN = ("energy_kcal", "protein_g", "fiber_g", "sodium_mg")
"""Figures that every row states, bounded or not, as the published rows do."""

# fmt: off
FOODS = {
    "lentils": "le", "chickpeas": "ch", "black_beans": "bb", "kidney_beans": "kb", "pinto_beans": "pb",
    "navy_beans": "nb", "split_peas": "sp", "soybeans": "so", "firm_tofu": "ft", "peanuts": "pe",
    "peanut_butter": "pt", "oats": "oa", "oat_bran": "ob", "quinoa": "qu", "brown_rice": "br",
    "white_rice": "wr", "bulgur": "bu", "pearl_barley": "pl", "buckwheat": "bw", "millet": "mi",
    "amaranth": "am", "couscous": "cc", "spaghetti": "sg", "cornmeal": "cm", "whole_wheat_bread": "ww",
    "almonds": "al", "walnuts": "wa", "cashews": "ca", "pistachios": "pi", "pecans": "pc",
    "hazelnuts": "hz", "sunflower_seeds": "sf", "pumpkin_seeds": "pk", "sesame_seeds": "se",
    "chia_seeds": "ci", "flaxseed": "fl", "dried_coconut": "dc", "banana": "ba", "apple": "ap",
    "navel_orange": "no", "blueberries": "bl", "strawberries": "st", "raisins": "ra", "dates": "da",
    "dried_apricots": "dp", "avocado": "av", "carrots": "cr", "tomatoes": "to", "broccoli": "bc",
    "spinach": "sn", "kale": "ka", "sweet_potato": "sw", "onions": "on", "mushrooms": "mu",
    "cauliflower": "cf", "green_peas": "gp", "sweet_corn": "sc", "cabbage": "cb", "lowfat_yogurt": "ly",
    "greek_yogurt": "gy", "cottage_cheese": "ct", "cheddar": "cd", "feta": "fe", "egg": "eg",
    "tuna": "tu", "olive_oil": "oo",
}
TAGS = {
    "legume": "le", "soy": "so", "peanut": "pe", "grain": "gr", "gluten": "gl", "nut": "nu",
    "tree_nut": "tn", "seed": "se", "sesame": "sm", "fruit": "fr", "vegetable": "ve", "dairy": "da",
    "milk": "mi", "egg": "eg", "fish": "fi", "oil": "oi",
}
# fmt: on

_FOOD_OF = {code: food for food, code in FOODS.items()}
_TAG_OF = {code: tag for tag, code in TAGS.items()}
_ATTRIBUTE_OF = {letter: attribute for attribute, letter in ATTRIBUTES.items()}

_CODE = re.compile("[a-z]{2}")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_PLACES = 6


@cache
def table() -> Mapping[str, Mapping[str, str]]:
    """The packaged food table: id to column to text."""
    text = files("modebench.data").joinpath("usda_sr26.csv").read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(text.splitlines())}


def spell(reference: Reference) -> str:
    """The text of an executable reference over the packaged table."""
    rows = reference["ingredients"]
    usual = (rows[0]["step_g"], rows[0]["min_if_used_g"])
    head = f"K{reference['min_ingredients']}-{reference['max_ingredients']}/{usual[0]}/{usual[1]}"
    targets = reference["targets"]
    if "cost_cents" in targets:
        raise CompactError(None, "bounds on figures of the food table, not on cost_cents")
    bounds = "".join(
        f"{letter}{_side(targets[key], 'min')}-{_side(targets[key], 'max')}"
        for key, letter in ATTRIBUTES.items()
        if key in targets
    )
    menu = "".join(_row(row, usual, [key for key in targets if key != "mass_g"]) for row in rows)
    tags = reference.get("forbidden_tags", ())
    unknown = [tag for tag in tags if tag not in TAGS]
    if unknown:
        raise CompactError(None, f"forbidden tags of the food table, not {unknown[0]!r}")
    forbidden = "".join(sorted({TAGS[tag] for tag in tags}))
    return f"{head}{bounds};{menu}" + (f";!{forbidden}" if forbidden else "")


def _row(row: Mapping[str, Any], usual: tuple[int, int], bounded: list[str]) -> str:
    food = row["id"]
    known = table().get(food)
    if known is None or food not in FOODS:
        raise CompactError(None, f"ingredients of the food table, not {food!r}")
    for key in bounded:
        if Fraction(str(row["attributes_per_100g"][key])) != Fraction(known[key]):
            raise CompactError(None, f"{key} of {food} as in the food table, {known[key]}")
    if set(row.get("tags", ())) != set(known["tags"].split(";")):
        raise CompactError(None, f"tags of {food} as in the food table, {known['tags']}")
    own = (row["step_g"], row["min_if_used_g"])
    return f"{FOODS[food]}{row['available_g']}" + ("" if own == usual else f"/{own[0]}/{own[1]}")


def _side(limits: Mapping[str, Any], side: str) -> str:
    return decimal(Fraction(str(limits[side]))) if limits.get(side) is not None else ""


def decimal(value: Fraction) -> str:
    """Exact decimal text without trailing zeros.

    Raises:
        CompactError: a text of at most 9 digits and 6 decimals can't say it.
    """
    whole, rest = divmod(value * 10**_PLACES, 1)
    if rest or not 0 <= value < 10**9:
        raise CompactError(None, f"bounds of at most 9 digits and {_PLACES} decimals, not {value}")
    digits = f"{int(whole):0{_PLACES + 1}}"
    return f"{digits[:-_PLACES]}.{digits[-_PLACES:]}".rstrip("0").rstrip(".")


def read(scanner: Scanner) -> dict[str, Any]:
    """The reference of a text; its mode count is still to be filled in."""
    scanner.take("K")
    low = integer(scanner, "the fewest ingredients")
    scanner.take("-")
    high = integer(scanner, "the most ingredients")
    usual = _step_and_minimum(scanner)
    targets = {}
    while not scanner.skip(";"):
        letter = scanner.text[scanner.at : scanner.at + 1]
        key = _ATTRIBUTE_OF.get(letter)
        if key is None or key in targets:
            scanner.fail(f"another bound ({''.join(_ATTRIBUTE_OF)}) or ';'")
        scanner.take(letter)
        targets[key] = _read_bounds(scanner)
    rows = [_read_row(scanner, usual, targets)]
    while not scanner.done() and not scanner.skip(";"):
        rows.append(_read_row(scanner, usual, targets))
    return {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "ingredients": rows,
        "targets": targets,
        "min_ingredients": low,
        "max_ingredients": high,
        "forbidden_tags": _read_tags(scanner) if scanner.text[scanner.at - 1] == ";" else [],
    }


def _step_and_minimum(scanner: Scanner) -> tuple[int, int]:
    scanner.take("/")
    step = integer(scanner, "a step in grams")
    scanner.take("/")
    return step, integer(scanner, "a minimum in grams")


def _read_bounds(scanner: Scanner) -> dict[str, str]:
    limits = {}
    if not scanner.skip("-"):
        limits["min"] = scanner.read(_DECIMAL, "a decimal or '-'")
        scanner.take("-")
    match = _DECIMAL.match(scanner.text, scanner.at)
    if match or not limits:
        limits["max"] = scanner.read(_DECIMAL, "a decimal")
    return limits


def _read_row(scanner: Scanner, usual: tuple[int, int], targets: Mapping[str, Any]) -> dict[str, Any]:
    start = scanner.at
    code = scanner.read(_CODE, "an ingredient's two letters")
    if code not in _FOOD_OF:
        scanner.at = start
        scanner.fail("a known ingredient's two letters")
    known = table()[_FOOD_OF[code]]
    available = integer(scanner, "the available grams")
    own = _step_and_minimum(scanner) if scanner.text.startswith("/", scanner.at) else usual
    stated = [key for key in ATTRIBUTES if key != "mass_g" and (key in SHOWN or key in targets)]
    return {
        "id": known["id"],
        "available_g": available,
        "step_g": own[0],
        "min_if_used_g": own[1],
        "attributes_per_100g": {key: known[key] for key in stated},
        "tags": known["tags"].split(";"),
    }


def _read_tags(scanner: Scanner) -> list[str]:
    scanner.take("!")
    tags: list[str] = []
    while not tags or not scanner.done():
        start = scanner.at
        code = scanner.read(_CODE, "a tag's two letters")
        if code not in _TAG_OF or _TAG_OF[code] in tags:
            scanner.at = start
            scanner.fail("another tag's two letters")
        tags.append(_TAG_OF[code])
    return tags
