"""Random models of a few thousand parameters with a character tokenizer, as ordinary folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from modebench.sampling.base import Group
from modebench.tasks import Task

SPECIAL = ["<unk>", "<s>", "</s>", "<turn>", "<end>"]
BOS, EOS, TURN, END = 1, 2, 3, 4
TEMPLATE = (
    "{% for m in messages %}<turn>{{ m['role'] }}\n{{ m['content'] }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
)
TEMPLATE_WITH_BOS = "{{ bos_token }}" + TEMPLATE


def tiny_tokenizer(*, template: str | None = TEMPLATE, adds_bos: bool = True) -> Any:
    """One token a printable ASCII character, and the five special ones."""
    letters = [chr(code) for code in range(33, 127)] + ["\u0120", "\u010a"]  # the space, the line feed
    vocabulary = {token: index for index, token in enumerate(SPECIAL + letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", BOS)]
        )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        additional_special_tokens=["<turn>", "<end>"],
    )
    fast.chat_template = template
    return fast


def tiny_model(kind: str, vocabulary: int, seed: int = 0, positions: int = 256) -> Any:
    """A random ``llama`` or ``qwen2``; weights wide enough for uneven distributions."""
    torch.manual_seed(seed)
    size: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": positions,
        "initializer_range": 0.3,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "pad_token_id": None,
    }
    if kind == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**size)).eval()
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size)).eval()


def save_tiny(folder: Path, kind: str, positions: int = 256, **tokenizer_options: Any) -> Path:
    """Write model and tokenizer to `folder`."""
    tokenizer = tiny_tokenizer(**tokenizer_options)
    model = tiny_model(kind, len(tokenizer), positions=positions)
    # Sampling values of the model's own, which the engine must not use.
    model.generation_config.update(do_sample=True, temperature=0.01, top_k=1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def group(text: str, seeds: Sequence[int]) -> Group:
    """A group that asks `text`."""
    task = Task(f"test/{text}", "countdown", 1, "eval", text, {})
    return Group(task, ({"role": "user", "content": text},), tuple(seeds))
