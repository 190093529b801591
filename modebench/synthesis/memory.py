"""What a writer of cards is told of its cards and of the learner: the interaction memory of SynCo.

A report says how many of the recent cards were tasks, how often the learner solved these, which styles they
aimed at and why cards were refused (arXiv:2610.11345). It becomes the `CardContext` of the compact profile or
a text for a model that reads.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from modebench.strategies import STRATEGIES
from modebench.synthesis.compact import CardContext
from modebench.synthesis.novelty import WINDOW

TOO_EASY, LEARNABLE, TOO_HARD = 0.95, (0.2, 0.8), 0.05
"""Success rates at least, between and below which a task is counted as such; others are not counted."""
MAX_REPORT = 4_000
"""Characters of a report at most, as in the released code."""
_COMPACT = {
    "none": "none",
    "truncated": "unreadable",
    "unreadable": "unreadable",
    "unsolvable": "unsolvable",
    "wrong": "wrong",
    "repeated": "copy",
    "held_out": "copy",
    "leak": "leak",
}
"""The word of the compact profile for each reason of a refusal."""
_STYLE = 60
"""Characters that are kept of the style of a card."""
_COUNTED = 32
"""Tasks, the last ones, in the three counts of the compact profile: as many as it was taught to read."""


@dataclass(frozen=True)
class Interaction:
    """A card and what came of it.

    Attributes:
        domain, level: of the task that was asked for.
        style: the reasoning style that the card aims at; empty where it could not be read.
        refused: why it is no task, or ``wrong`` for a task whose stated answer is not right; else None.
        rate: share of right solutions of the learner; None where it was not asked.
    """

    domain: str
    level: int
    style: str
    refused: str | None
    rate: float | None


@dataclass(frozen=True)
class Style:
    """How tasks of one style fared.

    Attributes:
        name: the style.
        tasks: cards that aimed at it.
        rate: mean success rate of the learner; None where it was never asked.
    """

    name: str
    tasks: int
    rate: float | None


@dataclass(frozen=True)
class Report:
    """What is known of the recent cards of one domain and level.

    Attributes:
        cards: how many there were.
        tasks: how many of them were tasks.
        counts: tasks that were too easy, learnable and too hard.
        recent: the same of the last ones.
        styles: the domain's own strategies in their order, then others by how often they were aimed at.
        refusals: faults of cards and how often each, the most frequent first.
    """

    cards: int
    tasks: int
    counts: tuple[int, int, int]
    recent: tuple[int, int, int]
    styles: tuple[Style, ...]
    refusals: tuple[tuple[str, int], ...]

    def compact(self, domain: str) -> CardContext:
        """The context of the compact profile, which knows the domain's own strategies only."""
        own = {strategy.name for strategy in STRATEGIES[domain]}
        known = [style for style in self.styles if style.name in own]
        by_use = sorted(known, key=lambda style: -style.tasks)
        reason = self.refusals[0][0] if self.refusals else "none"
        return CardContext(
            self.recent, by_use[0].name, by_use[-1].name, _weakest(known).name, _COMPACT[reason]
        )

    def text(self) -> str:
        """The report in words, of at most `MAX_REPORT` characters."""
        easy, learnable, hard = self.counts
        lines = [
            f"Your last {self.cards} cards: {self.tasks} were valid tasks.",
            f"The learner's success on them: {easy} too easy, {learnable} learnable, {hard} too hard.",
        ]
        used = [style for style in self.styles if style.tasks]
        unused = [style.name for style in self.styles if not style.tasks]
        if used:
            told = "; ".join(map(_style_text, sorted(used, key=lambda style: -style.tasks)))
            lines += [
                f"Reasoning styles so far: {told}.",
                f"The learner is weakest at: {_weakest(used).name}.",
            ]
        if unused:
            lines.append(f"Not explored yet: {', '.join(unused)}.")
        if self.refusals:
            told = ", ".join(f"{reason} ({count})" for reason, count in self.refusals)
            lines.append(f"Faults of your cards: {told}.")
        text = "\n".join(lines)
        return text if len(text) <= MAX_REPORT else f"{text[: MAX_REPORT - 1]}…"


def _weakest(styles: Sequence[Style]) -> Style:
    """The style with the lowest success rate; the first where none was tried."""
    tried = [(style.rate, place) for place, style in enumerate(styles) if style.rate is not None]
    return styles[min(tried)[1] if tried else 0]


def _style_text(style: Style) -> str:
    solved = "" if style.rate is None else f", {style.rate:.0%} solved"
    return f"{style.name} ({style.tasks}{solved})"


class InteractionMemory:
    """The last interactions.

    Args:
        window: how many are kept.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.interactions: deque[Interaction] = deque(maxlen=window)

    def add(self, interaction: Interaction) -> None:
        """Remember one; of a long style its beginning."""
        cut = asdict(interaction) | {"style": interaction.style[:_STYLE]}
        self.interactions.append(Interaction(**cut))

    def report(self, domain: str, level: int) -> Report:
        """What the memory says of a domain at a level."""
        own = [each for each in self.interactions if (each.domain, each.level) == (domain, level)]
        rates = [each.rate for each in own if each.rate is not None]
        refusals = Counter(each.refused for each in own if each.refused is not None)
        return Report(
            cards=len(own),
            tasks=len(rates),
            counts=_counts(rates),
            recent=_counts(rates[-_COUNTED:]),
            styles=_styles(domain, own),
            refusals=tuple(refusals.most_common()),
        )

    def state_dict(self) -> list[dict[str, Any]]:
        """JSON-ready."""
        return [asdict(each) for each in self.interactions]

    def load_state_dict(self, saved: Sequence[Mapping[str, Any]]) -> None:
        self.interactions.clear()
        self.interactions.extend(Interaction(**each) for each in saved)


def _counts(rates: Sequence[float]) -> tuple[int, int, int]:
    """How many tasks were too easy, learnable and too hard.

    >>> _counts([0.0, 0.04, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0])
    (2, 3, 2)
    """
    low, high = LEARNABLE
    return (
        sum(rate >= TOO_EASY for rate in rates),
        sum(low <= rate <= high for rate in rates),
        sum(rate < TOO_HARD for rate in rates),
    )


def _styles(domain: str, interactions: Sequence[Interaction]) -> tuple[Style, ...]:
    own = [strategy.name for strategy in STRATEGIES[domain]]
    aimed = Counter(each.style for each in interactions if each.style)
    others = [name for name, _ in aimed.most_common() if name not in own]
    found = []
    for name in [*own, *others]:
        rates = [each.rate for each in interactions if each.style == name and each.rate is not None]
        found.append(Style(name, aimed[name], sum(rates) / len(rates) if rates else None))
    return tuple(found)
