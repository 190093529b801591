"""TRL's own GRPOTrainer trains with our reward function, as docs/rewards.md shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modebench.tasks import Task
from modebench.training.reward import trl_reward, trl_rows
from tests.training.child import save_policy

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")


RIGHT = [{"role": "assistant", "content": "\\boxed{9 + (6 + 3)}"}]


class HalfRight:
    """The reward function, shown a right answer in every second place: a random model never gives one."""

    __name__ = "half_right"

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def __call__(self, completions: list[Any], task_id: list[str], **columns: Any) -> list[float]:
        shown = [RIGHT if place % 2 else completion for place, completion in enumerate(completions)]
        rewards = trl_reward(completions=shown, **columns)
        self.seen.extend(zip(task_id, rewards, strict=True))
        return rewards


@pytest.mark.trl
def test_grpo_trainer_trains_with_the_reward_function(tmp_path: Path) -> None:
    model = save_policy(tmp_path / "model")
    numbers = {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18}
    tasks = [Task(f"t/{place}", "countdown", 1, "train", "3, 6, 9 to 18", numbers) for place in range(4)]
    settings = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"), loss_type="dr_grpo", max_steps=2, num_generations=4,
        per_device_train_batch_size=4, max_completion_length=8, report_to=[], use_cpu=True, bf16=False,
        save_strategy="no", logging_steps=1, learning_rate=1e-3, model_init_kwargs={"dtype": "float32"},
    )  # fmt: skip
    reward = HalfRight()
    trainer = trl.GRPOTrainer(str(model), reward, settings, datasets.Dataset.from_list(trl_rows(tasks)))
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.train()
    assert [value for _, value in reward.seen] == [0.0, 1.0] * 4
    assert {task for task, _ in reward.seen} <= {task.id for task in tasks}
    assert [entry["reward"] for entry in trainer.state.log_history if "reward" in entry] == [0.5, 0.5]
    moved = [not old.equal(new) for old, new in zip(before, trainer.model.parameters(), strict=True)]
    assert any(moved)
