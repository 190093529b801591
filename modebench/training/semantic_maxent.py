"""Semantic MaxEnt: a bonus for right answers whose mode was rare for this prompt so far.

The comparator of arXiv:2610.11064, appendix D.7; there is no publication of its own. Its background is the
entropy over meanings of Farquhar et al. 2024 (Nature 630:625). For a right rollout i of mode a, with n the
counts of modes in earlier groups of the prompt plus those of the other right rollouts of the present
group, K the number of modes with a count, N the sum of counts and alpha the pseudo-count:

    p(b) = (n_b + alpha) / (N + alpha (K + 1)) for known modes, p(unseen) = alpha / (N + alpha (K + 1))
    A_i += eta (min(-log p(a), kappa) - sum_b p(b) min(-log p(b), kappa)) / kappa

The sum runs over known modes and the unseen one, so the bonus has mean zero under p. A mode without a
count is worth what the unseen one is. Without any counts there is no bonus. Added after centring, to right
rollouts only; a group enters the history when the next update begins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import TASKS, Floats, Group
from modebench.training.combining import FOREIGN_ROLLOUTS, UNMIXED_CREDIT
from modebench.training.part import Credit, Part, Stage

Counts = dict[str, int]


@dataclass
class History:
    """How often each mode of a prompt was found before this update, by prompt key, and in this update."""

    counts: dict[str, Counts] = field(default_factory=dict)
    pending: list[tuple[str, Counts]] = field(default_factory=list)

    def observe(self, groups: Sequence[Group]) -> None:
        """Enter the groups of the last update, and keep the present ones for the next."""
        for key, found in self.pending:
            known = Counter(self.counts.get(key, {}))
            self.counts[key] = dict(known + Counter(found))
        # A task that was made never comes again, and needs no history.
        self.pending = [(group.key, dict(right_modes(group))) for group in groups if group.source == TASKS]

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"counts": self.counts, "pending": [[key, found] for key, found in self.pending]}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.counts = {key: dict(counts) for key, counts in saved["counts"].items()}
        self.pending = [(key, dict(found)) for key, found in saved["pending"]]


def right_modes(group: Group) -> Counter[str]:
    """How many rollouts that were paid each mode has."""
    return Counter(one.mode for one in group.rollouts if one.reward > 0 and one.mode is not None)


def surprise(mode: str, counts: Mapping[str, int], alpha: float, kappa: float) -> float:
    """min(-log p(mode), kappa) minus its mean under p, nats; 0 without any counts."""
    known = {name: count for name, count in counts.items() if count > 0}
    if not known:
        return 0.0
    total = sum(known.values()) + alpha * (len(known) + 1)
    p = {name: (count + alpha) / total for name, count in known.items()}
    unseen = alpha / total
    mean = sum(each * min(-math.log(each), kappa) for each in [*p.values(), unseen])
    return min(-math.log(p.get(mode, unseen)), kappa) - mean


@dataclass(frozen=True)
class SemanticMaxEnt(Part):
    """The bonus of rare modes.

    Attributes:
        eta: the bonus is in [-eta, eta].
        kappa: largest surprise that counts, nats.
        pseudocount: alpha, added to every count.
    """

    name: ClassVar[str] = "semantic_maxent"
    stage: ClassVar[Stage] = Stage.BONUS
    eta: float = 0.1
    kappa: float = 5.0
    pseudocount: float = 1.0

    def __post_init__(self) -> None:
        if self.eta < 0:
            raise UsageError(f"semantic_maxent.eta must not be negative, not {self.eta}")
        for option in ("kappa", "pseudocount"):
            if getattr(self, option) <= 0:
                raise UsageError(f"semantic_maxent.{option} must be above 0, not {getattr(self, option)}")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({UNMIXED_CREDIT})

    @property
    def refuses(self) -> Mapping[str, str]:
        return {FOREIGN_ROLLOUTS: "its counts are those of the policy's own answers"}

    def state(self, seed: int) -> History:
        return History()

    def observe(self, groups: Sequence[Group], state: History) -> None:
        state.observe(groups)

    def advantage(self, group: Group, advantage_G: Floats, state: History) -> Floats:
        return advantage_G + self.bonus(group, state)

    def bonus(self, group: Group, state: History) -> Floats:
        """[G] what is added; 0 for wrong rollouts."""
        counts = right_modes(group) + Counter(state.counts.get(group.key, {}))
        bonus_G = np.zeros(group.size)
        for index, rollout in enumerate(group.rollouts):
            if rollout.reward > 0 and rollout.mode is not None:
                others = counts - Counter([rollout.mode])
                bonus_G[index] = surprise(rollout.mode, others, self.pseudocount, self.kappa)
        return self.eta / self.kappa * bonus_G

    def credit_metrics(self, credits: Sequence[Credit], state: History) -> dict[str, float | None]:
        """Prompts with a history, and the mean magnitude of the bonus over right rollouts."""
        right = [self.bonus(each.group, state)[each.group.reward_G > 0] for each in credits]
        bonus = np.abs(np.concatenate(right)) if right else np.zeros(0)
        return {
            "semantic_maxent/prompts": float(len(state.counts)),
            "semantic_maxent/bonus": float(bonus.mean()) if bonus.size else None,
        }
