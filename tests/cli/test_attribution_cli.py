"""``modebench attribution``: every table, and one line for every mistake.

Called in this process, but for one call of the real command line: a process each would take a minute.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from modebench.cli import cli
from modebench.cli.errors import exit_code
from modebench.runs import json_line
from tests.conftest import Command
from tests.trained_runs import copied, proposal, refused, trained_run

COUNTS = [0, 1, 2, 3, 4, 1, 0, 2, 4, 1]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms in three seeds: one keeps its modes and proposes tasks, the other collapses."""
    folder = tmp_path_factory.mktemp("sweep") / "graph_coloring"
    lines = [
        proposal(
            number, step=1 + number % 4, correct=COUNTS[number % 10],
            novelty=(number * 7 % 10) / 10, difficulty=("easy", "hard")[number % 2],
        )
        for number in range(40)
    ] + [refused("copy", step=4), refused("wrong", step=2)]  # fmt: skip
    svs = trained_run(
        folder / "svs/seed-0", "uniform", "svs", 0, seconds=3, proposals=lines, state={"svs": 1}
    )
    grpo = trained_run(folder / "grpo/seed-0", "collapsed", "grpo", 0)
    for seed in (1, 2):
        copied(svs, folder / f"svs/seed-{seed}", seed=seed)
        copied(grpo, folder / f"grpo/seed-{seed}", seed=seed)
    return folder.parent


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Call = Callable[..., Done]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line without a process of its own, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments: object) -> Done:
        code = exit_code(lambda: cli([str(word) for word in arguments], standalone_mode=False))
        return Done(code, *capsys.readouterr())

    return called


def rows(output: str) -> list[dict[str, Any]]:
    return list(csv.DictReader(output.splitlines()))


def test_learn_and_retain(call: Call, sweep: Path) -> None:
    done = call("attribution", "learn-retain", sweep)
    assert done.returncode == 0, done.stderr
    table, notes = done.stdout.split("\n\n")
    assert [line.split()[1:4] for line in table.splitlines()[2:]] == [
        [arm, metric, side] for arm in ("grpo", "svs") for metric in ("accuracy", "modes")
        for side in ("learn", "retain")
    ]  # fmt: skip
    assert "over seeds" in table
    assert "not found) in 4 attempts at step 0" in notes
    found = {(r["arm"], r["metric"], r["side"]): r for r in rows(call(
        "attribution", "learn-retain", sweep, "--attempts", 2, "--format", "csv").stdout)}  # fmt: skip
    # Both are always right at last; what was within reach stays in the arm that keeps its modes.
    assert {float(r["after"]) for key, r in found.items() if key[1] == "accuracy"} == {1.0}
    kept = {arm: float(found[arm, "modes", "retain"]["change"]) for arm in ("grpo", "svs")}
    assert kept["svs"] > kept["grpo"] + 0.05
    document = json.loads(call("attribution", "learn-retain", sweep, "--format", "json").stdout)
    assert len(document["rows"]) == 8
    assert any("an unchanged policy has no change" in note for note in document["notes"])


def test_gradients(modebench: Command, sweep: Path) -> None:
    done = modebench("attribution", "gradient", sweep, "--bins", 2)
    assert done.returncode == 0, done.stderr
    [first, last] = [line.split() for line in done.stdout.splitlines() if " grpo " in line]
    assert first[2:7] == ["tasks", "1", "2", "3", "0.875"]
    assert last[2:6] == ["tasks", "3", "4", "3"]
    assert last[6] == "0.375"
    assert "-0.500" in last


def test_proposed_tasks(call: Call, sweep: Path) -> None:
    done = call("attribution", "tasks", sweep)
    assert done.returncode == 0, done.stderr
    head, _, row = done.stdout.split("\n\n")[0].splitlines()
    for title in ("proposed", "valid", "in band", "mixed", "effective", "copy", "wrong"):
        assert title in head
    assert row.split()[:5] == ["svs", "svs", "menu", "126", "0.952"]
    found = {r["metric"]: r for r in rows(call("attribution", "tasks", sweep, "--format", "csv").stdout)}
    # of COUNTS six are mixed and five in 1/8 to 5/8, in 40 tasks and three seeds
    assert [int(found[name]["count"]) for name in ("valid", "mixed", "in_band", "effective")] == [
        120, 72, 60, 60,
    ]  # fmt: skip
    wide = rows(call("attribution", "tasks", sweep, "--band", "0.125:0.75", "--format", "csv").stdout)
    assert [r["count"] for r in wide if r["metric"] == "in_band"] == ["72"]
    audit = call("attribution", "tasks", sweep, "--bins", 4, "--by", "form")
    assert audit.returncode == 0, audit.stderr
    assert [line.split()[1:4] for line in audit.stdout.split("\n\n")[0].splitlines()[2:]] == [
        [str(step)] * 3 for step in range(1, 5)
    ]


