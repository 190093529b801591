"""Pretraining of the tiny policy: likelihood of the corpus, Muon for matrices, AdamW for the rest.

A step's loss is a sum over the groups of its texts, each the mean negative log-likelihood of a reply token
times the group's weight; a group is the solving texts of a domain, or one kind of its writing texts. Muon
(Jordan et al. 2024, kellerjordan.github.io/posts/muon) orthogonalises the update of every matrix but the
embeddings.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from modebench.errors import UsageError
from modebench.pretraining.corpus import Pool, Text, solving_texts, writing_texts
from modebench.pretraining.muon import Muon
from modebench.pretraining.tokenizer import LENGTH, make_tokenizer
from modebench.training.batch import Row
from modebench.training.likelihood import Scorer
from modebench.training.loss import backward

STATE = "pretraining.pt"


@dataclass(frozen=True)
class Shape:
    """Size of the model, a Llama with tied embeddings.

    Attributes:
        width, layers, heads, inner: hidden size, layers, attention heads, size of the feed-forward layer.
    """

    width: int = 128
    layers: int = 5
    heads: int = 4
    inner: int = 384


@dataclass(frozen=True)
class Share:
    """How much of a domain a step holds.

    Attributes:
        prompts: solving prompts.
        answers: replies to each.
        noise: share of wrong replies.
        coached: share of the prompts with the advice of a strategy.
        menus, frees, cards: writing texts of each kind.
    """

    prompts: int
    answers: int
    noise: float = 0.0
    coached: float = 0.25
    menus: int = 1
    frees: int = 2
    cards: int = 1


@dataclass(frozen=True)
class Stage:
    """Some steps of one kind.

    Attributes:
        steps: how many.
        shares: what each of them holds, by domain.
        rates: learning rate at the start and at the end, as shares of the full one; linear in between.
        writing: weight of a group of writing texts; groups of solving texts have 1.
    """

    steps: int
    shares: Mapping[str, Share]
    rates: tuple[float, float] = (1.0, 1.0)
    writing: float = 0.2


@dataclass(frozen=True)
class PoolSize:
    """Size of a domain's pool.

    Attributes:
        tasks: tasks wanted; a law that runs dry gives fewer.
        variations: solutions with varied tasks.
    """

    tasks: int = 4_000
    variations: int = 1_000


# Wrong replies go with a long plateau before a look-up is learned, and Countdown takes longest: so no noise
# at first, then noise where the policy would come too close to perfect, and most of a step for Countdown.
_FIRST = {
    "graph_coloring": Share(12, 4),
    "countdown": Share(24, 4),
    "python_factors": Share(6, 2),
    "mathir": Share(24, 4),
    "pantry_plan": Share(8, 4),
}
_SECOND = {
    "graph_coloring": Share(6, 4, noise=0.25, frees=1),
    "countdown": Share(80, 2, frees=1),
    "python_factors": Share(4, 2, noise=0.4, frees=1),
    "mathir": Share(12, 4, noise=0.2, frees=1),
    "pantry_plan": Share(4, 4, frees=1),
}
_THIRD = {
    "graph_coloring": Share(8, 4, noise=0.15, frees=1),
    "countdown": Share(72, 2, frees=1),
    "python_factors": Share(6, 2, noise=0.2, frees=1),
    "mathir": Share(16, 4, frees=1),
    "pantry_plan": Share(4, 4, frees=1),
}
_STAGES = (
    Stage(630, _FIRST),
    Stage(370, _SECOND),
    Stage(125, _THIRD),
    Stage(375, _THIRD, rates=(1.0, 0.05)),
)
_POOLS = {
    "graph_coloring": PoolSize(),
    "countdown": PoolSize(8_000),
    "python_factors": PoolSize(3_000),
    "mathir": PoolSize(),
    "pantry_plan": PoolSize(4_000, 500),
}


@dataclass(frozen=True)
class PretrainConfig:
    """Everything that decides the weights.

    Attributes:
        seed: of pools, texts and initial weights.
        stages: what is read, in order.
        pools: sizes of the pools, by domain.
        shape: of the model.
        muon_rate, adam_rate: full learning rates.
        warmup: steps of linear warm-up.
        max_grad_norm: the gradient is scaled down to this norm.
    """

    seed: int = 0
    stages: tuple[Stage, ...] = _STAGES
    pools: Mapping[str, PoolSize] = field(default_factory=lambda: dict(_POOLS))
    shape: Shape = field(default_factory=Shape)
    muon_rate: float = 0.02
    adam_rate: float = 0.002
    warmup: int = 50
    max_grad_norm: float = 1.0

    @property
    def steps(self) -> int:
        """Updates in all."""
        return sum(stage.steps for stage in self.stages)

    def stage(self, step: int) -> tuple[Stage, int]:
        """The stage of a step, from 1, and which of its steps it is."""
        before = 0
        for stage in self.stages:
            if step <= before + stage.steps:
                return stage, step - before
            before += stage.steps
        raise ValueError(f"step {step} comes after the last one, {before}")

    def rate(self, step: int) -> float:
        """Learning rate of a step, from 1, as a share of the full one."""
        stage, place = self.stage(step)
        first, last = stage.rates
        return min(1.0, step / self.warmup) * (first - (first - last) * place / stage.steps)


def make_model(config: PretrainConfig, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A model with random weights from the config's seed; torch's generator is left as it was."""
    shape = config.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                hidden_size=shape.width,
                num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads,
                num_key_value_heads=shape.heads,
                intermediate_size=shape.inner,
                max_position_embeddings=LENGTH,
                tie_word_embeddings=True,
                bos_token_id=tokenizer.eos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
            )
        )


