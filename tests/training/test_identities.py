"""Which methods are one and the same at a single on-policy update, and which differ even there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from accelerate import Accelerator

from modebench.training.config import OptimizerConfig, TrainConfig, UpdateConfig
from modebench.training.likelihood import Scorer
from modebench.training.methods import build
from modebench.training.recipe import run_updates
from modebench.training.update import Updater
from tests.training.groups import Bigram, rewarded

CAP = 10
TOKEN_MEAN = {"surrogate.loss_agg_mode": "token-mean"}
DEGENERATE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clip_higher": ({}, TOKEN_MEAN),
    "dapo": ({"overlong.buffer": 0}, TOKEN_MEAN),
    "gspo": ({}, {}),
    "kl_cov": ({"kl_cov.share": 0.2}, TOKEN_MEAN),
}
"""Options of a method, and options of GRPO with which it is the same at ratio 1."""
ACTING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clip_cov": ({"clip_cov.low": 0.05, "clip_cov.share": 0.1}, TOKEN_MEAN),
    "top_entropy": ({}, TOKEN_MEAN),
    "grpo_kl": ({"divergence.beta": 0.5}, {}),
    "grpo_js": ({"divergence.beta": 0.5}, {}),
}


def moved(name: str, sets: dict[str, Any], **update: Any) -> torch.Tensor:
    """The small policy's parameters after one step by plain descent; the reference is another policy."""
    groups = [rewarded(1, 0, 0, 1, lengths=(2, 5, 3, 4)), rewarded(0, 0, 1, prompt=(4,), lengths=(6, 1, 2))]
    method, model, reference = build(name, sets, max_completion_length=CAP), Bigram(), Bigram()
    with torch.no_grad():
        reference.logits.mul_(-1)
    config = TrainConfig(
        steps=4, optimizer=OptimizerConfig(learning_rate=6.0, max_grad_norm=0), update=UpdateConfig(**update)
    )
    descent = torch.optim.SGD(model.parameters(), lr=1.0)
    updater = Updater(
        Scorer(model), descent, Accelerator(cpu=True), config, method.surrogate, Scorer(reference)
    )
    run_updates(method, method.state(0), updater, groups, config, 1)
    return model.logits.detach()


@pytest.mark.parametrize("name", DEGENERATE)
def test_identical_by_construction_at_one_update_and_different_at_several(name: str) -> None:
    own, base = DEGENERATE[name]
    torch.testing.assert_close(moved(name, own), moved("grpo", base), rtol=1e-12, atol=1e-14)
    several = {"num_iterations": 6}
    assert float((moved(name, own, **several) - moved("grpo", base, **several)).norm()) > 1e-4


@pytest.mark.parametrize("name", ACTING)
def test_acting_at_ratio_1(name: str) -> None:
    own, base = ACTING[name]
    assert float((moved(name, own) - moved("grpo", base)).norm()) > 1e-4


def test_the_entropy_bonus_acts_at_ratio_1_and_is_dr_grpo_without_its_coefficient() -> None:
    assert float((moved("entropy_bonus", {"entropy.coefficient": 0.5}) - moved("dr_grpo", {})).norm()) > 1e-4
    assert torch.equal(moved("entropy_bonus", {"entropy.coefficient": 0}), moved("dr_grpo", {}))
