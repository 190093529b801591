"""Parts: what a method is composed of, and how their options are set.

A part is a frozen dataclass: its fields are its options, their defaults the only ones there are. Every hook
below is the identity until a subclass says otherwise, so a part holds only what it changes. A method calls
the hooks of its parts in order, each with what the one before it returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from enum import IntEnum
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt

from modebench.errors import UsageError
from modebench.training.batch import POLICY, Floats, Group, Purpose, Rollout, Row

if TYPE_CHECKING:
    import torch

    from modebench.probing import Prefix
    from modebench.sampling.base import Message
    from modebench.tasks import Task
    from modebench.training.proposals import Proposal

Kept = npt.NDArray[np.bool_]
TokenWeight = Callable[[int], float]
Encode = Callable[[str], tuple[int, ...]]
"""The tokens of a response's text, end token included."""


class Stage(IntEnum):
    """When a part is called among those of a method; parts of one stage keep the order they are named in.

    Hooks of one kind do not commute: a bonus is added to what an estimator gave, and what is subtracted to
    centre a selection must be subtracted last. So ``--add`` works in any order.
    """

    ESTIMATE = 0
    REDISTRIBUTE = 1
    BONUS = 2
    SELECT = 3
    RECENTRE = 4


class Credit(NamedTuple):
    """What became of a group's rollouts, the joined ones included.

    Attributes:
        group: the group with what was joined.
        given_G: [G] advantages before selection.
        advantage_G: [G] advantages after it.
        kept_G: [G] whether a rollout counts.
        changed: rollouts that a part added, paid or credited otherwise, or dropped, by part.
    """

    group: Group
    given_G: Floats
    advantage_G: Floats
    kept_G: Kept
    changed: Mapping[str, int]


class Seen(NamedTuple):
    """What the present policy says of the tokens of a row.

    Attributes:
        logp_T: [T] log-probabilities, nats.
        entropy_T: [T] entropies, nats.
        clipped_T: [T] whether clipping binds.
        reference_T: [T] log-probabilities under the reference, nats; None unless a part
            `compares_with_reference`.
        residual_V: [V] gradient of the row's log-probability with respect to the logits, summed over tokens
            (`modebench.training.residuals`); None unless a part `needs_residuals`.
    """

    logp_T: Floats
    entropy_T: Floats
    clipped_T: Kept
    reference_T: Floats | None = None
    residual_V: Floats | None = None


class Asked(NamedTuple):
    """One prompt of a step.

    Attributes:
        task: what answers are judged against; of a prompt that asks for a task, the one that it starts from.
        size: rollouts of the prompt.
        prefix: text before the problem; None asks plainly.
        messages: the prompt, where it is not the task's own.
        purpose: ``solve``, or ``write``: the responses are not judged, their reward is 0, their status
            ``written``, and the part that asks pays them.
        max_tokens: tokens of a response at most; None for the run's max_completion_length.
        agent: which policy is asked.
    """

    task: Task
    size: int
    prefix: Prefix | None = None
    messages: tuple[Message, ...] | None = None
    purpose: Purpose = "solve"
    max_tokens: int | None = None
    agent: str = POLICY


@dataclass(frozen=True)
class Sample:
    """Asks the policies, in the middle of a step.

    Attributes:
        profile: prompt profile of the run; see `modebench.prompts`.
        part: the part that asks.
        draw: what is called.
    """

    profile: str
    part: str
    draw: Callable[[str, Sequence[Asked]], list[Group]]

    def __call__(self, asked: Sequence[Asked]) -> list[Group]:
        """A group for every prompt, in their order, on every process the same.

        They are counted as generated, and their source is the part that asks. Where the run's budget of
        rollouts ends, the groups that it has no room for are missing from the end of the list.
        """
        return self.draw(self.part, asked)


