"""PantryPlan: choose ingredients whose amounts meet nutrition targets.

At levels 2 to 5 the response states amounts (``oats=50;lentils=75``). At level 1 it states six bits,
one an ingredient, and the first feasible amounts on exactly these ingredients are used. The mode is
the set of ingredients; amounts never matter for identity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from itertools import product
from typing import Any, NamedTuple

from modebench.verifiers.extraction import PANTRY, extract
from modebench.verifiers.reference import require_int, require_verifier
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

NUTRIENTS = (
    "energy_kcal",
    "protein_g",
    "fiber_g",
    "fat_g",
    "carbohydrate_g",
    "sodium_mg",
    "cost_cents",
)
MAX_PLAN_CHARACTERS = 512
MAX_GRAMS = 10_000
MASK_BITS = 6
MAX_AMOUNTS = 250_000
"""Combinations of amounts that a level-1 reference may offer; published rows have at most 6,561 a set."""

_ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TAG = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_PAIR = re.compile(r"([a-z][a-z0-9_]{0,31})\s*=\s*([0-9]+)")
_SEPARATOR = re.compile("[;,]")
# The published arithmetic: decimals of 28 digits, exact for any real food table. Without traps a
# total beyond every exponent is infinite instead of an exception.
_DECIMAL = Context(prec=28, traps=[])
_HUNDRED = Decimal(100)
_ZERO = Decimal(0)


class Ingredient(NamedTuple):
    """One ingredient; amounts in grams, `per_100g` in the units of the attribute names."""

    id: str
    available: int
    step: int
    minimum: int
    per_100g: Mapping[str, Decimal]
    tags: frozenset[str]

    def grid(self) -> range:
        """Amounts tried by the level-1 projection: the minimum, then by steps."""
        return range(self.minimum, self.available + 1, self.step)


class Target(NamedTuple):
    """Inclusive bounds on the total of one attribute (``mass_g`` in grams); None is no bound."""

    attribute: str
    low: Decimal | None
    high: Decimal | None


@dataclass(frozen=True)
class Spec:
    """A checked reference.

    Attributes:
        level: 1 asks for a mask, 2 to 5 for amounts.
        ingredients: by id, in the order of the reference (the order of the mask's bits).
        targets: what totals must meet.
        sizes: number of ingredients allowed.
        forbidden: tags that no chosen ingredient may have.
    """

    level: int
    ingredients: Mapping[str, Ingredient]
    targets: tuple[Target, ...]
    sizes: range
    forbidden: frozenset[str]
    _plans: dict[tuple[str, ...], dict[str, int] | None] = field(default_factory=dict, compare=False)

    def plan_for(self, support: Sequence[str]) -> dict[str, int] | None:
        """The first feasible amounts on exactly these ids, the last id varying fastest."""
        key = tuple(sorted(support))
        if key not in self._plans:
            self._plans[key] = next(self._feasible(key), None)
        return self._plans[key]

    def _feasible(self, support: tuple[str, ...]) -> Iterator[dict[str, int]]:
        chosen = [self.ingredients[name] for name in support]
        if len(chosen) not in self.sizes or any(item.tags & self.forbidden for item in chosen):
            return
        for amounts in product(*(item.grid() for item in chosen)):
            plan = dict(zip(support, amounts, strict=True))
            if self.missed_target(plan) is None:
                yield plan

    def missed_target(self, plan: Mapping[str, int]) -> str | None:
        """The first attribute whose total is out of bounds, or None."""
        for attribute, low, high in self.targets:
            total = self.total(plan, attribute)
            if (low is not None and total < low) or (high is not None and total > high):
                return attribute
        return None

    def total(self, plan: Mapping[str, int], attribute: str) -> Decimal:
        """Sum of an attribute over a plan (id to grams)."""
        if attribute == "mass_g":
            return Decimal(sum(plan.values()))
        total = _ZERO
        for name, grams in plan.items():
            amount = _DECIMAL.multiply(self.ingredients[name].per_100g[attribute], grams)
            total = _DECIMAL.add(total, _DECIMAL.divide(amount, _HUNDRED))
        return total


def judge(spec: Spec, response: str) -> Verdict:
    """The `published` verdict on a response."""
    if spec.level == 1:
        return judge_mask(spec, response.strip())
    candidate = extract(response, PANTRY)
    if candidate is None:
        return malformed("no answer found")
    plan = parse_plan(candidate.strip())
    return judge_plan(spec, plan) if isinstance(plan, dict) else malformed(plan)


def judge_mask(spec: Spec, mask: str) -> Verdict:
    """Level 1: project six bits to the first feasible amounts on exactly these ingredients."""
    if len(mask) != MASK_BITS or mask.strip("01"):
        return malformed(f"not exactly {MASK_BITS} digits 0 or 1")
    support = sorted(name for name, bit in zip(spec.ingredients, mask, strict=True) if bit == "1")
    if len(support) not in spec.sizes:
        return incorrect(f"chooses {len(support)} ingredients")
    if spec.plan_for(support) is None:
        return incorrect("no amounts of these ingredients meet the targets")
    return correct(mode_key(support))


def parse_plan(text: str) -> dict[str, int] | str:
    """Amounts in grams by id, or why the text is not a plan."""
    if not text or len(text) > MAX_PLAN_CHARACTERS:
        return f"empty or longer than {MAX_PLAN_CHARACTERS} characters"
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    plan: dict[str, int] = {}
    for piece in _SEPARATOR.split(text):
        match = _PAIR.fullmatch(piece.strip())
        if match is None:
            return f"{piece.strip()[:40]!r} is not id=grams"
        name, grams = match.group(1), int(match.group(2))
        if name in plan:
            return f"names {name} twice"
        if not 1 <= grams <= MAX_GRAMS:
            return f"{name} has an amount outside 1..{MAX_GRAMS}"
        plan[name] = grams
    return plan


def judge_plan(spec: Spec, plan: Mapping[str, int]) -> Verdict:
    """Levels 2 to 5: execute stated amounts."""
    if len(plan) not in spec.sizes:
        return incorrect(f"chooses {len(plan)} ingredients")
    for name, grams in plan.items():
        item = spec.ingredients.get(name)
        if item is None:
            return incorrect(f"{name} is not in the pantry")
        if item.tags & spec.forbidden:
            return incorrect(f"{name} is forbidden")
        if not item.minimum <= grams <= item.available or grams % item.step:
            return incorrect(f"{name}={grams} is not an allowed amount")
    missed = spec.missed_target(plan)
    if missed is not None:
        return incorrect(f"{missed} is out of bounds")
    return correct(mode_key(plan))


def mode_key(support: Mapping[str, int] | Sequence[str]) -> str:
    """The mode of a set of ingredient ids."""
    return f"pantry_plan:pantry-v1:{'+'.join(sorted(support))}"


def compile_reference(reference: Mapping[str, Any], level: int) -> Spec:
    """Check a reference for a level (level 1 needs exactly six ingredients).

    Raises:
        InvalidReference: naming the field.
    """
    require_verifier(reference, "pantry_plan")
    version = reference.get("pantry_version")
    if version != "pantry-v1":
        raise InvalidReference("reference.pantry_version", f"must be 'pantry-v1', not {version!r}")
    ingredients = _ingredients(reference.get("ingredients"), level)
    low = require_int(reference.get("min_ingredients"), "reference.min_ingredients", 1, len(ingredients))
    high = require_int(reference.get("max_ingredients"), "reference.max_ingredients", low, len(ingredients))
    require_int(reference.get("certified_mode_count"), "reference.certified_mode_count", 2, 1_000_000)
    if (
        level == 1
        and math.prod(sorted(len(item.grid()) for item in ingredients.values())[-high:]) > MAX_AMOUNTS
    ):
        raise InvalidReference(
            "reference.ingredients", f"offer more than {MAX_AMOUNTS} combinations of amounts"
        )
    return Spec(
        level=level,
        ingredients=ingredients,
        targets=_targets(reference.get("targets"), ingredients),
        sizes=range(low, high + 1),
        forbidden=_tags(reference.get("forbidden_tags", []), "reference.forbidden_tags"),
    )


def _ingredients(value: object, level: int) -> dict[str, Ingredient]:
    if not isinstance(value, list) or not 2 <= len(value) <= 16:
        raise InvalidReference("reference.ingredients", "must list 2 to 16 ingredients")
    if level == 1 and len(value) != MASK_BITS:
        raise InvalidReference("reference.ingredients", f"must be exactly {MASK_BITS} at level 1")
    result: dict[str, Ingredient] = {}
    for index, entry in enumerate(value):
        path = f"reference.ingredients[{index}]"
        if not isinstance(entry, dict):
            raise InvalidReference(path, f"must be an object, not {entry!r}")
        item = _ingredient(entry, path)
        if item.id in result:
            raise InvalidReference(f"{path}.id", f"{item.id!r} appears twice")
        result[item.id] = item
    return result


def _ingredient(entry: Mapping[str, Any], path: str) -> Ingredient:
    name = entry.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise InvalidReference(f"{path}.id", f"must be lower-case letters, digits and _, not {name!r}")
    available = require_int(entry.get("available_g"), f"{path}.available_g", 1, MAX_GRAMS)
    step = require_int(entry.get("step_g"), f"{path}.step_g", 1, 1000)
    minimum = require_int(entry.get("min_if_used_g"), f"{path}.min_if_used_g", step, available)
    if available % step or minimum % step:
        raise InvalidReference(f"{path}.step_g", f"{step} must divide available_g and min_if_used_g")
    attributes = entry.get("attributes_per_100g")
    if not isinstance(attributes, dict) or not attributes:
        raise InvalidReference(f"{path}.attributes_per_100g", "must be a non-empty object")
    unknown = [key for key in attributes if key not in NUTRIENTS]
    if unknown:
        raise InvalidReference(f"{path}.attributes_per_100g.{unknown[0]}", "is not a known attribute")
    per_100g = {
        key: _decimal(number, f"{path}.attributes_per_100g.{key}") for key, number in attributes.items()
    }
    return Ingredient(name, available, step, minimum, per_100g, _tags(entry.get("tags", []), f"{path}.tags"))


def _tags(value: object, path: str) -> frozenset[str]:
    if not isinstance(value, list) or len(value) > 32:
        raise InvalidReference(path, "must be a list of at most 32 tags")
    for tag in value:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise InvalidReference(path, f"{tag!r} is not a lower-case tag")
    if len(set(value)) != len(value):
        raise InvalidReference(path, "names a tag twice")
    return frozenset(value)


def _decimal(value: object, path: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidReference(path, f"must be a number, not {value!r}")
    try:
        number = Decimal(str(value))
    except (InvalidOperation, ValueError):
        raise InvalidReference(path, f"must be a number, not {value!r}") from None
    if not number.is_finite() or number < 0:
        raise InvalidReference(path, f"must be finite and not negative, not {value!r}")
    return number


def _targets(value: object, ingredients: Mapping[str, Ingredient]) -> tuple[Target, ...]:
    if not isinstance(value, dict) or not value:
        raise InvalidReference("reference.targets", "must be a non-empty object")
    return tuple(_target(attribute, bounds, ingredients) for attribute, bounds in value.items())


def _target(attribute: str, bounds: object, ingredients: Mapping[str, Ingredient]) -> Target:
    path = f"reference.targets.{attribute}"
    if attribute != "mass_g":
        if attribute not in NUTRIENTS:
            raise InvalidReference(path, "is not a known attribute")
        lacking = [item.id for item in ingredients.values() if attribute not in item.per_100g]
        if lacking:
            raise InvalidReference(path, f"is not stated for {lacking[0]}")
    if not isinstance(bounds, dict) or not bounds or not set(bounds) <= {"min", "max"}:
        raise InvalidReference(path, "must be an object with min, max or both")
    low, high = (
        _decimal(bounds[side], f"{path}.{side}") if side in bounds else None for side in ("min", "max")
    )
    if low is not None and high is not None and low > high:
        raise InvalidReference(path, "has min above max")
    return Target(attribute, low, high)
