"""What chance does on the tasks of a run: the chance rows' raw numbers, made when a run is graded.

``chance.<reading>.jsonl`` holds a line a task: how the answers to another task of its cell fare on it, how
many well-formed answers it has and how many are right, and whether the best constant answer of its cell is
right on it. `modebench.analysis.chance` turns lines into rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pandas as pd

from modebench.domains import get_domain
from modebench.domains.base import AnswerSpace, Constants, CountedDomain
from modebench.grading import judge, write_lines
from modebench.runs import RunFolder, read_jsonl
from modebench.tasks import Task
from modebench.verifiers import Reading, verify

# Answers of one task that are looked at for the best constant.
_MOST_LISTED = 4_096
_NOT_SHUFFLED = {"shuffled_from": None, "shuffled_graded": None, "shuffled_counts": None}
_NO_CONSTANT = {"constant_right": None, "constant_answer": None, "constant_exact": None}


def grade_chance(run: RunFolder, tasks: Iterable[Task], reading: Reading) -> Path:
    """Write the file of chance of a run that is graded with this reading; it appears whole.

    Costs one more pass of grading, and the counting of answers.

    Raises:
        InputError: a response that can't be read.
    """
    cells: dict[tuple[str, int, str], list[Task]] = {}
    for task in tasks:
        cells.setdefault((task.domain, task.level, task.split), []).append(task)
    answered = run.recorded()
    sources: dict[str, Task] = {}
    for cell, members in cells.items():
        rng = random.Random(f"{run.manifest['seed']}|shuffled|{cell}")
        sources |= reassigned([task for task in members if task.id in answered], rng)
    shuffled = _judge_shuffled(run, sources, reading)
    path = chance_path(run, reading)
    lines: list[dict[str, Any]] = []
    for (domain, level, split), members in cells.items():
        for task, constant in zip(members, best_constant(members), strict=True):
            place = {"task_id": task.id, "domain": domain, "level": level, "split": split}
            lines.append(place | shuffled.get(task.id, _NOT_SHUFFLED) | _space_line(task, reading) | constant)
    write_lines(path, lines)
    graded = run.manifest["graded"][reading]
    run.update(chance={**run.manifest.get("chance", {}), reading: graded})
    return path


def chance_path(run: RunFolder, reading: str) -> Path:
    """Where the chance of a reading is written."""
    return run.path / f"chance.{reading}.jsonl"


def chance_table(run: RunFolder, reading: str) -> pd.DataFrame | str:
    """A row a task, as `modebench.analysis.chance.aligned` takes it; or why there is none."""
    path = chance_path(run, reading)
    current = run.manifest.get("graded", {}).get(reading)
    if not path.is_file() or run.manifest.get("chance", {}).get(reading) != current:
        return f"not made for this run; run: modebench grade {run.path}"
    lines = []
    for _, line in read_jsonl(path):
        right = line["right"]
        lines.append(line | {"right": None if right is None else {int(a): n for a, n in right.items()}})
    return pd.DataFrame(lines)


def reassigned(tasks: Sequence[Task], rng: random.Random) -> dict[str, Task]:
    """For each task, the other task on which its answers are judged: one cycle through all of them.

    A cycle maps no task to itself, and sends the answers of different tasks to different ones.

    Returns:
        id of the task answered -> task judged on; empty where there is no other task.
    """
    order = list(tasks)
    rng.shuffle(order)
    return {task.id: order[place - 1] for place, task in enumerate(order)} if len(order) > 1 else {}


def _judge_shuffled(
    run: RunFolder, targets: Mapping[str, Task], reading: Reading
) -> dict[str, dict[str, Any]]:
    """By id of the task judged on: whose answers they were, how many, and how often each mode was hit."""
    strip = bool(run.manifest["strip_reasoning"])
    found = {
        target.id: {"shuffled_from": source, "shuffled_graded": 0, "shuffled_counts": Counter[str]()}
        for source, target in targets.items()
    }
    for record in run.responses():
        target = targets.get(record["task_id"])
        if target is None or record.get("error") is not None:
            continue
        verdict = judge(target, record["response"], reading, strip, record.get("finish_reason"))
        entry = cast(dict[str, Any], found[target.id])
        entry["shuffled_graded"] += 1
        if verdict.mode is not None:
            entry["shuffled_counts"][verdict.mode] += 1
    for entry in found.values():
        entry["shuffled_counts"] = sorted(cast(Counter[str], entry["shuffled_counts"]).values())
    return cast(dict[str, dict[str, Any]], found)


def _space_line(task: Task, reading: Reading) -> dict[str, Any]:
    space = answer_space(task, reading)
    return {"space": None, "right": None} if space is None else {"space": space.size, "right": space.right}


def answer_space(task: Task, reading: Reading) -> AnswerSpace | None:
    """The well-formed answers of a task, counted, with the modes of a reading; None where they aren't."""
    domain = get_domain(task.domain)
    if task.modes is None or not hasattr(domain, "answer_space"):
        return None
    try:
        space = cast(CountedDomain, domain).answer_space(task.reference, task.level, task.modes)
        if space is None or reading == "published" or task.domain != "countdown":
            return space
        # The clean reading joins some published modes of Countdown, each of which is one answer of the space.
        answers = (answer for _, answer in domain.solutions(task.reference, task.level))
        modes = Counter(verify(task, answer, reading).mode for answer in answers)
        return AnswerSpace(space.size, Counter(modes.values()))
    except ValueError:  # a reference that can be executed against, but not listed
        return None


def best_constant(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Whether the one answer that is right on the most of these tasks is right on each.

    Returns:
        for each task ``constant_right``, ``constant_answer``, and ``constant_exact``: whether no other answer
        can be right on more tasks. All None where no task lists an answer.
    """
    listed, complete = zip(*map(_constants, tasks), strict=True)
    hits = Counter(answer for answers in listed for answer in answers)
    if not hits:
        return [dict(_NO_CONSTANT) for _ in tasks]
    most = max(hits.values())
    best = min(answer for answer, number in hits.items() if number == most)
    exact = most == len(tasks) or all(complete)
    return [
        {"constant_right": best in answers, "constant_answer": best, "constant_exact": exact}
        for answers in listed
    ]


def _constants(task: Task) -> tuple[frozenset[str], bool]:
    """Candidates of one task, and whether they are complete; without better ones, its listed solutions."""
    if task.modes is None:
        return frozenset(), False
    domain = get_domain(task.domain)
    found = None
    try:
        if hasattr(domain, "constants"):
            found = cast(CountedDomain, domain).constants(task.reference, task.level)
        if found is None:
            solutions = domain.solutions(task.reference, task.level)
            found = Constants((answer for _, answer in solutions), complete=False)
        answers = iter(found.answers)
        kept = frozenset(islice(answers, _MOST_LISTED))
        return kept, found.complete and next(answers, None) is None
    except ValueError:  # as in `answer_space`
        return frozenset(), False
