"""Files of responses, ours and others': one record a response.

Three layouts are read, line by line, by the names of their fields:

* our ``responses.jsonl`` and any JSON Lines with ``task_id`` and ``response`` (``sample`` is counted
  where it is absent);
* the same with ``domain``, ``level`` and ``answer`` (or ``reference``) beside, which needs no task file;
* the published ``{"id", "level", "domain", "answer", "responses": [...]}``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from modebench.errors import InputError, UsageError
from modebench.runs import read_jsonl
from modebench.sampling.base import FinishReason


@dataclass(frozen=True)
class ResponseRecord:
    """One response of a file.

    Attributes:
        line: where it stands, from 1.
        task_id: the task it answers.
        sample: its place among the responses to that task.
        response: the text; empty where there is an error.
        prefix: name of the prefix that it was asked with; None where the line has none.
        task: ``domain``, ``level`` and ``answer`` when the line states them, else None.
        finish_reason, input_tokens, output_tokens, reasoning, error: as in `modebench.sampling.base.Sample`.
    """

    line: int
    task_id: str
    sample: int
    response: str
    prefix: str | None = None
    task: Mapping[str, Any] | None = None
    finish_reason: FinishReason = "unknown"
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: str | None = None
    error: str | None = None


def read_responses(path: Path) -> Iterator[ResponseRecord]:
    """Every response of a file, in its order.

    Raises:
        UsageError: no such file.
        InputError: a line that is none of the layouts, or repeats a response.
    """
    if not path.is_file():
        raise UsageError(f"no file of responses at {path}")
    counted: Counter[tuple[object, ...]] = Counter()
    seen: dict[tuple[object, ...], int] = {}
    for line, record in read_jsonl(path):
        published = "responses" in record
        task = _inline_task(record, path, line, required=published)
        task_id = _task_id(record, path, line)
        owner = (task["domain"], task["level"], task_id) if task else (task_id,)
        for entry in _responses(record, path, line) if published else [record]:
            sample = _sample(entry, counted[owner], path, line)
            counted[owner] += 1
            if (*owner, sample) in seen:
                problem = f"{sample} of {task_id} stands in line {seen[(*owner, sample)]} already"
                raise InputError(path, line, "sample", problem)
            seen[(*owner, sample)] = line
            yield _record(entry, line, task_id, sample, task, path)


def _task_id(record: Mapping[str, Any], path: Path, line: int) -> str:
    value = record.get("task_id", record.get("id"))
    if (isinstance(value, str) and value) or type(value) is int:
        return str(value)
    field = "id" if "id" in record and "task_id" not in record else "task_id"
    raise InputError(path, line, field, f"must be a non-empty text, not {value!r}")


def _inline_task(
    record: Mapping[str, Any], path: Path, line: int, *, required: bool
) -> Mapping[str, Any] | None:
    """The task that a line states itself; a line of our own logs has domain and level, but no answer."""
    field = "answer" if "answer" in record else "reference"
    if field not in record and not required:
        return None
    for name in ("level", "domain", field if field in record else "answer"):
        if name not in record:
            raise InputError(path, line, name, "is missing")
    return {"domain": record["domain"], "level": record["level"], "answer": record[field]}


def _responses(record: Mapping[str, Any], path: Path, line: int) -> list[dict[str, Any]]:
    texts = record["responses"]
    if not isinstance(texts, list) or not texts:
        raise InputError(path, line, "responses", "must be a non-empty list of texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(path, line, f"responses[{place}]", f"must be text, not {type(text).__name__}")
    return [{"response": text} for text in texts]


def _sample(entry: Mapping[str, Any], default: int, path: Path, line: int) -> int:
    value = entry.get("sample", default)
    if type(value) is not int or value < 0:
        raise InputError(path, line, "sample", f"must be a count, not {value!r}")
    return value


def _record(
    entry: Mapping[str, Any],
    line: int,
    task_id: str,
    sample: int,
    task: Mapping[str, Any] | None,
    path: Path,
) -> ResponseRecord:
    response, error = entry.get("response"), entry.get("error")
    if error is not None:
        response = ""
    elif not isinstance(response, str):
        problem = f"must be text, not {response!r}" if "response" in entry else "is missing"
        raise InputError(path, line, "response", problem)
    reason = entry.get("finish_reason")
    return ResponseRecord(
        line=line,
        task_id=task_id,
        sample=sample,
        response=response,
        prefix=entry.get("prefix"),
        task=task,
        finish_reason=cast(FinishReason, reason) if reason in get_args(FinishReason) else "unknown",
        input_tokens=entry.get("input_tokens"),
        output_tokens=entry.get("output_tokens"),
        reasoning=entry.get("reasoning"),
        error=None if error is None else str(error),
    )
