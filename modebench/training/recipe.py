"""The updates of one step: a batch of rollouts cut into mini-batches, once or several times.

Credit is given over the whole batch, and token weights are folded over the mini-batch (see
`modebench.training.surrogates`). The old log-probabilities are those of the policy that sampled: taken once,
before the first update, in which every ratio is therefore exactly 1.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from modebench.training.batch import Floats, Group, Row
from modebench.training.config import TrainConfig
from modebench.training.loss import Statistics
from modebench.training.method import Method, MethodState
from modebench.training.part import Seen
from modebench.training.update import Updater, UpdateReport, with_old


@dataclass
class StepReport:
    """What the updates of one step did.

    Attributes:
        rows: of the whole batch.
        updates: a report each.
        extra: rows of the further terms of the last update.
        updated: the groups of the last update.
        scored: responses that were scored without a gradient: by the policy for old log-probabilities and
            statistics, and by the reference.
    """

    rows: list[Row]
    updates: list[UpdateReport] = field(default_factory=list)
    extra: list[Row] = field(default_factory=list)
    updated: list[Group] = field(default_factory=list)
    scored: int = 0

    @property
    def grams(self) -> dict[int, Floats]:
        """How the responses of each group of the first update pull together; see `Statistics.grams`."""
        return self.updates[0].statistics.grams

    def metrics(self) -> dict[str, Any]:
        """Means over the updates; of gradients and rates None where there was no update.

        The gap to the sampler is that of the first update: afterwards the policy has moved.
        """
        statistics = sum((report.statistics for report in self.updates), Statistics())
        first = self.updates[0].statistics.metrics() if self.updates else {}
        return {
            **statistics.metrics(len(self.updates)),
            **{name: value for name, value in first.items() if name.startswith("sampler")},
            "learning_rate": self.updates[-1].learning_rate if self.updates else None,
            "grad_norm": _mean([report.grad_norm for report in self.updates]),
            "grad_norm/fresh": _mean([report.fresh_grad_norm for report in self.updates]),
            "grad_norm/extra": _mean([report.extra_grad_norm for report in self.updates]),
            "grad_cosine": _mean([report.cosine for report in self.updates]),
            "grad_norm/ratio": _mean([report.ratio for report in self.updates]),
        }


def mini_batches(
    rows: Sequence[Row],
    count: int,
    unit: str,
    seed: int,
    *place: int,
    groups: Sequence[Group] = (),
) -> list[list[int]]:
    """Indices of the rows of each mini-batch, ascending; no mini-batch is empty.

    Args:
        rows: of the batch.
        count: mini-batches; fewer where there are fewer units.
        unit: ``group``, whose rows stay together, or ``rollout``.
        seed: of the run.
        place: step and pass; the cut depends on nothing else, so no checkpoint needs it.
        groups: of the rows; those that ask one task with prefixes stay together too.
    """
    if count == 1:
        return [list(range(len(rows)))]
    coached = {place: group.task.id for place, group in enumerate(groups) if group.prefix is not None}
    units: dict[int | str, list[int]] = {}
    for index, row in enumerate(rows):
        units.setdefault(coached.get(row.group, row.group) if unit == "group" else index, []).append(index)
    members = list(units.values())
    text = "|".join(map(str, (seed, "mini-batches", *place)))
    random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")).shuffle(members)
    bounds = [len(members) * part // count for part in range(count + 1)]
    parts = [members[start:end] for start, end in pairwise(bounds)]
    return [sorted(index for unit_rows in part for index in unit_rows) for part in parts if part]


def run_updates(
    method: Method,
    state: MethodState,
    updater: Updater,
    groups: Sequence[Group],
    config: TrainConfig,
    step: int,
) -> StepReport:
    """Credit the groups of a step and make its updates.

    Args:
        method, state: the method and what it remembers.
        updater: of the policy.
        groups: that are trained on; without any there is no update.
        config: of the run.
        step: number of the step, from 1.

    Raises:
        TrainingError: a loss that is not finite.
    """
    report = StepReport(method.credit(groups, state) if groups else [])
    rows, recipe = report.rows, config.update
    cuts = [
        part
        for epoch in range(recipe.num_iterations if rows else 0)
        for part in mini_batches(
            rows, recipe.mini_batches, recipe.mini_batch_unit, config.run.seed, step, epoch, groups=groups
        )
    ]
    if rows and (method.needs_statistics or len(cuts) > 1):
        compares = method.compares_with_reference
        old = updater.scores(rows, with_reference=compares, residuals=method.needs_residuals)
        report.scored += (1 + compares) * len(rows)
    for number, part in enumerate(cuts):
        batch = method.normalise([rows[index] for index in part], state)
        if number > 0:
            batch = with_old(batch, [old[index].logp_T for index in part])
        report.updated = [groups[place] for place in sorted({row.group for row in batch})]
        seen: list[Seen] = []
        if method.needs_statistics:
            scores = [old[index] for index in part]
            if report.updates:  # the policy has moved, the reference has not
                moved = updater.scores(batch, residuals=method.needs_residuals)
                pairs = zip(moved, scores, strict=True)
                scores = [now._replace(reference_T=before.reference_T) for now, before in pairs]
                report.scored += len(batch)
            seen = method.seen(batch, scores)
            batch = method.reweigh(batch, seen, state)
        report.extra = method.extra_rows(report.updated, state)
        if method.needs_statistics:
            report.extra += method.further_rows(groups, report.updated, batch, seen, state)
        done = updater.step(
            batch,
            report.extra,
            (step - 1) * recipe.per_step + number + 1,
            lambda gradients: method.extra_gradient(gradients, state),
            grams=method.needs_grams and number == 0,
        )
        method.note(done.statistics, state)
        report.scored += done.statistics.reference_rows
        report.updates.append(done)
    return report


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that are defined."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None
