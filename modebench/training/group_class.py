"""Which groups are trained on, by how many of their rollouts are right.

An ablation of methods that act where all rollouts are right, which is where modes are lost without a
trace: what of their effect comes from which groups. Rollouts of the other groups keep their place in the
average of the loss where that is a constant one, and leave it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.training.batch import Floats, Group
from modebench.training.combining import MIXED_ONLY, UNMIXED_CREDIT
from modebench.training.part import Kept, Part, Stage


@dataclass(frozen=True)
class GroupClass(Part):
    """Groups of one class count.

    Attributes:
        keep: ``mixed``: some rollouts of the policy right and some wrong; ``all_right``: none wrong.
    """

    name: ClassVar[str] = "group_class"
    stage: ClassVar[Stage] = Stage.SELECT
    keep: Literal["mixed", "all_right"] = "mixed"

    @property
    def refuses(self) -> Mapping[str, str]:
        return {MIXED_ONLY: "together they leave no group"} if self.keep == "all_right" else {}

    @property
    def requires(self) -> Mapping[str, str]:
        if self.keep == "mixed":
            return {}
        return {UNMIXED_CREDIT: "where all are right no rollout is worth anything"}

    def select(self, group: Group, advantage_G: Floats, kept_G: Kept, state: Any) -> tuple[Floats, Kept]:
        own = [rollout.reward > 0 for rollout in group.rollouts if rollout.origin == "fresh"]
        belongs = all(own) if self.keep == "all_right" else any(own) and not all(own)
        return advantage_G, kept_G & np.bool_(belongs)
