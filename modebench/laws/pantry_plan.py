"""Pantry plan, levels 2 to 5 (arXiv:2610.11064): menus and bounds, by number of modes.

As published: at level 2 the menus and bounds of level 1; above it the sizes of the menus, steps,
minima, what is at hand, the probabilities of a forbidden tag, and bounds that grow around one plan
until exactly the wanted number of sets is feasible. Inferred: at level 2, a tag is forbidden wherever
that leaves enough sets, in place of a program that picks rows; which step goes with which tier of level
3; that level 4 has menus of 6 and level 5 of 6 to 8; the probabilities of a forbidden tag at levels 4
and 5; that families are equally likely before the number of modes is asked for; that bounds grow in
proportion to the plan's totals, on the sides that level 1 bounds. Our own: the food table and the
families of level 1. Not reproduced: the published tier weights, fitted to answers of 3B to 14B models;
tiers are equally frequent here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from modebench.laws import Cell, Impossible, draw_cell
from modebench.laws import pantry_menu as menus

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_EVEN = (0, 1, 2, 3)
CYCLES: Mapping[int, tuple[int, ...]] = MappingProxyType({2: (0,), 3: _EVEN, 4: _EVEN, 5: _EVEN})
TEXTS: Mapping[int, str] = MappingProxyType(
    {
        2: "level 1's menus and bounds with a forbidden tag wherever enough sets are left, quantities asked "
        "for; modes as at level 1",
        3: "6, 7 or 8 ingredients in steps of 25, 20 to 25 or 10 to 20 g, bounds grown around a hidden plan; "
        "modes as at level 1",
        4: "6 ingredients in steps of 25 g, bounds grown around a hidden plan; modes as at level 1",
        5: "6 to 8 ingredients in steps of 25 g, bounds grown around a hidden plan; modes as at level 1",
    }
)

MAX_DRAWS = 20_000
PLANS = 64
"""Plans tried at level 2 on one menu before another is drawn."""
UNIT = 100_000
"""Totals are counted in 1/100000 g, kcal or mg, in which every figure and bound is whole."""


class Tier(NamedTuple):
    """One kind of menu.

    Attributes:
        menu: ingredients.
        forbidding: probability that a tag is forbidden, where an ingredient has one that may be.
        steps: grids of quantities, grams, equally likely.
        minimum: fewest and most steps of the least quantity of an ingredient that is used.
        headroom: fewest and most steps that are available beyond that.
    """

    menu: int
    forbidding: float
    steps: tuple[int, ...] = (25,)
    minimum: tuple[int, int] = (2, 2)
    headroom: tuple[int, int] = (2, 4)


TIERS: Mapping[int, tuple[Tier, ...]] = MappingProxyType(
    {
        2: (Tier(6, 1.0),),
        3: (
            Tier(6, 0.25),
            Tier(7, 0.5, steps=(20, 25)),
            Tier(8, 0.6, steps=(10, 15, 20)),
            Tier(8, 0.75, steps=(10, 15, 20), minimum=(2, 4)),
        ),
        4: (Tier(6, 0.25), Tier(6, 0.5), Tier(6, 0.6), Tier(6, 0.75)),
        5: (Tier(6, 0.25), Tier(7, 0.5), Tier(7, 0.6), Tier(8, 0.75)),
    }
)


class Plans(NamedTuple):
    """Every plan of allowed ingredients, grouped by the set that it uses.

    Attributes:
        totals: [plans, 1 + attributes], mass first, in 1 / `UNIT`.
        starts: where the plans of each set begin.
    """

    totals: Integers
    starts: Integers


class Limits(NamedTuple):
    """Bounds in 1 / `UNIT`, [1 + attributes] each; a side without a bound is beyond every total."""

    low: Integers
    high: Integers


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference drawn from the law of `level`, conditioned on the cell.

    Raises:
        Impossible: no menu of many gave that number of modes.
    """
    support, tier = cell or draw_cell(rng, "pantry_plan", CYCLES[level])
    kind = TIERS[level][tier]
    for _ in range(MAX_DRAWS):
        # The family is drawn anew too: some hardly ever have very few or very many modes.
        family = rng.choice(sorted(menus.FAMILIES))
        menu, forbidden = _draw_menu(rng, family, kind, excluding=level > 2 or support <= _sets(5))
        allowed = [row for row in menu if not set(row["tags"]) & set(forbidden)]
        if _sets(len(allowed)) < support or (level == 2 and support <= _sets(5) and not forbidden):
            continue
        find = _level1_bounds if level == 2 else _grown_bounds
        targets = find(rng, menu, allowed, menus.FAMILIES[family].sodium_cap, support)
        if targets is not None:
            reference = menus.reference(family, menu, targets, forbidden)
            return reference | {"certified_mode_count": support}
    raise Impossible(f"no menu of level {level}, tier {tier}, has {support} modes")


def law_size(level: int) -> int | None:
    """Not known: the laws were never enumerated."""
    return None


def _sets(allowed: int) -> int:
    """Number of sets that a plan may use."""
    low, high = menus.CHOSEN
    return sum(comb(allowed, size) for size in range(low, high + 1))


