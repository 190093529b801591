"""Muon: gradient descent on matrices with orthogonalised momentum (Jordan et al. 2024).

kellerjordan.github.io/posts/muon; the scale of an update is sqrt(max(1, rows / columns)), as there. torch has
the same optimizer, but multiplies in bfloat16, which many CPUs do a dozen times slower than float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_STEPS = 5


class Muon(torch.optim.Optimizer):  # type: ignore[misc]
    """The optimizer, for parameters of two dimensions.

    Args:
        parameters: matrices.
        lr: learning rate.
        momentum: of the running sum of gradients; the step looks ahead by Nesterov's rule.
    """

    def __init__(self, parameters: Iterable[torch.Tensor], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(f"Muon takes matrices, not a tensor of shape {tuple(parameter.shape)}")

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        """One update; matrices of one shape are orthogonalised together."""
        for group in self.param_groups:
            momentum = group["momentum"]
            by_shape: dict[torch.Size, list[torch.Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for (rows, columns), parameters in by_shape.items():
                ahead = []
                for parameter in parameters:
                    buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                    buffer.lerp_(parameter.grad, 1 - momentum)
                    ahead.append(parameter.grad.lerp(buffer, momentum))
                scale = group["lr"] * max(1, rows / columns) ** 0.5
                for parameter, update in zip(parameters, orthogonal(torch.stack(ahead)), strict=True):
                    parameter.sub_(update, alpha=scale)


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """[N, R, C] matrices with singular values near 1 and the singular vectors of `matrices`.

    Five steps of a Newton-Schulz iteration of fifth order, whose coefficients were chosen for speed: singular
    values end between 0.7 and 1.2.
    """
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
