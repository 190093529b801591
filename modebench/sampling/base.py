"""The one protocol between the harness and whatever writes responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypedDict, runtime_checkable

from modebench.tasks import Task

FinishReason = Literal["stop", "length", "content_filter", "error", "unknown"]


class Message(TypedDict):
    role: str
    content: str


@dataclass(frozen=True)
class GenerationSettings:
    """How responses are drawn. Defaults are those of the published grid.

    Attributes:
        temperature: logits are divided by it; 0 takes the most likely token.
        top_p: nucleus mass in (0, 1]; 1 keeps every token.
        top_k: number of tokens kept; 0 keeps every token.
        max_tokens: new tokens at most.
        stop: strings that end a response; they are not part of it.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 192
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """All samples asked of one task: one prompt, one seed a sample.

    An engine that talks to a model uses `messages` and `seeds`; only mock engines look at `task`,
    and nothing of `task.reference` ever leaves the process. `prefix` names the prefix that is part of the
    messages, None in a run without prefixes, and `first` is the number of the first sample of this prompt
    among all samples of the task. `grammar` is what responses are held to, in GBNF; None leaves them free.
    """

    task: Task
    messages: tuple[Message, ...]
    seeds: tuple[int, ...]
    prefix: str | None = None
    first: int = 0
    grammar: str | None = None


@dataclass(frozen=True)
class Sample:
    """One response.

    Attributes:
        response: the text, special tokens removed.
        finish_reason: ``stop`` at an end token or stop string, ``length`` when cut.
        input_tokens, output_tokens: counts of this model's tokens; None where unknown.
        logprob: sum over response tokens (end token included) of the log-probability, in nats,
            under the softmax of logits / temperature before top-p and top-k, with a grammar over the
            tokens that it allows; None where unknown.
        entropy: mean over the same positions of the entropy of that softmax, in nats.
        reasoning: reasoning text that arrived in a field of its own.
        error: what went wrong when there is no response; the sample is then neither right nor wrong.
    """

    response: str
    finish_reason: FinishReason = "unknown"
    input_tokens: int | None = None
    output_tokens: int | None = None
    logprob: float | None = None
    entropy: float | None = None
    reasoning: str | None = None
    error: str | None = None


class Engine(Protocol):
    """Anything that answers groups of requests."""

    @property
    def groups_per_batch(self) -> int | None:
        """How many groups the harness hands over at once.

        The harness cuts the task list into batches of this size at fixed places, so a resumed run meets
        the same batches. None: a sample does not depend on what is asked beside it (a server); the harness
        then hands over all groups at once, each with the seeds of its missing samples only.
        """

    def describe(self) -> dict[str, Any]:
        """Provenance for run.json: model, revision, versions, dtype, template hash."""

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Yield (index into `groups`, its samples in seed order), each group once, in any order.

        An engine that gives up (its server is gone) logs why and leaves the remaining groups out; their
        samples are missing, and a resumed run asks for them.
        """


@runtime_checkable
class ConstrainedEngine(Protocol):
    """What an engine that holds responses to `Group.grammar` offers besides."""

    def constraint(self) -> dict[str, Any]:
        """What enforces grammars, for run.json: library and version.

        Raises:
            EngineUnavailable: nothing does here; one line, with the cure.
        """


class EngineUnavailable(RuntimeError):  # noqa: N818 - a state of the world, reported as one line
    """The engine cannot be built: a missing extra, model folder or file. One line, with the cure."""
