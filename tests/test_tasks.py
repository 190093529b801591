from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from modebench.errors import InputError, UsageError
from modebench.tasks import (
    Task,
    TaskSet,
    load_tasks,
    published_row,
    read_tasks,
    task_from_record,
    write_tasks,
)

REFERENCE = {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18}
OWN = {
    "id": "t/0",
    "domain": "countdown",
    "level": 1,
    "split": "eval",
    "problem": "Reach 18.",
    "reference": REFERENCE,
    "modes": 8,
}
PUBLISHED = {
    "answer_mode_split": "eval_multi_answer",
    "answer_mode_count": 8,
    "answer": json.dumps(REFERENCE),
    "modebench_task": "countdown",
    "problem": "Reach 18.",
}


def written(path: Path, *rows: object) -> Path:
    file = path / "rows.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def test_round_trip(tmp_path: Path) -> None:
    tasks = load_tasks("mathir").head(5)
    file = tmp_path / "mine.jsonl"
    write_tasks(file, tasks)
    back = read_tasks(file)
    assert back.tasks == tasks.tasks
    assert back.sha256 == tasks.sha256
    assert back.name == "mine.jsonl"
    assert os.listdir(tmp_path) == ["mine.jsonl"]
    assert [list(t.reference["actions"]) for t in back] == [list("ABCDEF")] * 5


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = written(tmp_path, OWN)
    broken = Task("t/1", "countdown", 1, "eval", "?", {"numbers": {1, 2}})
    with pytest.raises(TypeError):
        write_tasks(file, [broken])
    assert len(read_tasks(file)) == 1
    assert os.listdir(tmp_path) == ["rows.jsonl"]


def test_published_rows(tmp_path: Path) -> None:
    python = PUBLISHED | {"modebench_task": "python_factor_function", "answer": '{"cases": [18, 82]}'}
    tasks = read_tasks(written(tmp_path, PUBLISHED, "", python), level=3)
    assert [task.id for task in tasks] == ["rows/0", "rows/1"]
    assert tasks[0] == Task("rows/0", "countdown", 3, "eval_multi_answer", "Reach 18.", REFERENCE, None, 8)
    assert tasks[1].domain == "python_factors"
    assert tasks[1].reference == {"cases": [18, 82]}


def test_stated_values_win_over_arguments(tmp_path: Path) -> None:
    [task] = read_tasks(written(tmp_path, OWN), level=4, split="mine")
    assert (task.level, task.split) == (1, "eval")
    row = {key: value for key, value in OWN.items() if key not in ("level", "split", "id")}
    [task] = read_tasks(written(tmp_path, row), level=4, split="mine")
    assert (task.level, task.split, task.id) == (4, "mine", "rows/0")


def test_aliases_become_canonical(tmp_path: Path) -> None:
    [task] = read_tasks(written(tmp_path, OWN | {"domain": "graph"}))
    assert task.domain == "graph_coloring"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "record: is not JSON"),
        ("[1]", "record: must be a JSON object, not list"),
        ('{"id": 1, "id": 2}', "record: key 'id' appears twice"),
        ('{"id": NaN}', "record: NaN is not JSON"),
        (OWN | {"domain": "sudoku"}, "domain: unknown domain 'sudoku'"),
        (OWN | {"level": 6}, "level: must be an integer of 1 to 5, not 6"),
        (OWN | {"level": True}, "level: must be an integer of 1 to 5, not True"),
        (OWN | {"problem": ""}, "problem: must be text, not ''"),
        (OWN | {"modes": -1}, "modes: must be a count or null, not -1"),
        (OWN | {"reference": [1]}, "reference: must be an object or its JSON text, not [1]"),
        (OWN | {"id": "t/0"}, "id: 't/0' stands in line 1 already"),
        (PUBLISHED, "level: is missing, expected an integer of 1 to 5"),
        (PUBLISHED | {"level": 1, "answer": "{"}, "answer: is not JSON"),
        (PUBLISHED | {"level": 1, "answer": '{"a": 1, "a": 2}'}, "answer: key 'a' appears twice"),
        (PUBLISHED | {"modebench_task": "sudoku"}, "modebench_task: must be one of"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path: Path, row: Any, message: str) -> None:
    file = written(tmp_path, OWN, row)
    with pytest.raises(InputError) as caught:
        read_tasks(file)
    assert str(caught.value).startswith(f"{file}:2: {message}")
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(json.dumps(OWN).encode() + b"\n\xff\n")
    with pytest.raises(InputError, match=r"rows\.jsonl:2: record: is not UTF-8"):
        read_tasks(file)


def test_task_set() -> None:
    task = task_from_record(OWN)
    tasks = TaskSet("mine", (task, task_from_record(OWN | {"id": "t/1"})))
    assert (len(tasks), tasks[1].id, [t.id for t in tasks]) == (2, "t/1", ["t/0", "t/1"])
    assert tasks.head(1).tasks == (task,)
    assert tasks.head(5) is tasks
    assert tasks.sha256 != tasks.head(1).sha256
    # sha256sum of the one canonical line
    line = (
        '{"domain":"countdown","id":"t/0","level":1,"modes":8,"problem":"Reach 18.","reference":'
        '{"numbers":[3,6,9],"target":18,"verifier":"countdown"},"split":"eval"}\n'
    )
    assert tasks.head(1).sha256 == hashlib.sha256(line.encode()).hexdigest()
    assert task_from_record(task.to_record()) == task


def test_published_layout_is_read_back(tmp_path: Path) -> None:
    tasks = load_tasks("mathir").head(3)
    file = tmp_path / "rows.jsonl"
    write_tasks(file, tasks, published_row)
    [row, *_] = [json.loads(line) for line in file.read_text().splitlines()]
    assert list(row) == list(published_row(tasks[0]))
    assert row["modebench_task"] == "mathir_action_menu"
    back = read_tasks(file, level=1)
    assert [(t.problem, t.reference, t.declared_modes) for t in back] == [
        (t.problem, t.reference, t.modes) for t in tasks
    ]
    assert [list(t.reference["actions"]) for t in back] == [list("ABCDEF")] * 3


def test_parquet_rows_are_found_by_name(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [PUBLISHED, PUBLISHED | {"problem": "Another wording."}]
    file = tmp_path / "eval.parquet"
    parquet.write_table(arrow.Table.from_pylist([{**row, "level3_difficulty": 2} for row in rows]), file)
    tasks = read_tasks(file, level=3)
    assert [t.problem for t in tasks] == ["Reach 18.", "Another wording."]
    assert tasks[0] == Task("eval/0", "countdown", 3, "eval_multi_answer", "Reach 18.", REFERENCE, None, 8)
    parquet.write_table(arrow.Table.from_pylist([{**row, "level": 4} for row in rows]), file)
    assert [t.level for t in read_tasks(file, level=3)] == [4, 4]
    parquet.write_table(arrow.Table.from_pylist([{**PUBLISHED, "level": 9}]), file)
    with pytest.raises(InputError, match=r"eval\.parquet:1: level: must be an integer of 1 to 5, not 9"):
        read_tasks(file)
    file.write_bytes(b"not parquet")
    with pytest.raises(InputError, match=r"eval\.parquet:1: record: is not Parquet") as caught:
        read_tasks(file)
    assert "\n" not in str(caught.value)


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"eval\.parquet is a Parquet file; to read it: pip install pyarrow"):
        read_tasks(tmp_path / "eval.parquet", level=1)
