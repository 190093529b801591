"""Countdown, levels 2 to 5 (arXiv:2610.11064): which numbers and targets, by number of modes.

As published: the ranges of numbers and targets of every tier, different numbers, the numbers of modes
of level 1, more weight on targets with divisions, products and size. Inferred: that a target is at most
operands times the largest number (true where a bound is published), that numbers are drawn before
targets, what exactly the weight counts, and "easiest first" at level 2 (here: a task has a mode with a
product and without a division; too few have two products and the modes of level 1). Published is that
7 modes at level 3 come from the four-number preset in the first two tiers; ours does the same for 8,
which the second tier hardly has. Not reproduced: the published tier weights, fitted to answers of 3B to
14B models. Levels 3 and 4 mix the tiers equally; level 5 takes level 4's tiers as 1:2:3:4.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from modebench.laws import Cell, Impossible, draw_cell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

Numbers = tuple[int, ...]

MAX_DRAWS = 20_000
"""Number sets drawn before a cell counts as impossible."""
REDIRECTED = frozenset({7, 8})
"""Numbers of modes that the three-number tiers of level 3 leave to the third tier."""


class Tier(NamedTuple):
    """One kind of task.

    Attributes:
        operands: how many numbers, all different.
        values: smallest and largest number; a target is at most `operands` times the largest.
        weighted: whether targets with more divisions, products and size are likelier.
    """

    operands: int
    values: tuple[int, int]
    weighted: bool = False


_SCALE = (
    Tier(4, (2, 18)),
    Tier(4, (5, 64), weighted=True),
    Tier(4, (8, 99), weighted=True),
    Tier(4, (16, 192), weighted=True),
)
TIERS: Mapping[int, tuple[Tier, ...]] = MappingProxyType(
    {
        2: (Tier(4, (2, 14)),),
        3: (Tier(3, (2, 32)), Tier(3, (8, 99)), Tier(4, (2, 18)), Tier(4, (5, 64))),
        4: _SCALE,
        5: _SCALE,
    }
)
CYCLES: Mapping[int, tuple[int, ...]] = MappingProxyType(
    {2: (0,), 3: (0, 1, 2, 3), 4: (0, 1, 2, 3), 5: (3, 2, 1, 3, 0, 2, 3, 1, 2, 3)}
)
TEXTS: Mapping[int, str] = MappingProxyType(
    {
        2: "4 different numbers of 2 to 14, a target up to 56 that is reached with a product and no "
        "division; modes as at level 1",
        3: "3 different numbers of 2 to 32 or 8 to 99, or 4 of 2 to 18 or 5 to 64, equally often; modes as "
        "at level 1",
        4: "4 different numbers of 2 to 18, 5 to 64, 8 to 99 or 16 to 192, equally often; modes as at "
        "level 1",
        5: "4 different numbers of 2 to 18, 5 to 64, 8 to 99 or 16 to 192, as 1:2:3:4; modes as at level 1",
    }
)


class Values(NamedTuple):
    """What the expressions over some numbers come to, an entry each; the keys are all different.

    Attributes:
        num, den: the value as a fraction, not reduced; expressions that divide by zero are left out.
        divisions, products: how many of these signs the expression has.
    """

    num: Integers
    den: Integers
    divisions: Integers
    products: Integers


class Targets(NamedTuple):
    """Every target of some numbers, an entry each, ascending.

    Attributes:
        values: the targets.
        modes: exact number of modes of each.
        weights: (1 + 3 divisions + products)(1 + ln(1 + value)), with means over the modes.
        plain: whether a mode has a product and no division.
    """

    values: Integers
    modes: Integers
    weights: npt.NDArray[np.float64]
    plain: npt.NDArray[np.bool_]


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference: number sets are uniform until one has a fitting target; targets by weight.

    Raises:
        Impossible: no number set of many had a target of that many modes.
    """
    support, tier = cell or draw_cell(rng, "countdown", CYCLES[level])
    tiers = TIERS[level]
    kind = tiers[2 if level == 3 and support in REDIRECTED and tier < 2 else tier]
    low, high = kind.values
    for _ in range(MAX_DRAWS):
        numbers = tuple(sorted(rng.sample(range(low, high + 1), kind.operands)))
        found = targets(numbers, kind.operands * high)
        fits = found.modes == support
        if level == 2:
            fits &= found.plain
        if fits.any():
            weights = found.weights[fits].tolist() if kind.weighted else None
            [target] = rng.choices(found.values[fits].tolist(), weights)
            return {"verifier": "countdown", "numbers": list(numbers), "target": target}
    raise Impossible(f"no {kind.operands} numbers of {low} to {high} have a target with {support} modes")


@cache
def law_size(level: int) -> int | None:
    """How many tasks of 2 to 8 modes level 2 has; not known for the others."""
    if level != 2:
        return None
    [kind] = TIERS[level]
    low, high = kind.values
    total = 0
    for numbers in combinations(range(low, high + 1), kind.operands):
        found = targets(numbers, kind.operands * high)
        total += int((found.plain & (found.modes >= 2) & (found.modes <= 8)).sum())
    return total


def targets(numbers: Numbers, most: int) -> Targets:
    """Every target of 1 to `most` outside the numbers; `most` is at least as large as each of these."""
    import numpy as np

    values = expressions(numbers)
    quotient, remainder = np.divmod(values.num, values.den)
    kept = (remainder == 0) & (quotient >= 1) & (quotient <= most)
    reached = quotient[kept]
    divisions, products = values.divisions[kept], values.products[kept]
    modes = np.bincount(reached, minlength=most + 1)
    cost = np.bincount(reached, weights=1 + 3 * divisions + products, minlength=most + 1)
    plain = np.bincount(reached, weights=(divisions == 0) & (products > 0), minlength=most + 1)
    modes[list(numbers)] = 0
    found = np.flatnonzero(modes)
    weights = cost[found] / modes[found] * (1 + np.log(1 + found))
    return Targets(found, modes[found], weights, plain[found] > 0)


def expressions(numbers: Numbers) -> Values:
    """Every expression without unary signs over different numbers; int64 is exact up to 4 of 192."""
    import numpy as np

    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    stored: dict[Numbers, Values] = {(number,): Values(one * number, one, zero, zero) for number in numbers}
    for size in range(2, len(numbers) + 1):
        for part in combinations(numbers, size):
            pieces = [
                piece
                for half in range(1, size // 2 + 1)
                for left in combinations(part, half)
                if 2 * half < size or left[0] == part[0]
                for piece in _joined(stored[left], stored[tuple(n for n in part if n not in left)])
            ]
            stored[part] = Values(*map(np.concatenate, zip(*pieces, strict=True)))
    return stored[numbers]


def _joined(left: Values, right: Values) -> list[Values]:
    """All pairs of the two sides under each sign; a difference or quotient goes both ways."""
    import numpy as np

    pn, pd, p_divisions, p_products = (np.repeat(column, len(right.num)) for column in left)
    qn, qd, q_divisions, q_products = (np.tile(column, len(left.num)) for column in right)
    divisions, products = p_divisions + q_divisions, p_products + q_products
    joined = [
        Values(pn * qd + qn * pd, pd * qd, divisions, products),
        Values(pn * qn, pd * qd, divisions, products + 1),
        Values(pn * qd - qn * pd, pd * qd, divisions, products),
        Values(qn * pd - pn * qd, pd * qd, divisions, products),
    ]
    for num, den in ((pn * qd, pd * qn), (qn * pd, qd * pn)):
        possible = den != 0
        columns = (num, den, divisions + 1, products)
        joined.append(Values(*(column[possible] for column in columns)))
    return joined
