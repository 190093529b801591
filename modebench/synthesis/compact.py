"""How a policy is asked to write tasks in the compact profile, and the exact form of its replies.

Three formats. ``menu``: a solution and the operators that vary its task; the reply is one letter. ``free``: a
solution; the reply is the compact text (`modebench.variation`) of another task around it. Both show the
solution and not the task, as SVS does (Liang et al. 2025, arXiv:2508.14029); a MathIR or pantry answer alone
says nothing, so there the menu or the ingredients stand beside it. ``card``: what is wanted; the reply is
one JSON object of nine texts, the card of SynCo (arXiv:2610.11345), whose problem is a compact text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from modebench.compact import compact_answer, compact_problem
from modebench.domains.base import Reference
from modebench.strategies import STRATEGIES
from modebench.tasks import Task
from modebench.variation import get_variation

CARD_FIELDS = (
    "teaching_intent",
    "target_reasoning_style",
    "expected_reasoner_weakness",
    "difficulty_estimate",
    "problem",
    "solution",
    "final_answer",
    "verification_notes",
    "novelty_notes",
)
"""Fields of a card, in their order."""
DIFFICULTIES = ("easy", "learnable", "hard")
INTENTS = ("repeat", "practice", "stretch")
"""Teaching intents, one for each difficulty."""
REJECTIONS = ("none", "unreadable", "unsolvable", "wrong", "copy", "leak")
"""Why the last card was refused."""
NOTES = ("executed", "new")
"""What the tiny policy writes as verification and novelty notes."""


@dataclass(frozen=True)
class CardContext:
    """What a writer of cards is told about the pool and the learner.

    Attributes:
        counts: recent tasks that were too easy, learnable and too hard, 0 to 99 each.
        often, rare: names of the strategies that the pool's tasks aim at most and least often.
        weak: name of the strategy with which the learner fails most.
        rejected: the most frequent reason of recent rejections, one of `REJECTIONS`.
    """

    counts: tuple[int, int, int]
    often: str
    rare: str
    weak: str
    rejected: str = "none"


def menu_prompt(task: Task, solution: str) -> str:
    """The prompt that offers the operators of the domain; `read_menu` reads the reply."""
    names = [operator.name for operator in get_variation(task.domain).operators]
    menu = ",".join(f"{letter}={name}" for letter, name in zip(ascii_uppercase, names, strict=False))
    return f"menu:{evidence(task, solution)}?{menu}"


def read_menu(domain: str, reply: str) -> str:
    """The name of the operator that a reply chose.

    Raises:
        ValueError: it is not one letter of the menu.
    """
    names = [operator.name for operator in get_variation(domain).operators]
    if len(reply) != 1 or reply not in ascii_uppercase[: len(names)]:
        raise ValueError(f"the reply must be one of the letters A to {ascii_uppercase[len(names) - 1]}")
    return names[ascii_uppercase.index(reply)]


def free_prompt(task: Task, solution: str) -> str:
    """The prompt for the text of another task around the solution; `Variation.parse` reads the reply."""
    return f"free:{evidence(task, solution)}"


def card_prompt(domain: str, context: CardContext) -> str:
    """The prompt for a card; `read_card` reads the reply."""
    counts = ",".join(f"{name}={count}" for name, count in zip(DIFFICULTIES, context.counts, strict=True))
    told = f"often={context.often},rare={context.rare},weak={context.weak},rejected={context.rejected}"
    return f"card:{domain},{counts},{told}"


def write_card(fields: Mapping[str, str]) -> str:
    """The one spelling of a card."""
    return json.dumps({name: fields[name] for name in CARD_FIELDS}, separators=(",", ":"))


def read_card(reply: str) -> dict[str, str]:
    """The fields of a card.

    Raises:
        ValueError: not one JSON object with exactly the nine fields, each a text that is not empty.
    """
    try:
        card = json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the reply is not JSON: {error}") from None
    if not isinstance(card, dict) or set(card) != set(CARD_FIELDS):
        raise ValueError(f"a card has exactly the fields {', '.join(CARD_FIELDS)}")
    for name in CARD_FIELDS:
        if not isinstance(card[name], str) or not card[name].strip():
            raise ValueError(f"the field {name} of the card must be a text that is not empty")
    return {name: card[name] for name in CARD_FIELDS}


def evidence(task: Task, solution: str) -> str:
    """A right solution of a task as a writer of tasks sees it.

    Args:
        task: the source task.
        solution: a right response to it, with or without a box.
    """
    answer = compact_answer(solution)
    if task.domain == "graph_coloring":
        return _full_coloring(task.reference, answer)
    if task.domain == "countdown":
        return f"{answer}={task.reference['target']}"
    if task.domain == "mathir":
        return f"{compact_problem(task)}#{answer}"
    if task.domain == "pantry_plan":
        return f"{get_variation(task.domain).write(task.reference).split(';')[1]}#{answer}"
    return answer


def _full_coloring(reference: Reference, answer: str) -> str:
    partial = reference.get("partial_colors") or [None] * reference["n"]
    if len(answer) == len(partial):
        return answer
    missing = iter(answer)
    return "".join(next(missing) if colour is None else str(colour) for colour in partial)


def strategy_names() -> list[str]:
    """Names of all strategies, as they occur in contexts and cards."""
    return [strategy.name for strategies in STRATEGIES.values() for strategy in strategies]
