"""GAPO: a right answer is paid by how rare its mode is in the group (Anschel et al. 2025, arXiv:2511.12596).

With f_i the share of rollout i's mode among the right rollouts of its group and L the number of valid
modes of the task, a right rollout is paid R_i = 1 - (f_i - 1/L), a wrong one -1. Where all modes are
covered evenly a right rollout is paid 1, where one mode is all there is 1/L.

``ported`` is the scale of the comparison in arXiv:2610.11064, (R_i + 1) / 2: right rollouts are paid 1 -
(f_i - 1/L) / 2, wrong ones 0. A standardised advantage does not see the difference; a centred one is half
as large. The publication's code was not found; formula and scale are as described there and in the port.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group
from modebench.training.combining import FOREIGN_ROLLOUTS, GRADED_REWARDS, UNMIXED_CREDIT
from modebench.training.part import Credit, Part, Stage


@dataclass(frozen=True)
class Gapo(Part):
    """Rewards by the frequency of modes in the group.

    Attributes:
        scale: see the module.
        support: L of tasks whose number of modes is not known; None refuses them. It only moves the gap
            between right and wrong.
    """

    name: ClassVar[str] = "gapo"
    stage: ClassVar[Stage] = Stage.ESTIMATE
    scale: Literal["paper", "ported"] = "paper"
    support: int | None = None

    def __post_init__(self) -> None:
        if self.support is not None and self.support < 1:
            raise UsageError(f"gapo.support must be at least 1, not {self.support}")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({GRADED_REWARDS, UNMIXED_CREDIT})

    @property
    def refuses(self) -> Mapping[str, str]:
        return {
            GRADED_REWARDS: "both change what a right answer is paid, and it pays by frequency alone",
            FOREIGN_ROLLOUTS: "its frequencies are those of the policy's own answers",
        }

    def reward(self, group: Group, reward_G: Floats, state: Any) -> Floats:
        """[G] rewards.

        Raises:
            UsageError: a task whose number of modes is not known, or a right answer without a mode.
        """
        support = group.task.modes if group.task.modes is not None else self.support
        if support is None or support < 1:
            raise UsageError(
                f"gapo needs the number of modes of {group.task.id}, which is {support}; "
                "--set gapo.support=N names one for such tasks"
            )
        right_G = reward_G > 0
        modes = [rollout.mode for rollout, right in zip(group.rollouts, right_G, strict=True) if right]
        if None in modes:
            raise UsageError(f"gapo needs the mode of every right answer; {group.task.id} has one without")
        counts = Counter(modes)
        paid_G = np.full(group.size, -1.0)
        paid_G[right_G] = [1 - counts[mode] / len(modes) + 1 / support for mode in modes]
        return paid_G if self.scale == "paper" else (paid_G + 1) / 2

    def credit_metrics(self, credits: Sequence[Credit], state: Any) -> dict[str, float | None]:
        """Share of the right rollouts that are worth less than nothing, and so are made less likely."""
        right = [each.given_G[each.group.reward_G > 0] for each in credits]
        worth = np.concatenate(right) if right else np.zeros(0)
        return {"gapo/right_below_zero": float((worth < 0).mean()) if worth.size else None}
