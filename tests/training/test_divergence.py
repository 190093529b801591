"""Divergences and entropy as losses: their gradients by enumeration, and exactly on models with chunks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Row
from modebench.training.divergence import Divergence, Kind, exact_divergence, regularised, token_values
from modebench.training.likelihood import Scorer, TokenScores
from modebench.training.loss import Statistics, backward
from modebench.training.methods import build
from tests.training.groups import rewarded
from tests.training.scoring_cases import alone, causal_model, chosen, gradient, mixed_rows, surrogate

KINDS = get_args(Kind)
SOUND = ("exact_kl", "exact_js", "k2", "k3")
REFERENCE = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64).log()
START = torch.tensor([0.3, -0.2, 0.1, 0.0], dtype=torch.float64) + REFERENCE
TEMPERATURE = 0.8


def kl(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one.exp() * (one - other)).sum()


def js(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    middle = ((one.exp() + other.exp()) / 2).log()
    return (kl(one, middle) + kl(other, middle)) / 2


def expected_loss(kind: str, logits_V: torch.Tensor) -> torch.Tensor:
    """The loss that rollouts of one token have on average; they are not differentiated through."""
    logp_V = logits_V.log_softmax(-1)
    rows_VV = logp_V.expand(len(logp_V), -1), REFERENCE.expand(len(logp_V), -1)
    exact = {name: exact_divergence(name, *rows_VV) for name in ("exact_kl", "exact_js")}
    scores = TokenScores(logp_V, logp_V, REFERENCE, exact)
    return (logp_V.detach().exp() * token_values(kind, scores, torch.zeros_like(logp_V))).sum()


def slope(loss: torch.Tensor, logits_V: torch.Tensor) -> torch.Tensor:
    (found,) = torch.autograd.grad(loss, logits_V)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_row_15_the_expected_gradient_of_every_kind(kind: str) -> None:
    """An estimate of a value used as a loss: open-instruct#530, trl#4638, NeMo-RL#2506."""
    logits_V = START.clone().requires_grad_()
    logp_V = logits_V.log_softmax(-1)
    found = slope(expected_loss(kind, logits_V), logits_V)
    meant = {
        "exact_kl": kl(logp_V, REFERENCE),
        "k2": kl(logp_V, REFERENCE),
        "k3": kl(REFERENCE, logp_V),
        "exact_js": js(logp_V, REFERENCE),
    }
    if kind in meant:
        torch.testing.assert_close(found, slope(meant[kind], logits_V), rtol=1e-9, atol=1e-12)
    elif kind == "released_js":
        assert float(found @ slope(js(logp_V, REFERENCE), logits_V)) < 0  # uphill
    else:
        torch.testing.assert_close(found, torch.zeros_like(found), rtol=0, atol=1e-15)
    reverse, forward = (
        slope(kl(logits_V.log_softmax(-1), REFERENCE), logits_V),
        slope(kl(REFERENCE, logits_V.log_softmax(-1)), logits_V),
    )
    assert float((reverse - forward).norm()) > 0.005  # the two directions are told apart


@pytest.mark.parametrize("kind", KINDS)
def test_200_steps_without_reward_bring_the_policy_back_or_not(kind: str) -> None:
    logits_V = START.clone().requires_grad_()
    before = float(js(logits_V.log_softmax(-1).detach(), REFERENCE))
    for _ in range(200):
        step = slope(expected_loss(kind, logits_V), logits_V)
        with torch.no_grad():
            logits_V -= step
    after = float(js(logits_V.log_softmax(-1).detach(), REFERENCE))
    if kind in SOUND:
        assert after < before / 100
    elif kind == "released_js":
        assert after > 5 * before
    else:
        assert after == pytest.approx(before, rel=1e-9)


def test_the_released_js_ends_on_one_token() -> None:
    logits_V = START.clone().requires_grad_()
    for _ in range(1000):
        step = slope(expected_loss("released_js", logits_V), logits_V)
        with torch.no_grad():
            logits_V -= 0.5 * step
    logp_V = logits_V.log_softmax(-1).detach()
    assert float(logp_V.exp().max()) > 0.99
    assert float(js(logp_V, REFERENCE)) > 0.25


