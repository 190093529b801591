"""The real vLLM, in this process and as a server, on a small random model; run with ``make test-vllm``."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import modebench as mb
from modebench.sampling import EngineOptions, load_engine
from modebench.sampling.base import GenerationSettings, Group
from tests.conftest import Command

pytestmark = pytest.mark.vllm
SETTINGS = GenerationSettings(temperature=0.8, max_tokens=16)
CONTEXT = 2048


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose heads are as wide as vLLM's kernels want them."""
    import torch
    import transformers

    from tests.sampling.tiny_models import BOS, EOS, tiny_tokenizer

    folder = tmp_path_factory.mktemp("model")
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.1,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=None,
    )
    model = transformers.LlamaForCausalLM(config)
    # Sampling values of the model's own, which nothing may use.
    model.generation_config.update(do_sample=True, temperature=0.01, top_k=1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@contextmanager
def recording(engine: Any) -> Iterator[list[Any]]:
    """What vLLM returns while an engine generates."""
    outputs: list[Any] = []
    generate = engine.llm.generate

    def recorded(*arguments: Any, **options: Any) -> Any:
        outputs.extend(found := generate(*arguments, **options))
        return found

    engine.llm.generate = recorded
    try:
        yield outputs
    finally:
        engine.llm.generate = generate


def groups(count: int = 4, samples: int = 8) -> list[Group]:
    from tests.sampling.tiny_models import group

    texts = [f"{place} plus {place}" for place in range(count)]
    return [group(text, range(100 * place, 100 * place + samples)) for place, text in enumerate(texts)]


@pytest.fixture(scope="module")
def engine(folder: Path) -> Any:
    return load_engine(f"vllm/{folder}", EngineOptions(dtype="float32", max_model_len=CONTEXT))


def test_log_probabilities_equal_those_of_transformers(engine: Any, folder: Path) -> None:
    import torch
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with recording(engine) as outputs:
        drawn = [sample for _, samples in engine.generate(groups(), SETTINGS) for sample in samples]
    assert len(outputs) == len(drawn) == 32
    worst = 0.0
    for output, sample in zip(outputs, drawn, strict=True):
        prompt, tokens = list(output.prompt_token_ids), list(output.outputs[0].token_ids)
        with torch.no_grad():
            logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
        logp = torch.log_softmax(logits / SETTINGS.temperature, -1)[range(len(tokens)), tokens]
        theirs = [at[token].logprob for token, at in zip(tokens, output.outputs[0].logprobs, strict=True)]
        worst = max(worst, (logp - torch.tensor(theirs)).abs().max().item())
        assert sample.logprob == pytest.approx(logp.sum().item(), abs=1e-5 * len(tokens))
        assert sample.output_tokens == len(tokens)
    assert worst < 1e-5


def test_held_to_a_grammar_both_engines_give_well_formed_answers_the_same_log_probability(
    engine: Any, folder: Path
) -> None:
    """vLLM's grammars (xgrammar) against ours (llguidance): the same tokens are allowed at every place."""
    import torch
    import transformers

    from modebench.domains.grammars import grammar_of
    from modebench.sampling.constraints import Matchers
    from modebench.tasks import load_tasks
    from modebench.verifiers import verify

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    matchers = Matchers(engine.llm.get_tokenizer(), engine.end_token_ids)
    cells = (("countdown", 2), ("python_factors", 2), ("mathir", 3), ("pantry_plan", 1), ("pantry_plan", 5))
    tasks = [load_tasks(*cell)[0] for cell in cells]
    asked = [
        replace(group, task=task, grammar=grammar_of(task))
        for group, task in zip(groups(len(tasks), 4), tasks, strict=True)
    ]
    settings = replace(SETTINGS, max_tokens=200)
    with recording(engine) as outputs:
        found = dict(engine.generate(asked, settings))
    whole = 0
    for output, (place, sample) in zip(outputs, [(p, s) for p in found for s in found[p]], strict=True):
        assert sample.error is None
        if sample.finish_reason == "stop":
            whole += 1
            assert verify(asked[place].task, sample.response).status != "malformed", sample.response
        prompt, tokens = list(output.prompt_token_ids), list(output.outputs[0].token_ids)
        with torch.no_grad():
            logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1]
        matcher = matchers.start(str(asked[place].grammar))
        logp = 0.0
        for token, row in zip(tokens, logits / settings.temperature, strict=True):
            kept = row.masked_fill(~torch.from_numpy(matcher.allowed(len(row))), float("-inf"))
            logp += torch.log_softmax(kept, -1)[token].item()
            assert matcher.take(token) is None
        assert sample.logprob == pytest.approx(logp, abs=1e-5 * len(tokens))
    assert whole >= 10
    assert engine.constraint()["version"]


