"""Losses and gradients against TRL's, on the same tokens, advantages and old log-probabilities.

Run in an environment with TRL: ``make test-trl``. A trainer of TRL is built for a random model, and its
loss is called as its training step would call it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modebench.training import policy
from modebench.training.batch import Floats, Group
from modebench.training.likelihood import row_logprobs
from modebench.training.loss import backward
from modebench.training.methods import build
from modebench.training.update import Score, with_old
from tests.sampling.tiny_models import save_tiny
from tests.training.groups import TASK, rollout

pytestmark = pytest.mark.trl

LENGTH, TEMPERATURE, EPSILON, EPSILON_HIGH = 20, 0.7, 0.2, 0.28
PRESETS = {
    "grpo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dapo": "token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
}


def drawn_groups() -> list[Group]:
    """Two prompts of different lengths, four responses of 1 to 20 tokens each, both groups mixed."""
    draw = np.random.default_rng(0)
    lengths, rewards = [[20, 3, 9, 1], [7, 20, 12, 5]], [[1, 0, 0, 1], [0, 1, 0, 0]]
    return [
        Group(
            TASK,
            tuple(draw.integers(5, 100, size=prompt).tolist()),
            tuple(
                rollout(draw.integers(5, 100, size=length).tolist(), float(reward))
                for length, reward in zip(lengths[place], rewards[place], strict=True)
            ),
        )
        for place, prompt in enumerate((6, 11))
    ]


def trainer_of(folder: Path, loss_type: str, **options: Any) -> Any:
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    config = trl.GRPOConfig(
        output_dir=str(folder / "trl"),
        loss_type=loss_type,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=LENGTH,
        temperature=TEMPERATURE,
        use_cpu=True,
        bf16=False,
        report_to="none",
        **{"epsilon": EPSILON, "epsilon_high": EPSILON_HIGH, "beta": 0.0, **options},
    )
    trainer = trl.GRPOTrainer(
        model=str(folder),
        args=config,
        reward_funcs=lambda completions, **columns: [0.0] * len(completions),
        train_dataset=datasets.Dataset.from_list([{"prompt": "x"}] * 8),
    )
    trainer.current_gradient_accumulation_steps = 1  # as its training loop sets it
    trainer.model.train()
    return trainer


def trl_inputs(groups: list[Group], advantages: list[float], old: list[Floats] | None) -> dict[str, Any]:
    """The batch in TRL's layout: prompts padded on the left, responses on the right."""
    rows = [(group.prompt_ids, each.token_ids) for group in groups for each in group.rollouts]
    widest, longest = (max(len(row[side]) for row in rows) for side in (0, 1))
    inputs: dict[str, Any] = {
        "prompt_ids": torch.tensor([[0] * (widest - len(p)) + list(p) for p, _ in rows]),
        "prompt_mask": torch.tensor([[0] * (widest - len(p)) + [1] * len(p) for p, _ in rows]),
        "completion_ids": torch.tensor([list(r) + [0] * (longest - len(r)) for _, r in rows]),
        "completion_mask": torch.tensor([[1] * len(r) + [0] * (longest - len(r)) for _, r in rows]),
        "advantages": torch.tensor(advantages, dtype=torch.float32),
    }
    inputs["num_items_in_batch"] = inputs["completion_mask"].sum()
    if old is not None:
        padded = [[*logp_T, *[0.0] * (longest - len(logp_T))] for logp_T in old]
        inputs["old_per_token_logps"] = torch.tensor(padded, dtype=torch.float32)
    return inputs


@pytest.mark.parametrize("off_policy", [False, True])
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("loss_type", PRESETS)
def test_loss_and_gradient_are_those_of_trl(
    loss_type: str, kind: str, off_policy: bool, tmp_path: Path
) -> None:
    folder = save_tiny(tmp_path / "model", kind)
    ours = policy.load(str(folder), device="cpu")
    sets = {
        "surrogate.loss_agg_mode": PRESETS[loss_type],
        "surrogate.epsilon": EPSILON,
        "surrogate.epsilon_high": EPSILON_HIGH,
    }
    base = "dr_grpo" if loss_type == "dr_grpo" else "grpo"
    method = build(base, sets, max_completion_length=LENGTH)
    groups = drawn_groups()
    rows = method.credit(groups, method.state(0))
    old = None
    if off_policy:
        draw = np.random.default_rng(1)
        with torch.no_grad():
            present = row_logprobs(ours.scorer, rows, temperature=TEMPERATURE)
        old = [
            each.logp_T.double().numpy() + draw.normal(size=len(each.logp_T), scale=0.3) for each in present
        ]
        rows = with_old(rows, old)
    told = backward(ours.scorer, rows, temperature=TEMPERATURE, epsilon=EPSILON, epsilon_high=EPSILON_HIGH)
    advantages = [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None]

    trainer = trainer_of(folder, loss_type)
    loss = trainer._compute_loss(trainer.model, trl_inputs(groups, advantages, old))
    loss.backward()

    assert told.loss["fresh"] == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    expected = dict(trainer.model.named_parameters())
    for name, parameter in ours.model.named_parameters():
        assert parameter.grad is not None
        difference = (parameter.grad - expected[name].grad).norm()
        assert difference <= 1e-5 * expected[name].grad.norm() + 1e-7, name
    metrics = {name: values[-1] for name, values in trainer._metrics["train"].items()}
    assert told.metrics()["entropy"] == pytest.approx(metrics["entropy"], rel=1e-5)
    assert told.metrics()["clip_fraction"] == pytest.approx(metrics["clip_ratio/region_mean"], abs=1e-6)
    assert (metrics["clip_ratio/region_mean"] > 0) is off_policy


