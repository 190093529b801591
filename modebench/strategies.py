"""Strategies: four ways to go about a task of each domain, a name and one sentence of advice each.

They stand in for a coach (Mesh Learning, arXiv:2610.02835): a sentence names a method and holds no number,
step or answer of any task, so one serves all tasks of its domain.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple


class Strategy(NamedTuple):
    """One way to go about a task.

    Attributes:
        name: unique within its domain.
        advice: one sentence, what a prompt is given.
    """

    name: str
    advice: str


STRATEGIES = MappingProxyType(
    {
        "graph_coloring": (
            Strategy("tightest", "Color the missing vertex with the fewest free colors first."),
            Strategy("lowest", "Go through the missing vertices in order, each in its lowest free color."),
            Strategy("highest", "Go backwards through the missing vertices, each in its highest free color."),
            Strategy("one_class", "Give one color to as many missing vertices as possible, then the rest."),
        ),
        "countdown": (
            Strategy("sums", "Try additions and subtractions only."),
            Strategy("product", "Factor the target and end with a product."),
            Strategy("undo_largest", "Work back from the target and undo the largest number first."),
            Strategy("small_helper", "Make a helper of 0, 1 or 2 by a difference or quotient, then use it."),
        ),
        "python_factors": (
            Strategy("smallest", "Return the smallest prime divisor of every input."),
            Strategy("largest", "Return the largest proper divisor of every input."),
            Strategy("parity", "Halve the even inputs and treat the odd ones apart."),
            Strategy("size", "Give small inputs small divisors and large inputs large ones."),
        ),
        "mathir": (
            Strategy("collect", "Collect the terms with the unknown first."),
            Strategy("constants", "Move the constants first."),
            Strategy("clear", "Clear denominators first."),
            Strategy("coefficient", "Divide by the coefficient of the unknown first."),
        ),
        "pantry_plan": (
            Strategy("protein", "Meet the protein bound with the richest ingredient first."),
            Strategy("light", "Take the combination with the least energy."),
            Strategy("fewest", "Use as few ingredients as possible."),
            Strategy("leave_out", "Leave the scarcest ingredient out, then fill up."),
        ),
    }
)
"""The strategies of each domain, by its name."""
