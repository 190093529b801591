"""Rollout- and mode-level methods by the real command line: headline, pools, resumed in the same bytes."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.training.child import Place
from tests.training.test_resume import STEPS, assert_same, kill_after_step


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weighted_mean(steps: list[dict[str, Any]], name: str, weight: str) -> float:
    defined = [step for step in steps if step[name] is not None]
    return float(sum(step[name] * step[weight] for step in defined) / sum(step[weight] for step in defined))


def asked(place: Place, steps: int) -> list[str]:
    """Three parts with a state each."""
    sets = ["grpo_dropout.control=random", "rollout.num_prompts=3", "rollout.group_size=6"]
    return [*place.asked("semantic_maxent", steps, *sets), "--add", "replay", "--add", "grpo_dropout"]


def test_headline_diagnostics_are_in_the_summary(place: Place, tmp_path: Path) -> None:
    child = place.train(tmp_path, *asked(place, 3), "--set", "eval.dev_limit=0", "-o", "run")
    assert child.wait() == 0, child.text
    steps = lines(tmp_path / "run")
    assert any(step["semantic_maxent/bonus"] for step in steps)
    assert steps[-1]["replay/banks"] > 0
    headline = json.loads((tmp_path / "run/summary.json").read_text())["headline"]
    assert set(headline) == {"grpo_dropout/silent_groups", "grpo_dropout/kept"}
    for name, value in headline.items():
        assert value == pytest.approx(weighted_mean(steps, name, "grpo_dropout/credited_groups"))
    assert 0 < headline["grpo_dropout/kept"] <= 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rlep", "grpo_dropout", "gapo", "setpo", "ucpo", "semantic_maxent"])
def test_every_method_trains(place: Place, tmp_path: Path, method: str) -> None:
    child = place.train(tmp_path, *place.asked(method, 8, "eval.dev_limit=0", "eval.every=0"), "-o", "run")
    assert child.wait() == 0, child.text
    steps = lines(tmp_path / "run")
    assert [step["total/rollouts"] for step in steps] == [8 * number for number in range(1, 9)]
    assert any(step["grad_norm"] for step in steps)
    for step in steps:
        assert all(math.isfinite(value) for value in step.values() if value is not None)
        assert {name.partition("/")[0] for name in step} & {method}  # it has something to say of itself


@pytest.mark.slow
def test_added_parts_resume_in_the_same_bytes(place: Place, tmp_path: Path) -> None:
    whole = place.train(tmp_path, *asked(place, STEPS), "-o", "whole")
    assert whole.wait() == 0, whole.text
    killed = place.train(tmp_path, *asked(place, STEPS), "-o", "run", fault=kill_after_step, given=3)
    assert killed.wait() == -signal.SIGKILL, killed.text
    resumed = place.train(tmp_path, "--resume", "run")
    assert resumed.wait() == 0, resumed.text
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_pools_of_stored_responses(place: Place, tmp_path: Path) -> None:
    small = ["eval.split=train", "eval.limit=6", "eval.samples=6", "eval.every=0", "eval.dev_limit=0"]
    online = place.train(tmp_path, *place.asked("rlep", 3, *small), "-o", "online")
    assert online.wait() == 0, online.text
    assert json.loads((tmp_path / "online/summary.json").read_text())["headline"] == {}
    first, *_, last = lines(tmp_path / "online")
    assert first["rlep/joined"] == first["rlep/pool_responses"] == 0
    assert last["rlep/pool_responses"] > 0
    pool = tmp_path / "online/eval/step-000000"
    given = [*place.asked("dr_grpo", 3, f"rlep.pool={pool}", "eval.dev_limit=0"), "--add", "rlep"]
    offline = place.train(tmp_path, *given, "-o", "offline", fault=kill_after_step, given=2)
    assert offline.wait() == -signal.SIGKILL, offline.text
    for step in lines(tmp_path / "offline"):
        assert step["rlep/pool_responses"] > 0
        assert step["total/rollouts"] == 8 * step["step"]  # stored responses are no rollouts of the policy
    assert any(step["rlep/joined"] for step in lines(tmp_path / "offline"))
    (pool / "responses.jsonl").write_bytes((pool / "responses.jsonl").read_bytes() * 2)
    resumed = place.train(tmp_path, "--resume", "offline")
    assert resumed.wait() == 2
    assert "rlep.pool are not those that the run began with" in resumed.text
    (pool / "responses.jsonl").unlink()
    missing = place.train(tmp_path, *given, "-o", "missing")
    assert missing.wait() == 2
    assert f"must be a run folder with responses, and {pool} is none" in missing.text
    assert not (tmp_path / "missing").exists()
