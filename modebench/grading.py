"""Verdicts on recorded responses: of a run folder, or of any file of responses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from modebench.domains import DOMAINS
from modebench.errors import InputError, UsageError
from modebench.reasoning import split_reasoning
from modebench.records import ResponseRecord, read_responses
from modebench.runs import RunFolder, file_sha256, json_line, sample_key
from modebench.splits import LEVELS, SIZES
from modebench.tasks import Task, load_tasks
from modebench.verifiers import InvalidReference, Reading, Verdict, verify

_SPLIT_NAME = re.compile(r"(?P<domain>\w+)/level(?P<level>[1-5])/(?P<split>\w+)")
UNFINISHED = Verdict("malformed", None, "reasoning that never ended")


def judge(task: Task | Mapping[str, Any], response: str, reading: Reading, strip_reasoning: bool) -> Verdict:
    """The verdict on a raw response, reasoning taken off first when asked."""
    if strip_reasoning:
        answer = split_reasoning(response).answer
        if answer is None:
            return UNFINISHED
        response = answer
    return verify(task, response, reading)


def grade_run(run: RunFolder, tasks: Iterable[Task], reading: Reading) -> Path:
    """Judge every recorded response of a run; the file of verdicts appears whole.

    Failed samples have no verdict.

    Raises:
        InputError: a response to a task that the run does not have.
        InvalidReference: a task that cannot be executed against.
    """
    known = {task.id: task for task in tasks}
    strip = bool(run.manifest["strip_reasoning"])

    def lines() -> Iterator[dict[str, Any]]:
        for number, record in enumerate(run.responses(), 1):
            task_id, sample = sample_key(record, run.responses_path, number)
            if record.get("error") is not None:
                continue
            if task_id not in known:
                problem = f"{task_id!r} is not a task of this run"
                raise InputError(run.responses_path, number, "task_id", problem)
            yield _line(task_id, sample, judge(known[task_id], record["response"], reading, strip))

    path = run.verdicts_path(reading)
    write_lines(path, lines())
    graded = dict(run.manifest.get("graded", {}))
    graded[reading] = {"responses_sha256": file_sha256(run.responses_path)}
    run.update(graded=graded)
    return path


def grade_file(
    path: Path,
    output: Path,
    *,
    reading: Reading = "published",
    tasks: Iterable[Task] | None = None,
    strip_reasoning: bool = False,
) -> dict[str, int]:
    """Judge a file of responses and write a line for each: task_id, domain, level, sample, status, mode,
    detail (and error for a failed one). Nothing is written unless everything can be judged.

    Args:
        path: the file, in any layout of `modebench.records`.
        output: where to write; must not exist.
        reading: verifier reading.
        tasks: tasks of the responses whose lines do not state their own; None looks ids up in the frozen
            splits.
        strip_reasoning: split reasoning off first; off for files graded as published.

    Returns:
        number of responses by status.

    Raises:
        UsageError: no such file, or the output exists.
        InputError: a line that cannot be read, or whose reference is invalid.
    """
    if output.exists():
        raise UsageError(f"{output} exists; choose another output file")
    lookup = TaskLookup(tasks)
    counts: dict[str, int] = {}

    def lines() -> Iterator[dict[str, Any]]:
        for record in read_responses(path):
            line = _judged(record, lookup, path, reading, strip_reasoning)
            counts[line["status"]] = counts.get(line["status"], 0) + 1
            yield line

    write_lines(output, lines())
    return counts


def _judged(
    record: ResponseRecord, lookup: TaskLookup, path: Path, reading: Reading, strip: bool
) -> dict[str, Any]:
    try:
        task = record.task if record.task is not None else lookup.find(record.task_id)
    except UsageError as error:
        raise InputError(path, record.line, "task_id", str(error)) from None
    domain, level = (task.domain, task.level) if isinstance(task, Task) else (task["domain"], task["level"])
    place = {"task_id": record.task_id, "domain": domain, "level": level, "sample": record.sample}
    if record.error is not None:
        return {**place, "status": "error", "mode": None, "detail": record.error}
    try:
        verdict = judge(task, record.response, reading, strip)
    except InvalidReference as error:
        raise InputError(path, record.line, error.field, error.problem) from None
    return place | verdict._asdict()


class TaskLookup:
    """Tasks by id: given ones, or those of the frozen splits, loaded as they are named."""

    def __init__(self, tasks: Iterable[Task] | None) -> None:
        self._tasks = {} if tasks is None else {task.id: task for task in tasks}
        self._frozen = tasks is None
        self._loaded: set[str] = set()

    def find(self, task_id: str) -> Task:
        """The task with this id.

        Raises:
            UsageError: there is none.
        """
        if task_id not in self._tasks and self._frozen:
            self._load(task_id)
        if task_id not in self._tasks:
            frozen = "is in no frozen split; give its tasks with --tasks FILE"
            raise UsageError(f"{task_id!r} {frozen if self._frozen else 'is not among the given tasks'}")
        return self._tasks[task_id]

    def _load(self, task_id: str) -> None:
        split_name, _, _ = task_id.rpartition("/")
        if split_name in self._loaded:
            return
        self._loaded.add(split_name)
        name = _SPLIT_NAME.fullmatch(split_name)
        if name and name["domain"] in DOMAINS and int(name["level"]) in LEVELS and name["split"] in SIZES:
            tasks = load_tasks(name["domain"], int(name["level"]), name["split"])
            self._tasks |= {task.id: task for task in tasks}


def _line(task_id: str, sample: int, verdict: Verdict) -> dict[str, Any]:
    return {"task_id": task_id, "sample": sample, **verdict._asdict()}


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines so that the file is either whole or absent."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            for record in records:
                file.write(json_line(record))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
