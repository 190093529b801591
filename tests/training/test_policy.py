"""Loading and saving a policy."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from modebench.sampling.base import EngineUnavailable
from modebench.training import policy
from modebench.training.loss import backward
from tests.sampling.tiny_models import save_tiny, tiny_tokenizer
from tests.training.scoring_cases import surrogate


def save_with_dropout(folder: Path, kind: str) -> Path:
    """A random model whose configuration asks for dropout."""
    tokenizer = tiny_tokenizer()
    sizes: dict[str, Any] = {"vocab_size": len(tokenizer), "bos_token_id": 1, "eos_token_id": 2}
    if kind == "gpt2":
        rates = {"attn_pdrop": 0.1, "resid_pdrop": 0.2, "embd_pdrop": 0.3}
        config: Any = transformers.GPT2Config(**sizes, n_embd=32, n_layer=1, n_head=2, **rates)
        model: Any = transformers.GPT2LMHeadModel(config)
    else:
        sizes |= {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
        sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1, "attention_dropout": 0.1}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_row_14_nothing_drops_out(kind: str, tmp_path: Path) -> None:
    """Dropout during rollouts or scoring makes ratios random; it is zero from loading on, and saved so."""
    folder = save_with_dropout(tmp_path / "model", kind)
    ids_1S = torch.arange(20)[None]
    untouched = transformers.AutoModelForCausalLM.from_pretrained(folder).train()
    assert not torch.equal(untouched(input_ids=ids_1S).logits, untouched(input_ids=ids_1S).logits)
    loaded = policy.load(str(folder), device="cpu")
    assert loaded.model.training
    assert torch.equal(loaded.model(input_ids=ids_1S).logits, loaded.model(input_ids=ids_1S).logits)
    assert torch.equal(loaded.model(input_ids=ids_1S).logits, untouched.eval()(input_ids=ids_1S).logits)
    loaded.save(tmp_path / "saved")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved").train()
    assert torch.equal(again(input_ids=ids_1S).logits, loaded.model(input_ids=ids_1S).logits)


def test_row_14_dropout_that_is_not_found_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_with_dropout(tmp_path / "model", "gpt2")
    monkeypatch.setattr(policy, "remove_dropout", lambda model: [])
    with pytest.raises(RuntimeError, match="two forward passes of GPT2LMHeadModel differ"):
        policy.load(str(folder), device="cpu")


def test_row_20_small_learning_rates_move_the_weights(tmp_path: Path) -> None:
    """AdamW at 1e-6 on weights stored in half precision: updates are below their rounding."""
    folder = save_tiny(tmp_path / "model", "llama")
    half = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    half.save_pretrained(folder)
    loaded = policy.load(str(folder), device="cpu")
    assert loaded.model.dtype == torch.float32
    before = copy.deepcopy(loaded.model.state_dict())
    rows = [surrogate([5, 6, 7], [8, 9], 1.0)]
    backward(loaded.scorer, rows, temperature=1.0, epsilon=0.2, epsilon_high=0.2)
    torch.optim.AdamW(loaded.model.parameters(), lr=1e-6, weight_decay=0.0).step()
    after = loaded.model.state_dict()
    name = "model.layers.0.mlp.down_proj.weight"
    moved = (after[name] != before[name]).float().mean().item()
    assert moved > 0.9
    assert (after[name].bfloat16() != before[name].bfloat16()).float().mean().item() < 0.01


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_saved_policy_is_an_ordinary_folder_with_the_same_bits(kind: str, tmp_path: Path) -> None:
    loaded = policy.load(str(save_tiny(tmp_path / "model", kind)), device="cpu")
    with torch.no_grad():
        for parameter in loaded.model.parameters():
            parameter.add_(torch.randn_like(parameter) * 1e-3)
    loaded.save(tmp_path / "saved")
    again = policy.load(str(tmp_path / "saved"), device="cpu")
    state = loaded.model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in again.model.state_dict().items())
    assert again.tokenizer.chat_template == loaded.tokenizer.chat_template
    assert again.origin["fingerprint"] != loaded.origin["fingerprint"]
    plain = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert plain.dtype == torch.float32


def test_a_model_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="no model folder"):
        policy.load(str(tmp_path / "nothing"))
