"""Several updates from one batch: how it is cut, what they are normalised by, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.tasks import Task
from modebench.training.batch import Floats, Group, Row
from modebench.training.config import DataConfig, OptimizerConfig, RolloutConfig, TrainConfig, UpdateConfig
from modebench.training.likelihood import Scorer
from modebench.training.method import Method
from modebench.training.methods import build
from modebench.training.part import Part, Seen
from modebench.training.recipe import StepReport, mini_batches, run_updates
from modebench.training.update import Updater
from tests.training.groups import TASK, Bigram, gradient, rewarded

CAP = 8


def four_groups() -> list[Group]:
    """Mixed groups of different sizes and lengths."""
    return [
        rewarded(1, 0, 0, prompt=(1, 2), lengths=(2, 5, 3)),
        rewarded(1, 1, 0, prompt=(2,), lengths=(1, 6, 4)),
        rewarded(0, 1, prompt=(4, 4, 1), lengths=(3, 8)),
        rewarded(0, 0, 1, 0, prompt=(6,), lengths=(7, 2, 2, 1)),
    ]


def config_of(**update: Any) -> TrainConfig:
    """Plain gradient descent at rate 1 without clipping of the gradient."""
    return TrainConfig(
        method="dr_grpo",
        model="hf/x",
        steps=4,
        data=DataConfig(domains=("countdown",)),
        rollout=RolloutConfig(num_prompts=4, group_size=3),
        optimizer=OptimizerConfig(learning_rate=1.0, max_grad_norm=0),
        update=UpdateConfig(**update),
    )


def run(
    method: Method, groups: Sequence[Group], step: int = 1, **update: Any
) -> tuple[StepReport, Bigram, dict[str, int]]:
    """One step on a fresh small policy: its report, the policy after it, what the parts did."""
    model, config, state = Bigram(), config_of(**update), method.state(seed=0)
    descent = torch.optim.SGD(model.parameters(), lr=1.0)
    updater = Updater(Scorer(model), descent, Accelerator(cpu=True), config, method.surrogate)
    report = run_updates(method, state, updater, groups, config, step)
    return report, model, method.effects(state)


def rows_of(groups: Sequence[Group]) -> list[Row]:
    method = build("dr_grpo", max_completion_length=CAP)
    return method.credit(groups, method.state(0))


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    count=st.integers(1, 8),
    unit=st.sampled_from(["group", "rollout"]),
    place=st.tuples(st.integers(0, 9), st.integers(0, 3)),
)
@settings(deadline=None, max_examples=60)
def test_every_row_is_in_one_mini_batch(
    sizes: list[int], count: int, unit: str, place: tuple[int, int]
) -> None:
    rows = [
        Row((1,), (index,), "likelihood", np.ones(1), group=group)
        for group, size in enumerate(sizes)
        for index in range(size)
    ]
    parts = mini_batches(rows, count, unit, 3, *place)
    assert parts == mini_batches(rows, count, unit, 3, *place)
    assert sorted(index for part in parts for index in part) == list(range(len(rows)))
    assert all(part == sorted(part) and part for part in parts)
    units = len(sizes) if unit == "group" else len(rows)
    assert len(parts) == min(count, units)
    if unit == "group":
        owners = [{rows[index].group for index in part} for part in parts]
        assert sum(map(len, owners)) == len(sizes)
        assert max(map(len, owners)) - min(map(len, owners)) <= 1


def test_the_cut_depends_on_seed_step_and_pass_alone() -> None:
    rows = rows_of(four_groups())
    cuts = {
        place: str(mini_batches(rows, 2, "rollout", *place))
        for place in ((0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0))
    }
    assert len(set(cuts.values())) == 4


@pytest.mark.parametrize("aggregation", ["seq-mean-token-sum-norm", "token-mean", "seq-mean-token-mean"])
def test_row_2_two_updates_from_one_batch_are_those_from_two_half_batches(aggregation: str) -> None:
    """The denominator of the whole batch in updates on a part of it: trl#5619, ms-swift#10117."""
    method = build("dr_grpo", {"surrogate.loss_agg_mode": aggregation}, max_completion_length=CAP)
    groups = four_groups()
    _, together, _ = run(method, groups, mini_batches=2)
    first, second = mini_batches(rows_of(groups), 2, "group", 0, 1, 0)
    halves = [
        [groups[place] for place in sorted({rows_of(groups)[index].group for index in half})]
        for half in (first, second)
    ]
    assert {len(half) for half in halves} == {2}
    apart = Bigram()
    for half in halves:
        # The second half is off-policy, but no ratio here leaves the clip range, and old is the start.
        rows = method.credit(half, method.state(0))
        if half is halves[1]:
            start = torch.log_softmax(Bigram().logits.detach(), -1)
            rows = [replace(row, logp_old_T=old_of(start, row)) for row in rows]
        with torch.no_grad():
            apart.logits -= gradient(apart, rows)
    torch.testing.assert_close(together.logits, apart.logits, rtol=1e-12, atol=1e-14)


