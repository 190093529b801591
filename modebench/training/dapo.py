"""The two parts of DAPO that are not of the surrogate (Yu et al. 2025, arXiv:2503.14476).

Dynamic sampling goes on asking for tasks until the step has as many mixed groups as it has prompts, or the
rounds are over; groups that are all right or all wrong, and mixed ones beyond the number, are discarded. The
discarded ones were generated and are counted (``total/rollouts``, ``total/discarded``): a comparison at equal
steps is not one at equal cost. What is mixed is told by the verdicts, never by a shaped reward.

Overlong shaping adds to the reward of a response of L tokens, with C = max_completion_length and a buffer of
b C tokens before it: 0 where L <= C - b C, (C - b C - L) / (b C) from there to C, -1 beyond.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group
from modebench.training.combining import GRADED_REWARDS, MIXED_ONLY
from modebench.training.part import Part


@dataclass(frozen=True)
class DynamicSampling(Part):
    """A step trains on mixed groups only, and generates until it has enough.

    Where no group of all rounds is mixed the step has no update.

    Attributes:
        max_rounds: how often a step asks for `rollout.num_prompts` tasks at most; 0 turns the filter off.
    """

    name: ClassVar[str] = "dynamic_sampling"
    max_rounds: int = 10

    def __post_init__(self) -> None:
        if self.max_rounds < 0:
            raise UsageError(f"dynamic_sampling.max_rounds must not be negative, not {self.max_rounds}")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({MIXED_ONLY}) if self.max_rounds else frozenset()

    @property
    def rounds(self) -> int:
        return max(1, self.max_rounds)

    def filter(self, groups: list[Group], state: Any) -> list[Group]:
        return [group for group in groups if group.mixed] if self.max_rounds else groups


@dataclass(frozen=True)
class Overlong(Part):
    """Long responses are paid less.

    Attributes:
        buffer: length of the buffer as a share of the longest response; 0 turns the shaping off.
        max_length: C; None for the run's max_completion_length.
    """

    name: ClassVar[str] = "overlong"
    buffer: float = 0.2
    max_length: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.buffer <= 1:
            raise UsageError(f"overlong.buffer must be in [0, 1], not {self.buffer}")
        if self.max_length is not None and self.max_length < 1:
            raise UsageError(f"overlong.max_length must be at least 1, not {self.max_length}")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({GRADED_REWARDS}) if self.buffer else frozenset()

    def fitted(self, max_completion_length: int) -> Overlong:
        return self if self.max_length is not None else replace(self, max_length=max_completion_length)

    def reward(self, group: Group, reward_G: Floats, state: Any) -> Floats:
        """[G] rewards with the penalties of the responses' lengths."""
        if not self.buffer:
            return reward_G
        if self.max_length is None:
            raise UsageError("overlong.max_length is not set")
        length_G = np.array([len(rollout.token_ids) for rollout in group.rollouts], dtype=np.float64)
        buffer = self.buffer * self.max_length
        return np.asarray(reward_G + np.clip((self.max_length - buffer - length_G) / buffer, -1, 0))
