"""``modebench tasks build, export, overlap, calibrate``, each with right and wrong uses."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pytest

from modebench.calibration import REFERENCE, calibrate
from modebench.overlap import canonical_graph, overlap
from modebench.tasks import Task, load_tasks, read_tasks
from tests.conftest import Command


def test_build_writes_fresh_tasks(modebench: Command, tmp_path: Path) -> None:
    asked = ["tasks", "build", "--domain", "graph", "--level", 3, "--size", 6, "--seed", 5]
    done = modebench(*asked, "-o", "mine.jsonl")
    assert done.returncode == 0, done.stderr
    assert "6 tasks of graph_coloring/level3/eval@5; 39360 exist; sha256" in done.stdout
    tasks = read_tasks(tmp_path / "mine.jsonl")
    assert tasks[0].id == "graph_coloring/level3/eval@5/0000"
    assert modebench(*asked, "-o", "again.jsonl").returncode == 0
    assert read_tasks(tmp_path / "again.jsonl").tasks == tasks.tasks


def test_export_in_both_layouts(modebench: Command, tmp_path: Path) -> None:
    frozen = load_tasks("pantry", 4, "dev")
    assert modebench("tasks", "export", "pantry_plan/level4/dev", "-o", "own.jsonl").returncode == 0
    assert read_tasks(tmp_path / "own.jsonl").tasks == frozen.tasks
    done = modebench("tasks", "export", frozen.name, "--published-layout", "-o", "rows.jsonl")
    assert done.stdout == "rows.jsonl: 128 tasks of pantry_plan/level4/dev\n"
    row = json.loads((tmp_path / "rows.jsonl").read_text().splitlines()[5])
    assert json.loads(row["answer"]) == frozen[5].reference
    assert row["answer_mode_count"] == frozen[5].modes


def test_overlap_of_splits_and_files(modebench: Command) -> None:
    name = "mathir/level2/eval"
    assert modebench("tasks", "export", name, "-o", "copy.jsonl").returncode == 0
    done = modebench("tasks", "overlap", name, "copy.jsonl")
    assert done.stdout.startswith(
        "mathir: 128 of 128 tasks (100.0%) are among the 128 of copy.jsonl; 128 (100.0%)"
    )
    done = modebench("tasks", "overlap", name, "mathir/level2/train")
    assert done.stdout.startswith(
        "mathir: 0 of 128 tasks (0.0%) are among the 384 of mathir/level2/train; 128 "
    )


def test_calibrate_reports_runs(modebench: Command) -> None:
    ran = modebench(
        "eval", "-m", "mock/random", "--domain", "graph", "--level", "1,3", "-n", 3, "-k", 8, "-o", "run"
    )
    assert ran.returncode == 0, ran.stderr
    done = modebench("tasks", "calibrate", "run")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.splitlines()
    assert head.split()[:4] == ["model", "domain", "level", "prompts"]
    assert [row.split()[:4] for row in rows] == [
        ["mock/random", "graph_coloring", level, "3"] for level in ("1", "3")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["build", "--domain", "countdown", "--level", 1, "--size", 800, "--seed", 2],
            "has 787 tasks in all, and 800",
        ),
        (["build", "--domain", "countdown", "--level", 7, "--size", 5, "--seed", 2], "no law of level 7"),
        (
            ["build", "--domain", "chess", "--level", 1, "--size", 5, "--seed", 2],
            "no domain is called 'chess'",
        ),
        (["export", "countdown/level1/test"], "no split countdown/level1/test is frozen"),
        (["export", "countdown"], "is not the name of a split"),
        (["export", "countdown/level1/eval", "-o", "no/folder.jsonl"], "there is no folder no"),
    ],
)
def test_wrong_uses_of_writing(modebench: Command, arguments: list[object], message: str) -> None:
    if "-o" not in arguments:
        arguments = [*arguments, "-o", "out.jsonl"]
    one_line(modebench, arguments, message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["overlap", "countdown/level1/eval", "none.jsonl"], "'none.jsonl' is not the name of a split"),
        (["calibrate", "none"], "no run folder and no file at none"),
    ],
)
def test_wrong_uses_of_reading(modebench: Command, arguments: list[object], message: str) -> None:
    one_line(modebench, arguments, message)


def one_line(modebench: Command, arguments: list[object], message: str) -> None:
    done = modebench("tasks", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_overwritten(modebench: Command, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    one_line(modebench, ["export", "countdown/level1/eval", "-o", "out.jsonl"], "exists already")
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_renamed_graphs_are_one_graph() -> None:
    rng = random.Random(0)
    for task in load_tasks("graph", 5).tasks[:12]:
        reference = dict(task.reference)
        n, partial = reference["n"], reference["partial_colors"]
        order, colours = rng.sample(range(n), n), rng.sample((1, 2, 3), 3)
        renamed: list[int | None] = [None] * n
        for vertex, colour in enumerate(partial):
            renamed[order[vertex]] = None if colour is None else colours[colour - 1]
        edges = [[order[u - 1] + 1, order[v - 1] + 1] for u, v in reference["edges"]]
        other = reference | {"edges": edges, "partial_colors": renamed}
        assert canonical_graph(other) == canonical_graph(reference)
        assert canonical_graph(reference | {"edges": reference["edges"][1:]}) != canonical_graph(reference)
        twin = Task("x/0", task.domain, 5, "x", "?", other)
        [shared] = overlap([task], [twin])
        assert shared.relabelled == 1


def graded(model: str, level: int, correct: list[int], attempts: int = 8) -> pd.DataFrame:
    rows = [
        (model, "graph_coloring", level, f"t/{index}", "correct" if place < hits else "malformed")
        for index, hits in enumerate(correct)
        for place in range(attempts)
    ]
    return pd.DataFrame(rows, columns=["model", "domain", "level", "task_id", "status"])


def test_gates() -> None:
    wanted = REFERENCE["graph_coloring"]
    [close] = calibrate(graded("m", 3, [4, 2, 0, 1, 0, 0, 2, 1, 0, 4]))  # pass@1 .175, pass@8 .6
    assert (close.pass1, close.pass8, close.passed) == (0.175, 0.6, True)
    assert (close.wanted1, close.wanted8) == wanted
    [far] = calibrate(graded("m", 3, [8, 8]))
    assert far.passed is False
    [short] = calibrate(graded("m", 3, [1], attempts=4))
    assert (short.prompts, short.passed) == (0, None)


def test_level_2_is_held_against_level_1() -> None:
    second = graded("m", 2, [1, 0, 0, 1])
    assert calibrate(second)[0].passed is None
    assert calibrate(pd.concat([second, graded("m", 1, [1, 1, 1, 0])]))[1].passed is True
    assert calibrate(pd.concat([second, graded("m", 1, [1, 0, 0, 0])]))[1].passed is False
    assert calibrate(pd.concat([second, graded("other", 1, [1, 1, 1, 0])]))[0].passed is None
