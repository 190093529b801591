"""The prompt profile ``compact``: a task in some 10 to 40 tokens of the tiny policy's tokenizer.

The text says what decides the verdict and nothing else, so that a policy of a million parameters can read it:

- Countdown and Python factors: the compact text of `modebench.variation`.
- Graph colouring: the colours, with A, B, … for missing ones, then for each of these the colours that its
  neighbours show and the letters of its missing neighbours: ``G3ABC2:13|C|2B``. Edges between shown vertices
  are left out. Tasks with one text have the same right answers and modes.
- MathIR: the equation and the menu, without the values, which decide nothing in the laws with menus.
- Pantry, level 1: bounds and amounts as whole numbers in the units of `UNITS`, rounded inwards, so that what
  meets the text meets the task. Other levels: the compact text.

An answer in this profile is the bare candidate, without ``\\boxed{}``.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from string import ascii_uppercase
from types import MappingProxyType

from modebench.domains.base import Reference
from modebench.tasks import Task
from modebench.variation import get_variation
from modebench.variation.pantry_text import ATTRIBUTES, FOODS, TAGS

UNITS = MappingProxyType(
    {"mass_g": 25, "energy_kcal": 25, "protein_g": 1, "fiber_g": 1, "fat_g": 1, "carbohydrate_g": 1}
    | {"sodium_mg": 10, "available_g": 25}
)
"""What 1 stands for in a pantry text of level 1."""

_BOX = "\\boxed{"
_USUAL = "K2-4/25/50m"


def compact_problem(task: Task) -> str:
    """The user message of a task.

    Raises:
        ValueError: the domain, or this task of it, has no compact text; one line.
    """
    text = get_variation(task.domain).write(task.reference)
    if task.domain == "graph_coloring":
        return _graph(task.reference)
    if task.domain == "mathir":
        return text.partition(";")[0].replace(" ", "")
    if task.domain == "pantry_plan" and text.startswith(_USUAL) and task.level == 1:
        return _pantry(task.reference)
    return text


def compact_answer(answer: str) -> str:
    """The candidate inside a boxed answer; anything else as it is."""
    boxed = answer.startswith(_BOX) and answer.endswith("}")
    return answer[len(_BOX) : -1] if boxed else answer


def _graph(reference: Reference) -> str:
    partial = reference.get("partial_colors") or [None] * reference["n"]
    hidden = [vertex for vertex, colour in enumerate(partial, 1) if colour is None]
    if len(hidden) > len(ascii_uppercase):
        raise ValueError(f"{len(hidden)} missing colors, a compact prompt has letters for 26")
    letters = dict(zip(hidden, ascii_uppercase, strict=False))
    near: dict[int, set[str]] = {vertex: set() for vertex in hidden}
    for edge in reference["edges"]:
        for one, other in (edge, edge[::-1]):
            if one in near:
                near[one].add(letters.get(other) or str(partial[other - 1]))
    shown = "".join(letters.get(vertex) or str(colour) for vertex, colour in enumerate(partial, 1))
    return f"G{shown}:" + "|".join("".join(sorted(near[vertex])) for vertex in hidden)


def _pantry(reference: Reference) -> str:
    bounds = []
    for attribute, letter in ATTRIBUTES.items():
        sides = reference["targets"].get(attribute)
        if sides is not None:
            unit = UNITS[attribute]
            low = ceil(Fraction(sides["min"]) / unit) if "min" in sides else ""
            high = floor(Fraction(sides["max"]) / unit) if "max" in sides else ""
            bounds.append(f"{letter}{low}-{high}")
    unit = UNITS["available_g"]
    rows = "".join(f"{FOODS[row['id']]}{row['available_g'] // unit}" for row in reference["ingredients"])
    tags = "".join(f"!{TAGS[tag]}" for tag in reference.get("forbidden_tags", ()))
    return f"K{''.join(bounds)};{rows}{tags}"
