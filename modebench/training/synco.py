"""SynCo: a second policy writes the tasks that the first is trained on (Yang et al. 2026, arXiv:2610.11345).

Both begin as the same model and learn in the same step. The synthesizer writes `slots` cards from one
prompt, which says what came of the recent ones; a card whose problem passes the gates
(`modebench.synthesis.cards`) is a task, which the reasoner tries `size` times and is trained on, in a group
of its own. A card is paid Gate(quality) Gate(reliability) T(mu), or -0.5 where it was refused, and all cards
of a step, refused ones too, are one group. The reasoner is paid 1 for a right answer in the form that was
asked for, `unboxed` for one in another, else 0. As published it sees no other task.

Departures: gates are executed, not rules on text; the prompts of a step are one prompt, so the batch is the
context; both policies are sampled at the run's temperature from the whole vocabulary (published: .9 and 1,
top-p .95, which the likelihoods do not follow); the constant bonus for a reply that is not empty, which
cancels in the group, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from modebench.errors import UsageError
from modebench.prompts import is_canonical
from modebench.reasoning import split_reasoning
from modebench.runs import file_sha256
from modebench.sampling.base import Message
from modebench.synthesis.cards import CardGrade, Checked, Gates, grade_card
from modebench.synthesis.memory import Interaction, InteractionMemory
from modebench.synthesis.novelty import WINDOW, HeldOut, Recent
from modebench.synthesis.readable import card_messages
from modebench.synthesis.teaching import (
    REJECTED,
    additive_reward,
    gated_reward,
    mode_teachability,
    teachability,
)
from modebench.tasks import Task
from modebench.training.batch import Floats, Group, Rollout
from modebench.training.combining import (
    BASELINE,
    FOREIGN_ROLLOUTS,
    GRADED_REWARDS,
    MADE_TASKS,
    MIXED_ONLY,
    PREFIXES,
)
from modebench.training.part import Asked, Encode, Part, Sample
from modebench.training.proposals import PROPOSALS, Failure, Form, Proposal
from modebench.training.synco_tasks import Pool, dealt, drawn, proposed_task, read_pool
from modebench.variation import get_variation

SYNTHESIZER = "synthesizer"
"""Name of the second policy."""


@dataclass(frozen=True)
class Draft:
    """A proposed task before anybody tries it.

    Attributes:
        form: how it was made.
        domain, level: of the task.
        text: what was written.
        failure: why it is no task; None where it is.
        checked: what its problem is.
        grade: of a card.
    """

    form: Form
    domain: str
    level: int
    text: str
    failure: Failure | None
    checked: Checked
    grade: CardGrade | None = None


class Workshop:
    """What SynCo remembers.

    Args:
        seed: of the run.
        window: tasks that are remembered.

    Attributes:
        step: steps begun.
        examples: a task of every domain and level of the run; steps take them in turn.
        gates: what a written task must pass now.
        memory: what came of the last cards.
        contexts: the prompt of each example, as it was when last rebuilt.
        pool, source: tasks of another run and the SHA-256 of their file; empty and None without any.
        profile: prompt profile of the run.
        proposals: of the present step.
    """

    def __init__(self, seed: int, window: int) -> None:
        self.seed, self.step = seed, 0
        self.examples: list[Task] = []
        self.gates = Gates(Recent(window))
        self.memory = InteractionMemory()
        self.contexts: list[tuple[Message, ...]] = []
        self.pool: Pool = ()
        self.source: str | None = None
        self.profile = ""
        self.proposals: list[Proposal] = []

    def begin(self, profile: str, every: int) -> None:
        """Begin a step; every so many the contexts are written anew."""
        self.profile, self.proposals = profile, []
        if self.step % every == 0:
            self.contexts = [
                card_messages(profile, example, self.memory.report(example.domain, example.level))
                for example in self.examples
            ]
        self.step += 1

    @property
    def turn(self) -> int:
        """Whose turn it is among the examples."""
        return (self.step - 1) % len(self.examples)

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "seed": self.seed,
            "step": self.step,
            "recent": self.gates.recent.texts,
            "memory": self.memory.state_dict(),
            "contexts": [list(messages) for messages in self.contexts],
            "source": self.source,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises:
            UsageError: the tasks of the other run are not those that the run began with.
        """
        if saved["source"] != self.source:
            raise UsageError("the tasks in synco.pool are not those that the run began with")
        self.seed, self.step = saved["seed"], saved["step"]
        for domain, text in saved["recent"]:
            self.gates.recent.add(domain, text)
        self.memory.load_state_dict(saved["memory"])
        self.contexts = [tuple(messages) for messages in saved["contexts"]]


