"""Token-level methods and recipes of several updates, by the real command line."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.child import Place
from tests.training.test_resume import assert_same, kill_after_step

STEPS = 6
QUICK = ("eval.every=0", "eval.limit=1", "eval.dev_limit=0", "checkpoint.every=0")
MULTI = ("update.mini_batches=2", "update.num_iterations=2", "optimizer.learning_rate=0.02")


def lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def summary(run: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return read


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "sets"),
    [
        ("dapo", ("dynamic_sampling.max_rounds=3",)),
        ("clip_cov", ("clip_cov.share=0.2", "clip_cov.low=0")),
        ("kl_cov", ()),
        ("top_entropy", ()),
        ("gspo", ()),
        ("grpo_js", ()),
        ("entropy_bonus", ()),
    ],
)
def test_row_17_killed_and_resumed_between_several_updates(
    place: Place, tmp_path: Path, method: str, sets: tuple[str, ...]
) -> None:
    asked = place.asked(method, STEPS, *sets, *MULTI)
    assert place.train(tmp_path, *asked, "-o", "whole").wait() == 0
    killed = place.train(tmp_path, *asked, "-o", "run", fault=kill_after_step, given=3)
    assert killed.wait() == -signal.SIGKILL, killed.text
    assert place.train(tmp_path, "--resume", "run").wait() == 0
    assert_same(tmp_path / "whole", tmp_path / "run")


def test_dapo_counts_what_it_generates_and_discards(place: Place, tmp_path: Path) -> None:
    """Every step trains on mixed groups; what the rounds cost is in the totals."""
    asked = place.asked("dapo", STEPS, "dynamic_sampling.max_rounds=3", *MULTI, *QUICK)
    assert place.train(tmp_path, *asked, "-o", "run").wait() == 0
    steps, before = lines(tmp_path / "run"), dict.fromkeys(("rollouts", "discarded", "updates"), 0)
    rounds = []
    for step in steps:
        now = {name: step[f"total/{name}"] for name in before}
        rollouts, discarded, updates = (now[name] - before[name] for name in before)
        rounds.append(rollouts // 8)  # two prompts of four rollouts a round
        assert rollouts in (8, 16, 24)
        kept = (rollouts - discarded) // 4
        assert kept <= 2
        assert updates == 2 * min(kept, 2)  # two passes; as many mini-batches as there are groups
        assert kept == 2 or rounds[-1] == 3  # short only where the rounds were over
        assert (step["learning_rate"] is None) == (kept == 0)
        # Metrics are of everything that was generated.
        assert step["effect/dynamic_sampling"] >= 4 * round((1 - step["mixed_groups"]) * rollouts / 4)
        before = now
    assert len(set(rounds)) > 1
    told = summary(tmp_path / "run")
    assert told["totals"] == {
        name.removeprefix("total/"): steps[-1][name] for name in steps[-1] if "total/" in name
    }
    assert told["effects"]["surrogate.ratio"] == sum(step["effect/surrogate.ratio"] for step in steps) > 0
    assert "surrogate.ratio" not in told["inert"]


def test_a_step_without_a_mixed_group_has_no_update(place: Place, tmp_path: Path) -> None:
    never = ("data.domains=countdown", "dynamic_sampling.max_rounds=2", "update.all_wrong_patience=0")
    child = place.train(tmp_path, *place.asked("dapo", 2, *never, *QUICK), "-o", "run")
    assert child.wait() == 0, child.text
    run = tmp_path / "run"
    assert [step["total/updates"] for step in lines(run)] == [0, 0]
    assert [step["total/discarded"] for step in lines(run)] == [16, 32]
    weights = [load_file(run / f"checkpoints/step-{step:06d}/model.safetensors") for step in (0, 2)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_reference_is_the_start_of_the_run_also_after_a_resume(place: Place, tmp_path: Path) -> None:
    shutil.copytree(place.model, tmp_path / "model")
    quick = [*QUICK[:-1], "checkpoint.every=2", "optimizer.learning_rate=0.02"]
    asked = place.asked("grpo_kl", STEPS, "divergence.kind=exact_js", *quick)
    asked[asked.index("--model") + 1] = f"hf/{tmp_path / 'model'}"
    assert place.train(tmp_path, *asked, "-o", "run").wait() == 0
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "run", killed)
    for step in (4, 6):
        shutil.rmtree(killed / f"checkpoints/step-{step:06d}")
    shutil.rmtree(killed / "eval/step-000006")
    shutil.copytree(killed, tmp_path / "other")
    assert place.train(tmp_path, "--resume", "killed").wait() == 0
    assert lines(killed) == lines(tmp_path / "run")
    steps = lines(tmp_path / "run")
    # At the start of the run policy and reference are one; once it has moved they are not.
    moved = [step["effect/divergence"] > 0 for step in steps]
    assert moved[0] is False
    assert moved[-1] is True
    assert [step["total/scored"] for step in steps] == [8 * step for step in range(1, STEPS + 1)]
    # Another model in its place is noticed.
    weights = load_file(tmp_path / "model/model.safetensors")
    save_file(
        {name: 1.01 * tensor for name, tensor in weights.items()},
        tmp_path / "model/model.safetensors",
        {"format": "pt"},
    )
    child = place.train(tmp_path, "--resume", "other")
    assert child.wait() == 2, child.text
    last = child.text.splitlines()[-1]
    assert last.startswith("error: the reference, ")
    assert "is no longer the model that this run began with" in last


@pytest.mark.parametrize(
    ("method", "single", "multi"),
    [
        ("kl_cov", ["kl_cov", "surrogate.ratio"], []),
        pytest.param("gspo", ["surrogate.clip", "surrogate.ratio"], [], marks=pytest.mark.slow),
        pytest.param(
            "clip_cov",  # no token reaches this window
            ["clip_cov", "surrogate.clip", "surrogate.ratio"],
            ["clip_cov"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_row_21_what_a_recipe_leaves_without_effect_is_told_by_its_counts(
    place: Place, tmp_path: Path, method: str, single: list[str], multi: list[str]
) -> None:
    window = ("clip_cov.low=90", "clip_cov.high=99") if method == "clip_cov" else ()
    for name, sets, expected in (("single", (), single), ("multi", MULTI, multi)):
        child = place.train(tmp_path, *place.asked(method, 4, *QUICK, *window, *sets), "-o", name)
        assert child.wait() == 0, child.text
        told = summary(tmp_path / name)
        assert sorted(told["inert"]) == expected
        line = f"without effect in this run (counted 0 times): {', '.join(told['inert'])}"
        assert (line in child.text) is bool(expected)
    first, last = lines(tmp_path / "single")[-1], lines(tmp_path / "multi")[-1]
    assert first["log_ratio_abs_max"] == 0 < last["log_ratio_abs_max"]
    assert (first["total/updates"], last["total/updates"]) == (4, 16)


def test_replay_needs_whole_groups(place: Place, tmp_path: Path) -> None:
    sets = ("update.mini_batches=4", "update.mini_batch_unit=rollout")
    child = place.train(tmp_path, *place.asked("re_dr", 2, *sets), "-o", "run")
    assert child.wait() == 2
    assert child.text == (
        "error: update.mini_batch_unit is rollout, and replay needs the whole groups of an update: "
        "take group\n"
    )
    assert not (tmp_path / "run").exists()
    child = place.train(tmp_path, *place.asked("dr_grpo", 2, *sets, *QUICK), "-o", "run")
    assert child.wait() == 0, child.text
    assert lines(tmp_path / "run")[-1]["total/updates"] == 8
