"""Which parts go together, told by the parts themselves.

A part declares what it makes true of a method (`provides`), what of the others it cannot go with (`refuses`)
and what of the others it needs (`requires`), each with the reason in words. Nothing else knows about pairs:
the check below and the printed table are computed from the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modebench.training.method import Method
from modebench.training.part import Part

BASE = "dr_grpo"
"""The method on which pairs of parts are tried."""

GRADED_REWARDS = "rewards between right and wrong"
"""Right rollouts of one group may be paid differently."""

BASELINE = "a baseline"
"""A rollout is worth what it has over the others of its group, so some are worth less than nothing."""

FOREIGN_ROLLOUTS = "responses that the policy did not sample in this update"
"""They stand in the groups that are credited."""

UNMIXED_CREDIT = "credit in groups without a mixture"
"""Rollouts are worth something also where all of a group are right."""

PREFIXES = "prefixes"
"""A task is asked with several texts before it, a group each."""

MIXED_ONLY = "mixed groups only"
"""Groups in which all rollouts are right, or all wrong, are not trained on."""

MADE_TASKS = "tasks of its own making"
"""Besides the run's tasks there are others, made in the step."""


def refusal(parts: Sequence[Part]) -> str | None:
    """Why these parts cannot be one method, by name and reason; None where they can.

    Args:
        parts: all of a method, its surrogate included.
    """
    for part in parts:
        others = [other for other in parts if other is not part]
        for trait, reason in part.refuses.items():
            for other in others:
                if trait in other.provides:
                    return f"{part.name} does not go with {other.name} ({trait}): {reason}"
        for trait, reason in part.requires.items():
            if not any(trait in other.provides for other in others):
                return f"{part.name} needs {trait}, which no other part of the method gives: {reason}"
    return None


def pair_table(methods: Mapping[str, Method], parts: Mapping[str, type[Part]]) -> str:
    """Every method with every part, and every two parts on Dr. GRPO, as Markdown; all with their defaults.

    A cell is ``+`` where they go together, ``own`` where the method has the part, else a reason's number.

    Args:
        methods: by id, a row each; then comes a row for every part.
        parts: those that can be added, by name; a column each.
    """
    reasons: dict[str, int] = {}

    def cell(method: Method, *added: str) -> str:
        own = [*method.parts, method.surrogate]
        if any(part.name in added for part in own):
            return "own"
        reason = refusal([*own, *(parts[name]() for name in added)])
        return "+" if reason is None else str(reasons.setdefault(reason, len(reasons) + 1))

    rows = [[f"`{name}`", *(cell(method, part) for part in parts)] for name, method in methods.items()]
    for index, name in enumerate(parts):
        pairs = [cell(methods[BASE], name, part) if place < index else "" for place, part in enumerate(parts)]
        rows.append([f"`{BASE}` + `{name}`", *pairs])
    lines = [["", *(f"`{part}`" for part in parts)], ["---"] * (len(parts) + 1), *rows]
    table = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([*table, "", *(f"{number}. {reason}" for reason, number in reasons.items())])
