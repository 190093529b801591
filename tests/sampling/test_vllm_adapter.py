"""The vLLM adapter against modules that look like its releases; the real one is in test_vllm.py."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from modebench.prompts import build_messages
from modebench.sampling import EngineOptions, load_engine
from modebench.sampling.base import EngineUnavailable, GenerationSettings, Group
from modebench.tasks import load_tasks
from tests.sampling.tiny_models import tiny_tokenizer

TASKS = load_tasks("countdown").head(3)


class FakeLLM:
    """Answers every request with its seed, in two tokens."""

    finish = "stop"

    def __init__(self, **options: Any) -> None:
        self.options = options
        config = SimpleNamespace(max_model_len=options.get("max_model_len", 4096), dtype="torch.float32")
        self.llm_engine = SimpleNamespace(model_config=config)
        self.tokenizer = tiny_tokenizer()

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    def answers(self, prompts: list[Any], parameters: list[Any]) -> list[Any]:
        assert len(prompts) == len(parameters)
        return [
            SimpleNamespace(
                prompt_token_ids=prompt["prompt_token_ids"],
                outputs=[
                    SimpleNamespace(
                        text=f"{asked.seed}",
                        token_ids=(7, 8),
                        logprobs=[{7: SimpleNamespace(logprob=-0.5)}, {8: SimpleNamespace(logprob=-0.25)}],
                        finish_reason=self.finish,
                    )
                ],
            )
            for prompt, asked in zip(prompts, parameters, strict=True)
        ]


class OldLLM(FakeLLM):
    """`generate` as it was while token ids had a keyword of their own."""

    def generate(
        self,
        prompts: Any = None,
        sampling_params: Any = None,
        prompt_token_ids: Any = None,
        use_tqdm: bool = True,
        lora_request: Any = None,
    ) -> list[Any]:
        assert prompt_token_ids is None
        return self.answers(prompts, sampling_params)


class NewLLM(FakeLLM):
    """`generate` as it is since."""

    def generate(self, prompts: Any, sampling_params: Any = None, *, use_tqdm: bool = True) -> list[Any]:
        return self.answers(prompts, sampling_params)


def install(monkeypatch: pytest.MonkeyPatch, llm: type[FakeLLM], fields: list[str]) -> None:
    """Put a module that looks like vLLM where it is imported from."""
    module, engine, arguments = (
        ModuleType(name) for name in ("vllm", "vllm.engine", "vllm.engine.arg_utils")
    )
    vars(module).update(LLM=llm, SamplingParams=SimpleNamespace, __version__="0")
    vars(arguments).update(EngineArgs=dataclasses.make_dataclass("EngineArgs", ["model", "dtype", *fields]))
    for name, part in (("vllm", module), ("vllm.engine", engine), ("vllm.engine.arg_utils", arguments)):
        monkeypatch.setitem(sys.modules, name, part)


def groups(samples: int = 2) -> list[Group]:
    return [
        Group(task, build_messages(task), tuple(range(10 * place, 10 * place + samples)))
        for place, task in enumerate(TASKS)
    ]


@pytest.mark.parametrize("llm", [OldLLM, NewLLM])
@pytest.mark.parametrize("fields", [[], ["logprobs_mode", "generation_config"]])
def test_both_call_shapes_and_both_sets_of_arguments(
    monkeypatch: pytest.MonkeyPatch, llm: type[FakeLLM], fields: list[str]
) -> None:
    """Row 22: what differs between releases is looked up, and the form that all of them take is used."""
    install(monkeypatch, llm, fields)
    engine: Any = load_engine("vllm/some/model", EngineOptions(dtype="float32", batch_size=5))
    wanted = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"}
    assert {name: engine.llm.options.get(name) for name in fields} == {name: wanted[name] for name in fields}
    assert set(engine.llm.options) == {
        "model",
        "dtype",
        "revision",
        "trust_remote_code",
        "enforce_eager",
        "enable_chunked_prefill",
        *fields,
    }
    found = dict(engine.generate(groups(), GenerationSettings()))
    assert {place: [sample.response for sample in samples] for place, samples in found.items()} == {
        0: ["0", "1"],
        1: ["10", "11"],
        2: ["20", "21"],
    }
    sample = found[0][0]
    assert (sample.logprob, sample.output_tokens, sample.finish_reason) == (-0.75, 2, "stop")
    assert sample.input_tokens == len(engine.chat.prompt_ids(groups()[0].messages))
    assert engine.groups_per_batch == 5
    assert engine.describe()["processed_logprobs"] == bool(fields)


@pytest.mark.parametrize(
    ("settings", "processed", "raw"),
    [
        (GenerationSettings(), -0.75, -0.75),
        (GenerationSettings(temperature=0.7), -0.75, None),
        (GenerationSettings(top_p=0.9), None, None),
        (GenerationSettings(top_k=3), None, None),
        (GenerationSettings(temperature=0.0), None, None),
    ],
)
def test_a_log_probability_is_given_only_where_it_is_the_one_meant(
    monkeypatch: pytest.MonkeyPatch, settings: GenerationSettings, processed: float | None, raw: float | None
) -> None:
    for fields, expected in ((["logprobs_mode"], processed), ([], raw)):
        install(monkeypatch, NewLLM, fields)
        engine = load_engine("vllm/m")
        assert {s.logprob for _, samples in engine.generate(groups(), settings) for s in samples} == {
            expected
        }


def test_parameters_leave_nothing_to_stored_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 5: neutral values are sent for what the settings do not name."""
    install(monkeypatch, NewLLM, [])
    engine: Any = load_engine("vllm/m")
    asked = vars(engine._parameters(GenerationSettings(stop=("##",)), 2**62, 9))
    assert asked == {
        "n": 1, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
        "max_tokens": 9, "stop": ["##"], "stop_token_ids": engine.end_token_ids, "seed": 2**62, "logprobs": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [("StructuredOutputsParams", "structured_outputs"), ("GuidedDecodingParams", "guided_decoding")],
)
def test_a_grammar_is_sent_under_the_name_that_the_release_knows(
    monkeypatch: pytest.MonkeyPatch, kind: str, parameter: str
) -> None:
    install(monkeypatch, NewLLM, [])
    module = ModuleType("vllm.sampling_params")
    setattr(module, kind, SimpleNamespace)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)
    monkeypatch.setattr(sys.modules["vllm"], "sampling_params", module, raising=False)
    engine: Any = load_engine("vllm/m")
    held = vars(engine._parameters(GenerationSettings(), 1, 9, "root ::= [01]"))
    assert held.pop(parameter) == SimpleNamespace(grammar="root ::= [01]")
    assert held == vars(engine._parameters(GenerationSettings(), 1, 9))