def test_costs(call: Call, sweep: Path) -> None:
    done = call("attribution", "overhead", sweep, "--base", "grpo")
    assert done.returncode == 0, done.stderr
    grpo, svs = (line for line in done.stdout.splitlines() if line.startswith("graph_coloring"))
    assert svs.split()[2:6] == ["3.00", "3.00", "[3.00,", "3.00]"]
    assert grpo.split()[2:4] == ["1.00", "1.00"]
    alone = call("attribution", "overhead", sweep)
    assert "×" not in alone.stdout
    found = rows(call("attribution", "overhead", sweep, "--format", "csv").stdout)
    [state] = [r for r in found if r["arm"] == "svs" and r["cost"] == "state_bytes"]
    assert float(state["value"]) == len('{"svs":1}')


def test_teachability_of_tasks_asked_again(call: Call, sweep: Path, tmp_path: Path) -> None:
    """Logged counts have nothing to do with the tasks: they tell of themselves, and of nothing further."""
    run = sweep / "graph_coloring/svs/seed-0"
    exported = call("attribution", "export", run, "-o", "asked.jsonl")
    assert exported.stdout.startswith("asked.jsonl: 40 tasks; next: modebench eval --tasks asked.jsonl")
    asked = call("eval", "-m", "mock/random", "--tasks", "asked.jsonl", "-k", 20, "-o", "fresh")
    assert asked.returncode == 0, asked.stderr
    done = call("attribution", "teachability", run, "fresh", "--draws", 200)
    assert done.returncode == 0, done.stderr
    scores = [line.split()[0] for line in done.stdout.split("\n\n")[0].splitlines()[2:]]
    assert scores == ["teachability", "reward", "novelty", "difficulty", "modes", "estimate"]
    assert "of all 40 tasks" in done.stdout
    table = call("attribution", "teachability", run, "fresh", "--draws", 200, "--format", "csv")
    [same, fresh] = [
        r for r in rows(table.stdout) if r["score"] == "teachability" and r["target"] in ("same", "fresh")
    ]
    assert float(same["r"]) > 0.8
    assert float(same["top"]) == 1
    assert float(fresh["r_low"]) < 0.3
    assert float(fresh["r"]) < float(same["r_low"])
    part = call("attribution", "export", run, "--steps", "2:3", "--limit", 5, "-o", "part.jsonl")
    assert part.returncode == 0, part.stderr
    ids = [json.loads(line)["id"] for line in (tmp_path / "part.jsonl").read_text().splitlines()]
    assert len(ids) == 5
    assert {task_id.split("/")[1] for task_id in ids} <= {"step-000002", "step-000003"}


def test_one_line_for_every_mistake(call: Call, sweep: Path, tmp_path: Path) -> None:
    run, plain = sweep / "graph_coloring/svs/seed-0", sweep / "graph_coloring/grpo/seed-0"

    def refusal(*arguments: object) -> str:
        done = call("attribution", *arguments)
        assert done.returncode == 2, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr

    assert "no run folder and no file at nowhere" in refusal("gradient", "nowhere")
    assert "lacks the columns ['oops']" in refusal("learn-retain", plain, "--by", "oops")
    assert "no prompt has 10 graded samples before and 5 after" in refusal("learn-retain", plain, "-n", 5)
    assert "lacks the columns ['oops']" in refusal("gradient", plain, "--by", "oops")
    assert "no tasks were proposed in" in refusal("tasks", plain)
    assert "'0.5' is not LOW:HIGH" in refusal("tasks", run, "--band", "0.5")
    assert "low and high, not 0.9 and 0.1" in refusal("tasks", run, "--band", "0.9:0.1")
    assert "no finished run of the base arm dapo; it has grpo, svs" in refusal(
        "overhead", sweep, "--base", "dapo"
    )
    assert f"{plain} proposed no tasks: it has no tasks.jsonl" in refusal("export", plain, "-o", "x.jsonl")
    assert "no proposed task in the steps 9 to 9" in refusal("export", run, "--steps", "9:9", "-o", "x.jsonl")
    (tmp_path / "there.jsonl").write_text("")
    assert "there.jsonl exists already" in refusal("export", run, "-o", "there.jsonl")
    assert "no sample of the proposed tasks" in refusal("teachability", run, run / "eval/step-000000")
    broken = copied(run, tmp_path / "broken")
    with (broken / "tasks.jsonl").open("ab") as file:
        file.write(json_line(proposal(0, valid="yes")))
    assert "tasks.jsonl:43: valid: must be true or false, not 'yes'" in refusal("tasks", broken)
