"""MEI: its exact cases, its calibration on policy, and that it comes with the update."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.evaluation import sample_seed
from modebench.sampling.base import GenerationSettings
from modebench.tasks import load_tasks
from modebench.tiny import tiny_folder
from modebench.training import policy
from modebench.training.batch import Floats, Row
from modebench.training.diagnose import residual_gram
from modebench.training.likelihood import Scorer, row_logprobs
from modebench.training.loss import backward
from modebench.training.mei import Mei, mean_of_ratios, mei_forms, pull, ratio_of_sums, strategy_mass
from modebench.training.methods import build
from modebench.training.sampling import rollouts
from tests.training.groups import Bigram, moded
from tests.training.scoring_cases import KINDS, causal_model, mixed_rows


def ratio(*vectors: Floats) -> float:
    found = mean_of_ratios([pull(np.stack(vectors) @ np.stack(vectors).T)])
    assert found is not None
    return found


@settings(deadline=None)
@given(clusters=st.integers(1, 6), size=st.integers(1, 5), scale=st.floats(1e-3, 1e3))
def test_clusters_have_g_over_c(clusters: int, size: int, scale: float) -> None:
    vectors = np.repeat(np.eye(6)[:clusters], size, axis=0) * scale
    assert ratio(*vectors) == pytest.approx(size)


def test_orthogonal_identical_and_opposite() -> None:
    one, other = np.array([3.0, 0.0]), np.array([0.0, 0.5])
    assert ratio(one, other) == pytest.approx(1)
    assert ratio(one, one, one, one) == pytest.approx(4)
    assert ratio(one, -one) == pytest.approx(0)
    assert mean_of_ratios([pull(np.zeros((3, 3)))]) is None
    assert ratio_of_sums([]) is None


def test_the_four_forms_by_hand() -> None:
    """Two groups: twins of which one is right, and three that are orthogonal."""
    twins, apart = np.full((2, 2), 4.0), np.eye(3)
    forms = mei_forms(
        [twins, apart],
        [np.array([0.5, -0.5]), np.array([1.0, -0.5, -0.5])],
        [np.array([1.0, 0.0]), np.array([1.0, 1.0, 0.0])],
    )
    assert forms == pytest.approx(
        {
            "mean": (2 + 1) / 2,
            "ratio_of_sums": (16 + 3) / (8 + 3),
            "advantage": (0 + 1) / 2,
            "correct": 1.0,
            "G": 2.5,
        }
    )
    assert set(mei_forms([], [], []).values()) == {None}


def test_the_mass_of_the_strategies_by_hand() -> None:
    """Three right responses in two bundles, two in one, and a group with a single right one."""
    residual_GV = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    groups = [residual_GV @ residual_GV.T, np.ones((2, 2)), np.eye(2)]
    rewards = [np.array([1.0, 1.0, 1.0, 0.0]), np.ones(2), np.array([1.0, 0.0])]
    found = strategy_mass(groups, rewards)
    assert found == pytest.approx({"strategies": 1.5, "largest_strategy": (2 / 3 + 1) / 2})
    assert strategy_mass([np.eye(2)], [np.zeros(2)]) == {"strategies": None, "largest_strategy": None}


@pytest.mark.parametrize("peak", [0.0, 2.0, 5.0])
def test_the_ratio_of_sums_is_one_for_every_policy_and_the_mean_is_not(peak: float) -> None:
    """One token a response, sampled by the policy itself: 4000 groups of 8, three standard errors."""
    random = np.random.default_rng(5)
    logits_V = np.zeros(10)
    logits_V[0] = peak
    p_V = np.exp(logits_V) / np.exp(logits_V).sum()
    residual_VV = np.eye(10) - p_V
    gram_VV = residual_VV @ residual_VV.T
    draws = random.choice(10, size=(4000, 8), p=p_V)
    pulls = [pull(gram_VV[np.ix_(each, each)]) for each in draws]
    together, apart = np.array(pulls).T
    found = ratio_of_sums(pulls)
    error = np.std(together - apart, ddof=1) / np.sqrt(len(pulls)) / apart.mean()
    assert found == pytest.approx(1, abs=3 * error)
    mean = mean_of_ratios(pulls)
    assert mean is not None
    assert mean > 1.5 if peak == 5.0 else mean == pytest.approx(1, abs=0.35)


def test_the_packaged_policy_reads_one_and_a_cut_sampler_more() -> None:
    """As it is sampled in training, to three standard errors; with top-p residuals no longer average to 0."""
    tiny = policy.load(str(tiny_folder()), device="cpu", profile="compact")
    tasks = load_tasks("graph_coloring", 1, "eval").head(48)
    seeds = [[sample_seed(0, 0, task.id, index) for index in range(8)] for task in tasks]

    def read(top_p: float) -> tuple[float, float]:
        asked = GenerationSettings(max_tokens=6, top_p=top_p)
        groups = rollouts(tiny, tasks, seeds, asked, truncated_support=top_p < 1)
        pulls = [pull(residual_gram(tiny, group, 1.0)[0]) for group in groups]
        found = ratio_of_sums(pulls)
        assert found is not None
        together, apart = np.array(pulls).T
        return found, float(np.std(together - found * apart, ddof=1) / np.sqrt(len(pulls)) / apart.mean())

    found, error = read(1.0)
    assert found == pytest.approx(1, abs=3 * error)
    assert error < 0.2
    found, error = read(0.5)
    assert found > 1 + 3 * error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [None, 3])
def test_residuals_are_the_gradient_by_the_logits(kind: str, chunk: int | None) -> None:
    """Whatever the packing, the padding and the chunks."""
    model, temperature = causal_model(kind), 0.7
    rows = mixed_rows()
    with torch.no_grad():
        scores = row_logprobs(Scorer(model), rows, temperature=temperature, chunk=chunk, residuals=True)
        for row, score in zip(rows, scores, strict=True):
            ids = torch.tensor([[*row.prompt_ids, *row.token_ids]])
            places = slice(len(row.prompt_ids) - 1, ids.shape[1] - 1)
            p_TV = torch.softmax(model(input_ids=ids).logits[0, places].float() / temperature, -1)
            expected_V = torch.nn.functional.one_hot(torch.tensor(row.token_ids), p_TV.shape[1]) - p_TV
            assert score.residual_V is not None
            torch.testing.assert_close(score.residual_V, expected_V.sum(0), rtol=1e-4, atol=1e-5)
            assert float(score.residual_V.sum()) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("micro_batch_tokens", [1, 8192])
def test_they_come_with_the_gradient_which_stays_as_it_is(micro_batch_tokens: int) -> None:
    groups = [moded("a", "b", None), moded("a", None, prompt=(3,)), moded(None, None, prompt=(4,))]
    method = build("dr_grpo", adds=["mei"], max_completion_length=8)
    rows = method.credit(groups, method.state(0))
    options: dict[str, Any] = {"temperature": 1.0, "epsilon": 0.2, "epsilon_high": 0.2}
    model, plain = Bigram(), Bigram()
    told = backward(Scorer(model), rows, micro_batch_tokens=micro_batch_tokens, grams=True, **options)
    without = backward(Scorer(plain), rows, **options)
    assert model.logits.grad is not None
    assert plain.logits.grad is not None
    torch.testing.assert_close(model.logits.grad, plain.logits.grad)
    assert without.grams == {}
    assert {place: gram.shape for place, gram in told.grams.items()} == {0: (3, 3), 1: (2, 2), 2: (2, 2)}
    residual = [residual_of(row) for row in rows if row.group == 0]
    assert told.grams[0] == pytest.approx(np.stack(residual) @ np.stack(residual).T)
    logged = Mei().gram_metrics(groups, rows, told.grams)
    assert set(logged) == {f"mei/{name}" for name in (*mei_forms([], [], []), *strategy_mass([], []))}
    assert logged["mei/G"] == pytest.approx(7 / 3)
    assert logged["mei/correct"] == mean_of_ratios([pull(told.grams[0], np.array([1.0, 1.0, 0.0]))])


def residual_of(row: Row) -> Floats:
    table_VV = torch.softmax(Bigram().logits.detach(), -1).numpy()
    before = [row.prompt_ids[-1], *row.token_ids[:-1]]
    found: Floats = (np.eye(8)[list(row.token_ids)] - table_VV[before]).sum(0)
    return found
