"""Log-probabilities: packed, padded and chunked ones are those of a row alone."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.training.likelihood import Scorer, row_logprobs
from modebench.training.packing import arrange, micro_batches
from tests.training.scoring_cases import (
    KINDS,
    VOCABULARY,
    alone,
    causal_model,
    chosen,
    gradient,
    mixed_rows,
    row,
)

TEMPERATURE = 0.7


def plain(model: Any) -> Scorer:
    """A scorer that gives every response a prompt of its own, and keeps whole logits."""
    scorer = Scorer(model)
    scorer.packs = scorer.applies_head = False
    return scorer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("micro_batch_tokens", [1, 40, 10_000])
@pytest.mark.parametrize("packed", [True, False])
def test_row_13_a_row_scores_in_a_batch_what_it_scores_alone(
    kind: str, micro_batch_tokens: int, packed: bool
) -> None:
    """Off-by-one between prompt and response, padding without positions: learned positions show it best."""
    model = causal_model(kind)
    scorer = Scorer(model) if packed else plain(model)
    assert scorer.packs is packed
    rows = mixed_rows()
    scores = row_logprobs(scorer, rows, temperature=TEMPERATURE, micro_batch_tokens=micro_batch_tokens)
    for scored, (logp_T, entropy_T, _) in zip(rows, scores, strict=True):
        logp_TV = alone(model, scored, TEMPERATURE)
        torch.testing.assert_close(logp_T, chosen(logp_TV, scored), rtol=1e-5, atol=1e-5)
        expected_T = -(logp_TV.exp() * logp_TV).sum(-1)
        torch.testing.assert_close(entropy_T, expected_T.detach(), rtol=1e-5, atol=1e-5)
        assert not entropy_T.requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_row_13_the_product_of_decoding_one_token_at_a_time(kind: str) -> None:
    model = causal_model(kind)
    rows = mixed_rows()
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    for scored, (logp_T, *_) in zip(rows, row_logprobs(Scorer(model), rows, temperature=1.0), strict=True):
        total, cache, given = 0.0, None, list(scored.prompt_ids)
        for token in scored.token_ids:
            with torch.no_grad():
                output = model(input_ids=torch.tensor([given]), use_cache=True, **{name: cache})
            total += torch.log_softmax(output.logits[0, -1], -1)[token].item()
            cache, given = output[name], [token]
        assert logp_T.sum().item() == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_rows_alone(kind: str) -> None:
    model = causal_model(kind)
    rows = mixed_rows()
    scores = row_logprobs(Scorer(model), rows, temperature=TEMPERATURE, chunk=3)
    torch.stack([score.logp_T.sum() for score in scores]).sum().backward()
    found = gradient(model)
    torch.stack([chosen(alone(model, each, TEMPERATURE), each).sum() for each in rows]).sum().backward()
    expected = gradient(model)
    assert (found - expected).norm() < 1e-5 * expected.norm()


def test_row_20_chunks_of_logits_change_nothing() -> None:
    """All logits of a batch at once are what memory runs out of."""
    model = causal_model("qwen2")
    scorer, rows = Scorer(model), mixed_rows()
    results = []
    for chunk in (1, 7, 10_000):
        scores = row_logprobs(scorer, rows, temperature=TEMPERATURE, chunk=chunk)
        logp_K = torch.cat([score.logp_T for score in scores])
        logp_K.square().sum().backward()
        results.append((logp_K.detach(), torch.cat([score.entropy_T for score in scores]), gradient(model)))
    for logp_K, entropy_K, grad in results[1:]:
        torch.testing.assert_close(logp_K, results[0][0], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(entropy_K, results[0][1], rtol=1e-6, atol=1e-6)
        assert (grad - results[0][2]).norm() < 1e-6 * grad.norm()


def test_no_tensor_holds_the_logits_of_all_tokens() -> None:
    model = causal_model("llama")
    shapes: list[int] = []
    model.get_output_embeddings().register_forward_hook(lambda *call: shapes.append(call[2].shape[0]))
    scorer = Scorer(model)
    shapes.clear()
    scores = row_logprobs(scorer, mixed_rows(), temperature=1.0, chunk=4)
    assert sum(shapes) == sum(len(score.logp_T) for score in scores)
    assert max(shapes) == 4


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), min_size=1, max_size=8),
    st.integers(1, 80),
    st.sampled_from([None, 1, 32]),
)
@settings(deadline=None, max_examples=60)
def test_every_token_is_predicted_once_and_sees_its_own_past_only(
    shape: list[tuple[int, int]], tokens: int, hidden_size: int | None
) -> None:
    # Token 1000 p + i is the i-th of prompt p; 10_000 (r + 1) + t the t-th of response r.
    prompts = [[1000 * (p + 1) + i for i in range(size)] for p, size in enumerate((1, 3, 7))]
    rows = [
        row(prompts[owner], [10_000 * (r + 1) + t for t in range(length)])
        for r, (owner, length) in enumerate(shape)
    ]
    seen: list[int] = []
    for packs in micro_batches(rows, tokens, hidden_size):
        layout = arrange(packs, torch.device("cpu"))
        assert layout.ids_NS.numel() <= tokens or len(packs) == 1
        mask_NSS = layout.packed_mask()[:, 0]
        width = layout.ids_NS.shape[1]
        target = iter(zip(layout.source_K.tolist(), layout.target_K.tolist(), strict=True))
        for member, length in zip(layout.members, layout.lengths, strict=True):
            seen.append(member)
            past = list(rows[member].prompt_ids)
            assert length == len(rows[member].token_ids)
            for token in rows[member].token_ids:
                source, predicted = next(target)
                place, query = divmod(source, width)
                visible = mask_NSS[place, query]
                assert predicted == token
                assert layout.ids_NS[place][visible].tolist() == past
                assert layout.position_NS[place][visible].tolist() == list(range(len(past)))
                past.append(token)
        assert next(target, None) is None
        assert mask_NSS.any(-1).all()
    assert sorted(seen) == list(range(len(rows)))


def test_responses_share_a_prompt_where_that_is_less_work() -> None:
    rows = [row([1, 2, 3], [4, 5]) for _ in range(4)] + [row([9], [4])]
    packs = [pack for batch in micro_batches(rows, 1000, 32) for pack in batch]
    assert sorted(pack.members for pack in packs) == [(0, 1, 2, 3), (4,)]
    assert [pack.width for pack in packs] == [1, 7]
    alone_each = [pack for batch in micro_batches(rows, 1000, None) for pack in batch]
    assert sorted(pack.members for pack in alone_each) == [(0,), (1,), (2,), (3,), (4,)]


def windowed() -> Any:
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=5, initializer_range=0.3,
    )  # fmt: skip
    return transformers.MistralForCausalLM(config).eval()


def capped() -> Any:
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, head_dim=8,
        num_attention_heads=4, num_key_value_heads=2, final_logit_softcapping=2.0,
    )  # fmt: skip
    return transformers.Gemma2ForCausalLM(config).eval()


def without_positions() -> Any:
    torch.manual_seed(0)
    config = transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    return transformers.BloomForCausalLM(config).eval()


def scaled() -> Any:
    torch.manual_seed(0)
    config = transformers.GraniteConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.3, logits_scaling=3.0,
    )  # fmt: skip
    return transformers.GraniteForCausalLM(config).eval()


@pytest.mark.parametrize(
    ("make", "packs", "applies_head", "told"),
    [
        (windowed, False, True, ["layers without full attention"]),
        (without_positions, False, True, ["takes no position_ids"]),
        (capped, False, False, ["output layer", "layers without full attention"]),
        (scaled, True, False, ["output layer"]),
    ],
)
def test_what_a_model_does_not_take_is_done_plainly_and_told(
    make: Any, packs: bool, applies_head: bool, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    model = make()
    with caplog.at_level(logging.WARNING, logger="modebench"):
        scorer = Scorer(model)
    assert (scorer.packs, scorer.applies_head) == (packs, applies_head)
    assert len(caplog.messages) == len(told)
    assert all(words in line for words, line in zip(told, caplog.messages, strict=True))
    rows = mixed_rows()
    for scored, (logp_T, *_) in zip(rows, row_logprobs(scorer, rows, temperature=TEMPERATURE), strict=True):
        expected_T = chosen(alone(model, scored, TEMPERATURE), scored)
        torch.testing.assert_close(logp_T, expected_T, rtol=1e-5, atol=1e-5)


def test_a_mask_that_a_model_disregards_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    class Heedless(transformers.LlamaForCausalLM):
        @property
        def base_model(self) -> Any:
            return lambda attention_mask, **given: self.model(attention_mask=None, **given)

    config = causal_model("llama").config
    torch.manual_seed(0)
    assert not Scorer(Heedless(config).eval()).packs
    assert "does not attend" in caplog.text


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_both_kinds_of_attention_take_the_packed_mask(attention: str) -> None:
    model = causal_model("llama")
    model.set_attn_implementation(attention)
    scorer = Scorer(model)
    assert scorer.packs
    rows = mixed_rows()
    for scored, (logp_T, *_) in zip(rows, row_logprobs(scorer, rows, temperature=1.0), strict=True):
        torch.testing.assert_close(logp_T, chosen(alone(model, scored, 1.0), scored), rtol=1e-5, atol=1e-5)


def test_row_20_weights_of_half_precision_are_refused() -> None:
    with pytest.raises(ValueError, match="bfloat16, expected float32"):
        Scorer(causal_model("llama").bfloat16())


def test_a_row_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 2 prompt and 0 tokens"):
        row_logprobs(Scorer(causal_model("llama")), [row([1], [2]), row([1, 2], [])], temperature=1.0)


def test_a_probe_leaves_the_mode_of_the_model_alone() -> None:
    model = causal_model("llama").train()
    Scorer(model)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
