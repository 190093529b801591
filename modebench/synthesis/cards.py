"""The gates of a card: what it takes to be a task, and how good a one it is.

SynCo (Yang et al. 2026, arXiv:2610.11345) and its released code score a card by rules on its text: schema,
problem, answer, format and novelty; a card is valid where the first is complete and the others are high
enough. The rules and weights are kept, but what problem and answer score is executed here: the problem is
the compact text of a task (`modebench.variation`), which must be read and have a mode, and the verifier
decides on its answer. Where the released code has nothing to set against a wrong answer that is written
well, a solvable problem with a wrong answer scores one half here: it can be trained on, as the verifier
needs no answer, and it pays its writer nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from modebench.domains.base import Reference
from modebench.synthesis.compact import CARD_FIELDS
from modebench.synthesis.novelty import HeldOut, Recent
from modebench.variation import CompactError, NotExecutable, Unsolvable, get_variation
from modebench.variation.base import mode_of
from modebench.verifiers.verdict import InvalidReference

Rejection = Literal["unreadable", "unsolvable", "leak", "held_out", "repeated"]
"""Why a card is no task: no JSON, fields missing or no compact text; no mode, or limits exceeded; the answer
stands in the problem; a task of a held-out split; too near to a recent task."""

WEIGHTS = {"schema": 0.30, "problem": 0.30, "answer": 0.25, "format": 0.05, "novelty": 0.10}
"""Of the scores in the quality of a card, as in the released code."""
LEAST_NOVELTY = 0.3
"""Novelty of a valid card at least, likewise; its schema must be complete, and problem and answer have at
least a half."""

DIFFERENT = 0.7
"""Score of a final answer that is not the solution's, likewise."""

_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?```\s*", re.DOTALL)


@dataclass(frozen=True)
class Checked:
    """What became of the text of a task.

    Attributes:
        rejection: why it cannot be trained on; None where it can.
        reference: as the verifier executes it; None where it cannot be executed or has no mode.
        modes: how many it has, exactly; None likewise.
        novelty: see `modebench.synthesis.novelty.Recent.novelty`; None likewise.
    """

    rejection: Rejection | None
    reference: Reference | None = None
    modes: int | None = None
    novelty: float | None = None


@dataclass(frozen=True)
class Gates:
    """What the text of a task must pass, at one moment of a run.

    Attributes:
        recent: tasks that it must differ from.
        held_out: tasks that it must not be; None where there are none.
    """

    recent: Recent
    held_out: HeldOut | None = None

    def check(self, text: str, domain: str, level: int) -> Checked:
        """Execute the compact text of a task; the same outcome whenever the same is remembered."""
        variation = get_variation(domain)
        try:
            reference = variation.parse(text)
            modes = variation.validate(reference, level)
            novelty = self.recent.novelty(domain, reference)
        except (NotExecutable, InvalidReference, Unsolvable):
            return Checked("unsolvable")
        except CompactError:
            return Checked("unreadable")
        rejection: Rejection | None = None
        if shows_answer(domain, reference):
            rejection = "leak"
        elif self.held_out is not None and self.held_out.holds(domain, level, reference):
            rejection = "held_out"
        elif novelty < LEAST_NOVELTY:
            rejection = "repeated"
        return Checked(rejection, reference, modes, novelty)


@dataclass(frozen=True)
class CardGrade:
    """What a card is worth, its effect on the learner apart.

    Attributes:
        task: what its problem is.
        fields: those of the nine that are filled.
        rejection: why it is no task; None where it is valid.
        schema: share of the nine fields that are filled.
        problem: 1 for a task that is read, keeps the limits, has a mode and does not show its answer, else 0.
        answer: 1 where solution and final answer are right and of one mode, .7 where they are right and
            differ, a half where the problem alone is sound, else 0.
        format: 1 where the reply is the JSON object and nothing else.
        novelty: distance from recent tasks, 0 where there is no task.
    """

    task: Checked = Checked("unreadable")
    fields: Mapping[str, str] = field(default_factory=dict)
    rejection: Rejection | None = "unreadable"
    schema: float = 0.0
    problem: float = 0.0
    answer: float = 0.0
    format: float = 0.0
    novelty: float = 0.0

    @property
    def valid(self) -> bool:
        """Whether it can be trained on."""
        return self.rejection is None

    @property
    def quality(self) -> float:
        """In [0, 1]: the weighted scores."""
        return sum(weight * float(getattr(self, name)) for name, weight in WEIGHTS.items())

    @property
    def reliability(self) -> float:
        """In [0, 1]: how far the stated answer can be believed."""
        return self.answer


def grade_card(reply: str, domain: str, level: int, gates: Gates) -> CardGrade:
    """Execute what a card says; the same grade whenever the same is remembered.

    Args:
        reply: of the writer.
        domain, level: of the task that was asked for.
        gates: what the task must pass.
    """
    found = _read(reply)
    if found is None:
        return CardGrade()
    card, bare = found
    fields = {name: text for name in CARD_FIELDS if isinstance(text := card.get(name), str) and text.strip()}
    task = gates.check(fields.get("problem", ""), domain, level)
    sound = task.reference is not None and task.rejection != "leak"
    complete = len(fields) == len(CARD_FIELDS)
    return CardGrade(
        task,
        fields,
        task.rejection if complete else "unreadable",
        schema=len(fields) / len(CARD_FIELDS),
        problem=float(sound),
        answer=_answer(fields, domain, level, task.reference if sound else None),
        format=float(bare),
        novelty=task.novelty or 0.0,
    )


def shows_answer(domain: str, reference: Reference) -> bool:
    """Whether nothing is left to find: no vertex is hidden, there is a single number, x stands alone."""
    if domain == "graph_coloring":
        return None not in (reference.get("partial_colors") or [None])
    if domain == "countdown":
        return len(reference["numbers"]) == 1
    if domain == "mathir":
        sides = reference["initial_lhs"], reference["initial_rhs"]
        return "x" in sides and not all("x" in side for side in sides)
    return False


def _read(reply: str) -> tuple[dict[str, Any], bool] | None:
    """The JSON object of a reply, and whether it stands bare; a code fence around it is taken off."""
    fenced = _FENCE.fullmatch(reply)
    try:
        card = json.loads(fenced[1] if fenced else reply)
    except (ValueError, RecursionError):
        return None
    return (card, fenced is None) if isinstance(card, dict) else None


def _answer(fields: Mapping[str, str], domain: str, level: int, reference: Reference | None) -> float:
    if reference is None:
        return 0.0
    given = [fields.get(name, "") for name in ("solution", "final_answer")]
    solution, final = (mode_of(domain, reference, level, text) for text in given)
    if solution is None or final is None:
        return 0.5
    return 1.0 if solution == final else DIFFERENT
