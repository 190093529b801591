"""Muon: the update is near the orthogonal factor of the gradient."""

from __future__ import annotations

import pytest
import torch

from modebench.pretraining.muon import Muon, orthogonal


@pytest.mark.parametrize("shape", [(32, 8), (8, 32), (16, 16)])
def test_singular_values_come_near_one_and_vectors_stay(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    u, _ = torch.linalg.qr(torch.randn(shape[0], min(shape)))
    v, _ = torch.linalg.qr(torch.randn(shape[1], min(shape)))
    matrix = u @ torch.diag(torch.linspace(0.3, 3, min(shape))) @ v.T
    [found] = orthogonal(matrix[None])
    inner = u.T @ found @ v
    assert torch.allclose(inner, torch.diag(inner.diag()), atol=1e-4)
    assert inner.diag().min() > 0.6
    assert inner.diag().max() < 1.25


def test_the_first_update_by_hand() -> None:
    """Momentum .95: the buffer is .05 g, the look-ahead a multiple of g, whose scale is lost."""
    matrix = torch.nn.Parameter(torch.zeros(6, 3))
    gradient = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    matrix.grad = gradient.clone()
    Muon([matrix], lr=0.1).step()
    [direction] = orthogonal(gradient[None])
    assert torch.allclose(matrix.data, -0.1 * 2**0.5 * direction, atol=1e-5)


def test_torchs_muon_agrees_within_its_half_precision() -> None:
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.zeros(24, 12)) for _ in range(2))
    mine = Muon([ours], lr=0.1)
    other = torch.optim.Muon([theirs], lr=0.1, weight_decay=0.0, adjust_lr_fn="original")
    for _ in range(3):
        gradient = torch.randn(24, 12)
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        mine.step()
        other.step()
    assert torch.allclose(ours, theirs, atol=0.02)
    assert ours.abs().max() > 0.1


def test_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match="matrices"):
        Muon([torch.nn.Parameter(torch.zeros(3))], lr=0.1)
