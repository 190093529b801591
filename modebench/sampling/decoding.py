"""Decoding on torch: one prefill a prompt, one random stream a sample. Imported only by its engine.

Shapes: ``G`` distinct prompts of a batch, ``B`` rows being decoded (one a sample), ``T`` prompt
tokens, ``V`` vocabulary. Prompts are padded on the left, so that all rows write their next token at
the same place.

Randomness: position ``t`` of a sample takes the ``t``-th float64 uniform of
``numpy.random.Generator(Philox(key=seed))`` and reads the token off the inverse distribution function.
So the random numbers of a sample depend on its seed alone, never on its batch, its neighbours or the
device. The logits do depend on the batch, by float rounding: kernels sum in other orders for other
shapes. Hence what is guaranteed: same seeds, same batch composition, same machine and one CPU thread
give identical tokens; another composition gives the same tokens unless a uniform falls within
rounding (about 1e-6 in float32) of a boundary between two tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.cache_utils import DynamicCache, DynamicLayer

from modebench.sampling.base import FinishReason, GenerationSettings
from modebench.sampling.chat import cut_at_stop
from modebench.sampling.constraints import Matcher, constrained

CACHE_ROOM = 32  # positions that a cache grows by at least; one copy of the cache each
DROP_SHARE = 8  # rows leave the batch once one in so many has finished; each time copies the cache
BLOCK = 128  # tokens summed together before the cumulative sum over the vocabulary
NUCLEUS_GUESS = 1024  # tokens sorted first; the whole vocabulary only where they are not enough


@dataclass
class Rollout:
    """One sample while it is decoded, and its outcome.

    Attributes:
        group, index: which group of the request, which sample of it.
        prompt_ids: token ids of the prompt.
        seed: key of its random stream.
        limit: new tokens at most.
        token_ids: sampled tokens, the end token included.
        logp: log-probability of each in nats, under the softmax of logits / temperature before top-k
            and top-p (at temperature 0: of the plain logits), with a grammar over the tokens it allows.
        entropy: entropy of the same softmax at each position, in nats.
        constraint: starts a matcher of its grammar; None where it has none.
        text: the response, None until the sample is done.
    """

    group: int
    index: int
    prompt_ids: list[int]
    seed: int
    limit: int
    token_ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    constraint: Callable[[], Matcher] | None = None
    text: str | None = None
    finish_reason: FinishReason = "unknown"
    error: str | None = None

    @property
    def done(self) -> bool:
        return self.finish_reason != "unknown"

    def restart(self) -> None:
        """Forget what was sampled, and take the random stream from its start."""
        self.token_ids, self.logp, self.entropy = [], [], []
        self._stream = np.random.Generator(np.random.Philox(key=self.seed))
        self.matcher = self.constraint() if self.constraint else None

    def next_uniform(self) -> float:
        """The next random number of this sample, in [0, 1)."""
        return self._stream.random()

    def finish(self, reason: FinishReason, text: str | None = None, error: str | None = None) -> None:
        self.finish_reason, self.text, self.error = reason, text, error


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, [B, heads, positions, head dim], with room to grow into.

    The layer of transformers copies the whole cache for every token; this one copies it when
    its room is used up. `keys` and `values` are views of the filled part, as the base class wants them.
    """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._stores = [key_states, value_states]
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        start = self.keys.shape[-2]
        end = start + key_states.shape[-2]
        if end > self._stores[0].shape[-2]:
            self._stores = [_with_room(part, end - start) for part in (self.keys, self.values)]
        for store, new in zip(self._stores, (key_states, value_states), strict=True):
            store[:, :, start:end] = new
        self.keys, self.values = (store[:, :, :end] for store in self._stores)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows `indices`, in that order; an index may occur several times."""
        length = self.keys.shape[-2]
        self._stores = [_with_room(part, 1, indices) for part in (self.keys, self.values)]
        self.keys, self.values = (store[:, :, :length] for store in self._stores)


def _with_room(part: torch.Tensor, needed: int, rows: torch.Tensor | None = None) -> torch.Tensor:
    """A copy of `part` (of its `rows`) with at least `needed` free positions behind it."""
    # A share of the length keeps the copying linear in the length of long responses.
    batch, heads, length, dim = part.shape
    count = batch if rows is None else len(rows)
    store = part.new_empty(count, heads, length + max(needed, CACHE_ROOM, length // 8), dim)
    store[:, :, :length] = part if rows is None else part[rows]
    return store


def growing_cache(config: Any) -> DynamicCache:
    """The cache that transformers would use for `config`, its plain layers replaced by growing ones.

    Layers of other kinds (sliding windows) stay as they are.
    """
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def keep_top(p_BV: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """Zero all but the `top_k` most likely tokens, and of those all but the nucleus of mass `top_p`.

    The nucleus is the smallest set of most likely tokens whose share of what `top_k` left reaches
    `top_p`; it is never empty. Among equally likely tokens at a boundary some are kept, always the
    same. `top_k` 0 and `top_p` 1 keep everything. Float probabilities in, the same values out
    (not rescaled).
    """
    vocabulary = p_BV.shape[1]
    if not top_k and top_p >= 1:
        return p_BV
    width = min(top_k or NUCLEUS_GUESS, vocabulary)
    while True:
        p_BC, token_BC = torch.topk(p_BV, width)
        cumulative_BC = p_BC.cumsum(-1, dtype=torch.float64)
        mass_B1 = cumulative_BC[:, -1:] if top_k else p_BV.sum(-1, keepdim=True, dtype=torch.float64)
        if top_k or width == vocabulary or bool((cumulative_BC[:, -1:] >= top_p * mass_B1).all()):
            break
        width = min(vocabulary, width * 8)
    if top_p < 1:
        # What lies above a token decides, so the token that crosses the line is still in.
        p_BC = torch.where(cumulative_BC - p_BC < top_p * mass_B1, p_BC, 0.0)
    return torch.zeros_like(p_BV).scatter_(1, token_BC, p_BC)


def draw(weight_BV: torch.Tensor, u_B: NDArray[np.float64]) -> NDArray[np.int64]:
    """The token whose stretch of the cumulative weights holds ``u * total``, one a row.

    Weights are non-negative floats of any scale, uniforms lie in [0, 1). Sums run in float64, in two
    steps (blocks, then tokens of one block): float32 sums would move the borders of rare tokens by
    more than their width. A token of weight zero is never drawn. Rows whose weights are not finite
    get some valid index.
    """
    rows, vocabulary = weight_BV.shape
    padded_BV = torch.nn.functional.pad(weight_BV, (0, -vocabulary % BLOCK))
    weight_BNW = padded_BV.view(rows, -1, BLOCK)
    row_B = np.arange(rows)
    # Sequential sums on the host: monotone, hence no empty stretch is ever hit, and alike everywhere.
    cumulative_BN = weight_BNW.sum(-1, dtype=torch.float64).cpu().numpy().cumsum(-1)
    target_B = u_B * cumulative_BN[:, -1]
    block_B = np.minimum((cumulative_BN <= target_B[:, None]).sum(-1), cumulative_BN.shape[1] - 1)
    before_B = np.where(block_B > 0, cumulative_BN[row_B, block_B - 1], 0.0)
    chosen_BW = weight_BNW[torch.arange(rows), torch.from_numpy(block_B)].double().cpu().numpy()
    inside_B = (chosen_BW.cumsum(-1) <= (target_B - before_B)[:, None]).sum(-1)
    # The two sums differ in the last bits, so a target at the very end of a block may overshoot it.
    last_B = BLOCK - 1 - (chosen_BW > 0)[:, ::-1].argmax(-1)
    token_B: NDArray[np.int64] = block_B * BLOCK + np.minimum(inside_B, last_B)
    return token_B.clip(max=vocabulary - 1)


def sample_tokens(
    logits_BV: torch.Tensor, u_B: NDArray[np.float64], settings: GenerationSettings
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """One token a row, its log-probability and the entropy of its distribution (nats).

    The last two are of softmax(logits / temperature) before top-k and top-p; at temperature 0, which
    takes the most likely token, of softmax(logits).
    """
    greedy = settings.temperature == 0
    scaled_BV = logits_BV.float() if greedy else logits_BV.float() / settings.temperature
    logp_BV = torch.log_softmax(scaled_BV, dim=-1)
    p_BV = logp_BV.exp()
    # A forbidden token (logit -inf) adds nothing, where 0 * -inf would be NaN.
    entropy_B = -(p_BV * logp_BV.clamp_min(torch.finfo(torch.float32).min)).sum(-1)
    if greedy:
        token_B = logp_BV.argmax(-1).cpu().numpy()
    else:
        token_B = draw(keep_top(p_BV, settings.top_k, settings.top_p), u_B)
    chosen_B1 = torch.from_numpy(token_B).to(logits_BV.device)[:, None]
    measured_2B = torch.stack([logp_BV.gather(1, chosen_B1)[:, 0], entropy_B]).double().cpu().numpy()
    return token_B, measured_2B[0], measured_2B[1]


class Decoder:
    """Decodes rollouts with one causal language model of transformers.

    Args:
        model: maps ``input_ids``, ``attention_mask`` and a `DynamicCache` to ``logits``; its cache must
            be of the attention kind (no recurrent state).
        end_ids: tokens that end a response.
        to_text: token ids to response text.
    """

    def __init__(self, model: Any, end_ids: Sequence[int], to_text: Callable[[list[int]], str]) -> None:
        self.model = model
        self.end_ids = frozenset(end_ids)
        self.to_text = to_text
        self._accepts = set(inspect.signature(model.forward).parameters)

    def run(self, rollouts: Sequence[Rollout], settings: GenerationSettings) -> None:
        """Finish every rollout in place. What is finished when an exception leaves here stays so."""
        for rollout in rollouts:
            rollout.restart()
        # Not inference_mode: buffers that a forward pass renews must stay fit for training.
        with torch.no_grad():
            self._decode(list(rollouts), settings)

    def _decode(self, live: list[Rollout], settings: GenerationSettings) -> None:
        cache, mask_BT, logits_BV = self._prefill(live)
        while True:
            u_B = np.array([rollout.next_uniform() for rollout in live])
            # Rows that are done stay in the batch for a while, and what is drawn for them is not used.
            matchers = {row: r.matcher for row, r in enumerate(live) if r.matcher and not r.done}
            logits_BV = constrained(logits_BV, matchers)
            token_B, logp_B, entropy_B = sample_tokens(logits_BV, u_B, settings)
            for rollout, token, logp, entropy in zip(live, token_B, logp_B, entropy_B, strict=True):
                if not rollout.done:
                    self._append(rollout, int(token), float(logp), float(entropy), settings)
            kept = [row for row, rollout in enumerate(live) if not rollout.done]
            if not kept:
                return
            if (len(live) - len(kept)) * DROP_SHARE >= len(live):
                live, token_B = [live[row] for row in kept], token_B[kept]
                index_B = torch.tensor(kept, device=mask_BT.device)
                cache.batch_select_indices(index_B)
                mask_BT = mask_BT[index_B]
            mask_BT = torch.nn.functional.pad(mask_BT, (0, 1), value=1)
            token_B1 = torch.from_numpy(token_B).to(mask_BT.device)[:, None]
            logits_BV = self._forward(token_B1, mask_BT, cache)

    def _prefill(self, rollouts: Sequence[Rollout]) -> tuple[DynamicCache, torch.Tensor, torch.Tensor]:
        """Encode each distinct prompt once; give every rollout a copy.

        Returns:
            cache of B rows, mask [B, T] (int64, 0 at padding), logits [B, V] of the first new token.
        """
        first: dict[int, int] = {}
        prompts: list[list[int]] = []
        for rollout in rollouts:
            if rollout.group not in first:
                first[rollout.group] = len(prompts)
                prompts.append(rollout.prompt_ids)
        device = self.model.device
        width = max(map(len, prompts))
        # The padding token is arbitrary, as nothing attends to it; 0 always exists.
        ids_GT = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts], device=device)
        mask_GT = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts], device=device)
        cache = growing_cache(self.model.config)
        logits_GV = self._forward(ids_GT, mask_GT, cache)
        owner_B = torch.tensor([first[rollout.group] for rollout in rollouts], device=device)
        cache.batch_select_indices(owner_B)
        return cache, mask_GT[owner_B], logits_GV[owner_B]

    def _forward(self, ids_BT: torch.Tensor, mask_BS: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        """Logits [B, V] of the last position; `cache` takes up the T new positions of S in all."""
        position_BT = (mask_BS.cumsum(-1) - 1).clamp_min(0)[:, -ids_BT.shape[1] :]
        optional = {"position_ids": position_BT, "logits_to_keep": 1}
        given = {name: value for name, value in optional.items() if name in self._accepts}
        # Renamed during transformers 5.
        given["cache" if "cache" in self._accepts else "past_key_values"] = cache
        output = self.model(input_ids=ids_BT, attention_mask=mask_BS, use_cache=True, **given)
        logits_BV: torch.Tensor = output.logits[:, -1]
        return logits_BV

    def _append(
        self, rollout: Rollout, token: int, logp: float, entropy: float, settings: GenerationSettings
    ) -> None:
        """Take one sampled token in, and finish the rollout where it ends."""
        if not np.isfinite(logp):
            rollout.finish("error", error="the model's logits are not finite")
            return
        rollout.token_ids.append(token)
        rollout.logp.append(logp)
        rollout.entropy.append(entropy)
        problem = rollout.matcher.take(token) if rollout.matcher else None
        if problem is not None:
            rollout.finish("error", error=problem)
            return
        if token in self.end_ids:
            rollout.finish("stop", self.to_text(rollout.token_ids[:-1]))
            return
        if settings.stop:
            # The whole text each time: a stop string may straddle tokens, and a token characters.
            cut = cut_at_stop(self.to_text(rollout.token_ids), settings.stop)
            if cut is not None:
                rollout.finish("stop", cut)
                return
        if len(rollout.token_ids) >= rollout.limit:
            rollout.finish("length", self.to_text(rollout.token_ids))
