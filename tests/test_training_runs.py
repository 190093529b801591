"""Finished training runs as tables, from their folders alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import modebench as mb
from modebench.errors import InputError, UsageError
from tests.test_results import STEPS
from tests.trained_runs import copied, proposal, refused, trained_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers at random at step 0, and in other samples at the last step too."""
    lines = [proposal(0), refused("copy", step=2)]
    folder = tmp_path_factory.mktemp("made")
    return trained_run(folder / "seed-1", "random", "svs", 1, proposals=lines, state={"svs": [1, "ü"]})


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path / "svs/seed-1")


def test_tables_of_runs(run: Path, tmp_path: Path) -> None:
    (copied(run, tmp_path / "grpo/seed-1", arm="grpo") / "tasks.jsonl").unlink()
    half = copied(run, tmp_path / "half/seed-1") / "summary.json"
    half.write_text(half.read_text().replace('"success"', '"running"'))
    runs = mb.load_training(tmp_path)
    assert [one.identity()["arm"] for one in runs] == ["grpo", "svs"]
    assert runs.warnings == (f"unfinished: {tmp_path}/half/seed-1 stands at step 4 of 4 and is left out",)
    assert len(runs[:1]) == 1
    first, last = runs.first(), runs.last()
    assert set(first["step"]) == {0}
    assert set(last["step"]) == {STEPS}
    assert first.groupby("arm").size().tolist() == last.groupby("arm").size().tolist() == [32, 32]
    steps = runs.steps()
    assert steps["step"].tolist() == [1, 2, 3, 4] * 2
    assert {"domain", "arm", "seed", "with_gradient", "seconds/update"} <= set(steps)
    proposals = runs.proposals()
    assert proposals[["arm", "seed", "line", "step", "valid"]].to_numpy().tolist() == [
        ["svs", 1, 1, 1, True], ["svs", 1, 2, 2, False],
    ]  # fmt: skip


def test_a_budget_may_end_a_run_before_its_last_step(run: Path) -> None:
    summary = run / "summary.json"
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"steps": 99}))
    assert set(mb.load_training(run).last()["step"]) == {STEPS}
    assert len(mb.load_results(run)[0]) == 2


def test_costs(run: Path) -> None:
    [cost] = mb.load_training(run).costs().to_dict("records")
    checkpoint = run / "checkpoints/step-000004"
    assert cost == {
        "domain": "graph_coloring", "arm": "svs", "seed": 1, "steps": 4, "learner_seconds": 4.0,
        "wall_seconds": 8.0, "rollouts": 32, "tokens": 320, "discarded": 0, "updates": 4, "scored": 0,
        "state_bytes": len('{"svs":[1,"ü"]}'.encode()),
        "checkpoint_bytes": (checkpoint / "trainer.json").stat().st_size + len(b"weights"),
    }  # fmt: skip
    (checkpoint / "trainer.json").unlink()
    [cost] = mb.load_training(run).costs().to_dict("records")
    assert cost["state_bytes"] is None
    assert cost["checkpoint_bytes"] is None


def test_tables_are_read_without_torch(run: Path) -> None:
    code = (
        "import sys, modebench as mb; runs = mb.load_training(sys.argv[1]); runs.costs(), runs.proposals();"
        "mb.learn_retain(runs.first(), runs.last()), mb.gradient_bearing(runs.steps());"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_broken_logs(run: Path, tmp_path: Path) -> None:
    metrics = run / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole.replace('"step":2', '"step":3'))
    with pytest.raises(InputError, match=r"metrics\.jsonl:2: step: is 3, expected 2"):
        mb.load_training(run).steps()
    metrics.write_text(whole + '{"step":5}\n')
    with pytest.raises(InputError, match=r"timing\.jsonl:5: step: 5 is missing"):
        mb.load_training(run).steps()
    metrics.unlink()
    with pytest.raises(UsageError, match=r"there is no metrics\.jsonl in"):
        mb.load_training(run).steps()
    (run / "tasks.jsonl").unlink()
    with pytest.raises(UsageError, match=r"no tasks were proposed in .*svs/seed-1"):
        mb.load_training(run).proposals()


def test_a_step_that_was_cut_short_is_no_step(run: Path) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step":5,"with_gr')
    assert len(mb.load_training(run).steps()) == STEPS


def test_names_of_domains(run: Path) -> None:
    path = run / "eval/step-000000/run.json"
    manifest = json.loads(path.read_text())
    manifest["selection"]["domains"] = ["countdown", "mathir"]
    path.write_text(json.dumps(manifest))
    assert mb.load_training(run)[0].identity()["domain"] == "countdown+mathir"
    manifest["selection"]["file"] = "tasks/mine.jsonl"
    path.write_text(json.dumps(manifest))
    assert mb.load_training(run)[0].identity()["domain"] == "mine"


def test_an_unchanged_policy_from_run_folders(run: Path) -> None:
    """Chance before, chance after, in other samples: no side moves by more than four standard errors."""
    runs = mb.load_training(run)
    found = mb.learn_retain(runs.first(), runs.last(), attempts=2)
    assert (found["prompts"] == 4).all()
    assert (found["change"].abs() < found["high"] - found["low"]).all()
