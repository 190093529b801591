"""What every domain module offers.

A domain is a module (or any object) with these names; a third-party one is published under the
entry point group ``modebench.domains``. Domain modules keep the same sections in the same order:
law (`law`, `law_size`, `generate`, `identity`), prompt (`problem`, `system`), modes (`count_modes`,
`solutions`), chance (`random_answer`, and where answers can be counted `answer_space` and `constants`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from modebench.laws import Cell

Reference = Mapping[str, Any]
L = TypeVar("L")

BOXED_SYSTEM = "Reply with nothing but the final answer inside \\boxed{}, without any explanation."


class Solution(NamedTuple):
    """One mode of a task and a response that has it.

    Attributes:
        mode: the mode key of the `published` reading.
        answer: a full model reply, in the form that the prompt asks for.
    """

    mode: str
    answer: str


class AnswerSpace(NamedTuple):
    """The well-formed answers to a task, those that `Domain.random_answer` draws from with equal chances.

    Attributes:
        size: how many there are.
        right: of how many modes how many answers are right: {answers of a mode: number of such modes},
            modes being those of the `published` reading.
    """

    size: int
    right: Mapping[int, int]


class Constants(NamedTuple):
    """Right answers to a task that may be right on other tasks of its cell too.

    Attributes:
        answers: full replies, told apart by their text.
        complete: whether the answer of the space that is right on the most tasks of any set is always among
            those listed for the tasks on which it is right.
    """

    answers: Iterable[str]
    complete: bool


class Domain(Protocol):
    """The interface of a domain; modules satisfy it.

    Functions that need a law of `level` raise a one-line ValueError where there is none.
    """

    name: str
    aliases: tuple[str, ...]

    def law(self, level: int) -> str:
        """The distribution of `level` in one sentence."""

    def law_size(self, level: int) -> int | None:
        """How many tasks, told apart by `identity`, the law has; None where that isn't known."""

    def generate(self, rng: random.Random, level: int, cell: Cell | None = None) -> dict[str, Any]:
        """One reference drawn from the law of `level`; all randomness comes from `rng`.

        Laws that have cells (the built-in ones of levels 2 to 5) give a task of `cell`, and draw a cell
        themselves where it is None. A domain without such laws may leave the parameter out.
        """

    def identity(self, reference: Reference) -> str:
        """Labelled identity: two references that share it are the same task to a split."""

    def problem(self, reference: Reference, level: int) -> str:
        """The user message: the task, its limits and the reply format."""

    def system(self, level: int) -> str:
        """The system message: the reply format in one sentence."""

    def count_modes(self, reference: Reference, level: int) -> int:
        """Exact number of valid modes of this task."""

    def solutions(self, reference: Reference, level: int) -> Iterator[Solution]:
        """Every listed mode once, in a fixed order, lazily."""

    def listed(self, mode: str) -> bool:
        """Whether a correct mode is among those that `count_modes` counts."""

    def random_answer(self, rng: random.Random, reference: Reference, level: int) -> str:
        """A uniform well-formed answer, drawn without looking at what makes it correct."""


class CountedDomain(Protocol):
    """What a domain whose answers can be counted offers besides; chance rows use it where it is there."""

    def answer_space(self, reference: Reference, level: int, modes: int) -> AnswerSpace | None:
        """How many well-formed answers there are and how many are right; None where that isn't counted.

        `modes` is what `count_modes` gives, which a task knows.
        """

    def constants(self, reference: Reference, level: int) -> Constants | None:
        """Candidates for one answer to many tasks; None where the listed solutions are the best known."""


def find_law(laws: Mapping[int, L], level: int, domain: str) -> L:
    """The law of `level`.

    Raises:
        ValueError: the domain has no law of that level.
    """
    if level not in laws:
        known = ", ".join(map(str, sorted(laws)))
        raise ValueError(f"{domain} has no law of level {level!r}; its levels are: {known}")
    return laws[level]