def test_a_prompt_that_does_not_fit_is_an_error_and_its_neighbours_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, NewLLM, [])
    whole: Any = load_engine("vllm/m")
    sizes = [len(whole.chat.prompt_ids(group.messages)) for group in groups()]
    longest = max(sizes)
    engine = load_engine("vllm/m", EngineOptions(max_model_len=longest))
    found = dict(engine.generate(groups(), GenerationSettings()))
    for place, size in enumerate(sizes):
        errors = [sample.error for sample in found[place]]
        assert all(errors) if size == longest else errors == [None, None]
    assert len(found) == 3


def test_a_response_broken_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, type("Aborting", (NewLLM,), {"finish": "abort"}), [])
    found = dict(load_engine("vllm/m").generate(groups(), GenerationSettings()))
    assert {sample.error for samples in found.values() for sample in samples} == {
        "vLLM broke the response off (finish_reason abort)"
    }


def test_a_missing_vllm_and_a_model_that_does_not_load_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(EngineUnavailable, match=r'vLLM .*: pip install "modebench-toolkit\[vllm\]"'):
        load_engine("vllm/m")

    def broken(self: FakeLLM, **options: Any) -> None:
        raise OSError("no such\nmodel")

    install(monkeypatch, type("Broken", (NewLLM,), {"__init__": broken}), [])
    with pytest.raises(EngineUnavailable, match="vLLM did not load m: no such model"):
        load_engine("vllm/m")
