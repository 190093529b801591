"""Drawing tokens, and the cache."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from modebench.sampling.base import GenerationSettings
from modebench.sampling.decoding import CACHE_ROOM, GrowingLayer, draw, keep_top, sample_tokens


def uniforms(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(rows)


@pytest.mark.parametrize("vocabulary", [1, 5, 128, 129, 1000])
def test_draw_is_the_inverse_distribution_function(vocabulary: int) -> None:
    weights_BV = torch.rand(400, vocabulary, generator=torch.Generator().manual_seed(vocabulary)) ** 8
    u_B = uniforms(400)
    cumulative_BV = weights_BV.double().numpy().cumsum(-1)
    expected_B = [
        int(np.searchsorted(row, u * row[-1], side="right"))
        for row, u in zip(cumulative_BV, u_B, strict=True)
    ]
    assert draw(weights_BV, u_B).tolist() == expected_B


def test_draw_never_takes_a_token_of_weight_zero_nor_leaves_the_vocabulary() -> None:
    weights_BV = torch.zeros(6, 300)
    weights_BV[:, [3, 127, 128, 290]] = torch.tensor([1e-30, 0.1, 1e30, 1e-3])
    u_B = np.array([0.0, 1e-300, 0.5, 1 - 2**-53, np.nextafter(1, 0), 1e-60])
    assert set(draw(weights_BV, u_B).tolist()) <= {3, 127, 128, 290}
    only_last_BV = torch.zeros(1, 300)
    only_last_BV[0, 299] = 0.1
    for u in (0.0, 0.3, 1 - 2**-53):
        assert draw(only_last_BV, np.array([u])).tolist() == [299]


def test_draw_reaches_the_tail_with_its_own_width() -> None:
    """A hundred thousand tokens of 1e-9 behind one of nearly 1: float32 sums would lose them."""
    weights_1V = torch.full((1, 100_000), 1e-9)
    weights_1V[0, 0] = 1.0
    total = 1.0 + 99_999e-9
    for token in (1, 777, 50_000, 99_999):
        middle = (1.0 + (token - 0.5) * 1e-9) / total
        assert abs(int(draw(weights_1V, np.array([middle]))[0]) - token) <= 1


def test_rows_that_are_not_finite_do_not_break_the_draw() -> None:
    weights_BV = torch.tensor([[float("nan")] * 3, [0.0] * 3, [0.2, 0.8, 0.0]])
    token_B = draw(weights_BV, np.array([0.5, 0.5, 0.5]))
    assert set(token_B.tolist()) <= {0, 1, 2}
    assert token_B[2] == 1


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (0, 1.0, [0, 1, 2, 3, 4]),
        (2, 1.0, [1, 3]),
        (9, 1.0, [0, 1, 2, 3, 4]),
        (0, 0.39, [3]),
        (0, 0.41, [1, 3]),  # the token that crosses the line stays
        (0, 0.86, [0, 1, 2, 3]),
        (0, 1e-9, [3]),
        (2, 0.5, [3]),  # of what top-k left: 0.40 / 0.70 is above one half
        (2, 0.6, [1, 3]),
        (3, 0.75, [1, 3]),
    ],
)
def test_support_of_top_k_and_top_p(top_k: int, top_p: float, kept: list[int]) -> None:
    p_1V = torch.tensor([[0.15, 0.30, 0.10, 0.40, 0.05]])
    filtered_1V = keep_top(p_1V, top_k, top_p)
    assert filtered_1V[0].nonzero()[:, 0].tolist() == kept
    assert torch.equal(filtered_1V[0, kept], p_1V[0, kept])


def test_nucleus_is_the_same_when_it_outgrows_the_first_guess() -> None:
    p_1V = torch.softmax(torch.randn(1, 20_000, generator=torch.Generator().manual_seed(1)) / 10, -1)
    order_V = p_1V[0].argsort(descending=True)
    above_V = p_1V[0, order_V].double().cumsum(0) - p_1V[0, order_V].double()
    expected = set(order_V[above_V < 0.9 * p_1V.double().sum()].tolist())
    assert len(expected) > 8192
    found = set(keep_top(p_1V, 0, 0.9)[0].nonzero()[:, 0].tolist())
    assert found == expected


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (3, 1.0), (0, 0.8), (3, 0.8)])
def test_frequencies_follow_the_filtered_distribution(top_k: int, top_p: float) -> None:
    rows, temperature = 20_000, 0.5
    logits_V = torch.tensor([0.3, 1.1, -0.4, 0.9, -2.0, float("-inf")])
    settings = GenerationSettings(temperature=temperature, top_k=top_k, top_p=top_p)
    token_B, logp_B, entropy_B = sample_tokens(logits_V.expand(rows, -1), uniforms(rows), settings)
    p_V = torch.softmax(logits_V.double() / temperature, -1)
    kept_V = keep_top(p_V[None], top_k, top_p)[0]
    expected_V = (kept_V / kept_V.sum()).numpy()
    found_V = np.bincount(token_B, minlength=6) / rows
    assert (found_V[expected_V == 0] == 0).all()
    assert (np.abs(found_V - expected_V) <= 5 * np.sqrt(expected_V * (1 - expected_V) / rows)).all()
    # Both are of the distribution before filtering.
    np.testing.assert_allclose(logp_B, p_V.log().numpy()[token_B], rtol=1e-5)
    np.testing.assert_allclose(entropy_B, torch.special.entr(p_V).sum().item(), rtol=1e-5)


def test_temperature_zero_takes_the_most_likely_token() -> None:
    logits_BV = torch.randn(50, 30, generator=torch.Generator().manual_seed(0))
    token_B, logp_B, _ = sample_tokens(logits_BV, uniforms(50), GenerationSettings(temperature=0))
    assert token_B.tolist() == logits_BV.argmax(-1).tolist()
    np.testing.assert_allclose(logp_B, logits_BV.log_softmax(-1).max(-1).values.numpy(), rtol=1e-5)


def test_growing_layer_holds_what_a_plain_cache_would() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = GrowingLayer()
    plain_BHSD = torch.randn(2, 3, 5, 4, generator=generator)
    layer.update(plain_BHSD, -plain_BHSD)
    rows = torch.tensor([1, 0, 0])
    layer.batch_select_indices(rows)
    plain_BHSD = plain_BHSD[rows]
    for _ in range(2 * CACHE_ROOM + 3):
        new_BHSD = torch.randn(3, 3, 1, 4, generator=generator)
        plain_BHSD = torch.cat([plain_BHSD, new_BHSD], dim=2)
        keys, values = layer.update(new_BHSD, -new_BHSD)
    assert torch.equal(keys, plain_BHSD)
    assert torch.equal(values, -plain_BHSD)
    assert layer.get_seq_length() == plain_BHSD.shape[2]
