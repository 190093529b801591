"""Updates: learning rates, dealing rows to processes, and what happens to a gradient before it is applied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st

from modebench.errors import TrainingError
from modebench.training.batch import Row
from modebench.training.config import OptimizerConfig, TrainConfig
from modebench.training.likelihood import Scorer
from modebench.training.methods import build
from modebench.training.metrics import batch_metrics
from modebench.training.surrogates import Surrogate
from modebench.training.update import Gradients, Updater, deal, learning_rate
from tests.training.groups import Bigram, moded, rewarded


def rows_of_some_prompts() -> list[Row]:
    """Fresh rows of three mixed groups with responses of unequal lengths."""
    method = build("dr_grpo", max_completion_length=8)
    groups = [
        rewarded(1, 0, 0, prompt=(1, 2), lengths=(2, 5, 3)),
        rewarded(1, 1, 0, prompt=(2,), lengths=(1, 6, 4)),
        rewarded(0, 1, prompt=(4, 4, 1), lengths=(3, 8)),
    ]
    return method.credit(groups, method.state(0))


def updater(model: Bigram, process: tuple[int, int] = (0, 1), **optimizer: Any) -> Updater:
    """An updater by plain gradient descent, so that parameters can be computed by hand."""
    config = TrainConfig(steps=4, optimizer=replace(OptimizerConfig(learning_rate=0.5), **optimizer))
    accelerator: Any = Accelerator(cpu=True)
    if process != (0, 1):
        index, count = process
        accelerator = SimpleNamespace(
            process_index=index, num_processes=count, reduce=lambda tensor, reduction: tensor
        )
    descent = torch.optim.SGD(model.parameters(), lr=1.0)
    return Updater(Scorer(model), descent, accelerator, config, Surrogate())


def unchanged(gradients: Gradients) -> Gradients:
    return gradients


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_row_18_shares_of_any_number_of_processes_sum_to_the_gradient_of_one(processes: int) -> None:
    """Unequal shares, one of them empty: nothing waits, and the sum is what one process computes."""
    rows = rows_of_some_prompts()
    [whole], seen = updater(Bigram()).gradients(rows)
    shares = []
    for process in range(processes):
        [share], _ = updater(Bigram(), (process, processes)).gradients(rows)
        shares.append(share)
    assert [bool(share.abs().sum() > 0) for share in shares] == [
        bool(deal(rows, process, processes)) for process in range(processes)
    ]
    torch.testing.assert_close(torch.stack(shares).sum(0), whole, rtol=1e-12, atol=1e-15)
    assert seen.tokens == {"fresh": 32}


@given(
    prompts=st.lists(st.integers(0, 4), max_size=12), processes=st.integers(1, 4)
)  # fmt: skip
def test_every_row_is_dealt_once_and_prompts_stay_together(prompts: Sequence[int], processes: int) -> None:
    rows = [Row((prompt,), (1,), "likelihood", np.ones(1)) for prompt in prompts]
    shares = [deal(rows, process, processes) for process in range(processes)]
    assert sorted(index for share in shares for index in share) == list(range(len(rows)))
    owners = [{prompts[index] for index in share} for share in shares]
    assert sum(map(len, owners)) == len(set(prompts))


def test_a_step_descends_along_the_sum_of_fresh_and_extra_gradients() -> None:
    model = Bigram()
    start = model.logits.detach().clone()
    rows = rows_of_some_prompts()
    extra = [Row((1, 2), (3, 7), "likelihood", np.array([0.5, 0.25]), term="replay")]
    apart = updater(Bigram())
    [fresh], _ = apart.gradients(rows)
    [further], _ = apart.gradients(extra)
    fresh, further = fresh.clone(), further.clone()
    report = updater(model, max_grad_norm=0.0).step(rows, extra, 1, unchanged)
    torch.testing.assert_close(model.logits.detach(), start - 0.5 * (fresh + further))
    assert report.fresh_grad_norm == pytest.approx(float(fresh.norm()))
    assert report.extra_grad_norm == pytest.approx(float(further.norm()))
    cosine = float((fresh * further).sum() / fresh.norm() / further.norm())
    assert report.cosine == pytest.approx(cosine)
    assert report.grad_norm == pytest.approx(float((fresh + further).norm()))
    assert report.statistics.tokens == {"fresh": 32, "replay": 2}


def test_clipping_keeps_the_direction_and_bounds_the_norm() -> None:
    model = Bigram()
    start = model.logits.detach().clone()
    [whole], _ = updater(Bigram()).gradients(rows_of_some_prompts())
    updater(model, max_grad_norm=0.01).step(rows_of_some_prompts(), [], 1, unchanged)
    moved = (start - model.logits.detach()) / 0.5
    torch.testing.assert_close(moved, whole / whole.norm() * 0.01)


def test_the_method_may_change_the_extra_gradient() -> None:
    extra = [Row((1, 2), (3, 7), "likelihood", np.array([0.5, 0.25]), term="replay")]
    models = [Bigram(), Bigram()]
    updater(models[0]).step(rows_of_some_prompts(), extra, 1, lambda found: [0 * g for g in found])
    updater(models[1]).step(rows_of_some_prompts(), [], 1, unchanged)
    assert torch.equal(models[0].logits, models[1].logits)


def test_a_gradient_that_is_not_finite_never_reaches_the_weights() -> None:
    model = Bigram()
    start = model.logits.detach().clone()
    extra = [Row((1, 2), (3, 7), "likelihood", np.array([0.5, 0.25]), term="replay")]
    with pytest.raises(TrainingError, match="not finite"):
        updater(model).step(rows_of_some_prompts(), extra, 1, lambda found: [g * math.inf for g in found])
    assert torch.equal(model.logits, start)


def test_scores_are_in_the_order_of_the_rows() -> None:
    rows = rows_of_some_prompts()
    scores = updater(Bigram()).scores(rows)
    logp, entropy = [each.logp_T for each in scores], [each.entropy_T for each in scores]
    table_VV = torch.log_softmax(Bigram().logits.detach(), -1)
    for row, logp_T, entropy_T in zip(rows, logp, entropy, strict=True):
        before = [row.prompt_ids[-1], *row.token_ids[:-1]]
        assert logp_T == pytest.approx(table_VV[before, list(row.token_ids)].numpy())
        assert entropy_T == pytest.approx(-(table_VV.exp() * table_VV).sum(-1)[before].numpy())


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("linear", [0.5, 1.0, 0.8, 0.6, 0.4, 0.2]),
        (
            "cosine",
            [0.5, 1.0, 0.2 + 0.8 * (1 + math.sqrt(0.5)) / 2, 0.6, 0.2 + 0.8 * (1 - math.sqrt(0.5)) / 2, 0.2],
        ),
    ],
)
def test_learning_rates(schedule: Any, expected: list[float]) -> None:
    config = OptimizerConfig(learning_rate=1.0, schedule=schedule, warmup_steps=2, final_learning_rate=0.2)
    assert [learning_rate(config, update, 6) for update in range(1, 7)] == pytest.approx(expected)


def test_metrics_of_a_batch_by_hand() -> None:
    method = build("dr_grpo", max_completion_length=4)
    groups = [moded("a", "a", "b", None), moded("a", "b", "c", "d"), moded(None, None, None, None)]
    metrics = batch_metrics(groups, method.credit(groups, method.state(0)))
    assert metrics == {
        "groups": 3,
        "reward": 7 / 12,
        "accuracy": 7 / 12,
        "malformed": 0,
        "truncated": 0,
        "length": 3,
        "all_right": pytest.approx(1 / 3),
        "all_wrong": pytest.approx(1 / 3),
        "mixed_groups": pytest.approx(1 / 3),
        "with_gradient": pytest.approx(1 / 3),
        "pcmd": pytest.approx((2 / 3 + 1) / 2),
        "pcmd_groups": 2,
        "modes": 2,
    }
    nothing = [moded(None, "a")]
    assert batch_metrics(nothing, method.credit(nothing, method.state(0)))["pcmd"] is None