def old_of(table_VV: torch.Tensor, row: Row) -> Floats:
    before = [row.prompt_ids[-1], *row.token_ids[:-1]]
    old_T: Floats = table_VV[before, list(row.token_ids)].numpy()
    return old_T


def test_mini_batches_of_rollouts_keep_the_credit_of_the_whole_group() -> None:
    method = build("grpo", max_completion_length=CAP)
    groups = [rewarded(1, 0, 0, 0, lengths=(2, 5, 3, 1))]
    report, _, _ = run(method, groups, mini_batches=2, mini_batch_unit="rollout")
    whole = method.credit(groups, method.state(0))
    assert [row.advantage_T.tolist() for row in report.rows if row.advantage_T is not None] == [
        row.advantage_T.tolist() for row in whole if row.advantage_T is not None
    ]
    assert [update.statistics.surrogate_tokens for update in report.updates] in (
        [3, 8],
        [8, 3],
        [5, 6],
        [6, 5],
        [7, 4],
        [4, 7],
    )


def test_the_first_update_is_on_policy_and_later_ones_are_not() -> None:
    method = build("dr_grpo", max_completion_length=CAP)
    report, _, effects = run(method, four_groups(), mini_batches=2, num_iterations=2)
    off = [update.statistics.off_policy_tokens for update in report.updates]
    assert off[0] == 0
    assert all(off[1:])
    assert effects["surrogate.ratio"] == sum(off)
    assert report.scored == 12  # once, for the old log-probabilities
    single, _, effects = run(method, four_groups())
    assert (len(single.updates), single.scored) == (1, 0)
    assert (effects["surrogate.ratio"], effects["surrogate.clip"]) == (0, 0)
    assert effects["advantage"] > 0


def test_old_log_probabilities_are_those_of_the_policy_that_sampled() -> None:
    """Not those of the update before: in the last of four updates the ratio holds all that came before."""
    method = build("dr_grpo", max_completion_length=CAP)
    report, _, _ = run(method, four_groups(), num_iterations=4)
    reached = [update.statistics.log_ratio_abs for update in report.updates]
    assert reached == sorted(reached)
    start = torch.log_softmax(Bigram().logits.detach(), -1)
    _, three, _ = run(method, four_groups(), num_iterations=3)
    after = torch.log_softmax(three.logits.detach(), -1)
    moved = sum(float(np.abs(old_of(after, row) - old_of(start, row)).sum()) for row in report.rows)
    assert reached[3] == pytest.approx(moved, rel=1e-9)


def test_metrics_are_means_over_the_updates() -> None:
    method = build("dr_grpo", max_completion_length=CAP)
    report, _, _ = run(method, four_groups(), mini_batches=2)
    metrics = report.metrics()
    norms = [update.grad_norm for update in report.updates]
    losses = [update.statistics.loss["fresh"] for update in report.updates]
    assert metrics["grad_norm"] == pytest.approx(np.mean(norms))
    assert metrics["loss/fresh"] == pytest.approx(np.mean(losses))
    assert metrics["grad_norm/extra"] is None
    # The sampler's log-probabilities are held against the policy that sampled, not against one that moved.
    gaps = [update.statistics.metrics()["sampler_gap_max"] for update in report.updates]
    assert metrics["sampler_gap_max"] == gaps[0] != gaps[1]


def test_learning_rates_run_over_all_updates() -> None:
    method, groups = build("dr_grpo", max_completion_length=CAP), four_groups()
    model, state = Bigram(), method.state(0)
    config = config_of(mini_batches=2, num_iterations=2)
    config = replace(config, optimizer=replace(config.optimizer, schedule="linear"))
    updater = Updater(
        Scorer(model),
        torch.optim.SGD(model.parameters(), lr=1.0),
        Accelerator(cpu=True),
        config,
        method.surrogate,
    )
    rates = [
        update.learning_rate
        for step in range(1, 5)
        for update in run_updates(method, state, updater, groups, config, step).updates
    ]
    assert rates == pytest.approx([1 - number / 16 for number in range(1, 17)])


def test_no_group_is_no_update() -> None:
    report, model, effects = run(build("dapo", max_completion_length=CAP), [], mini_batches=2)
    assert (report.rows, report.updates, report.scored) == ([], [], 0)
    assert report.metrics()["learning_rate"] is None
    assert torch.equal(model.logits, Bigram().logits)
    assert not any(effects.values())


