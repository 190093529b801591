"""A method in one file: right answers of a mode that is rare in its group are worth more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from modebench.training.advantages import Advantage
from modebench.training.batch import Floats, Group
from modebench.training.method import Method
from modebench.training.part import Part


@dataclass(frozen=True)
class RareFirst(Part):
    name: ClassVar[str] = "rare_first"
    bonus: float = 0.5

    def advantage(self, group: Group, advantage_G: Floats, state: Any) -> Floats:
        counts = Counter(rollout.mode for rollout in group.rollouts if rollout.mode is not None)
        rare_G = [0 if one.mode is None else 1 / counts[one.mode] for one in group.rollouts]
        return advantage_G + self.bonus * np.array(rare_G)


METHOD = Method(
    "rare_first", "Rare first", "A_i = r_i - mean(r) + bonus / n(mode_i)", "here", (Advantage(), RareFirst())
)
