"""Tasks: what a model is asked, and what its answer is executed against.

A `Task` is plain data. It knows no domain code, so verifiers may import it. Files are JSON Lines, one
task a line, in our own layout or with the columns of the published data set (arXiv:2610.11064).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from modebench.errors import InputError, UsageError

PUBLISHED_TASKS = {
    "graph_coloring": "graph_coloring",
    "countdown": "countdown",
    "python_factor_function": "python_factors",
    "mathir_action_menu": "mathir",
    "mathir_algebra": "mathir",
    "pantry_plan": "pantry_plan",
}


@dataclass(frozen=True)
class Task:
    """One problem of a domain.

    Attributes:
        id: stable identity, unique in its split, e.g. ``countdown/level1/eval/0007``.
        domain: canonical domain name, e.g. ``graph_coloring``.
        level: 1 to 5.
        split: ``train``, ``dev`` or ``eval`` (free text for user data).
        problem: the user message, complete with the reply format.
        reference: what the verifier executes against ("answer" in the published files).
        modes: exact number of valid modes, by enumeration of this task; None when unknown.
        declared_modes: what a published file says the number is; None for our own tasks.
    """

    id: str
    domain: str
    level: int
    split: str
    problem: str
    reference: Mapping[str, Any]
    modes: int | None = None
    declared_modes: int | None = None

    @cached_property
    def reference_json(self) -> str:
        """The reference as JSON text, key order kept (a MathIR menu's order is part of it)."""
        return json.dumps(self.reference, separators=(",", ":"))

    def to_record(self) -> dict[str, Any]:
        """The task as one JSON-ready mapping; the inverse of `task_from_record`."""
        record: dict[str, Any] = {
            "id": self.id,
            "domain": self.domain,
            "level": self.level,
            "split": self.split,
            "problem": self.problem,
            "reference": self.reference,
            "modes": self.modes,
        }
        if self.declared_modes is not None:
            record["declared_modes"] = self.declared_modes
        return record


@dataclass(frozen=True)
class TaskSet:
    """An ordered, named set of tasks.

    Attributes:
        name: where the tasks come from, e.g. ``countdown/level1/eval`` or a file name.
        tasks: the tasks, ids unique.
    """

    name: str
    tasks: tuple[Task, ...]

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[index]

    @cached_property
    def sha256(self) -> str:
        """SHA-256 over the canonical JSON of the full records, prompts included, a line each."""
        digest = hashlib.sha256()
        for task in self.tasks:
            digest.update(canonical_json(task.to_record()).encode() + b"\n")
        return digest.hexdigest()

    def head(self, n: int) -> TaskSet:
        """The first `n` tasks, or all where there are fewer."""
        return self if n >= len(self) else TaskSet(f"{self.name}[:{n}]", self.tasks[:n])


def canonical_json(value: object) -> str:
    """ASCII JSON with sorted keys and without blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def load_tasks(domain: str, level: int = 1, split: str = "eval") -> TaskSet:
    """A frozen split, checked against its SHA-256; of a third-party domain, the same split drawn anew.

    Raises:
        ValueError: no such domain; as SplitError, no such split or one that was altered.
    """
    from modebench.domains import DOMAINS, get_domain
    from modebench.splits import load_split

    name = get_domain(domain).name
    return load_split(name, level, split) if name in DOMAINS else _drawn(name, level, split)


@lru_cache(maxsize=32)  # a run asks for its tasks several times, and counting their modes may take long
def _drawn(domain: str, level: int, split: str) -> TaskSet:
    from modebench.splits import make_split

    return make_split(domain, level, split)


def read_tasks(
    path: str | PathLike[str],
    level: int | None = None,
    split: str | None = None,
    check: Callable[[Task], object] | None = None,
) -> TaskSet:
    """Tasks of a JSON Lines file, whose blank lines are skipped, or of a Parquet file (``.parquet``).

    A line or row is one of our own records, or a published row: `problem`, `answer` (the reference as JSON
    text), `modebench_task`, `answer_mode_count`, `answer_mode_split`, found by name.

    Args:
        path: the file.
        level: level of the rows that don't state one.
        split: split of the rows that don't state one; the file's stem when None.
        check: called with every task; an `InvalidReference` that it raises is reported with the task's
            line. `modebench.verifiers.check_task` is one.

    Raises:
        InputError: a line that can't be read, naming file, line (row from 1) and field.
        UsageError: a Parquet file without pyarrow installed.
    """
    from modebench.verifiers.verdict import InvalidReference

    path = Path(path)
    tasks: list[Task] = []
    lines: dict[str, int] = {}
    for line, content in _parquet_rows(path) if path.suffix == ".parquet" else _lines(path):
        defaults: dict[str, Any] = {"id": f"{path.stem}/{len(tasks)}", "split": split or path.stem}
        if level is not None:
            defaults["level"] = level
        try:
            task = task_from_record(
                _own_fields(content if isinstance(content, dict) else _parse(content), defaults)
            )
            if check is not None:
                check(task)
        except (_FieldError, InvalidReference) as error:
            raise InputError(path, line, error.field, error.problem) from None
        if task.id in lines:
            raise InputError(path, line, "id", f"{task.id!r} stands in line {lines[task.id]} already")
        lines[task.id] = line
        tasks.append(task)
    return TaskSet(path.name, tuple(tasks))


def published_row(task: Task) -> dict[str, Any]:
    """The task with the columns of the published data set; its level is not among them."""
    return {
        "problem": task.problem,
        "answer": task.reference_json,
        "modebench_task": task.reference["verifier"],
        "answer_mode_count": task.declared_modes if task.modes is None else task.modes,
        "answer_mode_split": task.split,
    }


def write_tasks(
    path: str | PathLike[str],
    tasks: Iterable[Task],
    record: Callable[[Task], Mapping[str, Any]] = Task.to_record,
) -> None:
    """Write tasks as JSON Lines; the file appears whole or not at all.

    Args:
        path: the file.
        tasks: what to write.
        record: a task's line: our own records, or `published_row`.
    """
    path = Path(path)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(record(task), separators=(",", ":")) + "\n" for task in tasks)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def task_from_record(record: Mapping[str, Any]) -> Task:
    """The inverse of `Task.to_record`; other fields are ignored.

    Raises:
        ValueError: a field is missing or of the wrong kind; the message is ``field: problem``.
    """
    return Task(
        id=_text(record, "id"),
        domain=_text(record, "domain"),
        level=_level(record),
        split=_text(record, "split"),
        problem=_text(record, "problem"),
        reference=_reference(record),
        modes=_count(record, "modes"),
        declared_modes=_count(record, "declared_modes"),
    )


class _FieldError(ValueError):
    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of every line that is not blank."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(path, number, "record", f"is not UTF-8 ({error.reason})") from None
            if text.strip():
                yield number, text


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number from 1, columns that hold a value) of every row."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UsageError(f"{path} is a Parquet file; to read it: pip install pyarrow") from None
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, arrow.ArrowException) as error:
        raise InputError(path, 1, "record", f"is not Parquet ({' '.join(str(error).split())})") from None
    for number, row in enumerate(rows, 1):
        yield number, {name: value for name, value in row.items() if value is not None}


def _parse(text: str, field: str = "record") -> dict[str, Any]:
    """Strict JSON text of an object: no NaN, no infinity, no key twice."""

    def no_constant(constant: str) -> NoReturn:
        raise _FieldError(field, f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise _FieldError(field, f"key {twice!r} appears twice")
        return value

    try:
        value = json.loads(text, parse_constant=no_constant, object_pairs_hook=unique)
    except _FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise _FieldError(field, f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise _FieldError(field, f"must be a JSON object, not {type(value).__name__}")
    return value


def _own_fields(record: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A line's fields under our names, with the canonical domain."""
    from modebench.verifiers.registry import canonical_domain

    own = {**defaults, **record}
    if "answer" in record and "reference" not in record:
        own["reference"] = record["answer"]
        for ours, published in (("declared_modes", "answer_mode_count"), ("split", "answer_mode_split")):
            if published in record and ours not in record:
                own[ours] = record[published]
        if "domain" not in record:
            task = record.get("modebench_task")
            if task not in PUBLISHED_TASKS:
                known = ", ".join(PUBLISHED_TASKS)
                raise _FieldError("modebench_task", f"must be one of {known}, not {task!r}")
            own["domain"] = PUBLISHED_TASKS[task]
    own["domain"] = canonical_domain(_text(own, "domain"))
    return own


def _text(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value:
        raise _FieldError(field, _given(record, field, "text"))
    return value


def _level(record: Mapping[str, Any]) -> int:
    value = record.get("level")
    if type(value) is not int or not 1 <= value <= 5:
        raise _FieldError("level", _given(record, "level", "an integer of 1 to 5"))
    return value


def _count(record: Mapping[str, Any], field: str) -> int | None:
    value = record.get(field)
    if value is not None and (type(value) is not int or value < 0):
        raise _FieldError(field, _given(record, field, "a count or null"))
    return value


def _reference(record: Mapping[str, Any]) -> Mapping[str, Any]:
    value = record.get("reference")
    if isinstance(value, str):
        return _parse(value, "answer" if "answer" in record else "reference")
    if not isinstance(value, Mapping):
        raise _FieldError("reference", _given(record, "reference", "an object or its JSON text"))
    return value


def _given(record: Mapping[str, Any], field: str, expected: str) -> str:
    return (
        f"must be {expected}, not {record[field]!r}"
        if field in record
        else f"is missing, expected {expected}"
    )
