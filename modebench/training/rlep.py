"""RLEP: verified responses of earlier policies are credited and trained in the group (Zhang et al. 2025,
arXiv:2507.07451).

Every group of G rollouts gets `count` right responses to the same task from a pool, drawn without
replacement, the same response as often as it is stored. Advantages are over all G + count rewards, so a
stored response is worth the more the fewer rollouts were right, and nothing where all were; the average of
the loss is over all of them too. The ratio of a stored response starts at 1: its old log-probabilities are
those of the present policy, without correction for the policy that wrote it.

The pool is ``offline``, read from a run folder of the harness, whose responses are verified again; or it
is ``online``: what the run itself solved, from the update after it on, every success counted. Where a task
has fewer than `count` responses those are used, or with ``incomplete=none`` none; the released code seems
to fill the group with empty responses, which then count as wrong. With ``mean_centered`` advantages and a
constant length this is the RLEP-Dr of arXiv:2610.11064, but for its loss on stored responses, which has no
clipping: the same thing with one update a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from modebench.errors import InputError, UsageError
from modebench.training.batch import TASKS, Group, Rollout
from modebench.training.combining import BASELINE, FOREIGN_ROLLOUTS
from modebench.training.draws import draws
from modebench.training.part import Credit, Encode, Part, Stage

if TYPE_CHECKING:
    from modebench.tasks import Task

Stored = tuple[tuple[int, ...], str | None]
"""Tokens of a right response, and its mode."""


@dataclass
class Pool:
    """Right responses by task id, with how often each was found.

    Attributes:
        seed, updates: what seeds the draws.
        responses: the pool.
        pending: found in the present update; in the pool from the next one on.
        source: SHA-256 of the file of an offline pool, which a checkpoint names in place of its responses.
    """

    seed: int
    updates: int = 0
    responses: dict[str, Counter[Stored]] = field(default_factory=dict)
    pending: list[tuple[str, Stored]] = field(default_factory=list)
    source: str | None = None

    def observe(self, groups: Sequence[Group]) -> None:
        """Begin an update; of an online pool, take in what the last one found."""
        self.updates += 1
        if self.source is not None:
            return
        for task, stored in self.pending:
            self.responses.setdefault(task, Counter())[stored] += 1
        self.pending = [
            (group.task.id, (rollout.token_ids, rollout.mode))
            for group in groups
            for rollout in group.rollouts
            if group.source == TASKS and rollout.reward > 0  # a task that was made never comes again
        ]

    def draw(self, task: str, count: int) -> list[Stored]:
        """At most `count` responses to a task; within an update always the same ones."""
        found = list(self.responses.get(task, Counter()).elements())
        if not found:
            return []
        random = draws(self.seed, Rlep.name, self.updates, task)
        return [found[place] for place in random.choice(len(found), min(count, len(found)), replace=False)]

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        online = self.responses if self.source is None else {}
        return {
            "seed": self.seed,
            "updates": self.updates,
            "source": self.source,
            "responses": {
                task: [[list(tokens), mode, times] for (tokens, mode), times in found.items()]
                for task, found in online.items()
            },
            "pending": [[task, list(tokens), mode] for task, (tokens, mode) in self.pending],
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            UsageError: the responses of the offline pool are others than when the run began.
        """
        if saved["source"] != self.source:
            raise UsageError("the responses in rlep.pool are not those that the run began with")
        self.seed, self.updates = saved["seed"], saved["updates"]
        self.pending = [(task, (tuple(tokens), mode)) for task, tokens, mode in saved["pending"]]
        if self.source is None:
            self.responses = {
                task: Counter({(tuple(tokens), mode): times for tokens, mode, times in found})
                for task, found in saved["responses"].items()
            }