@dataclass(frozen=True)
class SynCo(Part):
    """Trains on tasks that are made in the run, and on no others.

    Attributes:
        source: who makes them. ``joint``: the synthesizer, which learns; ``frozen``: the synthesizer, which
            does not, told of its cards all the same; ``random``: the law of the level, through the same
            gates; ``static``: what another run trained on, at other steps. The last two have no second
            policy.
        pool: folder of that run.
        slots: cards, or tasks drawn, a step.
        size: rollouts of a task, K.
        slope: of T beyond a half.
        teach: what is taught. ``accuracy``: T(mu). ``modes``: T(mu) (1 + modes / K) / 2 (not published).
        pay: of a card: ``gated``, or the ``additive`` variant of the released code.
        unboxed: what a right answer in another form than the profile's is paid.
        keep: what is trained on: every ``valid`` task, or those that are ``teachable``, T > 0.
        window: tasks, the last ones, that a new one must differ from.
        every: steps between two contexts.
        max_tokens: of a card.
    """

    name: ClassVar[str] = "synco"
    makes_tasks: ClassVar[bool] = True
    headline: ClassVar[Mapping[str, str]] = {
        "synco/valid": "synco/proposed",
        "synco/mixed_groups": "synco/groups",
        "synco/with_gradient": "synco/groups",
    }
    source: Literal["joint", "frozen", "random", "static"] = "joint"
    pool: str | None = None
    slots: int = 32
    size: int = 4
    slope: float = 1.0
    teach: Literal["accuracy", "modes"] = "accuracy"
    pay: Literal["gated", "additive"] = "gated"
    unboxed: float = 0.9
    keep: Literal["valid", "teachable"] = "valid"
    window: int = WINDOW
    every: int = 5
    max_tokens: int = 6144

    def __post_init__(self) -> None:
        least = {"slots": 2, "size": 2, "slope": 0, "unboxed": 0, "window": 1, "every": 1, "max_tokens": 1}
        for option, value in least.items():
            if getattr(self, option) < value:
                raise UsageError(f"synco.{option} must be at least {value}, not {getattr(self, option)}")
        if self.unboxed > 1:
            raise UsageError(f"synco.unboxed must be at most 1, not {self.unboxed}")
        if (self.pool is not None) != (self.source == "static"):
            raise UsageError("synco.pool and synco.source=static go together")
        if self.pool is not None and not (Path(self.pool) / PROPOSALS).is_file():
            raise UsageError(
                f"synco.pool must be a training folder with {PROPOSALS}, and {self.pool} is none"
            )

    @property
    def agents(self) -> frozenset[str]:
        return frozenset({SYNTHESIZER} if self.source in ("joint", "frozen") else ())

    @property
    def provides(self) -> frozenset[str]:
        graded = self.unboxed < 1 or self.source == "joint"
        return frozenset({MADE_TASKS, *([GRADED_REWARDS] if graded else [])})

    @property
    def refuses(self) -> Mapping[str, str]:
        reason = "the run's own tasks are not asked, and no written one is asked twice"
        return {
            MADE_TASKS: "one part of a method makes tasks",
            **dict.fromkeys((PREFIXES, FOREIGN_ROLLOUTS, MIXED_ONLY), reason),
        }

    @property
    def requires(self) -> Mapping[str, str]:
        reason = "a card is worth what it is paid over the others of its step"
        return {BASELINE: reason} if self.source == "joint" else {}

    def state(self, seed: int) -> Workshop:
        return Workshop(seed, self.window)

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Workshop) -> None:
        """Find an example of every domain and level, what is held out, and the tasks of the other run.

        Raises:
            UsageError: a domain whose tasks have no compact text; see also `read_pool`.
            InputError: see `read_pool`.
        """
        cells: dict[tuple[str, int], Task] = {}
        for task in tasks:
            cells.setdefault((task.domain, task.level), task)
        state.examples = list(cells.values())
        try:
            for task in state.examples:
                get_variation(task.domain).write(task.reference)
        except ValueError as error:
            raise UsageError(f"synco: {error}") from None
        held_out = HeldOut(task.domain for task in state.examples)
        state.gates = replace(state.gates, held_out=held_out)
        if self.pool is not None:
            state.pool = read_pool(Path(self.pool), tasks)
            state.source = file_sha256(Path(self.pool) / PROPOSALS)

    def plan(self, asked: list[tuple[Task, int]], state: Workshop) -> list[tuple[Task, int]]:
        return []

    def least_rollouts(self, planned: int) -> int:
        return self.slots

    def extend(self, groups: list[Group], sample: Sample, state: Workshop) -> list[Group]:
        """The groups of the tasks of this step, and where the synthesizer learns that of its cards."""
        state.begin(sample.profile, self.every)
        written, drafts = self._drafts(sample, state)
        tasks = {
            number: proposed_task(draft.domain, draft.level, f"synco/{state.step}/{number}", draft.checked)
            for number, draft in enumerate(drafts)
            if draft.failure is None
        }
        answered = sample([Asked(task, self.size) for task in tasks.values()])
        by_draft = dict(zip(tasks, answered, strict=False))  # a budget may leave no room for the last
        for number, draft in enumerate(drafts):
            proposal = self._proposal(draft, by_draft.get(number))
            state.proposals.append(proposal)
            if draft.grade is not None:
                state.memory.add(_interaction(draft, proposal))
        trained = [
            group
            for number, group in by_draft.items()
            if self.keep == "valid" or (state.proposals[number].teachability or 0) > 0
        ]
        if self.source == "joint" and written is not None and len(answered) == len(tasks):
            trained.append(_paid(written, state.proposals))
        return [*groups, *trained]

    def proposals(self, state: Workshop) -> Sequence[Proposal]:
        return state.proposals

    def reward(self, group: Group, reward_G: Floats, state: Workshop) -> Floats:
        """1 for a right answer in the form that the prompt profile asks for, `unboxed` in another."""
        if group.source != self.name:
            return reward_G
        paid_G = reward_G.copy()
        for place, rollout in enumerate(group.rollouts):
            if not is_canonical(group.task, state.profile, rollout.text):
                paid_G[place] *= self.unboxed
        return paid_G

    def _drafts(self, sample: Sample, state: Workshop) -> tuple[Group | None, list[Draft]]:
        """What is proposed in a step; where it is cards, the group that wrote them too."""
        example = state.examples[state.turn]
        domain, level = example.domain, example.level
        if self.source == "static":
            return None, [_replayed(each) for each in dealt(state.pool, state.seed, state.step)]
        if self.source == "random":
            found = drawn(state.seed, state.step, domain, level, self.slots, state.gates)
            return None, [Draft("law", domain, level, text, each.rejection, each) for text, each in found]
        asked = Asked(
            example,
            self.slots,
            messages=state.contexts[state.turn],
            purpose="write",
            max_tokens=self.max_tokens,
            agent=SYNTHESIZER,
        )
        written = next(iter(sample([asked])), None)  # a budget may leave no room for it
        rollouts = () if written is None else written.rollouts
        return written, [_graded(rollout, domain, level, state) for rollout in rollouts]

    def _proposal(self, draft: Draft, group: Group | None) -> Proposal:
        """What became of a draft, given the reasoner's answers to it; None where it was not asked."""
        grade = draft.grade
        told: dict[str, Any] = {"novelty": draft.checked.novelty}
        if grade is not None:
            told |= {"quality": grade.quality, "reliability": grade.reliability, "novelty": grade.novelty}
            told |= {"difficulty": grade.fields.get("difficulty_estimate")}
        if group is not None:
            modes = {rollout.mode for rollout in group.rollouts if rollout.reward > 0}
            mu = float(group.reward_G.mean())
            told |= {"size": group.size, "correct": round(mu * group.size), "modes": len(modes)}
            told["teachability"] = (
                teachability(mu, self.slope)
                if self.teach == "accuracy"
                else mode_teachability(mu, len(modes), group.size, self.slope)
            )
        if grade is not None and (draft.failure is not None or group is not None):
            told["reward"] = self._pay(draft.failure, grade, told.get("teachability", 0.0))
        return Proposal(
            draft.form,
            draft.domain,
            draft.level,
            draft.failure is None,
            draft.failure,
            draft.text,
            reference=draft.checked.reference,
            **told,
        )

    def _pay(self, failure: Failure | None, grade: CardGrade, worth: float) -> float:
        """The reward of a card."""
        if failure is not None:
            return REJECTED
        if self.pay == "gated":
            return gated_reward(grade.quality, grade.reliability, worth)
        return additive_reward(
            quality=grade.quality,
            reliability=grade.reliability,
            worth=worth,
            novelty=grade.novelty,
            format=grade.format,
        )