def test_values_of_a_token_by_hand() -> None:
    p, q = 0.5, 0.2
    logp_K, reference_K = torch.tensor([math.log(p)]), torch.tensor([math.log(q)])
    scores = TokenScores(logp_K, logp_K, reference_K, {})
    expected = {
        "k1": math.log(2.5),
        "k2": math.log(2.5) ** 2 / 2,
        "k3": q / p - 1 - math.log(q / p),
        "released_kl": math.log(2.5),
        "released_js": math.log(math.sqrt(p * q) / 0.35),
    }
    for kind, value in expected.items():
        assert token_values(kind, scores, logp_K).item() == pytest.approx(value, abs=1e-6)
    ratio_K = torch.tensor([-0.25, 2e-5, 5e-6, 0.0], requires_grad=True)
    moved_K = token_values("abs_log_ratio", scores, ratio_K)
    assert moved_K.tolist() == pytest.approx([0.25, 2e-5, 0, 0])
    # Rounding has no slope: it would be a full one, of random sign.
    assert slope(moved_K.sum(), ratio_K).tolist() == [-1, 1, 0, 0]


@given(st.lists(st.tuples(st.floats(-30, 30), st.floats(-30, 30)), min_size=2, max_size=6))
@settings(deadline=None, max_examples=50)
def test_js_is_symmetric_and_between_0_and_log_2(logits: list[tuple[float, float]]) -> None:
    p_CV, q_CV = (
        torch.tensor([side], dtype=torch.float64).log_softmax(-1) for side in zip(*logits, strict=True)
    )
    value = exact_divergence("exact_js", p_CV, q_CV).item()
    assert -1e-12 <= value <= math.log(2) + 1e-12
    assert value == pytest.approx(exact_divergence("exact_js", q_CV, p_CV).item(), abs=1e-12)
    assert value == pytest.approx(js(p_CV[0], q_CV[0]).item(), abs=1e-9)
    for kind in ("exact_kl", "exact_js"):
        assert exact_divergence(kind, p_CV, p_CV).item() == 0


def test_no_token_in_common_is_log_2() -> None:
    floor = torch.finfo(torch.float32).min
    p_CV, q_CV = torch.tensor([[0.0, floor]]), torch.tensor([[floor, 0.0]])
    assert exact_divergence("exact_js", p_CV, q_CV).item() == pytest.approx(math.log(2))


def regularised_rows(kind: str, advantage: float = 0.0) -> list[Row]:
    rows = [surrogate(each.prompt_ids, each.token_ids, advantage) for each in mixed_rows()]
    return regularised(rows, "divergence", kind, 0.3)


def run(model: Any, rows: list[Row], reference: Any = None, **options: Any) -> Statistics:
    return backward(
        Scorer(model),
        rows,
        temperature=TEMPERATURE,
        epsilon=0.2,
        epsilon_high=0.2,
        reference=None if reference is None else Scorer(reference),
        **options,
    )


