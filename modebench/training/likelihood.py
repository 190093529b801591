"""Log-probabilities of responses under a model.

The log-probability of a token is under softmax(logits / temperature) over the whole vocabulary, at the
temperature that the response was sampled with. Logits are made for response places only, a chunk at a time,
and never kept: the backward pass makes them again (Chen et al. 2016, arXiv:1604.06174), so that no tensor
of [all tokens, vocabulary] exists.

Shape suffixes: _T tokens of a response, _K those of all responses of a micro-batch, row after row, _C
those of a chunk, _H hidden size, _V vocabulary; _N and _S as in `modebench.training.packing`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from modebench.training.batch import Row
from modebench.training.packing import Layout, Pack, arrange, micro_batches

MICRO_BATCH_TOKENS = 8192
CHUNK_LOGITS = 2**25  # logits made at once: 128 MiB in float32
PROBE_TOLERANCE = 1e3  # times the machine epsilon: far above rounding, far below another mask or head

_log = logging.getLogger(__name__)


class RowScore(NamedTuple):
    """[T] log-probabilities of a response's tokens in nats, and [T] entropies (None where not asked)."""

    logp_T: torch.Tensor
    entropy_T: torch.Tensor | None


class Scorer:
    """Scores responses with one causal language model.

    Whether the model takes a packed mask, and whether its output layer can be applied to chunks, is found
    out here, by comparing a few tokens with the model's own forward pass; what it does not do is logged and
    done the plain way.

    Args:
        model: a causal language model of transformers with float32 weights, or any module that maps
            ``input_ids``, ``attention_mask`` and ``position_ids`` [N, S] to an object with ``logits``
            [N, S, V].

    Attributes:
        model: the model.
        packs: responses of one prompt share one copy of it.
        applies_head: hidden states and output layer are called apart, so logits come in chunks.

    Raises:
        ValueError: weights of half precision, whose rounding would swallow updates of small learning rates
            and with them any comparison of the two ways to score.
    """

    def __init__(self, model: Any) -> None:
        dtype = next(model.parameters()).dtype
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"the model's weights are {dtype}, expected float32 (compute in less under autocast)"
            )
        self.model = model
        self.packs = self.applies_head = False
        self._is_transformers = hasattr(model, "config")
        self._accepts = set(inspect.signature(model.forward).parameters)
        if self._is_transformers:
            self._find_out()

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def hidden_size(self) -> int | None:
        """Width of the model; None where responses are not packed."""
        return int(self.model.config.get_text_config().hidden_size) if self.packs else None

    def score(
        self, packs: Sequence[Pack], temperature: float, *, entropy: bool, chunk: int | None = None
    ) -> tuple[Layout, torch.Tensor, torch.Tensor | None]:
        """Score one micro-batch.

        Args:
            packs: the micro-batch.
            temperature: divides the logits; above 0.
            entropy: also give entropies (without gradient).
            chunk: places whose logits exist at once; None: as many as `CHUNK_LOGITS` allows.

        Returns:
            layout, log-probabilities [K] (nats, with gradient unless under `torch.no_grad`), entropies [K]
            or None.
        """
        layout = arrange(packs, self.device)
        states_KH = self._states(layout)
        head = self.model.get_output_embeddings() if self.applies_head else torch.nn.Identity()
        if chunk is None:
            vocabulary = head.weight.shape[0] if self.applies_head else states_KH.shape[1]
            chunk = max(1, CHUNK_LOGITS // vocabulary)
        pieces = []
        for states_CH, target_C in zip(states_KH.split(chunk), layout.target_K.split(chunk), strict=True):
            given = (head, states_CH, target_C, temperature, entropy)
            if self.applies_head and len(states_KH) > chunk and torch.is_grad_enabled():
                pieces.append(checkpoint(_score_chunk, *given, use_reentrant=False, preserve_rng_state=False))
            else:
                pieces.append(_score_chunk(*given))
        logp_K = torch.cat([logp_C for logp_C, _ in pieces])
        entropy_K = torch.cat([entropy_C for _, entropy_C in pieces]) if entropy else None
        return layout, logp_K, entropy_K

    def _states(self, layout: Layout) -> torch.Tensor:
        """What predicts each token: the last hidden states [K, H], or logits [K, V]."""
        mask = self._mask(layout) if self.packs else layout.plain_mask()
        given = {"attention_mask": mask, "position_ids": layout.position_NS}
        given = {name: value for name, value in given.items() if name in self._accepts}
        if self._is_transformers:
            given["use_cache"] = False
        if self.applies_head:
            states_NSH = self.model.base_model(input_ids=layout.ids_NS, **given).last_hidden_state
        else:
            states_NSH = self.model(input_ids=layout.ids_NS, **given).logits
        states_KH: torch.Tensor = states_NSH.flatten(0, 1)[layout.source_K]
        return states_KH

    def _mask(self, layout: Layout) -> torch.Tensor:
        mask_N1SS = layout.packed_mask()
        if self.model.config._attn_implementation == "sdpa":
            return mask_N1SS
        # Eager attention adds its mask to the scores.
        dtype = self.model.dtype
        return torch.zeros_like(mask_N1SS, dtype=dtype).masked_fill(~mask_N1SS, torch.finfo(dtype).min)

    def _find_out(self) -> None:
        """Set `applies_head` and `packs` to what gives the log-probabilities of the plain forward pass."""
        training = self.model.training
        self.model.eval()
        plain_K = self._probe()
        tolerance = PROBE_TOLERANCE * torch.finfo(plain_K.dtype).eps
        self.applies_head = (
            self.model.get_output_embeddings() is not None
            and self.model.base_model is not self.model
            # Near zero a soft cap is the identity, and would pass the comparison.
            and getattr(self.model.config.get_text_config(), "final_logit_softcapping", None) is None
        )
        if self.applies_head and not torch.allclose(self._probe(), plain_K, rtol=tolerance, atol=tolerance):
            self.applies_head = False
        if not self.applies_head:
            _log.warning("the output layer cannot be applied apart: all logits of a micro-batch are kept")
        problem = self._packing_problem()
        self.packs = problem is None
        if self.packs and not torch.allclose(self._probe(), plain_K, rtol=tolerance, atol=tolerance):
            self.packs, problem = False, "it does not attend as a packed mask says"
        if problem is not None:
            _log.warning("every response is scored with a prompt of its own: %s", problem)
        self.model.train(training)

    def _packing_problem(self) -> str | None:
        """Why the model cannot take a packed mask, as far as its configuration tells."""
        config = self.model.config.get_text_config()
        attention = self.model.config._attn_implementation
        if attention not in ("sdpa", "eager"):
            return f"its attention is {attention}, not sdpa or eager"
        # A window is part of the mask that ours would replace.
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"} or getattr(config, "sliding_window", None) is not None:
            return "it has layers without full attention"
        return None if "position_ids" in self._accepts else "it takes no position_ids"

    def _probe(self) -> torch.Tensor:
        """Log-probabilities of two short responses to one prompt, in the way that is set at present."""
        vocabulary = self.model.config.get_text_config().vocab_size
        prompt, first, second = ((7, 11, 13, 5), (3, 17, 2), (19, 1, 23, 29))
        rows = [
            Row(_within(prompt, vocabulary), _within(response, vocabulary), "likelihood", np.zeros(0))
            for response in (first, second)
        ]
        with torch.no_grad():
            scores = row_logprobs(self, rows, temperature=1.0)
        return torch.cat([score.logp_T for score in scores])


def _within(token_ids: tuple[int, ...], vocabulary: int) -> tuple[int, ...]:
    return tuple(token % vocabulary for token in token_ids)


def _score_chunk(
    head: Any, states_CH: torch.Tensor, target_C: torch.Tensor, temperature: float, entropy: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    logits_CV = head(states_CH)
    logits_CV = logits_CV.to(torch.promote_types(logits_CV.dtype, torch.float32)) / temperature
    total_C = logits_CV.logsumexp(-1)
    logp_C = logits_CV.gather(1, target_C[:, None])[:, 0] - total_C
    if not entropy:
        return logp_C, None
    with torch.no_grad():
        # A forbidden token (logit -inf) adds nothing, where 0 * -inf would be NaN.
        floor = torch.finfo(logits_CV.dtype).min
        expected_C = ((logits_CV - total_C[:, None]).exp() * logits_CV.clamp_min(floor)).sum(-1)
        return logp_C, total_C - expected_C


def row_logprobs(
    scorer: Scorer,
    rows: Sequence[Row],
    *,
    temperature: float,
    micro_batch_tokens: int = MICRO_BATCH_TOKENS,
    chunk: int | None = None,
    entropy: bool = False,
) -> list[RowScore]:
    """Log-probabilities of the rows' responses, in the order of `rows`.

    Args:
        scorer: of the model.
        rows: only their prompts and responses are used.
        temperature: divides the logits; above 0.
        micro_batch_tokens: padded tokens of a forward pass.
        chunk: places whose logits exist at once; None chooses.
        entropy: also give entropies.

    Raises:
        ValueError: a row without prompt or response tokens.
    """
    scores: dict[int, RowScore] = {}
    for packs in micro_batches(rows, micro_batch_tokens, scorer.hidden_size):
        layout, logp_K, entropy_K = scorer.score(packs, temperature, entropy=entropy, chunk=chunk)
        logps = logp_K.split(layout.lengths)
        entropies = [None] * len(logps) if entropy_K is None else entropy_K.split(layout.lengths)
        for member, logp_T, entropy_T in zip(layout.members, logps, entropies, strict=True):
            scores[member] = RowScore(logp_T, entropy_T)
    return [scores[index] for index in range(len(rows))]
