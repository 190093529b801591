"""Row 17 of the faults that users of other trainers reported: resume is not a continuation.

Here a run that was killed at any moment and resumed ends in the same bytes as an undisturbed one: weights,
optimizer, bank and cursor of the method, metrics, and the responses of every evaluation.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.child import Child, Place

STEPS = 6


def equal(one: Any, two: Any) -> bool:
    """Whether two nests of tensors and plain values are the same, bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two) and one.dtype == two.dtype
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(equal, one, two))
    return bool(one == two)


def assert_same(one: Path, two: Path, steps: int = STEPS) -> None:
    """Two runs ended in the same bytes."""
    last = Path("checkpoints") / f"step-{steps:06d}"
    names = [last / "model.safetensors", last / "trainer.json", Path("metrics.jsonl")]
    names += [path.relative_to(one) for path in sorted(one.glob("*/step-*/responses.jsonl"))]
    assert len(names) == 3 + 2 * 3
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    states = [torch.load(run / last / "trainer.pt", weights_only=True) for run in (one, two)]
    assert equal(*states)
    assert not list(two.glob("checkpoints/*.part"))


def kill_after_step(step: int) -> None:
    """Die between the log's line of a step and what comes next."""
    from modebench.training.folder import StepLog

    write = StepLog.write

    def dying(log: StepLog, metrics: Any, timing: Any) -> None:
        write(log, metrics, timing)
        if metrics["step"] == step:
            os.kill(os.getpid(), signal.SIGKILL)

    StepLog.write = dying  # type: ignore[method-assign]


def kill_in_checkpoint(step: int) -> None:
    """Die with half a checkpoint on the disk."""
    from modebench.training.policy import Policy

    save = Policy.save

    def dying(policy: Policy, folder: Path) -> None:
        save(policy, folder)
        if f"step-{step:06d}" in folder.name:
            weights = folder / "model.safetensors"
            os.truncate(weights, weights.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    Policy.save = dying  # type: ignore[method-assign]


def kill_in_evaluation(samples: int) -> None:
    """Die when an evaluation of a trained policy has this many samples on the disk."""
    from modebench.training.trainer import Trainer

    watched = Trainer._watched

    def dying(trainer: Trainer, done: int, total: int) -> None:
        watched(trainer, done, total)
        if trainer.state.step > 0 and done == samples:
            os.kill(os.getpid(), signal.SIGKILL)

    Trainer._watched = dying  # type: ignore[method-assign]


def test_row_17_killed_after_a_step_in_an_evaluation_and_in_a_checkpoint(
    place: Place, tmp_path: Path
) -> None:
    asked = place.asked("re_max", STEPS)
    whole = place.train(tmp_path, *asked, "-o", "whole")
    assert whole.wait() == 0, whole.text
    killed = place.train(tmp_path, *asked, "-o", "run", fault=kill_after_step, given=3)
    assert killed.wait() == -signal.SIGKILL, killed.text
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 3
    for fault, given in ((kill_in_evaluation, 2), (kill_in_checkpoint, 6)):
        killed = place.train(tmp_path, "--resume", "run", fault=fault, given=given)
        assert killed.wait() == -signal.SIGKILL, killed.text
    assert list((tmp_path / "run/checkpoints").glob("step-000006.*.part"))
    resumed = place.train(tmp_path, "--resume", "run")
    assert resumed.wait() == 0, resumed.text
    assert_same(tmp_path / "whole", tmp_path / "run")
    trained = torch.load(tmp_path / "run/checkpoints/step-000006/trainer.pt", weights_only=True)
    assert any(state["exp_avg"].abs().max() > 0 for state in trained["optimizer"]["state"].values())
    assert '"exemplars"' in (tmp_path / "run/checkpoints/step-000006/trainer.json").read_text()


def test_sigterm_saves_and_says_how_to_go_on(place: Place, tmp_path: Path) -> None:
    asked = place.asked("re_dr", STEPS, "checkpoint.every=0")
    assert place.train(tmp_path, *asked, "-o", "whole").wait() == 0
    child = place.start(tmp_path, *asked, "-o", "run")
    wait_for_line(child, tmp_path / "run/metrics.jsonl")
    child.terminate()
    assert child.wait() == 130, child.text
    assert "resume with: modebench train --resume run" in child.text
    assert '"status": "cancelled"' in (tmp_path / "run/summary.json").read_text()
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert (tmp_path / f"run/checkpoints/step-{len(lines):06d}/trainer.json").exists()
    assert place.train(tmp_path, "--resume", "run").wait() == 0
    assert_same(tmp_path / "whole", tmp_path / "run")


def wait_for_line(child: Child, log: Path) -> None:
    """Until a log has its first line."""
    while not (log.exists() and log.stat().st_size):
        assert child.process.is_alive(), child.text
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "sets"),
    [
        ("re_max", ()),
        ("re_dr", ("replay.control=noise", "update.num_iterations=2")),
        ("grpo", ("rollout.num_prompts=5",)),
        ("maxrl", ("optimizer.schedule=cosine", "optimizer.warmup_steps=2")),
    ],
)
def test_row_17_twenty_kills(place: Place, tmp_path: Path, method: str, sets: tuple[str, ...]) -> None:
    """Five kills at random moments, by each of four methods."""
    asked = place.asked(method, STEPS, *sets)
    place.train(tmp_path, "--help")  # the first child waits for the imports
    began = time.monotonic()
    assert place.train(tmp_path, *asked, "-o", "whole").wait() == 0
    seconds = time.monotonic() - began
    rng, run, kills = random.Random(method), tmp_path / "run", 0
    while True:
        child = place.start(tmp_path, *(["--resume", "run"] if run.exists() else [*asked, "-o", "run"]))
        if kills < 5:
            time.sleep(rng.uniform(0, seconds))
            child.kill()
        if child.wait() == -signal.SIGKILL:
            kills += 1
            if run.exists() and not (run / "config.yaml").exists():
                shutil.rmtree(run)
            continue
        assert child.wait() == 0, child.text
        assert_same(tmp_path / "whole", run)
        if kills == 5:
            return
        shutil.rmtree(run)
