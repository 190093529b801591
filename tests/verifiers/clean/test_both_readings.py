"""Judging with both readings: truncation, differences by kind, the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modebench.cli.grade_command import difference_table
from modebench.config import EvalConfig, Selection
from modebench.evaluation import evaluate, grade
from modebench.grading import (
    Differences,
    Pair,
    differences,
    differences_of_run,
    differences_summary,
    judge,
)
from modebench.sampling.mock import MockEngine
from modebench.verifiers import verify
from modebench.verifiers.registry import READINGS
from tests.conftest import Command
from tests.verifiers.examples import RIGHT, task

NAMES = [*RIGHT]


@pytest.mark.parametrize("name", NAMES)
def test_right_answers_are_right_in_both(name: str) -> None:
    answer, mode = RIGHT[name]
    verdict = verify(task(name), answer, "clean")
    assert verdict.status == "correct"
    assert (verdict.mode == mode) == (name != "countdown")


@pytest.mark.parametrize("name", NAMES)
def test_only_the_clean_reading_looks_at_truncation(name: str) -> None:
    answer = RIGHT[name][0]
    response = f"\\boxed{{{answer}}} and \\boxed{{the"
    for reading in READINGS:
        statuses = [
            judge(task(name), response, reading, False, reason).status for reason in (None, "stop", "length")
        ]
        wanted = ["malformed"] * 3 if reading == "published" else ["correct", "correct", "malformed"]
        assert statuses == wanted


def pair(task_id: str, published: str | None, clean: str | None) -> Pair:
    statuses = ["correct" if mode else "incorrect" for mode in (published, clean)]
    return Pair(task_id, "countdown", statuses[0], published, statuses[1], clean)


def test_differences_by_kind() -> None:
    pairs = [
        pair("a", "p1", "c1"),
        pair("a", "p2", "c1"),  # two published modes that are one
        pair("a", "p3", "c2"),
        pair("a", "p3", "c2"),
        pair("b", "p1", "c1"),  # another task
        pair("b", "p4", None),
        pair("b", None, "c9"),
        pair("b", None, None),
    ]
    found = differences(pairs)
    assert found == {
        ("countdown", "correct", "correct"): 2,
        ("countdown", "correct", "incorrect"): 1,
        ("countdown", "incorrect", "correct"): 1,
    }
    assert differences(reversed(pairs)) == found
    assert "same status, other mode" in difference_table(found)
    assert "4 responses" in difference_table(found)
    assert "agree on every response" in difference_table(Differences())


def test_a_run_counts_differences_once_both_readings_stand(tmp_path: Path) -> None:
    config = EvalConfig(selection=Selection(domains=("countdown",), limit=5), samples=6)
    run = evaluate(MockEngine("oracle"), tmp_path / "run", config).folder
    assert differences_summary(run) == {}
    grade(run, "clean")
    found = differences_of_run(run)
    assert found is not None
    assert set(found) <= {("countdown", "correct", "correct")}
    assert found.total() > 0  # sums are grouped in several ways by the oracle
    assert differences_summary(run) == {"readings_differ": found.total()}
    run.responses_path.write_bytes(run.responses_path.read_bytes() + b"\n")
    assert differences_of_run(run) is None


def test_a_run_can_be_measured_in_the_clean_reading(tmp_path: Path) -> None:
    config = EvalConfig(selection=Selection(limit=3), samples=4)
    run = evaluate(MockEngine("uniform"), tmp_path / "run", replace(config, reading="clean"))
    assert run.folder.verdicts_path("clean").is_file()
    assert (run.samples().status == "correct").all()
    assert json.loads(run.folder.summary_path.read_text())["reading"] == "clean"


def test_grading_a_file_with_both_readings(modebench: Command, tmp_path: Path) -> None:
    responses = ["3+6+9", "3+(6+9)", "Answer: $9+6+3$.", "3+6+9 = 3*6*9", "\\boxed{18}", "?"]
    record: dict[str, Any] = {"id": 1, "level": 1, "domain": "countdown", "responses": responses}
    record["answer"] = task("countdown")["reference"]
    (tmp_path / "in.jsonl").write_text(json.dumps(record) + "\n")
    done = modebench("grade", "in.jsonl", "-o", "out.jsonl", "--reading", "both")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["clean_status"] for line in lines] == ["correct"] * 3 + [
        "malformed",
        "incorrect",
        "malformed",
    ]
    assert [line["status"] for line in lines] == [
        *("correct", "correct", "malformed", "correct", "incorrect", "malformed")
    ]
    assert {line["clean_mode"] for line in lines[:3]} == {"countdown:clean:sum(+3,+6,+9)"}
    table = [line.split() for line in done.stdout.splitlines()[2:]]
    assert table == [
        ["domain", "published", "clean", "responses"],
        ["countdown", "correct", "same", "status,", "other", "mode", "2"],
        ["countdown", "correct", "malformed", "1"],
        ["countdown", "malformed", "correct", "1"],
    ]


def test_grading_a_run_with_both_readings(modebench: Command, tmp_path: Path) -> None:
    made = modebench("eval", "-m", "mock/uniform", "--domain", "countdown", "-n", 3, "-k", 4, "-o", "run")
    assert made.returncode == 0, made.stderr
    done = modebench("grade", "run", "--reading", "both")
    assert done.returncode == 0, done.stderr
    for reading in READINGS:
        assert len((tmp_path / "run" / f"verdicts.{reading}.jsonl").read_text().splitlines()) == 12
    assert "reading" in done.stdout
    shown = modebench("summarize", "run", "--reading", "clean")
    assert "reading: clean" in shown.stdout
