"""tasks.jsonl: what is read, what is refused by file, line and field; proposed tasks as ordinary ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import modebench as mb
from modebench.errors import InputError, UsageError
from modebench.proposals import FIELDS, check_asked, choose_asked, proposed_tasks, read_proposals
from modebench.runs import json_line
from modebench.training.proposals import Proposal
from tests.trained_runs import proposal, refused


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_bytes(b"".join(map(json_line, lines)))
    return path


def test_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "tasks.jsonl", proposal(0), refused("wrong", step=7, difficulty="hard"))
    found = read_proposals(path)
    assert found["line"].tolist() == [1, 2]
    assert found["valid"].tolist() == [True, False]
    assert found["size"].tolist()[0] == 4
    assert math.isnan(found["size"].tolist()[1])
    assert found["quality"].isna().all()
    assert found["failure"].tolist()[1] == "wrong"
    assert not len(read_proposals(written(tmp_path / "empty.jsonl")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"valid": 1}, "valid: must be true or false, not 1"),
        ({"step": True}, "step: must be a count, not True"),
        ({"level": "1"}, "level: must be a count, not '1'"),
        ({"size": -4}, "size: must be a count or null, not -4"),
        ({"reference": "{}"}, "reference: must be an object or null, not '{}'"),
        ({"novelty": "new"}, "novelty: must be a number or null, not 'new'"),
        ({"part": None}, "part: must be text, not None"),
        ({"correct": 5}, "correct: is 5 of size 4"),
        ({"correct": None}, "correct: is None of size 4"),
        ({"correct": 0, "size": 0}, "correct: is 0 of size 0"),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "tasks.jsonl", proposal(0), proposal(1, **changes))
    with pytest.raises(InputError) as refusal:
        read_proposals(path)
    assert str(refusal.value) == f"{path}:2: {message}"


def test_a_field_that_is_missing(tmp_path: Path) -> None:
    line = proposal()
    del line["failure"]
    with pytest.raises(InputError, match=r"tasks\.jsonl:1: failure: is missing"):
        read_proposals(written(tmp_path / "tasks.jsonl", line))


def test_valid_tasks_that_were_asked_can_be_asked_again(tmp_path: Path) -> None:
    lines = [refused("copy"), *(proposal(number, step=number + 1) for number in range(6))]
    path = written(tmp_path / "tasks.jsonl", *lines, proposal(7, size=None, correct=None))
    chosen = choose_asked(read_proposals(path))
    tasks = list(proposed_tasks(path, chosen))
    assert [task.id for task in tasks] == [f"svs/step-{n:06d}/{n + 1}" for n in range(1, 7)]
    sources = mb.load_tasks("graph_coloring", 1, "train")
    for task, source in zip(tasks, sources, strict=False):
        assert (task.problem, task.reference, task.modes) == (source.problem, source.reference, source.modes)
    mb.write_tasks(tmp_path / "again.jsonl", tasks)
    assert mb.read_tasks(tmp_path / "again.jsonl").tasks == tuple(tasks)
    between = choose_asked(read_proposals(path), steps=(2, 4))
    assert between["step"].tolist() == [2, 3, 4]
    drawn = choose_asked(read_proposals(path), limit=3)
    assert len(drawn) == 3
    assert drawn["step"].is_monotonic_increasing
    assert drawn["task_id"].tolist() == choose_asked(read_proposals(path), limit=3)["task_id"].tolist()
    assert len({tuple(choose_asked(read_proposals(path), limit=3, seed=s)["line"]) for s in range(9)}) > 1
    with pytest.raises(UsageError, match="no proposed task in the steps 8 to 9 is valid and was asked"):
        choose_asked(read_proposals(path), steps=(8, 9))


def test_references_that_cannot_be_executed(tmp_path: Path) -> None:
    def refusal(**changes: Any) -> str:
        path = written(tmp_path / "tasks.jsonl", proposal(0), proposal(1, **changes))
        with pytest.raises(InputError) as found:
            list(proposed_tasks(path, choose_asked(read_proposals(path))))
        return str(found.value).removeprefix(str(path))

    assert refusal(domain="chess").startswith(":2: reference: no domain is called 'chess'")
    assert refusal(reference={"n": 3}).startswith(":2: reference")
    assert refusal(level=9).startswith(":2: reference")


def test_evaluations_of_other_tasks(tmp_path: Path) -> None:
    path = written(tmp_path / "tasks.jsonl", proposal(0), proposal(1))
    chosen = choose_asked(read_proposals(path))
    mb.write_tasks(tmp_path / "asked.jsonl", proposed_tasks(path, chosen))
    config = mb.EvalConfig(selection=mb.Selection(file=str(tmp_path / "asked.jsonl")), samples=8)
    mb.evaluate(mb.load_engine("mock/random"), tmp_path / "run", config)
    manifest = mb.load_run(tmp_path / "run").folder.manifest
    check_asked(manifest, chosen)
    other = written(tmp_path / "tasks.jsonl", proposal(0), proposal(2))
    with pytest.raises(UsageError, match="svs/step-000001/2 of the evaluation is another task"):
        check_asked(manifest, choose_asked(read_proposals(other)))


def test_what_is_logged_is_what_is_read() -> None:
    logged = Proposal("card", "python_factors", 1, False, "leak", "x").record(1, "synco")
    assert set(logged) == {field.name for field in FIELDS}
