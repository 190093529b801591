"""One optimizer step from the rows of a batch, over any number of processes.

Every process holds the whole model and the whole batch; the rows are dealt out by prompt, and the gradients
of the processes are summed. As all normalisation is in the rows' weights, the sum is the gradient that one
process would have, and a process without rows simply adds nothing: no process waits for a micro-batch
that another does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object

from modebench.errors import TrainingError
from modebench.training.batch import Floats, Row
from modebench.training.config import OptimizerConfig, TrainConfig
from modebench.training.likelihood import RowScore, Scorer, row_logprobs
from modebench.training.loss import Statistics, backward
from modebench.training.surrogates import Surrogate

Gradients = list[torch.Tensor]
"""One tensor a parameter, in the order of the parameters."""


def learning_rate(config: OptimizerConfig, update: int, updates: int) -> float:
    """Learning rate of an update, numbered from 1 to `updates`.

    >>> learning_rate(OptimizerConfig(learning_rate=1.0, warmup_steps=2), 1, 10)
    0.5
    >>> learning_rate(OptimizerConfig(learning_rate=1.0, schedule="cosine"), 10, 10)
    0.0
    """
    if update <= config.warmup_steps:
        return config.learning_rate * update / config.warmup_steps
    if config.schedule == "constant":
        return config.learning_rate
    progress = (update - config.warmup_steps) / (updates - config.warmup_steps)
    left = 1 - progress if config.schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return config.final_learning_rate + left * (config.learning_rate - config.final_learning_rate)


def deal(rows: Sequence[Row], process: int, processes: int) -> list[int]:
    """Indices of the rows that a process scores: all rows of a prompt go to the same one."""
    place = {prompt: index for index, prompt in enumerate(dict.fromkeys(row.prompt_ids for row in rows))}
    return [index for index, row in enumerate(rows) if place[row.prompt_ids] % processes == process]


@dataclass(frozen=True)
class UpdateReport:
    """What an update saw.

    Attributes:
        statistics: of all processes.
        learning_rate: of this update.
        grad_norm: L2 norm of the whole gradient before clipping.
        fresh_grad_norm, extra_grad_norm, cosine: of its two parts; the last two are None without further
            terms, the cosine also where a part is zero.
    """

    statistics: Statistics
    learning_rate: float
    grad_norm: float
    fresh_grad_norm: float
    extra_grad_norm: float | None
    cosine: float | None

    @property
    def ratio(self) -> float | None:
        """Norm of the further terms' gradient over that of the fresh loss; None where either isn't there."""
        if self.extra_grad_norm is None or self.fresh_grad_norm == 0:
            return None
        return self.extra_grad_norm / self.fresh_grad_norm


class Score(NamedTuple):
    """What is known of a row before an update, without gradient.

    Attributes:
        logp_T, entropy_T: [T] under the present policy, nats.
        reference_T: [T] log-probabilities under the reference, nats; None where it was not asked.
        residual_V: [V] see `modebench.training.residuals`; None where it was not asked for.
    """

    logp_T: Floats
    entropy_T: Floats
    reference_T: Floats | None = None
    residual_V: Floats | None = None


class Updater:
    """Turns rows into optimizer steps.

    Args:
        scorer: of the model that is trained.
        optimizer: over the model's parameters.
        accelerator: knows the processes.
        config: of the run.
        surrogate: of the method.
        reference: of the policy that the method's divergences are measured from; None without any.
    """

    def __init__(
        self,
        scorer: Scorer,
        optimizer: torch.optim.Optimizer,
        accelerator: Accelerator,
        config: TrainConfig,
        surrogate: Surrogate,
        reference: Scorer | None = None,
    ) -> None:
        self.scorer, self.optimizer, self.accelerator, self.config = scorer, optimizer, accelerator, config
        self.surrogate, self.reference = surrogate, reference
        self.parameters = [p for p in scorer.model.parameters() if p.requires_grad]

    def scores(
        self, rows: Sequence[Row], *, with_reference: bool = False, residuals: bool = False
    ) -> list[Score]:
        """What the present policy, and where wanted the reference, says of every row."""
        own = deal(rows, self.accelerator.process_index, self.accelerator.num_processes)
        mine = [rows[index] for index in own]
        options: dict[str, Any] = {
            "temperature": self.config.rollout.temperature,
            "micro_batch_tokens": self.config.update.micro_batch_tokens,
        }
        reference: list[Floats] | list[None] = [None] * len(mine)
        with torch.no_grad():
            found = row_logprobs(self.scorer, mine, residuals=residuals, **options)
            if with_reference:
                assert self.reference is not None  # the trainer loads what the method needs
                reference = [_numpy(each.logp_T) for each in row_logprobs(self.reference, mine, **options)]
        told = [
            (index, Score(_numpy(each.logp_T), _numpy(each.entropy_T), reference_T, _optional(each)))
            for index, each, reference_T in zip(own, found, reference, strict=True)
        ]
        return [score for _, score in sorted(gather_object(told), key=lambda entry: entry[0])]

    def gradients(self, rows: Sequence[Row], grams: bool = False) -> tuple[Gradients, Statistics]:
        """Gradient of the rows' summed loss and what was seen on the way, summed over the processes."""
        for parameter in self.parameters:
            parameter.grad = None
        own = deal(rows, self.accelerator.process_index, self.accelerator.num_processes)
        epsilon, epsilon_high = self.surrogate.clip_range
        statistics = backward(
            self.scorer,
            [rows[index] for index in own],
            temperature=self.config.rollout.temperature,
            epsilon=epsilon,
            epsilon_high=epsilon_high,
            level=self.surrogate.importance_sampling_level,
            reference=self.reference,
            micro_batch_tokens=self.config.update.micro_batch_tokens,
            grams=grams,
        )
        # Zeros, not None: AdamW would leave its moments alone where it should let them decay.
        found = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        summed: Gradients = [self.accelerator.reduce(gradient, "sum") for gradient in found]
        return summed, sum(gather_object([statistics]), Statistics())

    def step(
        self,
        fresh: Sequence[Row],
        extra: Sequence[Row],
        update: int,
        change_extra: Callable[[Gradients], Gradients],
        grams: bool = False,
    ) -> UpdateReport:
        """Update the policy on the sum of the losses of all rows.

        Args:
            fresh: rows of this step's rollouts.
            extra: rows of further terms.
            update: number of this update, from 1.
            change_extra: what the method makes of the gradient of its further terms.
            grams: note how the responses of a group pull together.

        Raises:
            TrainingError: loss or gradient is not finite; the policy is untouched.
        """
        total, statistics = self.gradients(fresh, grams)
        fresh_norm, extra_norm, cosine = _norm(total), None, None
        if extra:
            further, more = self.gradients(extra)
            further = change_extra(further)
            statistics += more
            extra_norm = _norm(further)
            if fresh_norm * extra_norm > 0:
                cosine = _dot(total, further) / (fresh_norm * extra_norm)
            for gradient, addition in zip(total, further, strict=True):
                gradient.add_(addition)
        norm = _norm(total) if extra else fresh_norm
        losses = {term: loss for term, loss in statistics.loss.items() if not math.isfinite(loss)}
        if losses or not math.isfinite(norm):
            raise TrainingError(
                f"the loss is not finite (gradient norm {norm}, loss {losses or statistics.loss}); "
                "try a lower optimizer.learning_rate"
            )
        rate = self._apply(total, norm, update)
        return UpdateReport(statistics, rate, norm, fresh_norm, extra_norm, cosine)

    def _apply(self, total: Gradients, norm: float, update: int) -> float:
        """Clip and step; returns the learning rate."""
        optimizer = self.config.optimizer
        if 0 < optimizer.max_grad_norm < norm:
            for gradient in total:
                gradient.mul_(optimizer.max_grad_norm / norm)
        updates = self.config.steps * self.config.update.per_step
        rate = learning_rate(optimizer, update, updates)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for parameter, gradient in zip(self.parameters, total, strict=True):
            parameter.grad = gradient
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return rate


def with_old(rows: Sequence[Row], logp: Sequence[Floats]) -> list[Row]:
    """The rows with the log-probabilities of the policy that further updates are measured against."""
    return [replace(row, logp_old_T=logp_T) for row, logp_T in zip(rows, logp, strict=True)]


def _numpy(values: torch.Tensor) -> Floats:
    array: Floats = values.detach().cpu().numpy().astype(np.float64)
    return array


def _optional(score: RowScore) -> Floats | None:
    return None if score.residual_V is None else _numpy(score.residual_V)


def _norm(gradients: Gradients) -> float:
    return math.sqrt(_dot(gradients, gradients))


def _dot(first: Gradients, second: Gradients) -> float:
    products: list[Any] = [(one * two).sum().double() for one, two in zip(first, second, strict=True)]
    return float(torch.stack(products).sum())
