"""Python factors, levels 2 to 5 (arXiv:2610.11064): sets of inputs, by number of modes.

As published: ranges of the inputs, smallest factors, the band of the smallest input at level 3, the
semiprime and the squares 25 and 49 at level 4, no common divisor at levels 4 and 5, sets uniform given
the number of modes, the numbers of modes of level 1. Inferred: which window goes with which band at
level 3, that the two primes of a semiprime differ, that all inputs stand in ascending order, and level
5 as a whole, which was read off its rows. Not reproduced: the published tier weights, fitted to answers
of 3B to 14B models; tiers are equally frequent here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from modebench.laws import Cell, Impossible, draw_cell

_EVEN = (0, 1, 2, 3)
CYCLES: Mapping[int, tuple[int, ...]] = MappingProxyType({2: (0,), 3: _EVEN, 4: _EVEN, 5: _EVEN})
TEXTS: Mapping[int, str] = MappingProxyType(
    {
        2: "4 different inputs of 6 to 192, one above 96, each with 2 or more divisors between 1 and itself; "
        "modes as at level 1",
        3: "4 different inputs of 60 to 192 or 384 with a smallest factor up to 5, the smallest input of 60 "
        "to 69, 79 or 89; modes as at level 1",
        4: "3 inputs of 48 to 1000 with a smallest factor up to 5, a product of two primes from 11 on, and "
        "in three of four tiers 25 and 49; modes as at level 1",
        5: "4 inputs of 48 to 1000 with a smallest factor up to 5, or 3 of them and one with 7, 11 or 13; "
        "modes as at level 1",
    }
)

MAX_DRAWS = 5_000


class Window(NamedTuple):
    """Inputs that a set is drawn from.

    Attributes:
        low, high: smallest and largest input.
        factors: smallest and largest that the smallest factor of an input may be.
        min_divisors: fewest divisors d of an input v with 1 < d < v.
    """

    low: int
    high: int
    factors: tuple[int, int] = (2, 5)
    min_divisors: int = 1


LEVEL2 = Window(6, 192, factors=(2, 13), min_divisors=2)
LEVEL3 = ((192, 69), (384, 69), (384, 79), (384, 89))
"""Largest input, and the largest that the smallest input may be, of the tiers of level 3."""
ORDINARY = Window(48, 1000)
SEMIPRIMES = (11, 11, 13, 17)
"""Smaller prime of the semiprime of the tiers of level 4; the larger one is at most 3 times that."""
EXCEPTIONS = (None, 7, 11, 13)
"""Smallest factor of the exceptional input of the tiers of level 5; the first tier has none."""


def generate(rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
    """One reference, uniform over the sets of the cell's tier with its number of modes.

    A tier that has no such set leaves it to the next one.

    Raises:
        Impossible: no tier has one.
    """
    support, tier = cell or draw_cell(rng, "python_factors", CYCLES[level])
    draw = {2: _draw2, 3: _draw3, 4: _draw4, 5: _draw5}[level]
    for kind in [*CYCLES[level][tier:], *CYCLES[level][:tier]]:
        cases = draw(rng, support, kind)
        if cases is not None:
            return {
                "verifier": "python_factor_function",
                "python_version": "factor-v1",
                "cases": sorted(cases),
            }
    raise Impossible(f"no set of level {level} has {support} modes")


def law_size(level: int) -> int | None:
    """Not known: the laws were never enumerated."""
    return None


def _draw2(rng: random.Random, support: int, tier: int) -> list[int] | None:
    return _where(lambda: _draw_set(rng, LEVEL2, 4, support), lambda cases: max(cases) > 96)


def _draw3(rng: random.Random, support: int, tier: int) -> list[int] | None:
    high, band = LEVEL3[tier]
    return _where(lambda: _draw_set(rng, Window(60, high), 4, support), lambda cases: min(cases) <= band)


def _draw4(rng: random.Random, support: int, tier: int) -> list[int] | None:
    """A semiprime has two divisors between 1 and itself, a square of a prime has one."""
    if support % 2:
        return None
    p = SEMIPRIMES[tier]
    semiprimes = [p * q for q in range(p + 1, 3 * p + 1) if not divisors(q)]
    extra = [] if tier == 0 else [25, 49]

    def draw() -> list[int] | None:
        cases = _draw_set(rng, ORDINARY, 3, support // 2)
        return None if cases is None else [*cases, rng.choice(semiprimes), *extra]

    return _where(draw, lambda cases: math.gcd(*cases) == 1)


def _draw5(rng: random.Random, support: int, tier: int) -> list[int] | None:
    factor = EXCEPTIONS[tier]
    if factor is None:
        return _where(lambda: _draw_set(rng, ORDINARY, 4, support), lambda cases: math.gcd(*cases) == 1)
    exceptional = inputs(ORDINARY._replace(factors=(factor, factor)))
    weights = [
        ways(ORDINARY, 3, support // len(divisors(value))) if support % len(divisors(value)) == 0 else 0
        for value in exceptional
    ]
    if not any(weights):
        return None

    def draw() -> list[int] | None:
        [value] = rng.choices(exceptional, weights)
        cases = _draw_set(rng, ORDINARY, 3, support // len(divisors(value)))
        return None if cases is None else [*cases, value]

    return _where(draw, lambda cases: math.gcd(*cases) == 1)


def _where(draw: Callable[[], list[int] | None], fits: Callable[[list[int]], bool]) -> list[int] | None:
    """The first set that fits; uniform over those that do, where draws are uniform."""
    for _ in range(MAX_DRAWS):
        cases = draw()
        if cases is None or fits(cases):
            return cases
    return None


def _draw_set(rng: random.Random, window: Window, size: int, support: int) -> list[int] | None:
    """A set of `size` inputs with `support` modes, uniform over all of them; None where there is none."""
    values = inputs(window)
    at, left = 0, support
    if not ways(window, size, support):
        return None
    chosen = []
    for wanted in range(size, 0, -1):
        pick = rng.randrange(_ways_from(window, at, wanted, left))
        while pick >= (here := _ways_with(window, at, wanted, left)):
            pick -= here
            at += 1
        chosen.append(values[at])
        left //= len(divisors(values[at]))
        at += 1
    return chosen


def ways(window: Window, size: int, support: int) -> int:
    """Number of sets of `size` inputs of the window with exactly `support` modes."""
    return _ways_from(window, 0, size, support)


def _ways_with(window: Window, at: int, wanted: int, support: int) -> int:
    """Sets that hold input number `at` and otherwise later ones."""
    modes = len(divisors(inputs(window)[at]))
    return 0 if support % modes else _ways_from(window, at + 1, wanted - 1, support // modes)


def _ways_from(window: Window, at: int, wanted: int, support: int) -> int:
    """Sets of inputs from number `at` on."""
    if wanted == 0:
        return int(support == 1)
    return _suffix_ways(window, wanted, support)[at]


@cache
def _suffix_ways(window: Window, wanted: int, support: int) -> list[int]:
    """`_ways_from` for every start, the end included."""
    ways_at = [0] * (len(inputs(window)) + 1)
    for at in range(len(inputs(window)) - 1, -1, -1):
        ways_at[at] = ways_at[at + 1] + _ways_with(window, at, wanted, support)
    return ways_at


@cache
def inputs(window: Window) -> list[int]:
    """The inputs of a window, ascending."""
    low, high = window.factors
    return [
        value
        for value in range(window.low, window.high + 1)
        if len(divisors(value)) >= window.min_divisors and low <= divisors(value)[0] <= high
    ]


@cache
def divisors(value: int) -> list[int]:
    """Divisors d of `value` with 1 < d < value, ascending."""
    return [d for d in range(2, value // 2 + 1) if value % d == 0]
