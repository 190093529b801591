"""Verdicts on recorded responses: of a run folder, or of any file of responses."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from modebench.domains import get_domain
from modebench.errors import InputError, UsageError
from modebench.reasoning import split_reasoning
from modebench.records import ResponseRecord, read_responses
from modebench.runs import RunFolder, file_sha256, json_line, read_jsonl, sample_key
from modebench.splits import SIZES
from modebench.tasks import Task, load_tasks
from modebench.verifiers import InvalidReference, Reading, Verdict, verify
from modebench.verifiers.registry import READINGS

_SPLIT_NAME = re.compile(r"(?P<domain>\w+)/level(?P<level>[1-5])/(?P<split>\w+)")
UNFINISHED = Verdict("malformed", None, "reasoning that never ended")


def judge(
    task: Task | Mapping[str, Any],
    response: str,
    reading: Reading,
    strip_reasoning: bool,
    finish_reason: str | None = None,
) -> Verdict:
    """The verdict on a raw response, reasoning taken off first when asked.

    A response that finished for its length was cut there, which the `clean` reading takes into account.
    """
    if strip_reasoning:
        answer = split_reasoning(response).answer
        if answer is None:
            return UNFINISHED
        response = answer
    return verify(task, response, reading, truncated=finish_reason == "length")


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
            response, reason = record["response"], record.get("finish_reason")
            yield _line(task_id, sample, judge(known[task_id], response, reading, strip, reason))

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
    reading: Reading | Literal["both"] = "published",
    tasks: Iterable[Task] | None = None,
    strip_reasoning: bool = False,
) -> dict[str, int]:
    """Judge a file of responses and write a line for each: task_id, domain, level, sample, status, mode,
    detail. Nothing is written unless everything can be judged.

    Args:
        path: the file, in any layout of `modebench.records`.
        output: where to write; must not exist.
        reading: verifier reading; ``both`` gives the published verdict, and beside it the fields
            clean_status and clean_mode.
        tasks: tasks of the responses whose lines do not state their own; None looks ids up in the frozen
            splits.
        strip_reasoning: split reasoning off first; off for files graded as published.

    Returns:
        number of responses by status, the published one where both are asked.

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
    record: ResponseRecord,
    lookup: TaskLookup,
    path: Path,
    reading: Reading | Literal["both"],
    strip: bool,
) -> dict[str, Any]:
    try:
        task = record.task if record.task is not None else lookup.find(record.task_id)
    except UsageError as error:
        raise InputError(path, record.line, "task_id", str(error)) from None
    domain, level = (task.domain, task.level) if isinstance(task, Task) else (task["domain"], task["level"])
    place = {"task_id": record.task_id, "domain": domain, "level": level, "sample": record.sample}
    if record.error is not None:
        line = {**place, "status": "error", "mode": None, "detail": record.error}
        return line | ({"clean_status": "error", "clean_mode": None} if reading == "both" else {})
    readings: tuple[Reading, ...] = ("published", "clean") if reading == "both" else (reading,)
    try:
        verdicts = [judge(task, record.response, each, strip, record.finish_reason) for each in readings]
    except InvalidReference as error:
        raise InputError(path, record.line, error.field, error.problem) from None
    line = place | verdicts[0]._asdict()
    for clean in verdicts[1:]:
        line |= {"clean_status": clean.status, "clean_mode": clean.mode}
    return line


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
        if name is None or name["split"] not in SIZES:
            return
        try:
            get_domain(name["domain"])
        except ValueError:
            return
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


class Pair(NamedTuple):
    """What both readings say of one response."""

    task_id: str
    domain: str
    published: str
    published_mode: str | None
    clean: str
    clean_mode: str | None


Differences = Counter[tuple[str, str, str]]
"""Number of responses by (domain, published status, clean status); equal statuses stand for responses
correct in both whose mode is another one (see `differences`)."""


def differences(pairs: Iterable[Pair]) -> Differences:
    """How many responses the two readings judge differently, by kind.

    Readings spell modes differently, so a mode is compared by its company: a response that is correct in
    both is judged differently when the responses to its task that share its published mode are not those
    that share its clean mode, among the responses correct in both.
    """
    found: Differences = Counter()
    agreed: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.published != pair.clean:
            found[pair.domain, pair.published, pair.clean] += 1
        elif pair.published == "correct":
            agreed[pair.task_id].append(pair)
    for members in agreed.values():
        published = Counter(pair.published_mode for pair in members)
        clean = Counter(pair.clean_mode for pair in members)
        both = Counter((pair.published_mode, pair.clean_mode) for pair in members)
        for pair in members:
            shared = both[pair.published_mode, pair.clean_mode]
            if not shared == published[pair.published_mode] == clean[pair.clean_mode]:
                found[pair.domain, "correct", "correct"] += 1
    return found


def differences_of_file(path: Path) -> Differences:
    """The differences in a file that `grade_file` wrote for both readings."""
    return differences(
        Pair(
            line["task_id"],
            line["domain"],
            line["status"],
            line["mode"],
            line["clean_status"],
            line["clean_mode"],
        )
        for _, line in read_jsonl(path)
    )


def differences_of_run(run: RunFolder) -> Differences | None:
    """The differences between the two verdict files of a run; None unless both exist and are current.

    Raises:
        InputError: a line that cannot be read.
    """
    graded = run.manifest.get("graded", {})
    if any(reading not in graded or not run.verdicts_path(reading).is_file() for reading in READINGS):
        return None
    sha256 = file_sha256(run.responses_path)
    if any(graded[reading].get("responses_sha256") != sha256 for reading in READINGS):
        return None
    domains = {record["task_id"]: record["domain"] for record in run.responses()}
    published, clean = (_verdicts(run.verdicts_path(reading)) for reading in ("published", "clean"))
    return differences(
        Pair(task_id, domains[task_id], *published[task_id, sample], *clean[task_id, sample])
        for task_id, sample in published.keys() & clean.keys()
    )


def _verdicts(path: Path) -> dict[tuple[str, int], tuple[str, str | None]]:
    """Status and mode of every judged sample."""
    return {
        sample_key(record, path, line): (record["status"], record["mode"])
        for line, record in read_jsonl(path)
    }


def differences_summary(run: RunFolder) -> dict[str, Any]:
    """What a run's summary says of the two readings: ``readings_differ``, the number of responses that
    they judge differently, where both verdict files exist, else nothing."""
    found = differences_of_run(run)
    return {} if found is None else {"readings_differ": found.total()}
