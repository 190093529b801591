"""Which rollouts count in the loss; all of them unless a part here is in the method.

Credit is given on the whole group before anything is dropped, so a dropped rollout never moves the
advantages of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from modebench.training.batch import Floats, Group
from modebench.training.part import Kept, Part, Stage


@dataclass(frozen=True)
class MaskTruncated(Part):
    """Rollouts that were cut at the length limit have no part in the loss (DAPO's overlong filtering,
    arXiv:2503.14476; ``mask_truncated_completions`` elsewhere). Their rewards stay in the group's mean."""

    name: ClassVar[str] = "mask_truncated"
    credits_written: ClassVar[bool] = True
    stage: ClassVar[Stage] = Stage.SELECT

    def select(self, group: Group, advantage_G: Floats, kept_G: Kept, state: Any) -> tuple[Floats, Kept]:
        whole_G = np.array([rollout.finish_reason != "length" for rollout in group.rollouts])
        return advantage_G, kept_G & whole_G
