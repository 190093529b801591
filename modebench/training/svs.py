"""SVS: the policy varies the tasks that it half solves, and learns from all of it (Liang et al. 2025,
arXiv:2508.14029, and its released code).

A step has the groups of its own tasks, of n rollouts each.

1. Band. Tasks with lower n <= right rollouts <= upper n (.125 and .5).
2. Synthesis. For every right rollout of those the policy is asked n times for a task around it, and is shown
   the solution, not the task.
3. Solving. Every task that was made has n rollouts.
4. Reward. What wrote it is paid 1 if .125 n <= right rollouts <= .625 n, else 0.
5. Update. One, on the mixed groups of the own tasks, the groups of written tasks with a rewarded one in
   them, and the mixed groups of the made tasks. Where no task was made it is left out.

In mathematics a made problem inherits the old answer unchecked. Here it is executed (``check=executed``): a
task that cannot be read or executed, on which the solution is not right, that is a copy of its source, of one
of the last `window` tasks that this run made or of a held-out one, is refused: nobody is asked to solve it,
and what wrote it is paid `invalid_reward`. Copies within a step are asked once and paid alike. ``inherited``
does as is done in mathematics: whatever can be read is asked, and an answer is right when it is right on the
source task; the log still says what execution would have. Held-out tasks are refused there too.

The task is made by the policy's own text (``free``), by an operator that the policy chooses (``menu``), or by
one that is drawn (``template``), with no policy to learn; ``none`` makes none, which leaves GRPO on mixed
groups. A run generates more than its own tasks' rollouts: compare at an equal `budget`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from modebench.errors import UsageError
from modebench.prompts import build_messages
from modebench.synthesis.compact import read_menu
from modebench.synthesis.novelty import HeldOut
from modebench.synthesis.variants import Variant, from_operator, from_text
from modebench.synthesis.writing import free_messages, menu_messages, reply_of, shown_solution
from modebench.training.batch import Group, Rollout, Row
from modebench.training.combining import BASELINE, GRADED_REWARDS, MADE_TASKS, MIXED_ONLY
from modebench.training.draws import draws
from modebench.training.part import Asked, Encode, Part, Sample, TokenWeight
from modebench.training.proposals import Failure, Proposal
from modebench.variation import get_variation
from modebench.verifiers.reference import canonical_text

if TYPE_CHECKING:
    from modebench.tasks import Task

_SLACK = 1e-9


def in_band(count: int, size: int, lower: float, upper: float) -> bool:
    """Whether so many of `size` are at least the share `lower` and at most the share `upper`.

    >>> [in_band(count, 8, 0.125, 0.625) for count in range(9)]
    [False, True, True, True, True, True, False, False, False]
    """
    return ceil(lower * size - _SLACK) <= count <= floor(upper * size + _SLACK)


@dataclass(frozen=True)
class Source:
    """A right solution around which tasks are made."""

    task: Task
    size: int
    solution: str


@dataclass(frozen=True)
class Draft:
    """A task that was made, before it is asked.

    Attributes:
        source: what it was made around.
        variant: the task, and what its own checks say.
        text: what the policy wrote; of a drawn operator its name.
        failure: the first check that it does not pass.
        key: what its copies have in common; None where it is not asked.
        is_copy: it was made earlier in the step.
    """

    source: Source
    variant: Variant
    text: str
    failure: Failure | None = None
    key: str | None = None
    is_copy: bool = False


@dataclass
class Synthesis:
    """What is remembered of the made tasks.

    Attributes:
        seed, updates: what seeds the draws of operators.
        known: the last made tasks, as `Draft.key` has them, oldest first.
        held_out: tasks that nobody trains on; None before `Svs.prepare`, and no checkpoint holds them.
        proposals, sources: of the present step.
    """

    seed: int
    updates: int = 0
    known: dict[str, None] = field(default_factory=dict)
    held_out: HeldOut | None = None
    proposals: list[Proposal] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def is_held_out(self, source: Task, variant: Variant) -> bool:
        """Whether nobody trains on a task."""
        if self.held_out is None or variant.reference is None:
            return False
        return self.held_out.holds(source.domain, source.level, variant.reference)

    def remember(self, keys: Sequence[str], window: int) -> None:
        """Enter new made tasks, and forget all but the last `window`."""
        known = [*self.known, *keys]
        self.known = dict.fromkeys(known[max(0, len(known) - window) :])

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"seed": self.seed, "updates": self.updates, "known": list(self.known)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.seed, self.updates = saved["seed"], saved["updates"]
        self.known = dict.fromkeys(saved["known"])


@dataclass(frozen=True)
class Svs(Part):
    """Tasks around the policy's own solutions.

    Attributes:
        form: who makes the tasks; see the module.
        lower, upper: the band, as shares of a group, both inclusive.
        reward_lower, reward_upper: shares of right rollouts between which a made task is rewarded, likewise.
        max_solutions: right rollouts of a task that are varied, the first ones; None for all.
        problems: tasks that are made around a solution; None for as many as the task has rollouts.
        solutions: rollouts of a made task; None likewise.
        max_length: tokens of a reply at most; None for the run's max_completion_length.
        learn: train on the groups of written tasks.
        check: what a made task must pass; see the module.
        invalid_reward: what is paid for a refused one; the authors' text has -1, their code 0.
        empty: what becomes of a step in which no task was made: ``skip`` leaves the update out, ``train``
            makes it on the own tasks.
        window: made tasks, the last ones, of which no copies are made.
    """

    name: ClassVar[str] = "svs"
    makes_tasks: ClassVar[bool] = True
    headline: ClassVar[Mapping[str, str]] = {
        "svs/valid": "svs/proposed",
        "svs/with_gradient": "svs/groups",
        "svs/write/with_gradient": "svs/write/groups",
    }
    form: Literal["free", "menu", "template", "none"] = "free"
    lower: float = 0.125
    upper: float = 0.5
    reward_lower: float = 0.125
    reward_upper: float = 0.625
    max_solutions: int | None = None
    problems: int | None = None
    solutions: int | None = None
    max_length: int | None = None
    learn: bool = True
    check: Literal["executed", "inherited"] = "executed"
    invalid_reward: float = 0.0
    empty: Literal["skip", "train"] = "skip"
    window: int = 4096

    def __post_init__(self) -> None:
        for low, high in (("lower", "upper"), ("reward_lower", "reward_upper")):
            if not 0 <= getattr(self, low) <= getattr(self, high) <= 1:
                raise UsageError(
                    f"svs.{low} and svs.{high} must be shares, the first not above the second, not "
                    f"{getattr(self, low)} and {getattr(self, high)}"
                )
        for option, least in (
            ("max_solutions", 1),
            ("problems", 2),
            ("solutions", 2),
            ("max_length", 1),
            ("window", 0),
        ):
            value = getattr(self, option)
            if value is not None and value < least:
                raise UsageError(f"svs.{option} must be at least {least}, not {value}")
        if self.invalid_reward > 0:
            raise UsageError(f"svs.invalid_reward must not be above 0, not {self.invalid_reward}")

    @property
    def provides(self) -> frozenset[str]:
        graded = {GRADED_REWARDS} if self.invalid_reward else set()
        return frozenset({MADE_TASKS, MIXED_ONLY, *graded})

    @property
    def refuses(self) -> Mapping[str, str]:
        return {MADE_TASKS: "one part of a method makes tasks"}

    @property
    def requires(self) -> Mapping[str, str]:
        return {BASELINE: "a written task is worth what it is paid over others around the same solution"}

    def state(self, seed: int) -> Synthesis:
        return Synthesis(seed)

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Synthesis) -> None:
        """Find the tasks that must not be made.

        Raises:
            UsageError: a domain without variations.
        """
        try:
            for domain in dict.fromkeys(task.domain for task in tasks):
                get_variation(domain)
            state.held_out = HeldOut(task.domain for task in tasks)
        except ValueError as error:
            raise UsageError(f"svs: {error}") from None

    def proposals(self, state: Synthesis) -> Sequence[Proposal]:
        return state.proposals

    def extend(self, groups: list[Group], sample: Sample, state: Synthesis) -> list[Group]:
        state.updates += 1
        state.proposals, state.sources = [], []
        mixed = [group for group in groups if group.mixed]
        if self.form == "none":
            return mixed
        state.sources = self._sources(groups)
        written, made = self._made(state, sample)
        drafts = self._checked(made, state)
        asked = {draft.key: draft for draft in drafts if draft.key is not None and not draft.is_copy}
        groups_of_made = sample([self._ask(draft, sample.profile) for draft in asked.values()])
        answers = dict(zip(asked, groups_of_made, strict=False))
        state.remember([key for key in answers if key is not None], self.window)
        rewards = [self._reward(draft, answers) for draft in drafts]
        state.proposals = [
            self._proposal(draft, answers, reward) for draft, reward in zip(drafts, rewards, strict=True)
        ]
        if not answers:
            return mixed if self.empty == "train" else []
        paid = _paid(written, rewards) if self.learn else []
        return [*mixed, *paid, *(group for group in answers.values() if group.mixed)]

    def _sources(self, groups: Sequence[Group]) -> list[Source]:
        """The right solutions of the tasks in the band."""
        found = []
        for group in groups:
            right = [rollout for rollout in group.rollouts if rollout.reward > 0]
            if in_band(len(right), group.size, self.lower, self.upper):
                shown = [shown_solution(group.task, rollout.text, rollout.mode) for rollout in right]
                answers = [answer for answer in shown if answer is not None]
                found += [Source(group.task, group.size, answer) for answer in answers[: self.max_solutions]]
        return found

    def _made(self, state: Synthesis, sample: Sample) -> tuple[list[Group], list[Draft]]:
        """The groups that were asked for tasks, and a draft for each of their rollouts, in order."""
        drafts = []
        if self.form == "template":
            for place, source in enumerate(state.sources):
                for number in range(self.problems or source.size):
                    drafts.append(self._drawn(source, _generator(state, place, number)))
            return [], drafts
        messages = menu_messages if self.form == "menu" else free_messages
        written = sample(
            [
                Asked(
                    source.task,
                    self.problems or source.size,
                    messages=messages(sample.profile, source.task, source.solution),
                    purpose="write",
                    max_tokens=self.max_length,
                )
                for source in state.sources
            ]
        )
        for place, (source, group) in enumerate(zip(state.sources, written, strict=False)):
            for number, rollout in enumerate(group.rollouts):
                variant = self._read(source, rollout, sample.profile, _generator(state, place, number))
                drafts.append(Draft(source, variant, rollout.text))
        return written, drafts

    def _drawn(self, source: Source, generator: random.Random) -> Draft:
        """A task by an operator that is drawn among all of the domain."""
        name = generator.choice(get_variation(source.task.domain).operators).name
        return Draft(source, from_operator(generator, name, source.task, source.solution), name)

    def _read(self, source: Source, rollout: Rollout, profile: str, generator: random.Random) -> Variant:
        """The task that a reply makes; it depends on nothing but this reply."""
        if rollout.finish_reason == "length":
            return Variant("truncated")
        reply = reply_of(profile, rollout.text)
        if self.form == "free":
            return from_text(source.task, source.solution, reply)
        try:
            name = read_menu(source.task.domain, reply)
        except ValueError:
            return Variant("unreadable")
        return from_operator(generator, name, source.task, source.solution)

    def _checked(self, drafts: Sequence[Draft], state: Synthesis) -> list[Draft]:
        """The drafts, each with its verdict, and with a key where it is to be asked."""
        found: list[Draft] = []
        seen: set[str] = set()
        for draft in drafts:
            variant, task = draft.variant, draft.source.task
            failure: Failure | None = variant.failure
            key = None
            if state.is_held_out(task, variant):
                failure = failure or "held_out"
            elif self.check == "inherited" and variant.reference is not None:
                key = f"{task.id}|{canonical_text(variant.reference)}"
            elif failure is None:
                key = f"{task.domain}|{variant.form}"
                if key in state.known:
                    key, failure = None, "repeated"
            is_copy = key is not None and key in seen
            seen |= set() if key is None else {key}
            failure = failure or ("repeated" if is_copy else None)
            found.append(replace(draft, failure=failure, key=key, is_copy=is_copy))
        return found

    def _ask(self, draft: Draft, profile: str) -> Asked:
        """How a made task is asked: as any task, or judged by the source task whose answer it inherits."""
        source = draft.source
        identity = f"{self.name}/{hashlib.sha256(str(draft.key).encode()).hexdigest()[:16]}"
        made = draft.variant.as_task(identity, source.task)
        size = self.solutions or source.size
        if self.check == "executed":
            return Asked(made, size)
        inherits = replace(source.task, id=identity, problem=made.problem)
        return Asked(inherits, size, messages=build_messages(made, profile))

    def _reward(self, draft: Draft, answers: Mapping[str, Group]) -> float | None:
        """What a made task is worth; None where the budget ended before it was asked."""
        if draft.key is None:
            return self.invalid_reward
        if draft.key not in answers:
            return None
        group = answers[draft.key]
        return float(in_band(_right(group), group.size, self.reward_lower, self.reward_upper))

    def _proposal(self, draft: Draft, answers: Mapping[str, Group], reward: float | None) -> Proposal:
        """The line of the log; what copies of a task were answered stands at the first."""
        group = None if draft.key is None or draft.is_copy else answers.get(draft.key)
        modes = {rollout.mode for rollout in group.rollouts if rollout.reward > 0} if group else set()
        assert self.form != "none"  # nothing is made there
        return Proposal(
            form=self.form,
            domain=draft.source.task.domain,
            level=draft.source.task.level,
            valid=draft.failure is None,
            failure=draft.failure,
            text=draft.text,
            source_task=draft.source.task.id,
            operator=draft.variant.operator,
            reference=draft.variant.reference,
            size=None if group is None else group.size,
            correct=None if group is None else _right(group),
            modes=None if group is None else len(modes),
            reward=None if self.form == "template" else reward,
        )

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Synthesis
    ) -> dict[str, float | None]:
        """How many right solutions were varied, and of how many tasks."""
        return {
            "svs/sources": float(len(state.sources)),
            "svs/source_tasks": float(len({source.task.id for source in state.sources})),
        }


def _generator(state: Synthesis, place: int, number: int) -> random.Random:
    """The random numbers of one made task of the present update."""
    drawn = draws(state.seed, Svs.name, state.updates, place, number)
    return random.Random(int(drawn.integers(2**63)))


def _right(group: Group) -> int:
    return sum(rollout.reward > 0 for rollout in group.rollouts)


def _paid(written: Sequence[Group], rewards: Sequence[float | None]) -> list[Group]:
    """The groups of written tasks with their rewards: those in which all is known and something is rewarded.

    Args:
        written: the groups.
        rewards: of their rollouts, group after group.
    """
    found, start = [], 0
    for group in written:
        own = rewards[start : start + group.size]
        start += group.size
        known = [reward for reward in own if reward is not None]
        if len(known) == group.size and max(known) > 0:
            members = zip(group.rollouts, known, strict=True)
            paid = tuple(replace(rollout, reward=reward) for rollout, reward in members)
            found.append(replace(group, rollouts=paid))
    return found
