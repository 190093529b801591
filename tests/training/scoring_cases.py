"""Small models and rows, and their scores by the most direct computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers

from modebench.training.batch import Row
from tests.sampling.tiny_models import tiny_model

VOCABULARY = 61
KINDS = ("llama", "qwen2", "gpt2")


def causal_model(kind: str, seed: int = 0) -> Any:
    """``llama``, ``qwen2`` (rotary positions) or ``gpt2`` (learned ones), random, without dropout."""
    if kind != "gpt2":
        return tiny_model(kind, VOCABULARY, seed)
    torch.manual_seed(seed)
    sizes = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
    config = transformers.GPT2Config(**sizes, initializer_range=0.3, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2LMHeadModel(config).eval()


def row(prompt: Sequence[int], response: Sequence[int], **changes: Any) -> Row:
    """A likelihood row of weight 1, or what `changes` make of it."""
    options: dict[str, Any] = {"kind": "likelihood", "weight_T": np.ones(len(response)), **changes}
    return Row(tuple(prompt), tuple(response), **options)


def surrogate(prompt: Sequence[int], response: Sequence[int], advantage: float, **changes: Any) -> Row:
    """A surrogate row of one advantage and weight 1."""
    advantage_T = np.full(len(response), advantage)
    return row(prompt, response, **{"kind": "surrogate", "advantage_T": advantage_T, **changes})


def mixed_rows() -> list[Row]:
    """Prompts of 1, 4 and 9 tokens with 3, 1 and 5 responses of 1 to 12, out of order."""
    draw = np.random.default_rng(0)
    prompts = [draw.integers(VOCABULARY, size=size).tolist() for size in (1, 4, 9)]
    owners = [2, 0, 2, 1, 0, 2, 2, 0, 2]
    lengths = [5, 1, 12, 7, 3, 1, 12, 9, 2]
    return [
        row(prompts[owner], draw.integers(VOCABULARY, size=length).tolist())
        for owner, length in zip(owners, lengths, strict=True)
    ]


def alone(model: Any, scored: Row, temperature: float) -> torch.Tensor:
    """[T, V] log-probabilities at the places of a row's response: one sequence, the model's own forward."""
    ids_1S = torch.tensor([scored.prompt_ids + scored.token_ids])
    logits_SV = model(input_ids=ids_1S).logits[0]
    start = len(scored.prompt_ids) - 1
    return torch.log_softmax(logits_SV[start : start + len(scored.token_ids)] / temperature, -1)


def chosen(logp_TV: torch.Tensor, scored: Row) -> torch.Tensor:
    """[T] of the response's tokens."""
    return logp_TV[torch.arange(len(scored.token_ids)), torch.tensor(scored.token_ids)]


def gradient(model: Any) -> torch.Tensor:
    """All gradients of a model in one vector, which are then cleared."""
    parts = [p.grad.flatten() if p.grad is not None else p.new_zeros(p.numel()) for p in model.parameters()]
    model.zero_grad()
    return torch.cat(parts)
