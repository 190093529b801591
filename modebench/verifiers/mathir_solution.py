"""The numeric solution of a MathIR task's equation, degenerate bindings included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from modebench.verifiers import rational
from modebench.verifiers.rational import Rational
from modebench.verifiers.verdict import InvalidReference


def solution(
    lhs: Rational, rhs: Rational, names: Sequence[str], bindings: Mapping[str, Fraction]
) -> Fraction:
    """The value of x; the equation must be linear in x, with x in no denominator.

    Bindings may put zero below one side or both. Where that leaves a multiple of x alone, the published
    reference takes its coefficient as infinite and 0 as the solution, and so does this one (no answer can
    reach it).

    Raises:
        InvalidReference: the equation is not of this form.
    """
    totals = [Fraction(0), Fraction(0)]
    infinite: list[dict[int, Fraction]] = []
    for sign, side in ((1, lhs), (-1, rhs)):
        above, below = (rational.by_power_of_x(part, names) for part in rational.bind(side, names, bindings))
        if above and not below:
            infinite.append(above)
            continue
        ratios = {above.get(power, Fraction(0)) / number for power, number in below.items()}
        if above.keys() <= below.keys() and len(ratios) == 1:
            above, below = {0: ratios.pop()}, {0: Fraction(1)}
        if set(below) != {0}:
            raise InvalidReference("reference.initial_lhs", "has x or zero in a denominator")
        for power, number in above.items():
            totals[power] += sign * number / below[0]
    if infinite:
        if not _multiple_of_x(infinite):
            raise InvalidReference("reference.initial_lhs", "has zero in a denominator")
        return Fraction(0)
    if totals[1] == 0:
        raise InvalidReference("reference.initial_lhs", "the equation does not determine x")
    return -totals[0] / totals[1]


def _multiple_of_x(infinite: Sequence[Mapping[int, Fraction]]) -> bool:
    """Whether numerators over zero are a multiple of x alone, together.

    This infinity has no sign, and a single term loses its coefficient to it, a sum does not.
    """
    if any(len(above) == 1 for above in infinite):
        return all(set(above) == {1} for above in infinite)
    constant, slope = (sum(above[power] for above in infinite) for power in (0, 1))
    return constant == 0 and slope != 0
