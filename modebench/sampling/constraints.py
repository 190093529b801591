"""Constrained decoding in this process: which tokens a grammar allows next, through llguidance.

What a grammar forbids gets logit minus infinity before the softmax. A sample is drawn from the model's
probabilities over the allowed tokens, rescaled to one at every position (not from the model's distribution
over whole allowed texts). An end token is allowed exactly where the text so far is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from modebench.sampling.base import EngineUnavailable

LIBRARY = "llguidance"


class Matchers:
    """Makes matchers for one tokenizer; a grammar is compiled once.

    Args:
        tokenizer: a fast tokenizer of transformers.
        end_ids: tokens that end a response.

    Raises:
        EngineUnavailable: llguidance is missing, or cannot read this tokenizer; one line, with the cure.
    """

    def __init__(self, tokenizer: Any, end_ids: Sequence[int]) -> None:
        try:
            import llguidance
            import llguidance.gbnf_to_lark
            import llguidance.hf
        except ImportError as error:
            raise EngineUnavailable(
                f'--constrained needs llguidance ({error}): pip install "modebench-toolkit[constrained]"'
            ) from error
        self._llguidance = llguidance
        try:
            self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, eos_token=list(end_ids))
        except ValueError as error:
            raise EngineUnavailable(f"llguidance cannot read the tokenizer: {error}") from error
        self._compiled: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        """Provenance: library and version."""
        return {"library": LIBRARY, "version": version(LIBRARY)}

    def start(self, grammar: str) -> Matcher:
        """A matcher at the start of a text of `grammar`.

        Raises:
            ValueError: not a grammar.
        """
        if grammar not in self._compiled:
            lark = self._llguidance.gbnf_to_lark.gbnf_to_lark(grammar)
            compiled = self._llguidance.LLMatcher(self._tokenizer, lark, log_level=0)
            if compiled.is_error():
                raise ValueError(f"llguidance refuses a grammar: {compiled.get_error()}")
            self._compiled[grammar] = compiled
        return Matcher(self._compiled[grammar].deep_copy())


class Matcher:
    """Where one sample stands in its grammar."""

    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def allowed(self, vocabulary: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which tokens may come next, [V]."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        found = np.unpackbits(bits, bitorder="little")[:vocabulary].astype(bool)
        return np.pad(found, (0, vocabulary - len(found)))

    def take(self, token: int) -> str | None:
        """Go on by a token; why that is not possible, or None."""
        return None if self._matcher.consume_token(token) else f"llguidance: {self._matcher.get_error()}"


def constrained(logits_BV: torch.Tensor, matchers: Mapping[int, Matcher]) -> torch.Tensor:
    """A copy of the logits in which what the matchers forbid is minus infinity.

    Args:
        logits_BV: one row a sample.
        matchers: by row; the other rows stay as they are.
    """
    if not matchers:
        return logits_BV
    vocabulary = logits_BV.shape[1]
    allowed_RV = np.stack([matcher.allowed(vocabulary) for matcher in matchers.values()])
    rows = torch.tensor(list(matchers), device=logits_BV.device)
    forbidden_RV = torch.from_numpy(~allowed_RV).to(logits_BV.device)
    return logits_BV.index_put((rows,), logits_BV[rows].masked_fill(forbidden_RV, float("-inf")))