def read_pool(folder: Path, tasks: Sequence[Task], encode: Encode) -> dict[str, Counter[Stored]]:
    """The right and whole responses of a run folder to these tasks, by task id.

    Raises:
        UsageError: there are none, or it is no run folder.
        InputError: a line that is not a response.
    """
    from modebench.grading import judge
    from modebench.runs import RunFolder, sample_key

    run = RunFolder.open(folder)
    known = {task.id: task for task in tasks}
    found: dict[str, Counter[Stored]] = {}
    for line, record in enumerate(run.responses(), 1):
        task = known.get(sample_key(record, run.responses_path, line)[0])
        if task is None or record.get("error") is not None or record.get("finish_reason") == "length":
            continue
        text = record.get("response")
        if not isinstance(text, str):
            raise InputError(run.responses_path, line, "response", "must be a text")
        verdict = judge(task, text, "published", True, record.get("finish_reason"))
        if verdict.status == "correct":
            found.setdefault(task.id, Counter())[encode(text), verdict.mode] += 1
    if not found:
        raise UsageError(f"rlep.pool: {folder} has no right response to a task that is trained on")
    return found


@dataclass(frozen=True)
class Rlep(Part):
    """Stored successes in the group.

    Attributes:
        count: responses that join a group.
        pool: a run folder; None: what the run itself solved.
        incomplete: what joins where fewer are stored.
    """

    name: ClassVar[str] = "rlep"
    stage: ClassVar[Stage] = Stage.ESTIMATE
    count: int = 2
    pool: str | None = None
    incomplete: Literal["fewer", "none"] = "fewer"

    def __post_init__(self) -> None:
        if self.count < 0:
            raise UsageError(f"rlep.count must not be negative, not {self.count}")
        if self.pool is not None and not (Path(self.pool) / "responses.jsonl").is_file():
            raise UsageError(f"rlep.pool must be a run folder with responses, and {self.pool} is none")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({FOREIGN_ROLLOUTS})

    @property
    def requires(self) -> Mapping[str, str]:
        return {BASELINE: "a stored response is worth what it has over the rollouts of its group"}

    def state(self, seed: int) -> Pool:
        return Pool(seed)

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Pool) -> None:
        """Read the offline pool.

        Raises:
            UsageError, InputError: see `read_pool`.
        """
        if self.pool is not None:
            from modebench.runs import RESPONSES, file_sha256

            state.responses = read_pool(Path(self.pool), tasks, encode)
            state.source = file_sha256(Path(self.pool) / RESPONSES)

    def observe(self, groups: Sequence[Group], state: Pool) -> None:
        state.observe(groups)

    def join(self, group: Group, state: Pool) -> tuple[Rollout, ...]:
        drawn = state.draw(group.task.id, self.count)
        if len(drawn) < self.count and self.incomplete == "none":
            return ()
        return tuple(
            Rollout(tokens, (), "", "stop", 0, 1.0, "correct", mode, origin=self.name)
            for tokens, mode in drawn
        )

    def credit_metrics(self, credits: Sequence[Credit], state: Pool) -> dict[str, float | None]:
        """Responses joined a group; prompts, responses and modes a prompt in the pool, and its PCMD: what
        replay can keep of the modes."""
        from modebench.analysis.diversity import pcmd

        joined = [sum(one.origin == self.name for one in each.group.rollouts) for each in credits]
        modes = [_modes(found) for found in state.responses.values()]
        diversity = [float(pcmd(list(counts.values()))) for counts in modes if counts]
        defined = [value for value in diversity if not np.isnan(value)]
        return {
            "rlep/joined": sum(joined) / len(joined) if joined else None,
            "rlep/pool_prompts": float(len(modes)),
            "rlep/pool_responses": float(sum(found.total() for found in state.responses.values())),
            "rlep/pool_modes": sum(map(len, modes)) / len(modes) if modes else None,
            "rlep/pool_pcmd": sum(defined) / len(defined) if defined else None,
        }


def _modes(found: Counter[Stored]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (_, mode), times in found.items():
        if mode is not None:
            counts[mode] += times
    return counts
