"""Probing: every task asked with given prefixes and without, to see which modes a prefix brings back.

A prefix is text that stands before the problem in the user message, with a blank line between (see
`modebench.prompts.build_messages`), so that every engine can be asked with it. The samples of one task are
numbered through: those without a prefix first, with the numbers and seeds that a run without prefixes gives
them, then the control, then the prefixes in the order of their file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from modebench.domains import get_domain
from modebench.errors import InputError, UsageError
from modebench.runs import read_jsonl
from modebench.tasks import Task

WITHOUT, CONTROL = "none", "control"
"""Names that stand for samples drawn without a prefix: the first ones, and as many again."""


@dataclass(frozen=True)
class Prefix:
    """A text before the problem, for one task or for every task of a cell.

    Attributes:
        name: what its samples are called.
        text: the prefix.
        task_id: the task it is for; None where it is for a cell.
        domain, level: the cell it is for; None where it is for a task.
    """

    name: str
    text: str
    task_id: str | None = None
    domain: str | None = None
    level: int | None = None

    def applies(self, task: Task) -> bool:
        """Whether the task is asked with this prefix."""
        if self.task_id is not None:
            return task.id == self.task_id
        return (task.domain, task.level) == (self.domain, self.level)


class Ask(NamedTuple):
    """One prompt: a task with a prefix or without.

    Attributes:
        task: the task.
        prefix: name of the prefix; None in a run that has no prefixes.
        text: the prefix itself, empty for none.
        first: number of its first sample within the task.
    """

    task: Task
    prefix: str | None
    text: str
    first: int


def asks_of(tasks: Iterable[Task], samples: int, prefixes: Sequence[Prefix], control: bool) -> list[Ask]:
    """The prompts of a run, task by task.

    Args:
        tasks: what is asked.
        samples: samples of each prompt.
        prefixes: none for an ordinary run, which asks each task once.
        control: ask the tasks that have a prefix once more without.

    Raises:
        UsageError: a task has two prefixes of one name, or no prefix applies to any task.
    """
    if not prefixes:
        return [Ask(task, None, "", 0) for task in tasks]
    by_scope: dict[object, list[Prefix]] = {}
    for prefix in prefixes:
        by_scope.setdefault(prefix.task_id or (prefix.domain, prefix.level), []).append(prefix)
    place = {id(prefix): number for number, prefix in enumerate(prefixes)}
    asks: list[Ask] = []
    probed = False
    for task in tasks:
        own = [*by_scope.get(task.id, ()), *by_scope.get((task.domain, task.level), ())]
        own.sort(key=lambda prefix: place[id(prefix)])
        named = {prefix.name: prefix.text for prefix in own}
        if len(named) < len(own):
            raise UsageError(f"task {task.id} has two prefixes of one name among {sorted(named)}")
        plain = {WITHOUT: "", CONTROL: ""} if control and named else {WITHOUT: ""}
        probed = probed or bool(named)
        for number, (name, text) in enumerate((plain | named).items()):
            asks.append(Ask(task, name, text, number * samples))
    if not probed:
        raise UsageError("none of the prefixes is for a task of this run")
    return asks


def read_prefixes(path: Path) -> tuple[Prefix, ...]:
    """The prefixes of a JSON Lines file.

    A line is ``{"task_id", "name", "prefix"}``, or ``{"domain", "level", "name", "prefix"}`` for every task
    of a cell; a task may have several.

    Raises:
        UsageError: no such file, or one without prefixes.
        InputError: a line of another form, or a name that stands twice for the same tasks.
    """
    if not path.is_file():
        raise UsageError(f"no file of prefixes at {path}")
    found: dict[tuple[object, ...], tuple[int, Prefix]] = {}
    for line, record in read_jsonl(path):
        prefix = _prefix(record, path, line)
        key = (prefix.task_id, prefix.domain, prefix.level, prefix.name)
        if key in found:
            problem = f"{prefix.name!r} stands in line {found[key][0]} already for the same tasks"
            raise InputError(path, line, "name", problem)
        found[key] = line, prefix
    if not found:
        raise UsageError(f"{path} holds no prefixes")
    return tuple(prefix for _, prefix in found.values())


def _prefix(record: Mapping[str, Any], path: Path, line: int) -> Prefix:
    fields = ("task_id", "name", "prefix") if "task_id" in record else ("domain", "level", "name", "prefix")
    for name in (*fields, *record):
        if name not in record:
            hint = "; a line has task_id, or domain and level" if name == "domain" else ""
            raise InputError(path, line, name, f"is missing{hint}")
        if name not in fields:
            raise InputError(path, line, name, f"is not one of the fields {', '.join(fields)}")
    for name in fields:
        value = record[name]
        if name == "prefix" and value == "":
            continue  # a control: a group of its own, asked plainly
        if name != "level" and not (isinstance(value, str) and value.strip()):
            raise InputError(path, line, name, f"must be a non-empty text, not {value!r}")
    if record["name"] in (WITHOUT, CONTROL):
        raise InputError(path, line, "name", f"{record['name']!r} stands for samples without a prefix")
    if "task_id" in record:
        return Prefix(record["name"], record["prefix"], task_id=record["task_id"])
    return Prefix(record["name"], record["prefix"], None, *_cell(record, path, line))


def _cell(record: Mapping[str, Any], path: Path, line: int) -> tuple[str, int]:
    level = record["level"]
    if type(level) is not int or not 1 <= level <= 5:
        raise InputError(path, line, "level", f"must be an integer of 1 to 5, not {level!r}")
    try:
        return get_domain(record["domain"]).name, level
    except ValueError as error:
        raise InputError(path, line, "domain", str(error)) from None
