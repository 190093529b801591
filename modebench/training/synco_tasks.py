"""Where the tasks of SynCo come from when nobody writes cards: the law of a level, or another run.

Both are controls: what is drawn from a law passes the same gates as a card (``random``); what another run
trained on is dealt anew over the steps, so that its tasks stay and their timing goes (``static``).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modebench.domains import get_domain
from modebench.errors import InputError, UsageError
from modebench.proposals import proposal_lines
from modebench.synthesis.cards import Checked, Gates
from modebench.tasks import Task
from modebench.training.proposals import PROPOSALS, Proposal
from modebench.variation import get_variation


def proposed_task(domain: str, level: int, identity: str, checked: Checked) -> Task:
    """A proposed task as solvers are asked it, in the domain's own words; nothing else of it is shown."""
    assert checked.reference is not None  # a valid one has a reference
    problem = get_domain(domain).problem(checked.reference, level)
    return Task(identity, domain, level, "synthetic", problem, checked.reference, checked.modes)


def drawn(
    seed: int, step: int, domain: str, level: int, count: int, gates: Gates
) -> list[tuple[str, Checked]]:
    """Tasks of a law, as text and as they pass the gates, which take note of those that do.

    Args:
        seed: of the run.
        step: number of the step, from 1.
        domain, level: of the law.
        count: how many are drawn.
        gates: what they must pass.
    """
    rng = random.Random(f"{seed}|synco|{step}")
    found = []
    for _ in range(count):
        text = get_variation(domain).write(get_domain(domain).generate(rng, level))
        checked = gates.check(text, domain, level)
        if checked.rejection is None:
            gates.recent.add(domain, text)
        found.append((text, checked))
    return found


Pool = tuple[tuple[Proposal, ...], ...]
"""The valid tasks of a run, a tuple a step."""


def read_pool(folder: Path, tasks: Sequence[Task]) -> Pool:
    """What another run with a method that makes tasks trained on.

    Args:
        folder: of the run.
        tasks: what this run is given; all tasks of the pool must be of their domains and levels.

    Raises:
        InputError: a line that is not a proposal, or of another domain or level.
        UsageError: there is no valid task.
    """
    path = folder / PROPOSALS
    cells = {(task.domain, task.level) for task in tasks}
    steps: dict[int, list[Proposal]] = {}
    for record in proposal_lines(path):
        line, step, _ = record.pop("line"), record.pop("step"), record.pop("part")
        proposal = Proposal(**record)
        if step < 1:
            raise InputError(path, line, "step", f"is {step!r}, expected a step")
        if proposal.valid:
            _check(proposal, path, line, cells)
            steps.setdefault(step, []).append(proposal)
    if not steps:
        raise UsageError(f"synco.pool: {folder} has no valid task")
    return tuple(tuple(steps.get(step, ())) for step in range(1, max(steps) + 1))


def _check(proposal: Proposal, path: Path, line: int, cells: set[tuple[str, int]]) -> None:
    if (proposal.domain, proposal.level) not in cells:
        cell = f"{proposal.domain} level {proposal.level}"
        raise InputError(path, line, "domain", f"is {cell}, which this run does not train on")
    try:
        get_variation(proposal.domain).write(_reference(proposal))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(path, line, "reference", f"cannot be executed ({reason})") from None


def _reference(proposal: Proposal) -> Mapping[str, Any]:
    return proposal.reference or {}


def dealt(pool: Pool, seed: int, step: int) -> list[Proposal]:
    """The tasks of a step: as many as the other run had in it, of all that it had, in a shuffled order.

    Every pass over the steps of the pool deals all its tasks once, in an order of its own.

    Args:
        pool: of `read_pool`.
        seed: of this run.
        step: number of the step, from 1.
    """
    epoch, place = divmod(step - 1, len(pool))
    tasks = [proposal for own in pool for proposal in own]
    random.Random(f"{seed}|synco|pool|{epoch}").shuffle(tasks)
    first = sum(map(len, pool[:place]))
    return tasks[first : first + len(pool[place])]