def drawn_old(present: list[Floats], spread: float) -> list[Floats]:
    """Log-probabilities of some other policy at the same tokens."""
    draw = np.random.default_rng(1)
    return [logp_T + draw.normal(size=len(logp_T), scale=spread) for logp_T in present]


NAMED: dict[str, tuple[str, float, dict[str, Any], dict[str, Any]]] = {
    # loss_type of TRL, spread of the old log-probabilities, options of TRL, options here that are its own
    "clip_higher": ("dapo", 0.3, {}, {}),
    "dapo": ("dapo", 0.3, {}, {"overlong.buffer": 0}),
    "gspo": (
        "grpo",
        0.001,
        {"importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
        {},
    ),
    "top_entropy": ("dapo", 0.3, {"top_entropy_quantile": 0.2}, {"top_entropy.denominator": "all"}),
    "grpo_kl": (
        "grpo",
        0.3,
        {"beta": 0.3, "use_bias_correction_kl": False, "epsilon_high": EPSILON},
        {"divergence.beta": 0.3},
    ),
    "top_entropy+divergence": (
        "dapo",
        0.3,
        {"top_entropy_quantile": 0.2, "beta": 0.3, "use_bias_correction_kl": False},
        {"top_entropy.denominator": "all", "divergence.beta": 0.3, "divergence.kind": "k3"},
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_methods_of_the_table_are_those_of_trl(name: str, tmp_path: Path) -> None:
    """Off-policy, with the same old log-probabilities, and of a divergence the same reference."""
    loss_type, spread, options, sets = NAMED[name]
    folder = save_tiny(tmp_path / "model", "llama")
    ours, reference = (policy.load(str(folder), device="cpu") for _ in range(2))
    with torch.no_grad():
        for parameter in reference.model.parameters():
            parameter.mul_(1.2)
    base, *adds = name.split("+")
    method = build(base, sets, adds, max_completion_length=LENGTH)
    groups = drawn_groups()
    state = method.state(0)
    rows = method.credit(groups, state)
    scored: list[list[Floats]] = []
    entropies: list[list[Floats]] = []
    with torch.no_grad():
        for each in (ours, reference):
            found = row_logprobs(each.scorer, rows, temperature=TEMPERATURE)
            scored.append([one.logp_T.double().numpy() for one in found])
            entropies.append([one.entropy_T.double().numpy() for one in found])
    old = drawn_old(scored[0], spread)
    rows = with_old(rows, old)
    scores = [Score(*each) for each in zip(scored[0], entropies[0], strict=True)]
    rows = method.reweigh(rows, method.seen(rows, scores), state)
    low, high = method.surrogate.clip_range
    told = backward(
        ours.scorer,
        rows,
        temperature=TEMPERATURE,
        epsilon=low,
        epsilon_high=high,
        level=method.surrogate.importance_sampling_level,
        reference=reference.scorer,
    )

    trainer = trainer_of(folder, loss_type, **options)
    advantages = [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None]
    inputs = trl_inputs(groups, advantages, old)
    longest = inputs["completion_ids"].shape[1]
    padded = [[*logp_T, *[0.0] * (longest - len(logp_T))] for logp_T in scored[1]]
    inputs["ref_per_token_logps"] = torch.tensor(padded, dtype=torch.float32)
    loss = trainer._compute_loss(trainer.model, inputs)
    loss.backward()

    assert sum(told.loss.values()) == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    assert 0 < told.clipped < told.surrogate_tokens
    expected = dict(trainer.model.named_parameters())
    for parameter_name, parameter in ours.model.named_parameters():
        assert parameter.grad is not None
        difference = (parameter.grad - expected[parameter_name].grad).norm()
        assert difference <= 1e-5 * expected[parameter_name].grad.norm() + 1e-7, parameter_name


def test_advantages_of_dapo_are_those_of_trl_up_to_its_eps() -> None:
    """TRL divides by the deviation + 1e-4, unbiased like ours."""
    method = build("dapo", {"overlong.buffer": 0, "advantage.eps": 1e-4}, max_completion_length=LENGTH)
    groups = drawn_groups()
    rows = method.credit(groups, method.state(0))
    rewards = torch.tensor([[one.reward for one in group.rollouts] for group in groups])
    expected = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
    found = [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None]
    assert found == pytest.approx(expected.flatten().tolist(), rel=1e-6)
