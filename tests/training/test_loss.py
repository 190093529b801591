"""The loss of rows and its gradient, against the formula written out, and what is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from modebench.training.batch import Row
from modebench.training.likelihood import Scorer, row_logprobs
from modebench.training.loss import Statistics, backward
from tests.training.scoring_cases import alone, causal_model, chosen, gradient, mixed_rows, row, surrogate

EPSILON, EPSILON_HIGH, TEMPERATURE = 0.2, 0.28, 0.8


def run(scorer: Scorer, rows: list[Row], **options: Any) -> Statistics:
    given = {"temperature": TEMPERATURE, "epsilon": EPSILON, "epsilon_high": EPSILON_HIGH, **options}
    return backward(scorer, rows, **given)


def off_policy(model: Any, rows: list[Row], spread: float = 0.4) -> list[Row]:
    """The rows as surrogate rows with random weights and advantages, some ratios outside the clip range."""
    draw = np.random.default_rng(1)
    with torch.no_grad():
        present = [chosen(alone(model, each, TEMPERATURE), each).double().numpy() for each in rows]
    return [
        replace(
            each,
            kind="surrogate",
            weight_T=draw.uniform(0.1, 1, len(logp_T)),
            advantage_T=draw.normal(size=len(logp_T)),
            logp_old_T=logp_T + draw.normal(size=len(logp_T), scale=spread),
        )
        for each, logp_T in zip(rows, present, strict=True)
    ]


def written_out(model: Any, rows: list[Row]) -> torch.Tensor:
    """The loss as the formula has it, token by token."""
    total = torch.zeros(())
    for each in rows:
        logp_T = chosen(alone(model, each, TEMPERATURE), each)
        for t, logp in enumerate(logp_T):
            if each.kind == "likelihood":
                total = total - each.weight_T[t] * logp
                continue
            assert each.advantage_T is not None
            old = logp.detach() if each.logp_old_T is None else each.logp_old_T[t]
            ratio, advantage = torch.exp(logp - old), each.advantage_T[t]
            clipped = ratio.clip(1 - EPSILON, 1 + EPSILON_HIGH)
            total = total - each.weight_T[t] * min(ratio * advantage, clipped * advantage)
    return total


def assert_same_gradient(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    assert expected.norm() > 0
    assert (found - expected).norm() < tolerance * expected.norm()


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_loss_and_gradient_are_those_of_the_formula(kind: str) -> None:
    model = causal_model(kind)
    rows = off_policy(model, mixed_rows())
    rows += [replace(each, weight_T=0.3 * each.weight_T, term="replay") for each in mixed_rows()[:3]]
    statistics = run(Scorer(model), rows)
    found = gradient(model)
    assert 0 < statistics.clipped < statistics.surrogate_tokens
    fresh = written_out(model, rows[:-3])
    replay = written_out(model, rows[-3:])
    (fresh + replay).backward()
    assert_same_gradient(found, gradient(model))
    assert statistics.loss["fresh"] == pytest.approx(fresh.item(), rel=1e-5)
    assert statistics.loss["replay"] == pytest.approx(replay.item(), rel=1e-5)


@pytest.mark.parametrize("micro_batch_tokens", [1, 30, 60])
def test_row_1_micro_batches_do_not_change_the_gradient(micro_batch_tokens: int) -> None:
    """A token mean under gradient accumulation: the denominator belongs to the optimisation batch."""
    model = causal_model("qwen2")
    draw = np.random.default_rng(2)
    lengths = (24, 4, 9, 20, 3, 24, 7, 15)
    rows = [
        surrogate([5, 6, 7], draw.integers(61, size=length), draw.normal(), weight_T=np.full(length, 1 / 106))
        for length in lengths
    ]
    scorer = Scorer(model)
    run(scorer, rows)
    whole = gradient(model)
    run(scorer, rows, micro_batch_tokens=micro_batch_tokens)
    assert_same_gradient(gradient(model), whole, 1e-6)
    statistics = run(scorer, rows[:3]) + run(scorer, rows[3:])  # two processes, summed
    assert_same_gradient(gradient(model), whole, 1e-6)
    assert statistics.surrogate_tokens == sum(lengths)


def test_row_8_the_loss_is_at_the_sampling_temperature() -> None:
    """log p(a) − log p(b) at temperature τ is the difference of the logits over τ."""
    model = causal_model("llama")
    rows = [row([3, 4], [token]) for token in (7, 8)]
    with torch.no_grad():
        logits_V = model(torch.tensor([[3, 4]])).logits[0, -1]
        for temperature in (0.6, 1.0, 1.7):
            first, second = row_logprobs(Scorer(model), rows, temperature=temperature)
            difference = (first.logp_T - second.logp_T).item()
            assert difference == pytest.approx(((logits_V[7] - logits_V[8]) / temperature).item(), abs=1e-5)


def test_row_9_the_gap_between_sampler_and_trainer_is_told_raw() -> None:
    """Known gaps are put in by hand; no correction and no mask hides them."""
    model = causal_model("llama")
    scorer, each = Scorer(model), surrogate([3, 4, 5], [6, 7, 8, 9], 1.0, logp_old_T=None)
    with torch.no_grad():
        logp_T = row_logprobs(scorer, [each], temperature=TEMPERATURE)[0].logp_T.double().numpy()
    gap_T = np.array([0.1, -0.3, 0.0, 0.5])
    told = run(scorer, [replace(each, sampler_logp_T=logp_T - gap_T), surrogate([1], [2, 3], 0.0)])
    assert told.compared_tokens == 4
    metrics = told.metrics()
    assert metrics["sampler_gap_mean"] == pytest.approx(0.9 / 4, abs=1e-5)
    assert metrics["sampler_gap_max"] == pytest.approx(0.5, abs=1e-5)
    assert metrics["sampler_kl"] == pytest.approx(float(np.mean(np.exp(gap_T) - 1 - gap_T)), abs=1e-5)
    assert metrics["clip_fraction"] == 0


def test_row_10_the_first_update_has_ratio_one_exactly() -> None:
    """Old values out of another batch shape would clip tokens without any step taken."""
    model = causal_model("qwen2")
    rows = [surrogate(each.prompt_ids, each.token_ids, (-1.0) ** n) for n, each in enumerate(mixed_rows())]
    statistics = run(Scorer(model), rows, epsilon=0.0, epsilon_high=0.0)
    assert statistics.log_ratio_max == 0
    assert statistics.log_ratio_abs == 0
    assert statistics.clipped == 0
    expected = -sum((-1.0) ** n * len(each.token_ids) for n, each in enumerate(rows))
    assert statistics.loss["fresh"] == expected


def test_clipping_counts_the_side_on_which_it_binds() -> None:
    model = causal_model("llama")
    scorer = Scorer(model)
    each = surrogate([3, 4, 5], [6, 7, 8, 9, 10], 1.0)
    with torch.no_grad():
        logp_T = row_logprobs(scorer, [each], temperature=TEMPERATURE)[0].logp_T.double().numpy()
    ratio_T = np.array([1.5, 1.5, 0.5, 0.5, 1.25])
    advantage_T = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    clipped = replace(each, advantage_T=advantage_T, logp_old_T=logp_T - np.log(ratio_T))
    statistics = run(scorer, [clipped])
    assert statistics.clipped == 2  # too high with a positive, too low with a negative advantage
    assert statistics.loss["fresh"] == pytest.approx(-(1.28 - 1.5 + 0.5 - 0.8 + 1.25), abs=1e-5)
    assert statistics.metrics()["log_ratio_abs_max"] == pytest.approx(np.log(2), abs=1e-5)
    assert statistics.metrics()["log_ratio_abs_mean"] == pytest.approx(
        np.abs(np.log(ratio_T)).mean(), abs=1e-5
    )
    # The tokens that clipping holds have no gradient.
    found = gradient(model)
    run(scorer, [replace(clipped, weight_T=np.array([0.0, 1, 1, 0, 1]))])
    assert_same_gradient(found, gradient(model), 1e-6)


def test_row_12_the_end_token_is_part_of_the_action() -> None:
    """A mask inferred from token values would drop it where it doubles as padding (token 0 pads here)."""
    model = causal_model("llama")
    scorer = Scorer(model)
    end = 0
    only_end = np.array([0.0, 0.0, 1.0])
    responses = [[7, 8, end], [9, end, end], [6, 5, 4, 3, 2, 1]]
    weights = [only_end, only_end, np.zeros(6)]
    rows = [surrogate([5, 6], r, 1.0, weight_T=w) for r, w in zip(responses, weights, strict=True)]
    assert run(scorer, rows).surrogate_tokens == 12
    found = gradient(model)
    written_out(model, rows).backward()
    assert_same_gradient(found, gradient(model))


def test_row_3_padding_leaves_loss_and_gradient_alone() -> None:
    """A longer neighbour widens the tensors, a longer prompt more so; neither enters the divisor."""
    model = causal_model("gpt2")
    scorer = Scorer(model)
    scorer.packs = False
    rows = off_policy(model, mixed_rows()[:2])
    before = run(scorer, rows).loss["fresh"]
    alone_gradient = gradient(model)
    wide = surrogate(range(30), [1] * 40, 1.0, weight_T=np.full(40, 1e-30))
    assert run(scorer, [*rows, wide]).loss["fresh"] == pytest.approx(before, rel=1e-6)
    assert_same_gradient(gradient(model), alone_gradient)


def test_rows_without_gradient_cost_no_backward_and_are_told_all_the_same() -> None:
    model = causal_model("llama")
    scorer = Scorer(model)
    rows = mixed_rows()
    dead = [surrogate(each.prompt_ids, each.token_ids, 0.0) for each in rows[:4]]
    dead += [surrogate(each.prompt_ids, each.token_ids, 1.0) for each in rows[4:]]
    for each in dead[4:]:
        each.weight_T = np.zeros(len(each.token_ids))
    statistics = run(scorer, dead)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert statistics.surrogate_tokens == sum(len(each.token_ids) for each in rows)
    scores = row_logprobs(scorer, rows, temperature=TEMPERATURE)
    entropy = torch.cat([score.entropy_T for score in scores]).sum().item()
    assert statistics.entropy == pytest.approx(entropy, rel=1e-5)
    live = surrogate([3, 4], [5, 6], 1.0)
    run(scorer, [live])
    expected = gradient(model)
    run(scorer, [*dead, live])
    assert torch.equal(gradient(model), expected)


def test_statistics_of_parts_add_up() -> None:
    model = causal_model("llama")
    scorer = Scorer(model)
    rows = off_policy(model, mixed_rows())
    rows = [replace(each, sampler_logp_T=each.logp_old_T) for each in rows]
    whole, parts = run(scorer, rows).metrics(), (run(scorer, rows[:4]) + run(scorer, rows[4:])).metrics()
    assert whole == pytest.approx(parts, rel=1e-5)
    assert whole["sampler_gap_mean"] == pytest.approx(whole["log_ratio_abs_mean"], rel=1e-5)
    assert run(scorer, []).metrics() == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"weight_T": np.ones(3)}, "row 1: weight_T has 3 values for 2 tokens"),
        ({"logp_old_T": np.zeros(1)}, "row 1: logp_old_T has 1 values for 2 tokens"),
        ({"advantage_T": np.array([np.nan, 1])}, "row 1: advantage_T is not finite"),
        ({"advantage_T": None}, "row 1 is a surrogate row, and advantage_T is None"),
    ],
)
def test_a_row_that_is_no_row_is_named(changes: dict[str, Any], problem: str) -> None:
    good = surrogate([3, 4], [5, 6], 1.0)
    with pytest.raises(ValueError, match=problem):
        run(Scorer(causal_model("llama")), [good, replace(good, **changes)])
