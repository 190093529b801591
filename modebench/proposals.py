"""The tasks that a method proposed: the ``tasks.jsonl`` of its training run, and tasks to be asked again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modebench.config import tasks_of
from modebench.domains import get_domain
from modebench.errors import InputError, UsageError
from modebench.runs import read_jsonl
from modebench.tasks import Task, canonical_json
from modebench.verifiers import check_task
from modebench.verifiers.verdict import InvalidReference


class _Field(NamedTuple):
    name: str
    kinds: tuple[type, ...]
    what: str
    nullable: bool = True


_TEXT, _COUNT, _NUMBER = (str,), (int,), (int, float)
FIELDS = (
    _Field("step", _COUNT, "a count", False),
    _Field("part", _TEXT, "text", False),
    _Field("form", _TEXT, "text", False),
    _Field("domain", _TEXT, "text", False),
    _Field("level", _COUNT, "a count", False),
    _Field("source_task", _TEXT, "text or null"),
    _Field("operator", _TEXT, "text or null"),
    _Field("valid", (bool,), "true or false", False),
    _Field("failure", _TEXT, "text or null"),
    _Field("reference", (dict,), "an object or null"),
    _Field("text", _TEXT, "text or null"),
    _Field("correct", _COUNT, "a count or null"),
    _Field("size", _COUNT, "a count or null"),
    _Field("modes", _COUNT, "a count or null"),
    _Field("reward", _NUMBER, "a number or null"),
    *(
        _Field(name, _NUMBER, "a number or null")
        for name in ("quality", "reliability", "teachability", "novelty")
    ),
    _Field("difficulty", (str, int, float), "text, a number or null"),
)
"""What a line holds: ``step`` and ``part`` that proposed the task, the ``form`` in which it was made, the
task (``domain``, ``level``, ``source_task``, ``operator``, ``reference``, ``text``), whether it passed the
executable checks (``valid``, else the kind of ``failure``), of its ``size`` rollouts how many were
``correct`` and in how many ``modes`` (null where it was not asked), the ``reward`` of its writer, and what a
card says or scores."""


def read_proposals(path: Path) -> pd.DataFrame:
    """The proposed tasks of a run, a row each: the columns of `FIELDS`, and ``line``, its number in the file.

    Numbers are float64, NaN for null; ``reference``, ``text`` and the like are objects.

    Raises:
        InputError: a field is missing or of the wrong kind; more were correct than were asked.
    """
    table = pd.DataFrame(proposal_lines(path), columns=["line", *(field.name for field in FIELDS)])
    numeric = [field.name for field in FIELDS if field.nullable and field.kinds in (_COUNT, _NUMBER)]
    return table.astype(dict.fromkeys(numeric, np.float64) | {"valid": bool})


def proposal_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The same line by line, as they stand in the file, nulls as None.

    Raises:
        InputError: as `read_proposals`.
    """
    return (_checked(path, line, record) for line, record in read_jsonl(path, torn_end=True))


def _checked(path: Path, line: int, record: Mapping[str, Any]) -> dict[str, Any]:
    for field in FIELDS:
        value = record.get(field.name)
        right = field.nullable if value is None else isinstance(value, field.kinds)
        # To Python a truth value is a number.
        if isinstance(value, bool) and bool not in field.kinds:
            right = False
        if (
            field.name not in record
            or not right
            or (field.kinds == _COUNT and value is not None and value < 0)
        ):
            given = f"must be {field.what}, not {value!r}" if field.name in record else "is missing"
            raise InputError(path, line, field.name, given)
    correct, size = record["correct"], record["size"]
    if (correct is None) != (size is None) or (size is not None and (correct > size or size == 0)):
        raise InputError(path, line, "correct", f"is {correct!r} of size {size!r}")
    return {"line": line, **{field.name: record[field.name] for field in FIELDS}}


def choose_asked(
    proposals: pd.DataFrame, steps: tuple[int, int] | None = None, limit: int | None = None, seed: int = 0
) -> pd.DataFrame:
    """The valid tasks that rollouts were asked to solve, with their ids in a column ``task_id``.

    Args:
        proposals: rows of `read_proposals`.
        steps: those proposed from the first to the second step, both included; None for all.
        limit: so many of them, drawn at random; None for all.
        seed: of the draw.

    Raises:
        UsageError: there are none.
    """
    chosen = proposals[proposals["valid"] & proposals["size"].notna() & proposals["reference"].notna()]
    if steps is not None:
        chosen = chosen[chosen["step"].between(*steps)]
    if not len(chosen):
        where = "" if steps is None else f" in the steps {steps[0]} to {steps[1]}"
        raise UsageError(f"no proposed task{where} is valid and was asked")
    if limit is not None and limit < len(chosen):
        drawn = np.random.default_rng(seed).choice(len(chosen), size=limit, replace=False)
        chosen = chosen.iloc[np.sort(drawn)]
    return chosen.assign(task_id=[task_id(row) for row in chosen.to_dict("records")])


def task_id(proposal: Mapping[Any, Any]) -> str:
    """Id of a proposed task among the tasks of its file, e.g. ``svs/step-000012/347`` for line 347."""
    return f"{proposal['part']}/step-{int(proposal['step']):06d}/{int(proposal['line'])}"


def proposed_tasks(path: Path, proposals: pd.DataFrame) -> Iterator[Task]:
    """Proposed tasks as ordinary ones, to be asked again by any policy.

    Args:
        path: the file that they are from, for errors.
        proposals: rows of `read_proposals` that have a reference.

    Raises:
        InputError: a reference that cannot be executed against, or an unknown domain.
    """
    for row in proposals.to_dict("records"):
        reference, level = row["reference"], int(row["level"])
        try:
            domain = get_domain(row["domain"])
            text, modes = domain.problem(reference, level), domain.count_modes(reference, level)
            task = Task(task_id(row), domain.name, level, "proposed", text, reference, modes)
            check_task(task)
        except InvalidReference as error:
            raise InputError(path, row["line"], error.field, error.problem) from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(path, row["line"], "reference", str(error)) from None
        yield task


def check_asked(manifest: Mapping[str, Any], proposals: pd.DataFrame) -> None:
    """Refuse an evaluation whose tasks are not these proposed ones.

    Args:
        manifest: of the run folder.
        proposals: rows of `read_proposals` with a column task_id.

    Raises:
        UsageError: a task of the same id has another reference, or the run's tasks have changed.
    """
    references = dict(zip(proposals["task_id"], proposals["reference"], strict=True))
    for tasks in tasks_of(manifest):
        for task in tasks:
            other = references.get(task.id, task.reference)
            if canonical_json(other) != canonical_json(task.reference):
                raise UsageError(
                    f"{task.id} of the evaluation is another task than the one that was proposed"
                )