class PartState(Protocol):
    """What a part remembers between updates; its dictionary is JSON-ready and goes into the checkpoint."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, saved: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True)
class Part:
    """One choice of a method. `name` is what ``--set name.option=value`` and ``--add name`` address.

    `state` in every hook is this part's own, None for a part that has none.
    """

    name: ClassVar[str]
    needs_statistics: ClassVar[bool] = False
    """`reweigh` and `further_rows` are called, with a pass without gradient before every update."""
    needs_grams: ClassVar[bool] = False
    """`gram_metrics` is called, with what the first update of a step saw on its way."""
    needs_whole_groups: ClassVar[bool] = False
    """An update on some rollouts of a group would not be what it is meant to be."""
    only_observes: ClassVar[bool] = False
    """It is there to log, and that it changes nothing is no news."""
    makes_tasks: ClassVar[bool] = False
    """`extend` asks for further groups; `proposals` has what is written to tasks.jsonl."""
    credits_written: ClassVar[bool] = False
    """Its credit hooks are meant for groups of written tasks too; others are called on answers alone."""
    stage: ClassVar[Stage] = Stage.BONUS
    headline: ClassVar[Mapping[str, str]] = {}
    """Metrics of this part whose mean over the run goes into summary.json, each with the metric that weighs
    the steps."""

    @property
    def needs_reference(self) -> bool:
        """A frozen copy of the policy as the run began must be at hand."""
        return False

    @property
    def agents(self) -> frozenset[str]:
        """Names of further policies that it asks to write; each begins as the first does and learns beside
        it."""
        return frozenset()

    @property
    def compares_with_reference(self) -> bool:
        """`Seen.reference_T` must be there; takes `needs_statistics` and `needs_reference`."""
        return False

    @property
    def needs_residuals(self) -> bool:
        """`Seen.residual_V` must be there; takes `needs_statistics`."""
        return False

    @property
    def provides(self) -> frozenset[str]:
        """What this part, with its options, makes true of a method; see `modebench.training.combining`."""
        return frozenset()

    @property
    def refuses(self) -> Mapping[str, str]:
        """What it cannot go with: something that another part provides, and why."""
        return {}

    @property
    def requires(self) -> Mapping[str, str]:
        """What another part must provide, and why."""
        return {}

    def fitted(self, max_completion_length: int) -> Part:
        """This part in a run whose responses have at most so many tokens."""
        return self

    def prepare(self, tasks: Sequence[Task], encode: Encode, state: Any) -> None:
        """Load what an update needs and no checkpoint holds; before the first step and after a resume.

        Args:
            tasks: what is trained on.
            encode: of the policy's tokenizer.
        """

    def state(self, seed: int) -> PartState | None:
        """What this part remembers, at the start of a run with this seed."""
        return None

    def plan(self, asked: list[tuple[Task, int]], state: Any) -> list[tuple[Task, int]]:
        """The tasks of this update and how many rollouts each gets: task source and group layout."""
        return asked

    def phrase(self, asked: list[Asked], state: Any) -> list[Asked]:
        """How the planned tasks are asked: with which prefixes, in groups of what size."""
        return asked

    @property
    def rounds(self) -> int:
        """How often a step may ask for tasks until it has the groups that it wants; see `filter`."""
        return 1

    def least_rollouts(self, planned: int) -> int:
        """Rollouts that a step generates at least, where its own tasks are planned to have so many."""
        return planned

    def filter(self, groups: list[Group], state: Any) -> list[Group]:
        """The groups of a round that are trained on; the others are generated, judged and discarded."""
        return groups

    def extend(self, groups: list[Group], sample: Sample, state: Any) -> list[Group]:
        """The groups that are trained on: those that are there, and further ones of tasks made in this step.

        Args:
            groups: what `filter` has left.
            sample: gives the groups of further prompts.
            state: see the class.
        """
        return groups

    def proposals(self, state: Any) -> Sequence[Proposal]:
        """The tasks that `extend` made in this step, refused ones too."""
        return ()

    def observe(self, groups: Sequence[Group], state: Any) -> None:
        """Take note of the verified groups, discarded ones too, before any gradient.

        Groups of answers only; those of a task that a part made have its name as their source.
        """

    def join(self, group: Group, state: Any) -> tuple[Rollout, ...]:
        """Responses of other times that are credited and trained with the group's own, in this update."""
        return ()

    def reward(self, group: Group, reward_G: Floats, state: Any) -> Floats:
        """[G] what each rollout is paid; the first part is given 1 for right and 0 for wrong."""
        return reward_G

    def advantage(self, group: Group, advantage_G: Floats, state: Any) -> Floats:
        """[G] what each rollout is worth; the first part is given the rewards."""
        return advantage_G

    def select(self, group: Group, advantage_G: Floats, kept_G: Kept, state: Any) -> tuple[Floats, Kept]:
        """Which rollouts count. Credit is given before: nothing is dropped from a group's statistics."""
        return advantage_G, kept_G

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: Any) -> list[Row]:
        """The fresh rows of an update with other token weights, or further losses of some tokens.

        Called only where `needs_statistics` is True: it costs a pass without gradient.

        Args:
            rows: of the update, on all processes the same.
            seen: what the present policy says of each.
        """
        return rows

    def regularise(self, rows: list[Row], state: Any) -> list[Row]:
        """The fresh rows with further losses of their tokens, averaged as the fresh loss is."""
        return rows

    def extra_rows(self, groups: Sequence[Group], fresh: TokenWeight, state: Any) -> list[Row]:
        """Rows of further terms of the loss, once an update, after `observe`.

        `fresh` gives the weight that a token of a response of so many tokens has in the fresh loss.
        """
        return []

    def further_rows(
        self,
        groups: Sequence[Group],
        rows: Sequence[Row],
        seen: Sequence[Seen],
        fresh: TokenWeight,
        state: Any,
    ) -> list[Row]:
        """Rows of further terms whose weights depend on what the present policy says of the fresh ones.

        Called after `reweigh`, only where `needs_statistics` is True.

        Args:
            groups: of the step, to which `Row.group` points; in their order come the rows of each.
            rows: the fresh ones of the update.
            seen: what the present policy says of each.
            fresh: see `extra_rows`.
        """
        return []

    def extra_gradient(self, gradients: list[torch.Tensor], state: Any) -> list[torch.Tensor]:
        """What is added to the fresh gradient in place of the gradient of the extra rows, a tensor each."""
        return gradients

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Any
    ) -> dict[str, float | None]:
        """What to log of this update: the same names every time, None where undefined."""
        return {}

    def gram_metrics(
        self, groups: Sequence[Group], rows: Sequence[Row], grams: Mapping[int, Floats]
    ) -> dict[str, float | None]:
        """Likewise, of how the responses of a group pull together; only where `needs_grams` is True.

        Args:
            groups: of the step.
            rows: of the step.
            grams: by place of a group, [G, G] inner products of its rollouts' residuals, of the groups in the
                first update.
        """
        return {}

    def credit_metrics(self, credits: Sequence[Credit], state: Any) -> dict[str, float | None]:
        """Likewise, of how the groups were credited."""
        return {}


