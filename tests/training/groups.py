"""Small groups, and a policy small enough to enumerate."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import torch

from modebench.tasks import Task
from modebench.training.batch import Group, Rollout, Row
from modebench.training.likelihood import Scorer
from modebench.training.loss import backward
from modebench.training.method import Method, MethodState

TASK = Task("test/0", "countdown", 1, "train", "a problem", {})


def rollout(
    tokens: Sequence[int],
    reward: float,
    mode: str | None = None,
    finish_reason: str = "stop",
    *,
    logp: float = -1.0,
    text: str = "",
) -> Rollout:
    """A response, every token of which was sampled at the same log-probability."""
    status = "correct" if reward else "incorrect"
    return Rollout(tuple(tokens), (logp,) * len(tokens), text, finish_reason, 0, reward, status, mode)


def surprising(
    rewards: Sequence[float], surprisals: Sequence[float], lengths: Sequence[int] | None = None
) -> Group:
    """A group with these rewards and surprisals a token (nats), and responses of these lengths (1)."""
    lengths = [1] * len(rewards) if lengths is None else lengths
    members = zip(rewards, surprisals, lengths, strict=True)
    return Group(
        TASK,
        (1, 2),
        tuple(
            rollout([3] * (length - 1) + [7], reward, "m" if reward else None, logp=-surprisal)
            for reward, surprisal, length in members
        ),
    )


def rewarded(*rewards: float, prompt: Sequence[int] = (1, 2), lengths: Sequence[int] | None = None) -> Group:
    """A group with these rewards, correct ones all of one mode, and responses of these lengths (3)."""
    lengths = [3] * len(rewards) if lengths is None else lengths
    return Group(
        TASK,
        tuple(prompt),
        tuple(
            rollout([3] * (length - 1) + [7], reward, "m" if reward else None)
            for reward, length in zip(rewards, lengths, strict=True)
        ),
    )


def moded(*modes: str | None, prompt: Sequence[int] = (1, 2)) -> Group:
    """A group with a rollout of each of these modes, None for a wrong one; responses differ in token 0."""
    rollouts = (
        rollout([3 + index % 4, 3, 7], float(mode is not None), mode) for index, mode in enumerate(modes)
    )
    return Group(TASK, tuple(prompt), tuple(rollouts))


def worth(method: Method, group: Group, state: MethodState | None = None) -> list[float]:
    """The advantages of a group's rollouts, those that joined included."""
    rows = method.credit([group], method.state(0) if state is None else state)
    return [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None]


class Bigram(torch.nn.Module):
    """Eight tokens; the logits after a token are a row of the parameters [8, 8]."""

    def __init__(self) -> None:
        super().__init__()
        start = [[((7 * (8 * row + column)) % 23 - 11) / 13 for column in range(8)] for row in range(8)]
        self.logits = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def forward(self, input_ids: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits[input_ids])


def gradient(model: Bigram, rows: Sequence[Row], micro_batch_tokens: int = 8192) -> torch.Tensor:
    """[8, 8] gradient of the rows' summed loss, by the trainer's own backward pass."""
    model.logits.grad = None
    backward(
        Scorer(model),
        rows,
        temperature=1.0,
        epsilon=0.2,
        epsilon_high=0.2,
        micro_batch_tokens=micro_batch_tokens,
    )
    return torch.zeros_like(model.logits) if model.logits.grad is None else model.logits.grad.clone()
