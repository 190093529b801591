"""What every domain module offers.

A domain is a module (or any object) with these names; a third-party one is published under the
entry point group ``modebench.domains``. Domain modules keep the same sections in the same order:
law (`generate`), prompt (`problem`), modes (`count_modes`, `solutions`), chance (`random_answer`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

Reference = Mapping[str, Any]


class Solution(NamedTuple):
    """One mode of a task and a response that has it.

    Attributes:
        mode: the mode key of the `published` reading.
        answer: a full model reply, in the form that the prompt asks for.
    """

    mode: str
    answer: str


class Domain(Protocol):
    """The interface of a domain; modules satisfy it."""

    name: str
    aliases: tuple[str, ...]

    def generate(self, rng: random.Random, level: int) -> dict[str, Any]:
        """One reference drawn from the law of `level`; all randomness comes from `rng`."""

    def identity(self, reference: Reference) -> str:
        """Labelled identity: equal exactly when two references are the same task."""

    def problem(self, reference: Reference, level: int) -> str:
        """The user message: the task, its limits and the reply format."""

    def count_modes(self, reference: Reference, level: int) -> int:
        """Exact number of valid modes of this task."""

    def solutions(self, reference: Reference, level: int) -> Iterator[Solution]:
        """Every listed mode once, in a fixed order, lazily."""

    def random_answer(self, rng: random.Random, reference: Reference, level: int) -> str:
        """A uniform well-formed answer, drawn without looking at what makes it correct."""