def _graded(rollout: Rollout, domain: str, level: int, state: Workshop) -> Draft:
    """A card as it passes the gates, which take note of it; reasoning before it is taken off."""
    reply = rollout.text if state.profile == "compact" else split_reasoning(rollout.text).answer or ""
    grade = grade_card(reply, domain, level, state.gates)
    failure: Failure | None = "truncated" if rollout.finish_reason == "length" else grade.rejection
    if failure is None:
        state.gates.recent.add(domain, grade.fields["problem"])
    return Draft("card", domain, level, rollout.text, failure, grade.task, grade)


def _replayed(proposal: Proposal) -> Draft:
    """A task of another run, which passed the gates there."""
    checked = Checked(None, proposal.reference)
    return Draft(proposal.form, proposal.domain, proposal.level, proposal.text, None, checked)


def _interaction(draft: Draft, proposal: Proposal) -> Interaction:
    assert draft.grade is not None  # only cards are remembered
    refused = draft.failure or ("wrong" if draft.grade.reliability <= 0.5 else None)
    rate = None if proposal.size is None else (proposal.correct or 0) / proposal.size
    style = draft.grade.fields.get("target_reasoning_style", "")
    return Interaction(draft.domain, draft.level, style, refused, rate)


def _paid(written: Group, proposals: Sequence[Proposal]) -> Group:
    """The group of the cards with what each is paid."""
    paid = []
    for rollout, proposal in zip(written.rollouts, proposals, strict=True):
        assert proposal.reward is not None  # every task of the step was tried
        paid.append(replace(rollout, reward=proposal.reward))
    return replace(written, rollouts=tuple(paid))
