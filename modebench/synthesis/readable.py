"""How a model that reads is asked for a card: what the compact profile says in one line, in words."""

from __future__ import annotations

from types import MappingProxyType

from modebench.sampling.base import Message
from modebench.synthesis.compact import CARD_FIELDS, DIFFICULTIES, card_prompt
from modebench.synthesis.memory import Report
from modebench.tasks import Task
from modebench.variation import get_variation

NOTATION = MappingProxyType(
    {
        "graph_coloring": "G; the edges, each as its two vertices (1 to 9, then a to z) in ascending order, "
        "the edges ascending too, with nothing between; a hyphen; the colors of the vertices in order, with "
        "? for a missing one",
        "countdown": "C; the numbers in ascending order with commas between; =; the target",
        "python_factors": "P; the inputs with commas between",
        "mathir": "M; the equation without spaces; for every command a space, its sign (+ - * /), what is "
        "added, subtracted, multiplied or divided by (in parentheses where it is no single letter), and the "
        "command's letter, from A on; a semicolon; the values with commas between; a semicolon; the most "
        "commands of an answer",
        "pantry_plan": "K; fewest and most ingredients with a hyphen between; /step/minimum in grams; the "
        "bounds, each as a letter (m mass, e energy, p protein, f fiber, a fat, c carbohydrate, s sodium), "
        "the least, a hyphen and the most, either of which may be missing; a semicolon; the ingredients, "
        "each as two letters and the available grams, in the order of the alphabet",
    }
)
"""The compact text of a task (`modebench.variation`) in words."""

SYSTEM = "You write practice tasks for a learner. Reply with one JSON object and nothing else."
_MEANINGS = (
    "what the task is to teach",
    "the way of reasoning that it calls for",
    "where you expect the learner to fail",
    f"one of {', '.join(DIFFICULTIES)}",
    "the new task in the notation above, in one line",
    "one right answer to it, in the form that the learner is asked for",
    "the same answer alone",
    "how you made sure that the answer is right",
    "how the task differs from earlier ones",
)


def card_messages(profile: str, example: Task, report: Report) -> tuple[Message, ...]:
    """The prompt for a card in a prompt profile; `modebench.synthesis.cards.grade_card` reads the reply.

    Args:
        profile: one of `modebench.prompts.PROFILES`.
        example: a task of the kind that is wanted, which a model that reads is shown without any answer.
        report: what the writer is told.

    Raises:
        CompactError: the example has no compact text.
    """
    if profile == "compact":
        return (Message(role="user", content=card_prompt(example.domain, report.compact(example.domain))),)
    fields = "\n".join(f"- {name}: {what}" for name, what in zip(CARD_FIELDS, _MEANINGS, strict=True))
    parts = (
        "Write a new task for the learner, such that about every other attempt at it succeeds.",
        f"This is a task as the learner sees it:\n{example.problem}",
        f"In your notation it is one line:\n{get_variation(example.domain).write(example.reference)}",
        f"The notation: {NOTATION[example.domain]}.",
        f"What is known so far:\n{report.text()}",
        f"Reply with a JSON object of these nine fields, each a text that is not empty:\n{fields}",
    )
    return Message(role="system", content=SYSTEM), Message(role="user", content="\n\n".join(parts))