def test_every_seed_draws_its_own_sample_again_and_again(engine: Any) -> None:
    first, again = (dict(engine.generate(groups(), SETTINGS)) for _ in range(2))
    assert first == again
    for samples in first.values():
        assert len({sample.response for sample in samples}) == len(samples)


def test_both_engines_ask_the_same_token_ids(engine: Any, folder: Path) -> None:
    ours: Any = load_engine(f"hf/{folder}")
    for group in groups():
        assert engine.chat.prompt_ids(group.messages) == ours.prompt_ids(group.messages)
    assert engine.end_token_ids == ours.end_token_ids


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """The URL of a vLLM server of the model."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--served-model-name", "m", "--dtype", "float32", "--max-model-len", str(CONTEXT)]
    command += ["--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            assert process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        yield f"{url}/v1"
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("chat", [True, False])
def test_a_server_gives_k_distinct_samples_the_same_for_the_same_seeds(server: str, chat: bool) -> None:
    client: Any = load_engine("openai/m", EngineOptions(base_url=server, chat_template=chat, concurrency=8))
    assert client.describe()["server"] == "vllm"
    first, again = (dict(client.generate(groups(), SETTINGS)) for _ in range(2))
    assert first == again
    for samples in first.values():
        assert {sample.error for sample in samples} == {None}
        assert len({sample.response for sample in samples}) == len(samples) == 8
        assert {sample.finish_reason for sample in samples} <= {"stop", "length"}
        assert all(0 < (sample.output_tokens or 0) <= 16 for sample in samples)


def test_a_server_holds_answers_to_grammars(server: str, modebench: Command, tmp_path: Path) -> None:
    asked = ("--domain", "pantry,mathir", "--level", "2", "-n", "1", "-k", "4", "--max-tokens", "60")
    done = modebench(
        "eval", "--model", "openai/m", "--base-url", server, *asked, "--constrained", "--profile", "plain",
        "--no-chat-template", "-o", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["engine"]["constraint"]["version"] == vllm_version()
    run = mb.load_run(tmp_path / "run")
    samples = run.samples()
    assert len(samples) == 8
    whole = samples[samples["finish_reason"] == "stop"]
    assert len(whole) >= 2
    assert "malformed" not in set(whole["status"])


def vllm_version() -> str:
    import vllm

    return str(vllm.__version__)


def test_several_samples_a_request_are_all_there(server: str) -> None:
    client = load_engine("openai/m", EngineOptions(base_url=server, samples_per_request=8))
    for _, samples in client.generate(groups(), SETTINGS):
        assert {sample.error for sample in samples} == {None}
        assert len({sample.response for sample in samples}) == 8


def test_what_does_not_fit_is_an_error_of_its_own(server: str, engine: Any) -> None:
    from tests.sampling.tiny_models import group

    long = [group("x" * 3000, [1, 2]), *groups(1)]
    for asked in (engine, load_engine("openai/m", EngineOptions(base_url=server))):
        found = dict(asked.generate(long, SETTINGS))
        assert all(sample.error for sample in found[0])
        assert not any(sample.error for sample in found[1])


def test_the_packaged_policy_answers_as_in_transformers() -> None:
    """Greedy, so that both must write the same."""
    from modebench.prompts import build_messages
    from modebench.tasks import load_tasks

    asked = [
        Group(task, build_messages(task, "compact"), (0,))
        for domain in ("graph_coloring", "countdown", "mathir")
        for task in load_tasks(domain, 1).tasks[:8]
    ]
    settings = GenerationSettings(temperature=0.0, max_tokens=24)
    options = EngineOptions(dtype="float32", device="cpu", max_model_len=256)
    written = [
        {
            index: samples[0].response
            for index, samples in load_engine(model, options).generate(asked, settings)
        }
        for model in ("vllm/tiny", "tiny")
    ]
    assert written[0] == written[1]
    assert len(set(written[0].values())) > 8
