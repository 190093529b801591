"""Coach prefixes: a method's name and one sentence about it, put before a task, in place of a hint.

Mesh Learning (arXiv:2610.02835) asks every training task once with each of m prefixes that name different
ways to go about it. Here they are by rule, the four strategies of a domain (`modebench.strategies`), or a
model's. Its authors found that a policy copies a coach that says too much, so a prefix holds no computation
and no answer, and a wrapper calls it an unverified suggestion; the tiny policy, which cannot read that, gets
the bare sentence.

A prefix must not hold an answer. `leaked` runs the verifier on every stretch of the text that begins and ends
with a word, a number or a sign; a stretch that starts inside a word is not taken for an answer.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from modebench.errors import UsageError
from modebench.probing import Prefix
from modebench.runs import json_line
from modebench.strategies import STRATEGIES
from modebench.tasks import Task
from modebench.verifiers import verify

Control = Literal["none", "shuffled", "identical", "empty", "nonsense"]
CONTROLS: tuple[Control, ...] = ("none", "shuffled", "identical", "empty", "nonsense")
"""What stands in place of the strategies: those of another domain, the first one for all, no text, or
meaningless words of the same lengths. Names and number of the prefixes stay."""

STRATEGIES_A_TASK = 4
WRAPPER = (
    "An unverified suggestion, which may be wrong or not apply here: {advice}\n"
    "Check that it applies before you use it; else go about the problem in your own way."
)
_PIECE = re.compile(r"[A-Za-z_]+|\d+|\S")
_LONGEST = 512
"""Characters of a candidate without a box that any domain reads."""


def wrapped(advice: str, profile: str) -> str:
    """The text of a prefix for a prompt profile: in the wrapper, bare for ``compact``; no text stays none."""
    return advice if profile == "compact" or not advice else WRAPPER.format(advice=advice)


def by_rule(
    cells: Iterable[tuple[str, int]], profile: str, control: Control = "none", seed: int = 0
) -> list[Prefix]:
    """The strategies of every cell as prefixes.

    Args:
        cells: domain and level of each.
        profile: prompt profile that they are for.
        control: see `CONTROLS`.
        seed: of the meaningless words.

    Raises:
        UsageError: a domain without strategies.
    """
    return [
        Prefix(name, wrapped(advice, profile), domain=domain, level=level)
        for domain, level in cells
        for name, advice in _advices(domain, control, seed)
    ]


def _advices(domain: str, control: Control, seed: int) -> list[tuple[str, str]]:
    """Name and advice of every strategy of a domain, or of its control."""
    if domain not in STRATEGIES:
        raise UsageError(f"there are no strategies for {domain}; let a model write them (--coach MODEL)")
    own = STRATEGIES[domain]
    names = [strategy.name for strategy in own]
    texts = [strategy.advice for strategy in own]
    if control == "shuffled":
        domains = list(STRATEGIES)
        other = domains[(domains.index(domain) + 1) % len(domains)]
        texts = [strategy.advice for strategy in STRATEGIES[other]]
    elif control == "identical":
        texts = texts[:1] * len(texts)
    elif control == "empty":
        texts = [""] * len(texts)
    elif control == "nonsense":
        texts = [_nonsense(text, random.Random(f"{seed}|{domain}|{text}")) for text in texts]
    return list(zip(names, texts, strict=True))


def _nonsense(text: str, rng: random.Random) -> str:
    """The text with another small letter for every letter and digit."""
    return re.sub(r"[A-Za-z0-9]", lambda _: rng.choice(string.ascii_lowercase), text)


def leaked(text: str, task: Task) -> str | None:
    """A stretch of the text that the verifier accepts as an answer to the task; None where there is none."""
    pieces = list(_PIECE.finditer(text))
    tried: set[str] = set()
    for place, first in enumerate(pieces):
        for last in pieces[place:]:
            stretch = text[first.start() : last.end()]
            if len(stretch) > _LONGEST:
                break
            if stretch not in tried and verify(task, stretch).status == "correct":
                return stretch
            tried.add(stretch)
    return None


def check_leaks(prefixes: Sequence[Prefix], tasks: Iterable[Task]) -> None:
    """Refuse prefixes that hold an answer to a task that they are for.

    Raises:
        UsageError: the first that does; names task, prefix and answer.
    """
    for task in tasks:
        for prefix in prefixes:
            if prefix.applies(task) and (answer := leaked(prefix.text, task)) is not None:
                raise UsageError(f"prefix {prefix.name!r} holds the answer {answer!r} of {task.id}")


def write_prefixes(path: Path, prefixes: Iterable[Prefix]) -> None:
    """Write a file that `modebench.probing.read_prefixes` reads."""
    with path.open("xb") as file:
        for prefix in prefixes:
            scope: dict[str, object] = {"domain": prefix.domain, "level": prefix.level}
            if prefix.task_id is not None:
                scope = {"task_id": prefix.task_id}
            file.write(json_line({**scope, "name": prefix.name, "prefix": prefix.text}))