@pytest.mark.parametrize("name", ["clip_cov", "kl_cov", "top_entropy"])
def test_memory_settings_choose_no_tokens(name: str) -> None:
    """The releases pool the tokens of a micro-batch; here they are those of the update."""
    sets = {f"{name}.share": 0.2} | ({"clip_cov.low": 0.0} if name == "clip_cov" else {})
    method = build(name, sets, max_completion_length=CAP)
    ends = [
        run(method, four_groups(), num_iterations=2, micro_batch_tokens=tokens)[1] for tokens in (1, 8192)
    ]
    torch.testing.assert_close(ends[0].logits, ends[1].logits, rtol=1e-10, atol=1e-12)
    assert not torch.equal(ends[0].logits, Bigram().logits)


@dataclass(frozen=True)
class Planner(Part):
    """Asks for the tasks backwards, or leaves them."""

    name: ClassVar[str] = "planner"
    backwards: bool = True

    def plan(self, asked: list[tuple[Task, int]], state: Any) -> list[tuple[Task, int]]:
        return asked[::-1] if self.backwards else asked

    def extra_gradient(self, gradients: list[torch.Tensor], state: Any) -> list[torch.Tensor]:
        return [2 * each for each in gradients] if self.backwards else gradients


@pytest.mark.parametrize("backwards", [True, False])
def test_plans_and_gradients_count_too(backwards: bool) -> None:
    method = build("dr_grpo", max_completion_length=CAP)
    method = replace(method, parts=(*method.parts, Planner(backwards)))
    state = method.state(0)
    method.plan([TASK, replace(TASK, id="test/1")], 4, state)
    assert method.effects(state)["planner"] == backwards
    method.extra_gradient([torch.ones(1)], state)
    assert method.effects(state)["planner"] == backwards


@dataclass(frozen=True)
class Watcher(Part):
    """Halves the weights, and writes down the log-probabilities that it is shown."""

    name: ClassVar[str] = "watcher"
    needs_statistics: ClassVar[bool] = True
    shown: tuple[list[float], ...] = ()

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: Any) -> list[Row]:
        self.shown[0].append(float(sum(each.logp_T.sum() for each in seen)))
        return [replace(row, weight_T=row.weight_T / 2) for row in rows]


def test_parts_see_the_present_policy_before_every_update() -> None:
    shown: list[float] = []
    method = build("dr_grpo", max_completion_length=CAP)
    method = replace(method, parts=(*method.parts, Watcher(shown=(shown,))))
    report, _, effects = run(method, four_groups(), num_iterations=3)
    assert len(set(shown)) == 3
    assert report.scored == 3 * 12
    assert effects["watcher"] == 3 * sum(len(row.token_ids) for row in report.rows)
    half, whole = (
        run(each, four_groups())[0].updates[0].grad_norm
        for each in (method, build("dr_grpo", max_completion_length=CAP))
    )
    assert half == pytest.approx(whole / 2)


def test_what_changes_nothing_counts_nothing() -> None:
    """By the groups, not by the name: nothing was truncated, then one rollout of two groups was."""
    method = build("grpo", adds=["mask_truncated"], max_completion_length=CAP)
    groups = four_groups()
    assert run(method, groups)[2]["mask_truncated"] == 0
    for place in (0, 2):
        rollouts = groups[place].rollouts
        groups[place] = replace(
            groups[place], rollouts=(replace(rollouts[0], finish_reason="length"), *rollouts[1:])
        )
    assert run(method, groups)[2]["mask_truncated"] == 2
    replayed = build("re_dr", max_completion_length=CAP)
    state = replayed.state(0)
    replayed.observe(groups, state)
    replayed.extra_rows(groups, state)
    assert replayed.effects(state)["replay"] == 3  # the truncated success of the first group is not stored
    assert replayed.effects(state)["replay"] == 0  # counted since last asked
    silent = build("re_dr", {"replay.control": "zero"}, max_completion_length=CAP)
    state = silent.state(0)
    silent.observe(groups, state)
    assert silent.extra_rows(groups, state)
    assert silent.effects(state)["replay"] == 0


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"mini_batches": 5}, "update.mini_batches is 5, but a step has 4 groups"),
        ({"mini_batches": 13, "mini_batch_unit": "rollout"}, "but a step has 12 rollouts"),
        ({"mini_batches": 0}, "update.mini_batches is 0, expected at least 1"),
    ],
)
def test_more_mini_batches_than_there_is_to_cut_are_refused(update: dict[str, Any], said: str) -> None:
    config_of(mini_batches=4).check()
    config_of(mini_batches=12, mini_batch_unit="rollout").check()
    with pytest.raises(UsageError, match=said):
        config_of(**update).check()