P = TypeVar("P", bound=Part)


def options_of(part: Part) -> dict[str, Any]:
    """The part's options by name."""
    return asdict(part)


def with_options(part: P, values: Mapping[str, object]) -> P:
    """The part with some options changed, by name; a string is read as the option's type.

    Raises:
        UsageError: no such option, or a value that it can't take.
    """
    names = [field.name for field in fields(part)]
    hints = get_type_hints(type(part))
    changed: dict[str, Any] = {}
    for option, value in values.items():
        if option not in names:
            raise UsageError(f"{part.name} has no option {option!r}; {suggestion(option, names)}")
        try:
            changed[option] = _converted(value, hints[option])
        except ValueError:
            wanted = _wanted(hints[option])
            raise UsageError(f"{part.name}.{option} must be {wanted}, not {value!r}") from None
    return replace(part, **changed)


def suggestion(name: str, names: Sequence[str]) -> str:
    """What to write instead of an unknown name."""
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"


def _converted(value: object, hint: Any) -> object:
    """`value` as the type of an option: a plain one, a Literal of strings, or one of them or None."""
    if get_origin(hint) is UnionType:
        if value is None or value in ("none", "null"):
            return None
        hint = next(member for member in get_args(hint) if member is not NoneType)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError
        return value
    if hint is bool:
        if value in ("true", "false"):
            return value == "true"
        if isinstance(value, bool):
            return value
        raise ValueError
    if hint is str:
        if isinstance(value, str) and value:
            return value
        raise ValueError
    if isinstance(value, bool) or not isinstance(value, str | (int if hint is int else int | float)):
        raise ValueError
    number: int | float = hint(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _wanted(hint: Any) -> str:
    if get_origin(hint) is UnionType:
        return " or ".join("none" if member is NoneType else _wanted(member) for member in get_args(hint))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(get_args(hint))
    return {bool: "true or false", int: "a whole number", float: "a finite number", str: "a text"}[hint]
