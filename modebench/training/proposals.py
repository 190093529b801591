"""Tasks that a method proposed, one line each in the tasks.jsonl of a training folder.

A line has ``step`` and ``part`` (which part of the method proposed it) and the fields of `Proposal`. Like
metrics.jsonl the file depends on the configuration alone, and a resumed run goes on where it was cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

PROPOSALS = "tasks.jsonl"
"""Name of the file."""

Failure = Literal[
    "truncated",
    "unreadable",
    "no_variation",
    "unsolvable",
    "wrong",
    "copy",
    "repeated",
    "leak",
    "held_out",
    "off_level",
]
"""Why a proposed task is not valid.

``truncated``: the reply was cut at its limit. ``unreadable``: it is not in the form that was asked for.
``no_variation``: the chosen operator finds no variation of the source task. ``unsolvable``: the task cannot
be executed, has no mode, or too many to count. ``wrong``: the solution that belongs to it is not right on it.
``copy``: it is the source task up to names and order. ``repeated``: likewise one that this run proposed
before, or too near to one. ``leak``: its text gives the answer away. ``held_out``: it is a task of a frozen
split that is not trained on. ``off_level``: more or less is to be answered than in its source.
"""
Form = Literal["template", "menu", "free", "card", "law"]
"""How it was made: an operator drawn at random or chosen by the policy, a text of its own, a card, or a draw
from the law of the level."""


@dataclass(frozen=True)
class Proposal:
    """One proposed task and what became of it.

    Attributes:
        form: how it was made.
        domain, level: of the task.
        valid: it passed every executable check.
        failure: the first check that it did not pass; None when valid.
        text: what the policy wrote; of a drawn operator its name.
        source_task: id of the task that it varies; None without any.
        operator: the operator that made it; None where none did.
        reference: what the verifiers execute answers against; None where there is no such task.
        size: rollouts that were asked to solve it; None where it was not asked.
        correct: how many of them were right; None likewise.
        modes: distinct modes among the right ones; None likewise.
        reward: what the writer is paid; None where nothing is trained on it.
        quality, reliability, teachability, novelty, difficulty: of a card (SynCo, arXiv:2610.11345): scores
            in [0, 1], and the difficulty that the writer states; None elsewhere.
    """

    form: Form
    domain: str
    level: int
    valid: bool
    failure: Failure | None
    text: str
    source_task: str | None = None
    operator: str | None = None
    reference: Mapping[str, Any] | None = None
    size: int | None = None
    correct: int | None = None
    modes: int | None = None
    reward: float | None = None
    quality: float | None = None
    reliability: float | None = None
    teachability: float | None = None
    novelty: float | None = None
    difficulty: str | None = None

    def record(self, step: int, part: str) -> dict[str, Any]:
        """The line of the log, JSON-ready."""
        return {"step": step, "part": part, **asdict(self)}


def proposal_metrics(proposals: Sequence[Proposal]) -> dict[str, float | None]:
    """What is logged of the tasks that a part proposed in a step.

    Returns:
        proposed (how many), valid (share), failure/KIND (how many of each), and the means of quality,
        reliability, teachability and novelty over those that have them, else None.
    """
    failures = Counter(proposal.failure for proposal in proposals)
    scores = ("quality", "reliability", "teachability", "novelty")
    return {
        "proposed": float(len(proposals)),
        "valid": _mean([proposal.valid for proposal in proposals]),
        **{f"failure/{kind}": float(failures[kind]) for kind in get_args(Failure)},
        **{name: _mean([getattr(proposal, name) for proposal in proposals]) for name in scores},
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean of those that are defined."""
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None
