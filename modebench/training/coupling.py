"""How the responses of a prompt pull on each other: the coupling kernel, and strategies made of it.

With U_i the gradient of log p(response i) by the parameters, a step along A_j U_j changes log p(response i)
by the learning rate times A_j K_ij to first order, K_ij = <U_i, U_j> (Mesh Learning, arXiv:2610.02835). Two
responses are of one strategy where K_ij > 0 and sup_k |K_ik - K_jk| <= epsilon. That relation is not
transitive; here a strategy is a connected component of it (single linkage). The publication does not say in
which unit its epsilon = 0.05 is; raw products grow with parameters and lengths, so it is applied to cosines
K_ij / sqrt(K_ii K_jj), which do not depend on whether log p is a sum or a mean over tokens.

U is taken by the parameters of one place, since all of them are too many:

- the output layer, without a backward pass: its gradient is sum_t v_t h_t^T (v the residual of a token, h the
  last hidden state), so K_ij = sum_ts <v_it, v_js> <h_it, h_js>;
- the last block, by a backward pass a response.

Shape suffixes: _N responses, _T their tokens, _V vocabulary, _H hidden size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from modebench.training.batch import Floats, Row

if TYPE_CHECKING:
    import torch

    from modebench.training.likelihood import Scorer

NEIGHBOURHOOD = 0.05
"""Epsilon of the publication."""


def cosines(gram_NN: Floats) -> Floats:
    """[N, N] cosines of vectors with these [N, N] inner products; 0 with a vector that is 0."""
    norm_N = np.sqrt(np.diag(gram_NN))
    product_NN = np.outer(norm_N, norm_N)
    return np.asarray(np.divide(gram_NN, product_NN, out=np.zeros_like(gram_NN), where=product_NN > 0))


def neighbourhoods(kernel_NN: Floats, epsilon: float = NEIGHBOURHOOD) -> list[int]:
    """Strategy of each of N responses: numbers from 0 in the order in which they first occur."""
    count = len(kernel_NN)
    furthest_NN = np.abs(kernel_NN[:, None, :] - kernel_NN[None, :, :]).max(-1, initial=0.0)
    near_NN = (kernel_NN > 0) & (furthest_NN <= epsilon)
    labels = [-1] * count
    for start in range(count):
        if labels[start] >= 0:
            continue
        label = max(labels, default=-1) + 1
        reached = [start]
        while reached:
            place = reached.pop()
            if labels[place] < 0:
                labels[place] = label
                reached += np.flatnonzero(near_NN[place]).tolist()
    return labels


def clusters(gram_NN: Floats, epsilon: float = NEIGHBOURHOOD) -> list[int]:
    """Strategy of each of N responses whose gradients have these inner products, by their cosines."""
    return neighbourhoods(cosines(gram_NN), epsilon)


def adjusted_rand(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Adjusted Rand index of two partitions (Hubert and Arabie 1985, Journal of Classification 2:193,
    equation 5): 1 where they are the same, 0 on average where one is shuffled.

    Raises:
        ValueError: not of the same things.
    """
    if len(first) != len(second):
        raise ValueError(f"partitions of {len(first)} and of {len(second)} things")
    together, one, other = (
        sum(comb(size, 2) for size in Counter(labels).values())
        for labels in (zip(first, second, strict=True), first, second)
    )
    pairs = comb(len(first), 2)
    expected = one * other / pairs if pairs else 0.0
    largest = (one + other) / 2
    return 1.0 if largest == expected else (together - expected) / (largest - expected)


def head_kernel(scorer: Scorer, rows: Sequence[Row], temperature: float) -> Floats:
    """[N, N] inner products of the gradients of the rows' log-probabilities by the output matrix.

    Raises:
        ValueError: the output layer cannot be applied apart.
    """
    parts = [scorer.head_gradients(row, temperature) for row in rows]
    kernel_NN = np.zeros((len(rows), len(rows)))
    for i, (residual_TV, state_TH) in enumerate(parts):
        for j, (other_TV, other_TH) in enumerate(parts[: i + 1]):
            product = ((residual_TV @ other_TV.T) * (state_TH @ other_TH.T)).sum()
            kernel_NN[i, j] = kernel_NN[j, i] = float(product)
    return kernel_NN


def gradient_kernel(
    scorer: Scorer, rows: Sequence[Row], parameters: Sequence[torch.nn.Parameter], temperature: float
) -> Floats:
    """[N, N] inner products of the gradients of the rows' log-probabilities by these parameters."""
    import torch

    from modebench.training.likelihood import row_logprobs

    found = []
    for row in rows:
        [score] = row_logprobs(scorer, [row], temperature=temperature)
        gradients = torch.autograd.grad(score.logp_T.sum(), list(parameters))
        found.append(torch.cat([each.flatten() for each in gradients]).double())
    gradient_NP = torch.stack(found)
    kernel_NN: Floats = (gradient_NP @ gradient_NP.T).cpu().numpy()
    return kernel_NN


def last_block(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """The parameters of the last block of a model: the last member of its longest list of modules.

    Raises:
        ValueError: there is no such list.
    """
    import torch

    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    if not lists:
        raise ValueError(f"{type(model).__name__} has no list of blocks")
    return list(max(lists, key=len)[-1].parameters())
