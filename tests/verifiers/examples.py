"""One good task of every verifier with a right answer, and ways to damage its reference."""

from __future__ import annotations

import copy
from typing import Any

DELETE = object()

_INGREDIENTS = [
    {
        "id": name,
        "available_g": 125,
        "step_g": 25,
        "min_if_used_g": 50,
        "attributes_per_100g": {"energy_kcal": energy, "protein_g": "3.5"},
        "tags": tags,
    }
    for name, energy, tags in (
        *(("oats", "389", ["gluten"]), ("lentils", 353, []), ("rice", 360.5, []), ("apple", "52", [])),
        *(("tofu", "76", ["soy"]), ("almonds", "579", ["tree_nut"])),
    )
]

REFERENCES: dict[str, dict[str, Any]] = {
    "graph_coloring": {
        "verifier": "graph_coloring",
        "n": 4,
        "edges": [[1, 2], [2, 3], [3, 4]],
        "partial_colors": [1, None, None, 2],
    },
    "countdown": {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18},
    "python_factors": {
        "verifier": "python_factor_function",
        "python_version": "factor-v1",
        "cases": [12, 15, 49],
    },
    "mathir": {
        "verifier": "mathir_action_menu",
        "mathir_version": "linear-menu-v1",
        "bindings": {"a": 3, "b": "-1/2", "c": 4},
        "initial_lhs": "add(mul(a,x),b)",
        "initial_rhs": "c",
        "max_steps": 4,
        "actions": {"A": "sub(b)", "B": "div(a)", "C": "sub(c)"},
    },
    "mathir_program": {
        "verifier": "mathir_algebra",
        "mathir_version": "linear-v0",
        "bindings": {"a": 3, "b": "-1/2", "c": 4},
        "initial_lhs": "add(mul(a,x),b)",
        "initial_rhs": "c",
    },
    "pantry_plan": {
        "verifier": "pantry_plan",
        "pantry_version": "pantry-v1",
        "ingredients": _INGREDIENTS,
        "targets": {"mass_g": {"min": 100, "max": "200"}, "energy_kcal": {"min": 150.0}},
        "min_ingredients": 2,
        "max_ingredients": 4,
        "forbidden_tags": ["tree_nut"],
        "certified_mode_count": 9,
    },
}
REFERENCES["pantry_mask"] = REFERENCES["pantry_plan"]

RIGHT: dict[str, tuple[str, str]] = {
    "graph_coloring": ("\\boxed{1232}", "graph_coloring:1232"),
    "countdown": ("\\boxed{9+6+3}", "countdown:add(3,add(6,9))"),
    "python_factors": ("\\boxed{lambda n: 7 if n==49 else 3}", "python_factor:3,3,7"),
    "mathir": (
        "\\boxed{A;B}",
        "mathir:linear-menu-v1:eq(mul(a,x),add(c,mul(-1,b)))>eq(x,mul(add(c,mul(-1,b)),inv(a)))",
    ),
    "mathir_program": (
        "\\boxed{sub(b);div(a)}",
        "mathir:linear-v0:eq(mul(a,x),add(c,mul(-1,b)))>eq(x,mul(add(c,mul(-1,b)),inv(a)))",
    ),
    "pantry_plan": ("\\boxed{oats=50;lentils=75}", "pantry_plan:pantry-v1:lentils+oats"),
    "pantry_mask": ("110000", "pantry_plan:pantry-v1:lentils+oats"),
}
"""A right answer and its mode."""


def task(name: str, **changes: Any) -> dict[str, Any]:
    """An example task; ``pantry_mask`` is level 1 of pantry_plan, ``mathir_program`` a free program."""
    domain = name.replace("_program", "").replace("_mask", "_plan")
    level = 1 if name == "pantry_mask" else 2
    return {"domain": domain, "level": level, "reference": copy.deepcopy(REFERENCES[name]), **changes}


def damaged(name: str, path: str, value: Any) -> dict[str, Any]:
    """An example task with one field of its reference replaced, added or (`DELETE`) removed.

    >>> damaged("countdown", "numbers.1", 0)["reference"]["numbers"]
    [3, 0, 9]
    """
    result = task(name)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    holder = result["reference"]
    for step in steps:
        holder = holder[step]
    if value is DELETE:
        del holder[last]
    else:
        holder[last] = value
    return result
