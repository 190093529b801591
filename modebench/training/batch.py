"""What a training step works on: groups of rollouts, and the rows whose losses are summed.

Shape suffixes: _G rollouts of a prompt, _T response tokens (the end token included). A step's batch is a
list of groups. All normalisation (over tokens, rollouts, prompts) is folded into the token weights of the
rows once, over the whole batch, so the loss of any set of rows is a plain sum: micro-batches, gradient
accumulation, packing and the number of processes cannot change it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from modebench.tasks import Task

Floats = npt.NDArray[np.float64]
Purpose = Literal["solve", "write"]
"""What a prompt asks for: an answer, which is judged, or a task, which the part that asked pays for."""
POLICY = "policy"
"""The policy that is trained and evaluated; other agents are named by the part that needs them."""
TASKS = "tasks"
"""Source of the groups of the tasks that the run is given."""


@dataclass(frozen=True)
class Rollout:
    """One response of the policy, and what the verifier paid for it.

    Attributes:
        token_ids: the response, with the end token when it was sampled.
        logp: [T] log-probability of every token in nats, under the sampler at its temperature; empty where
            the response was not sampled in this step.
        text: the response decoded, special tokens removed.
        finish_reason: ``stop``, or ``length`` when it was cut.
        seed: of this sample.
        reward: 1 for a correct response, 0 for any other; of a written task what its writer is paid.
        status: the verdict: ``correct``, ``incorrect`` or ``malformed``; ``written`` of a written task.
        mode: canonical mode of a correct response, else None.
        origin: ``fresh``, or the part that joined a response of another time.
    """

    token_ids: tuple[int, ...]
    logp: tuple[float, ...]
    text: str
    finish_reason: str
    seed: int
    reward: float
    status: str
    mode: str | None
    origin: str = "fresh"


@dataclass(frozen=True)
class Group:
    """The rollouts of one prompt.

    Attributes:
        task: what was asked.
        prompt_ids: token ids of the prompt, those of a prefix among them.
        rollouts: the responses.
        prefix: name of the prefix that the task was asked with; None without.
        purpose: what the prompt asks for.
        source: where the task is from: ``tasks``, or the name of the part that made it.
        agent: which policy was sampled, and learns from it.
    """

    task: Task
    prompt_ids: tuple[int, ...]
    rollouts: tuple[Rollout, ...]
    prefix: str | None = None
    purpose: Purpose = "solve"
    source: str = TASKS
    agent: str = POLICY

    @cached_property
    def reward_G(self) -> Floats:
        """[G] rewards."""
        return np.array([rollout.reward for rollout in self.rollouts], dtype=np.float64)

    @property
    def size(self) -> int:
        """G."""
        return len(self.rollouts)

    @property
    def mixed(self) -> bool:
        """Some rollouts are paid more than others; without replay only such a group has a gradient."""
        return len({rollout.reward for rollout in self.rollouts}) > 1

    @cached_property
    def key(self) -> str:
        """SHA-256 of the prompt's token ids: the same text under another template is another prompt."""
        return prompt_key(self.prompt_ids)


def prompt_key(prompt_ids: Sequence[int]) -> str:
    """SHA-256 (hex) of the compact JSON list of a prompt's token ids."""
    return hashlib.sha256(json.dumps(list(prompt_ids), separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class Regulariser:
    """A further loss of the tokens of a row: sum_t weight_t value_t.

    Attributes:
        term: the part of the loss that it belongs to.
        kind: what is summed; see `modebench.training.divergence.token_values`.
        weight_T: [T] token weights, all normalisation folded in.
    """

    term: str
    kind: str
    weight_T: Floats


@dataclass
class Row:
    """One response as a term of the loss.

    A surrogate row costs sum_t weight_t * -min(rho_t A_t, clip(rho_t, 1 - epsilon, 1 + epsilon_high) A_t)
    with rho_t = exp(logp_t - logp_old_t); a likelihood row costs -sum_t weight_t logp_t. To both the
    regularisers add.

    Attributes:
        prompt_ids, token_ids: what is scored: the response given the prompt.
        kind: which of the two losses.
        weight_T: [T] token weights, all normalisation folded in.
        advantage_T: [T] of a surrogate row; None for a likelihood row.
        logp_old_T: [T] of the policy that wrote the response; None: the present one, detached, which is
            exactly right in the first update after sampling.
        sampler_logp_T: [T] of the sampler, to measure how far it is from the policy; None: not measured.
        group: index of the row's group in the batch; -1 for a prompt that the batch doesn't hold.
        term: which part of the loss it belongs to: ``fresh``, ``replay`` or a name of a method's own.
        regularisers: further losses of its tokens.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    kind: Literal["surrogate", "likelihood"]
    weight_T: Floats
    advantage_T: Floats | None = None
    logp_old_T: Floats | None = None
    sampler_logp_T: Floats | None = None
    group: int = -1
    term: str = "fresh"
    regularisers: tuple[Regulariser, ...] = ()

    @property
    def has_gradient(self) -> bool:
        """Whether its weights, the advantages of a surrogate row and its regularisers leave any gradient."""
        own_T = self.weight_T if self.advantage_T is None else self.weight_T * self.advantage_T
        return bool(np.any(own_T)) or any(bool(np.any(each.weight_T)) for each in self.regularisers)
