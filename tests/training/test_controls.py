"""The controls of replay in real optimizer steps: what they change, and what they don't."""

from __future__ import annotations

import torch
from accelerate import Accelerator

from modebench.training.batch import Group
from modebench.training.config import OptimizerConfig, TrainConfig
from modebench.training.likelihood import Scorer
from modebench.training.methods import build
from modebench.training.update import Updater, UpdateReport
from tests.training.groups import moded
from tests.training.scoring_cases import causal_model

CONFIG = TrainConfig(optimizer=OptimizerConfig(learning_rate=0.01, max_grad_norm=0.05))
BATCHES = [
    [moded("a", "b", None, None, prompt=(1, 2)), moded(None, None, None, None, prompt=(3,))],
    [moded("a", "a", "a", "a", prompt=(1, 2)), moded("c", None, None, None, prompt=(3,))],
    [moded(None, None, None, None, prompt=(1, 2)), moded(None, None, None, None, prompt=(5,))],
]


def train(
    name: str, batches: list[list[Group]], **options: object
) -> tuple[torch.Tensor, list[UpdateReport]]:
    """All parameters after an AdamW step a batch, on a random two-layer model; what each step saw."""
    method = build(name, {f"replay.{key}": value for key, value in options.items()}, max_completion_length=8)
    state, model = method.state(seed=1), causal_model("llama")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    updater = Updater(Scorer(model), optimizer, Accelerator(cpu=True), CONFIG, method.surrogate)
    reports = []
    for number, groups in enumerate(batches, 1):
        method.observe(groups, state)
        fresh, extra = method.credit(groups, state), method.extra_rows(groups, state)
        change = lambda gradients: method.extra_gradient(gradients, state)  # noqa: E731
        reports.append(updater.step(fresh, extra, number, change))
    return torch.cat([p.detach().flatten() for p in model.parameters()]), reports


def test_the_matched_control_is_bit_equal_to_training_without_replay() -> None:
    for replaying, plain in (("re_dr", "dr_grpo"), ("re_max", "maxrl")):
        without, _ = train(plain, BATCHES)
        control, reports = train(replaying, BATCHES, control="zero")
        assert torch.equal(control, without)
        assert [report.extra_grad_norm for report in reports] == [0, 0, 0]
        assert not torch.equal(train(replaying, BATCHES)[0], without)


def test_without_a_bank_replay_changes_nothing() -> None:
    failures = [[moded(None, None, prompt=(1,)), moded(None, None, prompt=(2,))]]
    assert torch.equal(train("re_dr", failures)[0], train("dr_grpo", failures)[0])


def test_noise_has_the_norm_of_the_replay_gradient_and_another_direction() -> None:
    proper, reports = train("re_dr", BATCHES[:1])
    noisy, noise_reports = train("re_dr", BATCHES[:1], control="noise")
    replay_norm, noise_norm = reports[0].extra_grad_norm, noise_reports[0].extra_grad_norm
    assert replay_norm is not None
    assert noise_norm is not None
    torch.testing.assert_close(noise_norm, replay_norm, rtol=1e-5, atol=0)
    assert not torch.equal(noisy, proper)
    assert torch.equal(train("re_dr", BATCHES[:1], control="noise")[0], noisy)


def test_only_replay_has_a_gradient_where_no_group_is_mixed() -> None:
    _, reports = train("re_dr", BATCHES)
    assert reports[2].fresh_grad_norm == 0
    assert reports[2].extra_grad_norm is not None
    assert reports[2].extra_grad_norm > 0