def texts_of(config: PretrainConfig, pools: Mapping[str, Pool], step: int) -> list[Text]:
    """The texts of a step, from 1."""
    texts: list[Text] = []
    stage, _ = config.stage(step)
    for domain, share in stage.shares.items():
        rng = random.Random(f"{config.seed}|{step}|{domain}")
        texts += solving_texts(rng, pools[domain], share.prompts, share.answers, share.noise, share.coached)
        texts += writing_texts(rng, pools[domain], share.menus, share.frees, share.cards)
    return texts


def rows_of(tokenizer: Any, texts: Sequence[Text], writing: float) -> list[Row]:
    """Likelihood rows of texts, all weights folded in; the term of a row is its group."""
    prompts = tokenizer([f"{text.prompt}>" for text in texts], add_special_tokens=False).input_ids
    replies = tokenizer([text.reply for text in texts], add_special_tokens=False).input_ids
    groups = [
        f"{text.domain}/{'solve' if text.kind in ('solve', 'coached') else text.kind}" for text in texts
    ]
    tokens: Counter[str] = Counter()
    for group, reply in zip(groups, replies, strict=True):
        tokens[group] += len(reply) + 1
    rows = []
    for group, prompt, reply in zip(groups, prompts, replies, strict=True):
        weight = (1.0 if group.endswith("/solve") else writing) / tokens[group]
        ids = (*reply, tokenizer.eos_token_id)
        rows.append(Row(tuple(prompt), ids, "likelihood", np.full(len(ids), weight), term=group))
    return rows


class Pretrainer:
    """One pretraining run in a folder.

    Args:
        config: what decides the weights.
        pools: of every domain in the config's stages.
        folder: where the state is kept.

    Attributes:
        step: updates done.
        model, tokenizer: the policy as it is.
    """

    def __init__(self, config: PretrainConfig, pools: Mapping[str, Pool], folder: Path) -> None:
        self.config, self.pools, self.folder = config, pools, folder
        self.tokenizer = make_tokenizer()
        self.model = make_model(config, self.tokenizer)
        embedding = self.model.get_input_embeddings().weight
        matrices = [p for p in self.model.parameters() if p.ndim == 2 and p is not embedding]
        rest = [p for p in self.model.parameters() if p.ndim != 2 or p is embedding]
        self.optimizers = (
            Muon(matrices, lr=config.muon_rate),
            torch.optim.AdamW(rest, lr=config.adam_rate, betas=(0.9, 0.98), weight_decay=0.0),
        )
        self.scorer = Scorer(self.model)
        self.step = 0
        if (folder / STATE).is_file():
            self._load()

    def update(self) -> dict[str, float]:
        """One step; the loss of a reply token by group, nats."""
        self.step += 1
        writing = self.config.stage(self.step)[0].writing
        rows = rows_of(self.tokenizer, texts_of(self.config, self.pools, self.step), writing)
        seen = backward(
            self.scorer, rows, temperature=1.0, epsilon=0.0, epsilon_high=0.0, micro_batch_tokens=1024
        )
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        rate = self.config.rate(self.step)
        full = (self.config.muon_rate, self.config.adam_rate)
        for optimizer, base in zip(self.optimizers, full, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = base * rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        weights = {group: 1.0 if group.endswith("/solve") else writing for group in seen.loss}
        return {group: loss / weights[group] for group, loss in seen.loss.items()}

    def run(self, on_step: Callable[[int, dict[str, float]], None], save_every: int = 100) -> None:
        """Train to the last step; the state is saved on the way and at the end."""
        while self.step < self.config.steps:
            losses = self.update()
            on_step(self.step, losses)
            if self.step % save_every == 0 or self.step == self.config.steps:
                self.save()

    def save(self) -> None:
        """Write the state whole."""
        state = {
            "config": asdict(self.config),
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }
        draft = self.folder / f"{STATE}.part"
        torch.save(state, draft)
        os.replace(draft, self.folder / STATE)

    def _load(self) -> None:
        state = torch.load(self.folder / STATE, weights_only=True)
        if state["config"] != asdict(self.config):
            raise UsageError(f"{self.folder} holds a run with other settings; choose another folder")
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step = state["step"]

    def write_policy(self, folder: Path) -> None:
        """Write model and tokenizer as a transformers folder."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
