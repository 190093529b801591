"""Whole runs of SVS on the packaged policy: resumed, at a budget, and on two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modebench.errors import UsageError
from modebench.training.folder import TrainingFolder
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan, recorded

ROOT = Path(__file__).parents[2]
SMALL = {
    "method": "svs",
    "model": "tiny",
    "data.domains": "graph_coloring",
    "rollout.num_prompts": 4,
    "rollout.group_size": 8,
    "svs.upper": 0.75,  # so that there is something in the band
    "eval.every": 0,
    "eval.limit": 1,
    "eval.samples": 2,
    "eval.dev_limit": 0,
    "checkpoint.every": 0,
    "checkpoint.keep": 0,
}


def planned(**changes: Any) -> Any:
    names = {name.replace("__", "."): value for name, value in changes.items()}
    return plan([from_values(SMALL | names, "test")])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_resumed_run_is_the_undisturbed_one(tmp_path: Path) -> None:
    asked = planned(steps=2, svs__form="menu")
    assert open_trainer(asked, tmp_path / "whole").run()
    first = open_trainer(asked, tmp_path / "run")
    first.on_step = lambda step, steps, metrics: setattr(first.stop, "made", step == 1)
    assert not first.run()
    with (tmp_path / "run/tasks.jsonl").open("a") as file:  # as a killed process leaves it
        file.write(json.dumps({"step": 2, "part": "svs"}) + '\n{"step": 2, "pa')
    assert open_trainer(recorded(TrainingFolder.open(tmp_path / "run")), tmp_path / "run", resume=True).run()
    last = "checkpoints/step-000002"
    for name in ("metrics.jsonl", "tasks.jsonl", f"{last}/model.safetensors", f"{last}/trainer.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    made, steps = lines(tmp_path / "whole/tasks.jsonl"), lines(tmp_path / "whole/metrics.jsonl")
    assert len(made) == steps[-1]["total/proposed"] > 0
    assert {record["step"] for record in made} <= {1, 2}
    own = 2 * 4 * 8
    solving = sum(record["size"] or 0 for record in made)
    assert steps[-1]["total/rollouts"] == own + len(made) + solving
    assert steps[0]["svs/proposed"] == sum(record["step"] == 1 for record in made)
    assert any(record["valid"] and record["reward"] == 1 for record in made)
    assert all(record["size"] is None for record in made if record["failure"] is not None)


@pytest.mark.parametrize("form", ["template", "none"])
def test_a_run_ends_when_its_budget_is_spent(form: str, tmp_path: Path) -> None:
    # Own tasks of a step have 32 rollouts, so the last step is cut.
    trainer = open_trainer(planned(steps=9, budget=80, svs__form=form), tmp_path / "run")
    assert trainer.run()
    steps = lines(tmp_path / "run/metrics.jsonl")
    assert steps[-1]["total/rollouts"] == 80
    assert len(steps) < 9
    assert (tmp_path / f"run/eval/step-{len(steps):06d}/summary.json").is_file()
    assert trainer._done


def test_a_schedule_that_needs_its_last_step_is_refused() -> None:
    with pytest.raises(UsageError, match=r"optimizer\.schedule is cosine, .* with svs the budget"):
        planned(budget=80, optimizer__schedule="cosine")
    with pytest.raises(UsageError, match="budget is 4, expected at least 8"):
        planned(budget=4)


@pytest.mark.slow
def test_two_processes_make_the_tasks_that_one_makes(tmp_path: Path) -> None:
    for processes in (1, 2):
        launcher = [sys.executable]
        if processes > 1:
            launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
        sets = [piece for name, value in SMALL.items() if name not in ("method", "model", "data.domains")
                for piece in ("--set", f"{name}={value}")]  # fmt: skip
        done = subprocess.run(
            [*launcher, "-m", "modebench", "train", "--method", "svs", "--model", "tiny", "--domain", "graph",
             "--steps", "2", *sets, "-o", tmp_path / str(processes)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=900,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    one, two = (lines(tmp_path / name / "tasks.jsonl") for name in ("1", "2"))
    assert one
    # Decoded in other batches and trained with another order of sums: the first step is of the same policy.
    assert [each for each in one if each["step"] == 1] == [each for each in two if each["step"] == 1]
