"""The coupling kernel and the strategies that are made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.training.batch import Row
from modebench.training.coupling import (
    adjusted_rand,
    cosines,
    gradient_kernel,
    head_kernel,
    last_block,
    neighbourhoods,
)
from modebench.training.likelihood import Scorer, row_logprobs
from tests.training.groups import Bigram
from tests.training.scoring_cases import causal_model

RESPONSES = ((3, 17, 2), (19, 1, 23, 29), (3, 17, 5), (3, 17, 2))


def rows(*responses: tuple[int, ...], prompt: tuple[int, ...] = (7, 11, 13)) -> list[Row]:
    return [Row(prompt, tokens, "likelihood", np.zeros(len(tokens))) for tokens in responses]


@pytest.fixture(scope="module")
def model() -> Any:
    """Random weights, the output matrix its own."""
    return causal_model("llama").double()


def test_the_output_layer_without_a_backward_pass_is_autograd(model: Any) -> None:
    scorer = Scorer(model)
    head = model.get_output_embeddings().weight
    assert head is not model.get_input_embeddings().weight
    asked = rows(*RESPONSES)
    found = head_kernel(scorer, asked, 0.7)
    expected = gradient_kernel(scorer, asked, [head], 0.7)
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_kernel_is_symmetric_and_positive_and_twins_have_equal_rows(model: Any) -> None:
    kernel = gradient_kernel(Scorer(model), rows(*RESPONSES), last_block(model), 1.0)
    assert kernel == pytest.approx(kernel.T)
    assert np.linalg.eigvalsh(kernel).min() > -1e-9 * np.trace(kernel)
    assert kernel[0] == pytest.approx(kernel[3])
    cosine = cosines(kernel)
    assert np.diag(cosine) == pytest.approx(np.ones(4))
    assert cosine[0, 3] == pytest.approx(1)
    assert np.abs(cosine).max() <= 1 + 1e-12


def test_it_predicts_what_a_small_step_does() -> None:
    """A step of 1e-4 along one response changes the others by the rate times K, to 5 per cent."""
    model, rate = Bigram(), 1e-4
    asked = rows((3, 4, 7), (3, 4, 6), (5, 1, 7), prompt=(1, 2))
    kernel = gradient_kernel(Scorer(model), asked, list(model.parameters()), 1.0)

    def logps() -> list[float]:
        with torch.no_grad():
            scores = row_logprobs(Scorer(model), asked, temperature=1.0)
        return [float(each.logp_T.sum()) for each in scores]

    before = np.array(logps())
    [score] = row_logprobs(Scorer(model), asked[1:2], temperature=1.0)
    [direction] = torch.autograd.grad(score.logp_T.sum(), [model.logits])
    with torch.no_grad():
        model.logits += rate * direction
    assert np.array(logps()) - before == pytest.approx(rate * kernel[:, 1], rel=0.05)


def test_neighbourhoods_by_hand() -> None:
    """Two twins, one that is far from them, and one that repels all."""
    kernel = np.array([[1, 1, 0.5, -1], [1, 1, 0.5, -1], [0.5, 0.5, 1, 0], [-1, -1, 0, 1]])
    assert neighbourhoods(kernel, 0.05) == [0, 0, 1, 2]
    assert neighbourhoods(kernel, 1.0) == [0, 0, 0, 1]
    assert neighbourhoods(np.zeros((0, 0))) == []
    # Not transitive: the ends are too far apart, and joined by what lies between.
    chain = np.array([[1.0, 0.96, 0.92], [0.96, 1.0, 0.96], [0.92, 0.96, 1.0]])
    assert neighbourhoods(chain, 0.05) == [0, 0, 0]
    assert neighbourhoods(chain[::2, ::2], 0.05) == [0, 1]
    # So small that none is further than epsilon from another: they repel each other all the same.
    assert neighbourhoods(np.array([[0.02, -0.02], [-0.02, 0.02]]), 0.05) == [0, 1]


def test_adjusted_rand_by_hand() -> None:
    """Contingency 2, 1 / 1, 2: (2 - 6 * 6 / 15) / (6 - 36 / 15)."""
    assert adjusted_rand("aaabbb", "xxyxyy") == pytest.approx((2 - 2.4) / (6 - 2.4))
    assert adjusted_rand("aabb", "yyxx") == 1
    assert adjusted_rand("ab", "ab") == 1
    with pytest.raises(ValueError, match="partitions of 1 and of 2 things"):
        adjusted_rand("a", "ab")


@settings(deadline=None)
@given(labels=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
def test_adjusted_rand_is_that_of_counting_pairs(labels: list[tuple[int, int]]) -> None:
    first, second = zip(*labels, strict=True)
    pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
    one, other = ([each[i] == each[j] for i, j in pairs] for each in (first, second))
    both = sum(a and b for a, b in zip(one, other, strict=True))
    expected = sum(one) * sum(other) / len(pairs)
    largest = (sum(one) + sum(other)) / 2
    wanted = 1.0 if largest == expected else (both - expected) / (largest - expected)
    assert adjusted_rand(first, second) == pytest.approx(wanted)
