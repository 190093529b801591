"""Residuals: the gradient of a response's log-probability with respect to the logits.

At a token y with probabilities p the gradient of log p(y) by the logits (over the temperature) is
onehot(y) - p. The residual of a response is their sum over its tokens, v = sum_t (onehot(y_t) - p_t), a
vector over the vocabulary whose entries sum to 0 (Mesh Learning, arXiv:2610.02835, and its released code).
What diagnostics need of the responses of a prompt is their Gram matrix, <v_i, v_j>, which is small.

Logits are made in chunks of tokens and never kept, so residuals are gathered while they pass by.

Shape suffixes: _C tokens of a chunk, _R rows, _V vocabulary, _G rollouts of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from modebench.training.batch import Floats, Row


def row_residuals(
    logits_CV: torch.Tensor, total_C: torch.Tensor, target_C: torch.Tensor, row_C: torch.Tensor
) -> torch.Tensor:
    """[R, V] what the tokens of a chunk add to the residuals of its R rows.

    Args:
        logits_CV: over the temperature.
        total_C: the logarithms of the sums of their exponentials.
        target_C: the tokens.
        row_C: int64, the row that each is of, ascending, none left out between the first and the last.
    """
    place_C = row_C - row_C[0]
    probability_CV = (logits_CV - total_C[:, None]).exp()
    residual_RV = logits_CV.new_zeros(int(place_C[-1]) + 1, logits_CV.shape[1])
    residual_RV.index_add_(0, place_C, probability_CV, alpha=-1)
    return residual_RV.index_put_((place_C, target_C), torch.ones_like(total_C), accumulate=True)


def added(pieces: Sequence[torch.Tensor], rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """[R, V] sum of the chunks' residuals, `rows` telling for each chunk which rows its tokens are of."""
    total_RV = pieces[0].new_zeros(int(rows[-1][-1]) + 1, pieces[0].shape[1])
    for piece, row_C in zip(pieces, rows, strict=True):
        total_RV[int(row_C[0]) :][: len(piece)] += piece
    return total_RV


class Grams:
    """Gram matrices of the residuals of groups; a group's residuals are dropped when it is complete.

    Args:
        rows: of an update; those of the policy's own rollouts count.

    Attributes:
        found: by group, [G, G] inner products in the order of the rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.found: dict[int, Floats] = {}
        self._group_of = {place: row.group for place, row in enumerate(rows) if row.term == "fresh"}
        self._missing: dict[int, int] = {}
        for group in self._group_of.values():
            self._missing[group] = self._missing.get(group, 0) + 1
        self._waiting: dict[int, dict[int, torch.Tensor]] = {}

    def add(self, places: Sequence[int], residual_RV: torch.Tensor) -> None:
        """Take in the residuals of some rows, by their places among `rows`."""
        for place, residual_V in zip(places, residual_RV, strict=True):
            if place not in self._group_of:
                continue
            group = self._group_of[place]
            waiting = self._waiting.setdefault(group, {})
            waiting[place] = residual_V
            if len(waiting) == self._missing[group]:
                del self._waiting[group]
                residual_GV = torch.stack([waiting[each] for each in sorted(waiting)]).double()
                gram_GG: Floats = (residual_GV @ residual_GV.T).cpu().numpy().astype(np.float64)
                self.found[group] = gram_GG
