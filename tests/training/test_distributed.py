"""Two real processes over gloo do what one process does.

Row 18 of the faults that users of other trainers reported: runs hang where processes have unequal shares.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.child import Place

STEPS = 4
ROOT = Path(__file__).parents[2]


def run(
    place: Place,
    folder: Path,
    processes: int,
    prompts: int,
    start: str = "new",
    chosen: Sequence[str] = ("method=re_max",),
) -> None:
    """Train in `folder` with so many processes; they check themselves that they are as many."""
    launcher = [sys.executable]
    if processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    arguments = [folder, processes, STEPS, prompts, start, *chosen]
    script = ROOT / "tests/training/distributed_run.py"
    done = subprocess.run(
        [*launcher, str(script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{place.site}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr


def gradients(folder: Path, rank: int = 0) -> list[torch.Tensor]:
    found: list[torch.Tensor] = torch.load(f"{folder}-gradients-{rank}.pt", weights_only=True)
    return found


def groups(folder: Path, rank: int = 0) -> Any:
    return json.loads(Path(f"{folder}-groups-{rank}.json").read_text())


def state(folder: Path, step: int) -> Any:
    return json.loads((folder / f"checkpoints/step-{step:06d}/trainer.json").read_text())


def assert_close(one: torch.Tensor, two: torch.Tensor) -> None:
    """Within 1e-6 of the length of the whole gradient."""
    assert float(two.norm()) > 0
    assert float((one - two).norm()) <= 1e-6 * float(two.norm())


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [3, 1])
def test_row_18_two_processes_train_as_one_does(place: Place, tmp_path: Path, prompts: int) -> None:
    """Three prompts are dealt two and one; of a single one the second process has no rows at all."""
    shutil.copytree(place.model, tmp_path / "model")
    one, two = tmp_path / "one", tmp_path / "two"
    run(place, one, 1, prompts)
    run(place, two, 2, prompts)
    assert len(groups(one)) == prompts
    for rank in (0, 1):
        assert groups(two, rank) == groups(one)
        live = [step for step, gradient in enumerate(gradients(one)) if gradient.norm() > 0]
        assert live[:1] in ([0], [1]), "no early gradient to compare"
        assert_close(gradients(two, rank)[live[0]], gradients(one)[live[0]])
    for step in (0, 2, STEPS):
        assert state(two, step) == state(one, step)
    assert state(two, STEPS)["method"]["replay"]["banks"]
    assert json.loads((two / "summary.json").read_text())["processes"] == 2


@pytest.mark.slow
def test_what_two_processes_saved_one_goes_on_with(place: Place, tmp_path: Path) -> None:
    shutil.copytree(place.model, tmp_path / "model")
    two, mixed = tmp_path / "two", tmp_path / "mixed"
    run(place, two, 2, 3)
    shutil.copytree(two, mixed)
    for name in ("checkpoints/step-000004", "eval/step-000004"):
        shutil.rmtree(mixed / name)
    run(place, mixed, 1, 3, "resume")
    assert len(gradients(mixed)) == 2
    assert state(mixed, STEPS) == state(two, STEPS)
    for at, gradient in enumerate(gradients(mixed), 2):
        if gradient.norm() > 0:
            assert float((gradient - gradients(two)[at]).norm()) <= 1e-5 * float(gradient.norm())


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen",
    [
        ("method=semantic_maxent", "add=replay,grpo_dropout", "grpo_dropout.control=random"),
        ("method=dr_grpo", "add=rlep,replay", "replay.exemplar=random"),
    ],
)
def test_parts_remember_the_same_on_any_number_of_processes(
    place: Place, tmp_path: Path, chosen: Sequence[str]
) -> None:
    shutil.copytree(place.model, tmp_path / "model")
    one, two = tmp_path / "one", tmp_path / "two"
    run(place, one, 1, 3, chosen=chosen)
    run(place, two, 2, 3, chosen=chosen)
    assert state(two, STEPS)["method"] == state(one, STEPS)["method"]
    live = [step for step, gradient in enumerate(gradients(one)) if gradient.norm() > 0]
    for rank in (0, 1):
        assert_close(gradients(two, rank)[live[0]], gradients(one)[live[0]])


@pytest.mark.slow
def test_mesh_is_the_same_on_any_number_of_processes(place: Place, tmp_path: Path) -> None:
    """The four groups of a task lie on two processes, and its balance is over all of them."""
    one, two = tmp_path / "one", tmp_path / "two"
    chosen = (
        "model=tiny", "data.domains=graph_coloring", "rollout.group_size=16", "method=mesh", "add=mei",
        "strategy_balance.kappa=1", "rollout.max_completion_length=6",
    )  # fmt: skip
    run(place, one, 1, 3, chosen=chosen)
    run(place, two, 2, 3, chosen=chosen)
    assert len(groups(one)) == 3 * 4
    for rank in (0, 1):
        assert groups(two, rank) == groups(one)
        for alone, shared in list(zip(gradients(one), gradients(two, rank), strict=True))[:2]:
            assert float((alone - shared).norm()) <= 1e-3 * float(alone.norm())
    told = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()][:2]
        for folder in (one, two)
    ]
    for alone, shared in zip(*told, strict=True):
        undefined = {name for name, value in alone.items() if value is None}
        assert {name for name, value in shared.items() if value is None} == undefined
        numbers = [{name: line[name] for name in line.keys() - undefined} for line in (alone, shared)]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-2, abs=1e-5)
    assert told[0][0]["grad_norm/ratio"] == 0
    assert told[0][1]["grad_norm/ratio"] > 0
