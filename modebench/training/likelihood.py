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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from modebench.training.batch import Row
from modebench.training.divergence import EXACT, REFERENCE_KINDS, exact_divergence
from modebench.training.packing import Layout, Pack, arrange, micro_batches
from modebench.training.residuals import added, row_residuals

MICRO_BATCH_TOKENS = 8192
CHUNK_LOGITS = 2**25  # logits made at once: 128 MiB in float32
PROBE_TOLERANCE = 1e3  # times the machine epsilon: far above rounding, far below another mask or head

_log = logging.getLogger(__name__)


class RowScore(NamedTuple):
    """[T] log-probabilities of a response's tokens in nats, [T] entropies (without gradient), and where it
    was asked for the [V] residual (see `modebench.training.residuals`)."""

    logp_T: torch.Tensor
    entropy_T: torch.Tensor
    residual_V: torch.Tensor | None = None


@dataclass(frozen=True)
class TokenScores:
    """What a model says of the tokens of a micro-batch.

    Attributes:
        logp_K: log-probabilities in nats, with gradient unless under `torch.no_grad`.
        entropy_K: entropies in nats, with gradient where ``entropy`` was wanted.
        reference_K: log-probabilities under the reference, without gradient; None where none was wanted.
        exact: divergences from the reference over the whole vocabulary, by kind, with gradient.
        residual_RV: of every row, see `modebench.training.residuals`; None where none was wanted.
    """

    logp_K: torch.Tensor
    entropy_K: torch.Tensor
    reference_K: torch.Tensor | None
    exact: Mapping[str, torch.Tensor]
    residual_RV: torch.Tensor | None = None


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
        self,
        packs: Sequence[Pack],
        temperature: float,
        *,
        wanted: Collection[str] = (),
        reference: Scorer | None = None,
        chunk: int | None = None,
        residuals: bool = False,
    ) -> tuple[Layout, TokenScores]:
        """Score one micro-batch.

        Args:
            packs: the micro-batch.
            temperature: divides the logits; above 0.
            wanted: kinds of further losses (see `modebench.training.divergence`) whose values are needed.
            reference: of a model of the same kind; needed for divergences.
            chunk: places whose logits exist at once; None: as many as `CHUNK_LOGITS` allows.
            residuals: those of the rows are wanted.

        Raises:
            ValueError: a divergence is wanted and there is no reference.
        """
        layout = arrange(packs, self.device)
        compares = any(kind in REFERENCE_KINDS for kind in wanted)
        if compares and reference is None:
            raise ValueError(f"{', '.join(wanted)}: a divergence needs a reference")
        states_KH, head = self._states(layout), self._head
        models = [(states_KH, head)]
        if compares and reference is not None:
            with torch.no_grad():
                models.append((reference._states(layout), reference._head))
        if chunk is None:
            vocabulary = head.weight.shape[0] if self.applies_head else states_KH.shape[1]
            chunk = max(1, CHUNK_LOGITS // (vocabulary * len(models)))
        kinds = tuple(sorted(wanted))
        pieces = []
        columns = (layout.target_K.split(chunk), *(states.split(chunk) for states, _ in models))
        row_chunks = layout.row_K.split(chunk) if residuals else [None] * len(columns[0])
        for row_C, target_C, *states in zip(row_chunks, *columns, strict=True):
            given = [
                (model_head, states_CH) for (_, model_head), states_CH in zip(models, states, strict=True)
            ]
            if self.applies_head and len(states_KH) > chunk and torch.is_grad_enabled():
                options = {"use_reentrant": False, "preserve_rng_state": False}
                piece = checkpoint(_score_chunk, given, target_C, temperature, kinds, row_C, **options)
            else:
                piece = _score_chunk(given, target_C, temperature, kinds, row_C)
            pieces.append(piece)
        return layout, _joined(pieces, row_chunks)

    def head_gradients(self, row: Row, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
        """[T, V] gradient of a row's log-probability by the logits over the temperature, and [T, H] the last
        hidden states over the temperature; its gradient by the output matrix is the sum of their products.

        Raises:
            ValueError: the output layer cannot be applied apart.
        """
        if not self.applies_head:
            raise ValueError("the output layer of this model cannot be applied apart")
        [packs] = micro_batches([row], 1, self.hidden_size)
        layout = arrange(packs, self.device)
        with torch.no_grad():
            states_TH = self._states(layout)
            logits_TV, total_T = _logits(self._head, states_TH, temperature)
            each_T = torch.arange(len(total_T), device=self.device)
            residual_TV = row_residuals(logits_TV, total_T, layout.target_K, each_T)
        return residual_TV, states_TH / temperature

    @property
    def _head(self) -> Any:
        """What makes logits of the states."""
        return self.model.get_output_embeddings() if self.applies_head else torch.nn.Identity()

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
    models: Sequence[tuple[Any, torch.Tensor]],
    target_C: torch.Tensor,
    temperature: float,
    wanted: Sequence[str],
    row_C: torch.Tensor | None = None,
) -> TokenScores:
    """Scores of a chunk by the policy, beside it those of the reference where `models` has one; residuals of
    the chunk's rows where `row_C` says which row each token is of."""
    logits_CV, total_C = _logits(*models[0], temperature)
    logp_C = logits_CV.gather(1, target_C[:, None])[:, 0] - total_C
    # A forbidden token (logit -inf) adds nothing, where 0 * -inf would be NaN.
    floor = torch.finfo(logits_CV.dtype).min
    with torch.set_grad_enabled(torch.is_grad_enabled() and "entropy" in wanted):
        expected_C = ((logits_CV - total_C[:, None]).exp() * logits_CV.clamp_min(floor)).sum(-1)
        entropy_C = total_C - expected_C
    residual_RV = None
    if row_C is not None:
        residual_RV = row_residuals(logits_CV.detach(), total_C.detach(), target_C, row_C)
    if len(models) == 1:
        return TokenScores(logp_C, entropy_C, None, {}, residual_RV)
    with torch.no_grad():
        reference_CV, reference_total_C = _logits(*models[1], temperature)
        reference_C = reference_CV.gather(1, target_C[:, None])[:, 0] - reference_total_C
    exact = {}
    if any(kind in EXACT for kind in wanted):
        logp_CV, reference_CV = (
            (values_CV - norm_C[:, None]).clamp_min(floor)
            for values_CV, norm_C in ((logits_CV, total_C), (reference_CV, reference_total_C))
        )
        exact = {kind: exact_divergence(kind, logp_CV, reference_CV) for kind in wanted if kind in EXACT}
    return TokenScores(logp_C, entropy_C, reference_C, exact, residual_RV)


def _logits(head: Any, states_CH: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [C, V] over the temperature, in float32 or more, and the logarithms [C] of their sums."""
    logits_CV = head(states_CH)
    logits_CV = logits_CV.to(torch.promote_types(logits_CV.dtype, torch.float32)) / temperature
    return logits_CV, logits_CV.logsumexp(-1)


def _joined(pieces: Sequence[TokenScores], row_chunks: Sequence[torch.Tensor | None]) -> TokenScores:
    """The scores of all chunks, one after another; residuals of a row that spans chunks are added."""
    residuals = [piece.residual_RV for piece in pieces if piece.residual_RV is not None]
    rows = [row_C for row_C in row_chunks if row_C is not None]
    references = [piece.reference_K for piece in pieces if piece.reference_K is not None]
    return TokenScores(
        torch.cat([piece.logp_K for piece in pieces]),
        torch.cat([piece.entropy_K for piece in pieces]),
        torch.cat(references) if references else None,
        {kind: torch.cat([piece.exact[kind] for piece in pieces]) for kind in pieces[0].exact},
        added(residuals, rows) if residuals else None,
    )


def row_logprobs(
    scorer: Scorer,
    rows: Sequence[Row],
    *,
    temperature: float,
    micro_batch_tokens: int = MICRO_BATCH_TOKENS,
    chunk: int | None = None,
    residuals: bool = False,
) -> list[RowScore]:
    """Log-probabilities of the rows' responses, in the order of `rows`.

    Args:
        scorer: of the model.
        rows: only their prompts and responses are used.
        temperature: divides the logits; above 0.
        micro_batch_tokens: padded tokens of a forward pass.
        chunk: places whose logits exist at once; None chooses.
        residuals: those of the rows are wanted.

    Raises:
        ValueError: a row without prompt or response tokens.
    """
    scores: dict[int, RowScore] = {}
    for packs in micro_batches(rows, micro_batch_tokens, scorer.hidden_size):
        layout, told = scorer.score(packs, temperature, chunk=chunk, residuals=residuals)
        pieces = zip(
            layout.members,
            told.logp_K.split(layout.lengths),
            told.entropy_K.split(layout.lengths),
            [None] * len(layout.lengths) if told.residual_RV is None else told.residual_RV,
            strict=True,
        )
        scores |= {member: RowScore(*score) for member, *score in pieces}
    return [scores[index] for index in range(len(rows))]