def _draw_menu(
    rng: random.Random, family: str, kind: Tier, excluding: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """A menu and the tags that are forbidden."""
    step = rng.choice(kind.steps)
    menu = []
    for food in sorted(rng.sample(menus.FAMILIES[family].pool, kind.menu)):
        least = rng.randint(*kind.minimum)
        menu.append(menus.row(food, step * (least + rng.randint(*kind.headroom)), step, step * least))
    present = [tag for tag in menus.ALLERGENS if any(tag in row["tags"] for row in menu)]
    forbid = bool(present) and excluding and rng.random() < kind.forbidding
    return menu, [rng.choice(present)] if forbid else []


def _draw_plan(rng: random.Random, allowed: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    chosen = rng.sample(allowed, rng.choice(menus.PLAN_SIZES))
    return {row["id"]: rng.choice(menus.grid(row)) for row in chosen}


# Bounds -----------------------------------------------------------------------------------------


def _level1_bounds(
    rng: random.Random,
    menu: Sequence[Mapping[str, Any]],
    allowed: Sequence[Mapping[str, Any]],
    sodium_cap: int,
    support: int,
) -> dict[str, dict[str, str]] | None:
    """Level 1's bounds around the first of some random plans that give `support` modes."""
    plans = every_plan(allowed)
    for _ in range(PLANS):
        targets = menus.bounds(menu, _draw_plan(rng, allowed), sodium_cap)
        if count(plans, limits(targets)) == support:
            return targets
    return None


def _grown_bounds(
    rng: random.Random,
    menu: Sequence[Mapping[str, Any]],
    allowed: Sequence[Mapping[str, Any]],
    sodium_cap: int,
    support: int,
) -> dict[str, dict[str, str]] | None:
    """Bounds at one relative distance from the totals of a random plan that leave `support` modes.

    The distance is halfway between those at which the last wanted and the first unwanted set become
    feasible. None where these two are so close that rounded bounds don't separate them.
    """
    import numpy as np

    plan = _draw_plan(rng, allowed)
    plans = every_plan(allowed)
    centre = _totals(allowed, plan)
    scale = np.maximum(centre, 1)
    gap = (plans.totals - centre) / scale
    # Mass and energy are bounded on both sides, protein and fiber below, sodium above.
    gap = np.stack([abs(gap[:, 0]), abs(gap[:, 1]), -gap[:, 2], -gap[:, 3], gap[:, 4]])
    reach = np.sort(np.minimum.reduceat(np.maximum(gap.max(axis=0), 0), plans.starts))
    after = reach[support] if support < len(reach) else reach[-1] + 0.02
    if after <= reach[support - 1]:
        return None
    targets = _targets(centre.tolist(), scale.tolist(), float(reach[support - 1] + after) / 2)
    return targets if count(plans, limits(targets)) == support else None


def _targets(centre: Sequence[int], scale: Sequence[int], distance: float) -> dict[str, dict[str, str]]:
    """Bounds as decimal text with at most 3 places; lower ones are not below 0."""
    low, high = [], []
    for value, width in zip(centre, scale, strict=True):
        reach = Fraction(distance) * width
        low.append(menus.decimal_text(max(Fraction(0), (value - reach) / UNIT)))
        high.append(menus.decimal_text((value + reach) / UNIT))
    return {
        "mass_g": {"min": low[0], "max": high[0]},
        "energy_kcal": {"min": low[1], "max": high[1]},
        "protein_g": {"min": low[2]},
        "fiber_g": {"min": low[3]},
        "sodium_mg": {"max": high[4]},
    }


def _amounts(row: Mapping[str, Any]) -> list[int]:
    """Mass and attributes of one gram, in 1 / `UNIT`."""
    return [int(menus.per_gram(row, key) * UNIT) for key in ("mass_g", *menus.ATTRIBUTES)]


def _totals(allowed: Sequence[Mapping[str, Any]], plan: Mapping[str, int]) -> Integers:
    import numpy as np

    grams = np.array([plan.get(row["id"], 0) for row in allowed], np.int64)
    return grams @ np.array([_amounts(row) for row in allowed], np.int64)


def every_plan(allowed: Sequence[Mapping[str, Any]]) -> Plans:
    """All quantities of all sets of allowed ingredients."""
    import numpy as np

    single = [np.outer(list(menus.grid(row)), _amounts(row)) for row in allowed]
    grown: dict[tuple[int, ...], Integers] = {(i,): totals for i, totals in enumerate(single)}
    found = []
    for size in range(2, menus.CHOSEN[1] + 1):
        for support in combinations(range(len(allowed)), size):
            both = grown[support[:-1]][:, None, :] + single[support[-1]][None, :, :]
            grown[support] = both.reshape(-1, both.shape[-1])
            found.append(grown[support])
    starts = np.cumsum([0, *map(len, found)])[:-1]
    return Plans(np.concatenate(found), starts)


def limits(targets: Mapping[str, Mapping[str, str]]) -> Limits:
    """Bounds of a reference, exactly."""
    import numpy as np

    sides = [targets[key] for key in ("mass_g", *menus.ATTRIBUTES)]
    low = [int(Fraction(side.get("min", "0")) * UNIT) for side in sides]
    high = [int(Fraction(side.get("max", "1000000")) * UNIT) for side in sides]
    return Limits(np.array(low), np.array(high))


def count(plans: Plans, bounds: Limits) -> int:
    """Number of sets with a plan that meets every bound."""
    import numpy as np

    fits = ((plans.totals >= bounds.low) & (plans.totals <= bounds.high)).all(axis=1)
    return int(np.logical_or.reduceat(fits, plans.starts).sum())