@pytest.mark.parametrize("options", [{"chunk": 1}, {"chunk": 7, "micro_batch_tokens": 30}, {}])
@pytest.mark.parametrize("kind", ["exact_kl", "exact_js", "k3"])
def test_loss_and_gradient_on_models_are_those_written_out(kind: str, options: dict[str, Any]) -> None:
    """Whatever the chunks of the vocabulary and the micro-batches."""
    model, reference = causal_model("llama", 0), causal_model("llama", 1)
    rows = regularised_rows(kind)
    statistics = run(model, rows, reference, **options)
    found = gradient(model)
    total = torch.zeros(())
    for row in rows:
        p_TV = alone(model, row, TEMPERATURE)
        q_TV = alone(reference, row, TEMPERATURE).detach()
        pairs = zip(p_TV, q_TV, strict=True)
        difference_T = chosen(q_TV, row) - chosen(p_TV, row)
        values = {
            "exact_kl": lambda pairs=pairs: torch.stack([kl(p_V, q_V) for p_V, q_V in pairs]),
            "exact_js": lambda pairs=pairs: torch.stack([js(p_V, q_V) for p_V, q_V in pairs]),
            "k3": lambda difference_T=difference_T: difference_T.exp() - 1 - difference_T,
        }
        total = total + 0.3 * values[kind]().sum()
    total.backward()
    expected = gradient(model)
    assert (found - expected).norm() < 1e-4 * expected.norm()
    assert statistics.loss["divergence"] == pytest.approx(total.item(), rel=1e-4)
    assert statistics.acting["divergence"] == sum(len(row.token_ids) for row in rows)
    assert statistics.reference_rows == len(rows)
    assert all(parameter.grad is None for parameter in reference.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_row_16_at_the_reference_every_value_is_exactly_zero(kind: str) -> None:
    """A reference that is not the start of the run shows at step 0: trl#3108, trl#6043."""
    model, reference = causal_model("qwen2"), causal_model("qwen2")
    statistics = run(model, regularised_rows(kind), reference, chunk=7)
    assert statistics.acting == {"divergence": 0}
    assert statistics.loss["divergence"] == 0
    norm = float(gradient(model).norm())
    if kind in SOUND:
        assert norm < 1e-5
    elif kind != "released_js":
        assert norm > 0.1  # k1 is noise: no mean, but a variance


def test_no_tensor_holds_the_logits_of_all_tokens_of_the_reference() -> None:
    model, reference = causal_model("llama", 0), causal_model("llama", 1)
    scorers = Scorer(model), Scorer(reference)
    widths: list[int] = []
    for each in (model, reference):
        each.get_output_embeddings().register_forward_hook(lambda *call: widths.append(call[2].shape[0]))
    backward(
        scorers[0],
        regularised_rows("exact_js"),
        temperature=1.0,
        epsilon=0.2,
        epsilon_high=0.2,
        reference=scorers[1],
        chunk=4,
    )
    assert max(widths) == 4


def test_a_divergence_without_a_reference_is_an_error() -> None:
    with pytest.raises(ValueError, match="k2: a divergence needs a reference"):
        run(causal_model("llama"), regularised_rows("k2"))


def test_weights_of_a_regulariser_are_checked() -> None:
    (row, *_) = regularised_rows("k2")
    short = replace(row, regularisers=(replace(row.regularisers[0], weight_T=np.ones(1)),))
    with pytest.raises(ValueError, match="row 0: the weights of divergence"):
        run(causal_model("llama"), [short])


def test_the_entropy_bonus_has_the_gradient_of_the_entropies() -> None:
    model = causal_model("llama")
    method = build("entropy_bonus", {"entropy.coefficient": 0.5}, max_completion_length=10)
    groups = [rewarded(1, 1, lengths=(3, 5))]  # no advantage: the bonus is all there is
    rows = method.credit(groups, method.state(0))
    statistics = run(model, rows, chunk=2)
    found = gradient(model)
    total = torch.zeros(())
    for row in rows:
        logp_TV = alone(model, row, TEMPERATURE)
        total = total - 0.5 * -(logp_TV.exp() * logp_TV).sum() / (2 * 10)
    total.backward()
    expected = gradient(model)
    assert (found - expected).norm() < 1e-4 * expected.norm()
    assert statistics.loss["entropy"] == pytest.approx(total.item(), rel=1e-4)
    assert statistics.loss["fresh"] == 0
    assert statistics.acting == {"entropy": 8}
    assert statistics.reference_rows == 0


@pytest.mark.parametrize("aggregation", ["seq-mean-token-sum-norm", "token-mean", "seq-mean-token-mean"])
def test_a_regulariser_is_averaged_as_the_fresh_loss_is(aggregation: str) -> None:
    sets = {"surrogate.loss_agg_mode": aggregation, "divergence.beta": 0.3, "divergence.kind": "k2"}
    method = build("grpo_kl", sets, ["mask_truncated"], max_completion_length=10)
    group = rewarded(1, 0, 0, lengths=(2, 5, 4))
    cut = replace(group.rollouts[2], finish_reason="length")
    rows = method.credit([replace(group, rollouts=(*group.rollouts[:2], cut))], method.state(0))
    for row in rows:
        (each,) = row.regularisers
        assert (each.term, each.kind) == ("divergence", "k2")
        assert each.weight_T == pytest.approx(0.3 * row.weight_T)
    assert not rows[2].has_gradient


def test_groups_that_are_all_right_have_the_gradient_of_the_divergence_alone() -> None:
    method = build("grpo_kl", max_completion_length=10)
    rows = method.credit([rewarded(1, 1)], method.state(0))
    assert method.needs_reference
    assert all(row.has_gradient and not np.any(row.advantage_T) for row in rows)
    inert = build("grpo_kl", {"divergence.beta": 0}, max_completion_length=10)
    assert not inert.needs_reference
    assert not any(row.has_gradient for row in inert.credit([rewarded(1, 1)], inert.state(0)))


def test_options_out_of_range() -> None:
    with pytest.raises(UsageError, match=r"divergence\.beta must not be negative"):
        Divergence(beta=-1)
    with pytest.raises(UsageError, match=r"entropy\.coefficient must not be negative"):
        build("entropy_bonus", {"entropy.coefficient": -1}, max_completion_length=8)
