"""A model as coach: it names ways to go about a task, without going any of them.

The model is asked through an ordinary engine, in our own words; Mesh Learning (arXiv:2610.02835) asks a model
for the same, a method's name and a line about it, no computation, no intermediate result, no answer. A reply
counts where it names as many different methods as were asked for and the verifier finds no answer in any of
them; another is asked for again, with another seed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from modebench.coaching import STRATEGIES_A_TASK, leaked, wrapped
from modebench.evaluation import sample_seed
from modebench.probing import CONTROL, WITHOUT, Prefix
from modebench.reasoning import split_reasoning
from modebench.sampling.base import Engine, GenerationSettings, Group, Message
from modebench.tasks import Task

REQUEST = (
    "Below is a problem. Do not solve it. Name {count} different methods by which somebody could solve it, "
    "one a line, in the form\nNAME: one sentence that says how the method goes\n"
    "Compute nothing. Give no intermediate result and no answer, and do not quote numbers of the problem. "
    "Write nothing but the {count} lines.\n\n{problem}"
)
_LINE = re.compile(r"^\W*(?:\d+[.)]\s*)?\W*([A-Za-z][^:\n]{0,59}?)\W*:\s*(\S[^\n]{0,399})$", re.MULTILINE)


class Coached(NamedTuple):
    """What a coach wrote.

    Attributes:
        prefixes: of all tasks that have their number.
        refused: why there are none, by id of the other tasks.
    """

    prefixes: list[Prefix]
    refused: dict[str, str]


def ask(
    engine: Engine,
    tasks: Sequence[Task],
    profile: str,
    settings: GenerationSettings,
    *,
    seed: int = 0,
    attempts: int = 3,
    count: int = STRATEGIES_A_TASK,
) -> Coached:
    """Let a model write prefixes for tasks.

    Args:
        engine: answers.
        tasks: a request each.
        profile: prompt profile that the prefixes are for.
        settings: how the coach is sampled.
        seed: every request's own derives from it.
        attempts: requests for a task at most.
        count: prefixes of a task.
    """
    found: dict[str, list[Prefix]] = {}
    refused: dict[str, str] = {}
    for attempt in range(attempts):
        waiting = [task for task in tasks if task.id not in found]
        groups = [_request(task, count, sample_seed(seed, 0, task.id, attempt)) for task in waiting]
        size = engine.groups_per_batch or max(1, len(groups))
        for start in range(0, len(groups), size):
            batch = groups[start : start + size]
            for place, [sample] in engine.generate(batch, settings):
                task = batch[place].task
                advices = None if sample.error else read_reply(sample.response)
                problem = sample.error or _problem(advices or {}, task, count)
                if problem is None and advices:
                    found[task.id] = [
                        Prefix(name, wrapped(advice, profile), task_id=task.id)
                        for name, advice in advices.items()
                    ]
                else:
                    refused[task.id] = problem or "no method"
    prefixes = [prefix for task in tasks for prefix in found.get(task.id, ())]
    return Coached(prefixes, {task: reason for task, reason in refused.items() if task not in found})


def read_reply(reply: str) -> dict[str, str]:
    """The sentences of a coach's reply by name of the method; reasoning before it is left out."""
    answer = split_reasoning(reply).answer or ""
    found: dict[str, str] = {}
    for name, advice in _LINE.findall(answer):
        if name.lower() not in (WITHOUT, CONTROL):
            found.setdefault(name.strip(), advice.strip())
    return found


def _request(task: Task, count: int, seed: int) -> Group:
    text = REQUEST.format(count=count, problem=task.problem)
    return Group(task, (Message(role="user", content=text),), (seed,))


def _problem(advices: dict[str, str], task: Task, count: int) -> str | None:
    """Why a reply cannot be used."""
    if len(advices) != count or len(set(advices.values())) != count:
        return f"it names {len(set(advices.values()))} methods, not {count}"
    for name, advice in advices.items():
        answer = leaked(f"{name}: {advice}", task)
        if answer is not None:
            return f"{name!r} holds the answer {answer!r}"
    return None
