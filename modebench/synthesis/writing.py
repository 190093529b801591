"""How a policy is asked, in its own prompt profile, to make a task around a solution, and its reply taken.

The compact profile has the lines of `modebench.synthesis.compact`; a model that reads is told the same in
words: what it chooses from, or the notation to write in, and the solution, never the task (SVS, Liang et al.
2025, arXiv:2508.14029). Its reply stands in a box, as an answer does.
"""

from __future__ import annotations

from string import ascii_uppercase
from types import MappingProxyType

from modebench.reasoning import split_reasoning
from modebench.sampling.base import Message
from modebench.synthesis.compact import evidence, free_prompt, menu_prompt
from modebench.synthesis.readable import NOTATION
from modebench.tasks import Task
from modebench.variation import get_variation
from modebench.verifiers import verify
from modebench.verifiers.extraction import boxed

SYSTEM = "You write practice tasks for a learner."
_KEPT = MappingProxyType(
    {
        "graph_coloring": "the colors of all vertices, in order",
        "countdown": "an expression and the target that it reaches; the target must stay",
        "python_factors": "a program",
        "mathir": "an equation with its commands, # and the letters of the commands that solve it",
        "pantry_plan": "the bounds and ingredients, # and a choice among these",
    }
)
"""What the line that a writer is shown consists of, by domain."""
_BOX = "\\boxed"


def menu_messages(profile: str, task: Task, solution: str) -> tuple[Message, ...]:
    """The prompt that offers the operators of the domain; `modebench.synthesis.compact.read_menu` reads the
    reply.

    Args:
        profile: one of `modebench.prompts.PROFILES`.
        task: the source task.
        solution: a right response to it, in a box or bare.
    """
    if profile == "compact":
        return (Message(role="user", content=menu_prompt(task, solution)),)
    names = [operator.name.replace("_", " ") for operator in get_variation(task.domain).operators]
    menu = "\n".join(f"{letter}. {name}" for letter, name in zip(ascii_uppercase, names, strict=False))
    asked = f"Choose one change to the task that gives a new one of medium difficulty:\n{menu}"
    return _messages(task, solution, asked, "Reply with its letter in \\boxed{}.")


def free_messages(profile: str, task: Task, solution: str) -> tuple[Message, ...]:
    """The prompt for the text of another task around the solution; `Variation.parse` reads the reply.

    Args: as of `menu_messages`.
    """
    if profile == "compact":
        return (Message(role="user", content=free_prompt(task, solution)),)
    asked = "Write another task of medium difficulty that it solves too, in this notation, in one line:\n"
    return _messages(task, solution, f"{asked}{NOTATION[task.domain]}.", "Reply with the line in \\boxed{}.")


def reply_of(profile: str, response: str) -> str:
    """What of a response is the reply: all of it in the compact profile; else, behind the reasoning, what the
    last box holds, and without a box everything there. Empty where the reasoning never ended."""
    if profile == "compact":
        return response
    return _boxed_or_all(response)


def _messages(task: Task, solution: str, asked: str, form: str) -> tuple[Message, ...]:
    shown = f"A task, which is not shown, was solved. {_KEPT[task.domain].capitalize()}:"
    text = f"{shown}\n{evidence(task, solution)}\n\n{asked}\n\n{form}"
    return Message(role="system", content=SYSTEM), Message(role="user", content=text)


def shown_solution(task: Task, response: str, mode: str | None) -> str | None:
    """A right response as writers and operators take it: the answer without what stands around it, of graph
    colouring the full colouring.

    It stands in a box, but for plans of digits, which are right without one only, and for answers behind a
    label or in a fence, which a box would spoil. None where none of this is right by itself; only the clean
    reading knows such responses.

    Args:
        task: the task.
        response: which is right on it.
        mode: of the response.
    """
    if task.domain == "graph_coloring" and mode is not None:
        return f"{_BOX}{{{mode.removeprefix('graph_coloring:')}}}"
    answer = _boxed_or_all(response)
    forms = (f"{_BOX}{{{answer}}}", answer)
    return next((form for form in forms if verify(task, form).mode is not None), None)


def _boxed_or_all(response: str) -> str:
    """What the last box behind the reasoning holds, or all that stands there."""
    answer = split_reasoning(response).answer or ""
    start = answer.rfind(_BOX)
    inside = boxed(answer, start + len(_BOX)) if start >= 0 else answer
    return (inside or "").strip()
