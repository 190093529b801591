"""The transformers engine on tiny random models."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group, Sample
from modebench.sampling.transformers import TransformersEngine, folder_fingerprint, load_engine

from .tiny_models import END, EOS, TURN, group, save_tiny, tiny_model, tiny_tokenizer

GROUPS = [
    group("color the graph", range(100, 105)),
    group("2+2", range(200, 202)),
    group("a much longer question than the others", range(300, 304)),
]
SETTINGS = GenerationSettings(temperature=0.8, max_tokens=40)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small only lose by a second thread, and much where the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def engine(request: Any, tmp_path_factory: Any) -> TransformersEngine:
    folder = save_tiny(tmp_path_factory.mktemp("models") / request.param, request.param)
    return load_engine(str(folder))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: Any) -> TransformersEngine:
    return load_engine(str(save_tiny(tmp_path_factory.mktemp("models") / "tiny", "llama")))


def in_memory(**options: Any) -> TransformersEngine:
    tokenizer = tiny_tokenizer()
    return TransformersEngine(tiny_model("llama", len(tokenizer)), tokenizer, **options)


def samples_of(
    engine: TransformersEngine, groups: Sequence[Group], settings: GenerationSettings = SETTINGS
) -> list[list[Sample]]:
    found = dict(engine.generate(groups, settings))
    assert sorted(found) == list(range(len(groups)))
    return [found[index] for index in range(len(groups))]


def texts(samples: Sequence[Sample]) -> list[str]:
    return [sample.response for sample in samples]


def test_measures_equal_a_full_forward_of_the_unpadded_sequence(engine: TransformersEngine) -> None:
    samples = samples_of(engine, GROUPS)
    for index, rollouts in engine.rollouts(GROUPS, SETTINGS):
        for rollout, sample in zip(rollouts, samples[index], strict=True):
            start = len(rollout.prompt_ids)
            ids_1T = torch.tensor([rollout.prompt_ids + rollout.token_ids])
            with torch.no_grad():
                logits_TV = engine.model(input_ids=ids_1T).logits[0, start - 1 : -1]
            logp_TV = torch.log_softmax(logits_TV / SETTINGS.temperature, -1)
            chosen_T = logp_TV.gather(1, ids_1T[0, start:, None])[:, 0]
            entropy_T = torch.special.entr(logp_TV.exp()).sum(-1)
            assert sample.logprob == pytest.approx(chosen_T.sum().item(), abs=1e-4)
            assert sample.entropy == pytest.approx(entropy_T.mean().item(), abs=1e-4)
            np.testing.assert_allclose(rollout.logp, chosen_T.numpy(), atol=1e-4)
            assert (sample.input_tokens, sample.output_tokens) == (start, len(rollout.token_ids))


def test_greedy_equals_generate_of_transformers(engine: TransformersEngine) -> None:
    prompts = [engine.prompt_ids(g.messages) for g in GROUPS]
    width = max(map(len, prompts))
    ids_GT = torch.tensor([[0] * (width - len(ids)) + ids for ids in prompts])
    mask_GT = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    output_GS = engine.model.generate(
        ids_GT,
        attention_mask=mask_GT,
        do_sample=False,
        temperature=None,
        top_k=None,
        max_new_tokens=30,
        eos_token_id=engine.end_token_ids,
        pad_token_id=EOS,
    )
    settings = GenerationSettings(temperature=0, max_tokens=30)
    for index, rollouts in engine.rollouts(GROUPS, settings):
        expected = output_GS[index, width:].tolist()
        for rollout in rollouts:
            assert rollout.token_ids == expected[: len(rollout.token_ids)]
            assert len(rollout.token_ids) == 30 or rollout.token_ids[-1] in engine.end_token_ids


def test_a_group_alone_draws_what_it_draws_in_a_batch(engine: TransformersEngine) -> None:
    together = samples_of(engine, GROUPS)
    for index, one in enumerate(GROUPS):
        assert texts(samples_of(engine, [one])[0]) == texts(together[index])


def test_same_seeds_same_bytes_and_other_seeds_other_texts(llama: TransformersEngine) -> None:
    first = samples_of(llama, GROUPS)
    assert samples_of(llama, GROUPS) == first
    assert len({text for samples in first for text in texts(samples)}) == 11
    twins = texts(samples_of(llama, [group("2+2", [7, 8, 7])])[0])
    assert twins[0] == twins[2] != twins[1]


def test_groups_may_have_any_number_of_seeds(llama: TransformersEngine) -> None:
    sizes = [3, 0, 1, 6]
    found = samples_of(llama, [group(f"task {n}", range(n)) for n in sizes])
    assert [len(samples) for samples in found] == sizes
    assert samples_of(llama, []) == []


def test_each_prompt_is_encoded_once_and_finished_rows_leave(
    llama: TransformersEngine, monkeypatch: Any
) -> None:
    shapes = []
    forward = llama._decoder._forward
    monkeypatch.setattr(
        llama._decoder, "_forward", lambda ids, *rest: shapes.append(tuple(ids.shape)) or forward(ids, *rest)
    )
    samples = samples_of(llama, GROUPS, GenerationSettings(max_tokens=120))
    longest = max(len(llama.prompt_ids(g.messages)) for g in GROUPS)
    assert shapes[0] == (3, longest)
    rows = [rows for rows, width in shapes[1:] if width == 1]
    assert len(rows) == len(shapes) - 1
    assert rows == sorted(rows, reverse=True)
    assert rows[0] == 11 > rows[-1]
    assert {sample.finish_reason for group_ in samples for sample in group_} == {"stop", "length"}


def test_batches_are_cut_at_groups_per_batch(monkeypatch: Any) -> None:
    engine = in_memory(groups_per_batch=2)
    seen = []
    run = engine._decoder.run
    monkeypatch.setattr(engine._decoder, "run", lambda rows, s: seen.append(len(rows)) or run(rows, s))
    assert [index for index, _ in engine.generate(GROUPS, SETTINGS)] == [0, 1, 2]
    assert seen == [7, 4]


def test_every_end_token_ends_a_response(llama: TransformersEngine) -> None:
    model = tiny_model("llama", len(llama.tokenizer))
    model.generation_config.eos_token_id = [TURN, 50]
    engine = TransformersEngine(model, llama.tokenizer)
    # The model's two, the tokenizer's, and the one that the template puts behind a turn.
    assert engine.end_token_ids == sorted([TURN, 50, EOS, END])
    ends = set()
    for _, rollouts in engine.rollouts([group("?", range(200))], GenerationSettings(max_tokens=60)):
        for rollout in rollouts:
            assert not set(rollout.token_ids[:-1]) & set(engine.end_token_ids)
            if rollout.finish_reason == "stop":
                ends.add(rollout.token_ids[-1])
                assert rollout.text == engine._text(rollout.token_ids[:-1])
            else:
                assert len(rollout.token_ids) == 60
    assert ends == set(engine.end_token_ids)


def test_stop_strings_cut_the_text_and_end_the_sample(llama: TransformersEngine) -> None:
    before = samples_of(llama, GROUPS)
    longest = max((s for samples in before for s in samples), key=lambda s: len(s.response))
    stop = longest.response[10:13]
    after = samples_of(llama, GROUPS, GenerationSettings(temperature=0.8, max_tokens=40, stop=(stop,)))
    cut = 0
    for old, new in zip(chain(*before), chain(*after), strict=True):
        if stop in old.response:
            place = old.response.index(stop)
            assert (new.response, new.finish_reason) == (old.response[:place], "stop")
            # One token a character here; tokens that print nothing come on top.
            assert place + len(stop) <= new.output_tokens <= old.output_tokens
            cut += 1
        else:
            assert (new.response, new.finish_reason) == (old.response, old.finish_reason)
    assert cut


def test_truncated_responses_say_length_and_count_their_tokens(llama: TransformersEngine) -> None:
    for sample in samples_of(llama, GROUPS, GenerationSettings(max_tokens=3))[0]:
        assert sample.output_tokens <= 3
        assert (sample.finish_reason == "length") == (sample.output_tokens == 3)


def test_the_context_of_the_model_is_a_bound(llama: TransformersEngine) -> None:
    room = 256 - len(llama.prompt_ids(group("x" * 200, [1]).messages))
    groups = [group("x" * 200, [1, 2]), group("x" * 300, [3]), group("short", [4])]
    fits, too_long, short = samples_of(llama, groups, GenerationSettings(max_tokens=60))
    assert all(sample.output_tokens <= room < 60 for sample in fits)
    assert too_long[0].finish_reason == "error"
    assert "256" in too_long[0].error
    assert short[0].error is None


def test_first_tokens_follow_the_model(llama: TransformersEngine) -> None:
    draws, settings = 4000, GenerationSettings(temperature=0.7, top_k=12, top_p=0.9, max_tokens=1)
    ids = llama.prompt_ids(GROUPS[0].messages)
    with torch.no_grad():
        logits_V = llama.model(input_ids=torch.tensor([ids])).logits[0, -1].double()
    p = torch.softmax(logits_V / settings.temperature, -1).numpy()
    order = np.argsort(-p)[:12]
    share = p[order] / p[order].sum()
    order = order[share.cumsum() - share < 0.9]
    expected = p[order] / p[order].sum()
    [(_, rollouts)] = llama.rollouts([group("color the graph", range(draws))], settings)
    tokens = [rollout.token_ids[0] for rollout in rollouts]
    assert set(tokens) == set(order.tolist())
    found = np.array([tokens.count(token) for token in order]) / draws
    assert (np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_out_of_memory_halves_the_batch_and_changes_no_sample(monkeypatch: Any, caplog: Any) -> None:
    engine, settings = in_memory(), GenerationSettings(max_tokens=100)
    expected = samples_of(engine, GROUPS, settings)
    forward, run, batches = engine._decoder._forward, engine._decoder.run, []

    def short_of_memory(ids_BT: Any, mask_BS: Any, cache: Any) -> Any:
        if mask_BS.numel() > 765:  # reached some way into the batch, when rows have finished
            raise torch.OutOfMemoryError("no room")
        return forward(ids_BT, mask_BS, cache)

    monkeypatch.setattr(engine._decoder, "_forward", short_of_memory)
    monkeypatch.setattr(engine._decoder, "run", lambda rows, s: batches.append(len(rows)) or run(rows, s))
    with caplog.at_level(logging.WARNING):
        found = samples_of(engine, GROUPS, settings)
    assert [texts(samples) for samples in found] == [texts(samples) for samples in expected]
    assert "out of memory with 11 samples at once; going on with 5" in caplog.text
    # Rows that had finished were not drawn again.
    assert batches[:2] == [11, 5]
    assert sum(batches[1:]) < 11
    # What fitted is remembered.
    batches.clear()
    samples_of(engine, GROUPS, settings)
    assert batches == [5, 5, 1]


def test_one_row_that_does_not_fit_is_an_error_and_no_answer(monkeypatch: Any) -> None:
    engine = in_memory()
    run = engine._decoder.run

    def run_or_fail(rows: Any, settings: Any) -> None:
        if any(row.group == 1 for row in rows):
            raise torch.OutOfMemoryError("no room")
        run(rows, settings)

    monkeypatch.setattr(engine._decoder, "run", run_or_fail)
    found = samples_of(engine, GROUPS)
    assert {sample.error for sample in found[1]} == {"out of memory with a single sample"}
    assert all(sample.error is None for sample in found[0] + found[2])


def test_other_failures_are_not_taken_for_memory(monkeypatch: Any) -> None:
    engine = in_memory()

    def fail(*_: Any) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(engine._decoder, "run", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        samples_of(engine, GROUPS)


def test_logits_that_are_not_finite_are_an_error(llama: TransformersEngine) -> None:
    engine = in_memory()
    with torch.no_grad():
        engine.model.lm_head.weight.fill_(float("nan"))
    for settings in (SETTINGS, GenerationSettings(temperature=0), GenerationSettings(top_k=3, top_p=0.5)):
        assert {s.error for s in samples_of(engine, GROUPS, settings)[0]} == {
            "the model's logits are not finite"
        }


def test_a_model_in_training_stays_so_and_fit_for_it() -> None:
    engine = in_memory()
    engine.model.train()
    samples_of(engine, GROUPS)
    assert engine.model.training
    engine.model(input_ids=torch.tensor([[1, 7, 9]]), labels=torch.tensor([[1, 7, 9]])).loss.backward()


def test_describe_records_the_model_and_what_was_not_used(llama: TransformersEngine) -> None:
    told = llama.describe()
    assert told["dtype"] == "float32"
    assert told["model_generation_config"]["top_k"] == 1
    assert told["end_tokens"] == ["</s>", "<end>"]
    assert len(told["template_sha256"]) == len(told["fingerprint"]) == 64
    assert told["torch"] == torch.__version__
    assert {"device", "threads", "transformers", "model", "prompt_format"} <= set(told)


def test_the_fingerprint_notices_other_weights_of_the_same_shape(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "a", "llama")
    before = folder_fingerprint(folder)
    assert folder_fingerprint(folder) == before
    tiny_model("llama", len(tiny_tokenizer()), seed=1).save_pretrained(folder)
    assert folder_fingerprint(folder) != before


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_missing_extra_names_its_cure(missing: str, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(EngineUnavailable, match=r'pip install "modebench-toolkit\[train\]"'):
        load_engine(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/no/such/folder", "there is no model folder"),
        ("./nowhere", "there is no model folder"),
        ("~/nowhere/at-all", "there is no model folder"),
        ("a/b/c", "there is no model folder"),
        ("", "no config.json"),
        (__file__, "is a file"),
    ],
)
def test_a_missing_folder_is_one_line_and_asks_no_network(name: str, problem: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("asked the network"))
    with pytest.raises(EngineUnavailable, match=problem) as caught:
        load_engine(name)
    assert "\n" not in str(caught.value)


def test_a_damaged_folder_and_an_absent_device_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "no-such-kind"}')
    with pytest.raises(EngineUnavailable, match="did not load") as caught:
        load_engine(str(tmp_path))
    assert "\n" not in str(caught.value)
    folder = str(save_tiny(tmp_path / "good", "llama"))
    with pytest.raises(EngineUnavailable, match="did not load"):
        load_engine(folder, device="cuda:99")
    with pytest.raises(EngineUnavailable, match="float32"):
        load_engine(folder, dtype="int3")


@pytest.mark.parametrize(
    "changed", [{"temperature": -1}, {"top_p": 0}, {"top_k": -1}, {"max_tokens": 0}, {"stop": ("",)}]
)
def test_settings_out_of_range_are_refused(changed: Any, llama: TransformersEngine) -> None:
    with pytest.raises(ValueError, match=next(iter(changed))):
        samples_of(llama, GROUPS, GenerationSettings(**changed))


def test_importing_the_engine_imports_no_torch() -> None:
    code = "import sys, modebench.sampling.transformers; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
