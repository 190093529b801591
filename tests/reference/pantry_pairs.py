"""PantryPlan: references of every level, masks and allocations."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

from tests.reference.texts import BLANKS, edit, guesses, nonsense

# fmt: off
IDS = (
    "oats", "lentils", "rice_brown", "milk", "apple", "eggs", "tofu_2", "corn", "kale", "a", "z9_",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "beans", "almonds",
)
# fmt: on
TAGS = ("peanut", "tree_nut", "dairy", "gluten", "soy-free", "t", "g" * 32)
NUTRIENTS = ("energy_kcal", "protein_g", "fiber_g", "fat_g", "carbohydrate_g", "sodium_mg", "cost_cents")
# fmt: off
PIECES = (
    "oats", "lentils", "=", "=", "50", "100", ";", ";", ",", " ", "g", "0", "075", "{", "}", ":",
    "rice_brown", "milk=50", "٣", "１00", "Oats", "-50", "+50", "50.0", "5e1", "1_0", "\n", "\\_",
    "0000000050", "10000", "10001", "==", "->", "\xa0",
)
ODD_DECIMALS = (
    "1e2", "1E-30", "0.1", " 5 ", "1_000", "+5", "-0", "٣", "00012.50", ".5", "5.", "1e28",
    "9999999999999999999999999999", "99999999999999999999999999999",
    "0.3333333333333333333333333333333333333333",
    "111111111111111111111111111111.777777777777777777777777777777", "1e-400", "1e400",
    "123456789.123456789123456789123456789", 1e+22, 1e-07, 0.1, 0.3333333333333333, 1e+300, 5e-324,
    10000000000000000000000000, 10000000000000000000000000000000000000000, 0, 0.0, -0.0, "1e999", "1e-999",
    "NaN", "-1", "Infinity", "", "1,5", "0x10", True, None, "1e999999", "1E+1000000",
)
# fmt: on


def reference(rng: random.Random, level: int) -> dict[str, Any]:
    count = 6 if level == 1 and rng.random() < 0.97 else rng.choice((2, 3, 5, 6, 6, 8, 16))
    attributes = rng.sample(NUTRIENTS, rng.randint(1, 4))
    names = [*IDS, "more_a", "more_b"]
    items = [_ingredient(rng, name, attributes, level) for name in rng.sample(names, count)]
    low = rng.randint(1, min(3, count))
    result: dict[str, Any] = {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "ingredients": items,
        "targets": _targets(rng, items, attributes, low),
        "min_ingredients": low,
        "max_ingredients": rng.randint(low, min(count, low + 2, 4)),
        "forbidden_tags": rng.sample(TAGS, rng.choice((0, 0, 1, 2))),
        "certified_mode_count": rng.randint(2, 64),
    }
    if rng.random() < 0.1:
        del result["forbidden_tags"]
    if rng.random() < 0.3:
        result |= {"family": "test", "instance_id": "t-0", "certified_support_sha256": "0" * 64}
    return result


def _decimal(rng: random.Random) -> Any:
    if rng.random() < 0.006:
        return rng.choice(ODD_DECIMALS)
    value = rng.choice((rng.uniform(0, 30), rng.uniform(0, 600), rng.uniform(0, 1)))
    return rng.choice((f"{value:.2f}", f"{value:.3g}", round(value, 2), int(value), f"{value:.1f}", value))


def _ingredient(rng: random.Random, name: str, attributes: list[str], level: int) -> dict[str, Any]:
    step = (
        rng.choice((1, 5, 10, 20, 25, 25, 25, 50, 7)) if level != 1 else rng.choice((10, 20, 25, 25, 25, 50))
    )
    minimum = step * rng.randint(1, 3)
    available = minimum + step * rng.randint(0, 4 if level == 1 else 30)
    stated = attributes if rng.random() < 0.98 else attributes[1:] or list(NUTRIENTS)
    item: dict[str, Any] = {
        "id": name,
        "available_g": available,
        "step_g": step,
        "min_if_used_g": minimum,
        "attributes_per_100g": {attribute: _decimal(rng) for attribute in stated},
        "tags": rng.sample(TAGS, rng.choice((0, 0, 0, 1, 2))),
    }
    if rng.random() < 0.1:
        del item["tags"]
    return item


def amounts(rng: random.Random, item: dict[str, Any]) -> int:
    """An amount on the grid of an ingredient, where its fields make one."""
    fields = [item.get(key) for key in ("min_if_used_g", "step_g", "available_g")]
    if not all(type(value) is int and value > 0 for value in fields):
        return 50
    minimum, step, available = fields
    return minimum + step * rng.randint(0, max(0, (available - minimum) // step))


def _plan(rng: random.Random, reference: dict[str, Any]) -> dict[str, int]:
    listed = reference.get("ingredients")
    items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    low, high = reference.get("min_ingredients"), reference.get("max_ingredients")
    size = rng.randint(low, high) if type(low) is int and type(high) is int and 0 < low <= high <= 16 else 2
    if rng.random() < 0.1:
        size += rng.choice((-1, 1, 2))
    chosen = rng.sample(items, max(0, min(size, len(items))))
    return {str(item.get("id")): amounts(rng, item) for item in chosen}


def _targets(
    rng: random.Random, items: list[dict[str, Any]], attributes: list[str], low: int
) -> dict[str, Any]:
    """Intervals around the totals of one random plan."""
    chosen = rng.sample(items, min(len(items), low + rng.randint(0, 1)))
    plan = [(item, amounts(rng, item)) for item in chosen]
    targets: dict[str, Any] = {}
    for attribute in rng.sample(["mass_g", *attributes], rng.randint(1, len(attributes) + 1)):
        total = Decimal(sum(grams for _, grams in plan))
        if attribute != "mass_g":
            total = sum(
                (_number(item["attributes_per_100g"].get(attribute)) * g / 100 for item, g in plan),
                Decimal(0),
            )
        low_bound, high_bound = total * Decimal(rng.choice((1, 1, 1, 0))), total * rng.choice((1, 2))
        width = Decimal(rng.choice(("0", "0.05", "0.3", "1")))
        bounds = {"min": low_bound * (1 - width), "max": high_bound * (1 + width)}
        kept = rng.choice((("min", "max"), ("min", "max"), ("min",), ("max",)))
        targets[attribute] = {key: _bound(rng, bounds[key]) for key in kept}
    return targets


def _number(value: Any) -> Decimal:
    """A decimal for building targets; 1 where the value is one of the odd ones."""
    try:
        number = Decimal(str(value))
    except ArithmeticError:
        return Decimal(1)
    return number if number.is_finite() and -50 < number.adjusted() < 50 else Decimal(1)


def _bound(rng: random.Random, value: Decimal) -> Any:
    if rng.random() < 0.01:
        return rng.choice(ODD_DECIMALS)
    return rng.choice((str(value), float(value), int(value), f"{value:.3f}", str(value)))


def mask(rng: random.Random, reference: dict[str, Any]) -> str:
    """Six bits, mostly; often of an allowed size."""
    size = rng.choice((1, 2, 2, 3, 3, 4)) if rng.random() < 0.8 else rng.randint(0, 6)
    bits = [1] * size + [0] * (6 - size)
    rng.shuffle(bits)
    text = "".join(map(str, bits))
    if rng.random() < 0.85:
        return text
    return rng.choice(
        (
            *(
                f" {text}\n",
                f"{rng.choice(BLANKS)}{text}{rng.choice(BLANKS)}",
                text + "0",
                text[:-1],
                " ".join(text),
            ),
            *(
                text.replace("1", "１"),
                text.replace("0", "O"),
                f"0b{text}",
                text.replace("0", "٠"),
                f"{text}.",
                "111111\n0",
            ),
        )
    )


def spell(rng: random.Random, plan: dict[str, int]) -> str:
    pairs = list(plan.items())
    rng.shuffle(pairs)
    equals = rng.choice(("=", "=", "=", " = ", f"{rng.choice(BLANKS)}=", "= ", ":", "=="))
    unit = rng.choice(("", "", "", "", "", "", "g", ".0", " g"))
    zeros = rng.choice(("", "", "", "0", "000"))
    pieces = [f"{name}{equals}{zeros}{grams}{unit}" for name, grams in pairs]
    separator = rng.choice((";", ";", ";", "; ", ", ", ",", " ; ", ";;", " ", f";{rng.choice(BLANKS)}"))
    text = separator.join(pieces) + rng.choice(("", "", "", "", "", ";", ",", " "))
    return rng.choice(
        (
            text,
            text,
            text,
            text,
            f"{{{text}}}",
            f"{{ {text} }}",
            f"{{{text}",
            f"[{text}]",
            text.replace("_", "\\_"),
        )
    )


def _off(rng: random.Random, plan: dict[str, int]) -> dict[str, int]:
    """A plan with one thing wrong."""
    changed = dict(plan)
    name = rng.choice(list(plan) or ["oats"])
    grams = changed.get(name, 50)
    kind = rng.randrange(5)
    if kind == 0:
        changed[name] = rng.choice((0, 1, grams + 1, grams - 1, grams * 2, 10_000, 10_001, 10**20))
    elif kind == 1:
        changed[rng.choice(("nothing", "oatz", name.upper(), name + "_", "x" * 33, "9a"))] = grams
    elif kind == 2:
        changed.pop(name, None)
    elif kind == 3:
        changed[rng.choice(IDS)] = rng.choice((25, 50, 75, 100))
    else:
        changed = {key: value + rng.choice((0, 25)) for key, value in changed.items()}
    return changed


def answer(rng: random.Random, reference: dict[str, Any], level: int) -> str:
    if level == 1 and rng.random() < 0.85:
        return mask(rng, reference)
    plan = _plan(rng, reference)
    kind = rng.randrange(12)
    if kind < 5:
        return ";".join(f"{name}={grams}" for name, grams in plan.items())
    if kind < 7:
        return spell(rng, plan)
    if kind == 7:
        return spell(rng, _off(rng, plan))
    if kind == 8:
        return edit(rng, spell(rng, plan), PIECES, rng.randint(1, 3))
    if kind == 9:
        return guesses(rng, [spell(rng, plan), spell(rng, _plan(rng, reference))])
    if kind == 10:
        filler = rng.choice((" " * 500, "0" * 450))
        return rng.choice(
            (
                spell(rng, plan) + filler,
                ";".join(f"{k}={filler}{v}" for k, v in plan.items()),
                mask(rng, reference),
            )
        )
    return nonsense(rng, PIECES)
