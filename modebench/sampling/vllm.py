"""vLLM in this process: ``vllm/PATH-or-id``.

Prompts are rendered and tokenised as for the transformers engine, so both engines ask the same token ids.
Every sample is a request of its own with its own seed: vLLM gives child i of a request of n the seed + i.
What differs between its releases is looked up in its signatures, never in its version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from modebench.sampling.base import EngineUnavailable, FinishReason, GenerationSettings, Group, Sample
from modebench.sampling.chat import ChatFormat

# Groups handed over at once; vLLM schedules what fits by itself.
GROUPS_PER_BATCH = 64
_FINISHES: dict[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class VLLMEngine:
    """Draws samples through a `vllm.LLM`. `load_engine` builds one from a name.

    Args:
        llm: a `vllm.LLM`.
        name: what `describe` calls the model.
        processed: whether its log-probabilities are those of the sampling temperature.
        groups_per_batch: groups handed over at once; None for `GROUPS_PER_BATCH`.
        chat_template: False asks every model in plain text.
        origin: further provenance for `describe`.
    """

    def __init__(
        self,
        llm: Any,
        *,
        name: str,
        processed: bool,
        groups_per_batch: int | None = None,
        chat_template: bool = True,
        origin: dict[str, Any] | None = None,
    ) -> None:
        if groups_per_batch is not None and groups_per_batch < 1:
            raise ValueError(f"groups_per_batch is {groups_per_batch}, expected at least 1")
        self.groups_per_batch: int = groups_per_batch or GROUPS_PER_BATCH
        self.llm, self.name = llm, name
        self._processed = processed
        tokenizer = llm.get_tokenizer()
        self.chat = ChatFormat(tokenizer, use_template=chat_template)
        ends = (tokenizer.eos_token_id, self.chat.end_of_turn_id())
        self.end_token_ids = sorted({int(token) for token in ends if token is not None})
        self._origin = dict(origin or {})

    def describe(self) -> dict[str, Any]:
        """Provenance: model, versions, prompt format, end tokens."""
        import vllm

        return {
            "engine": "vllm",
            "model": self.name,
            **self._origin,
            "vllm": vllm.__version__,
            "processed_logprobs": self._processed,
            **self.chat.describe(),
            "end_token_ids": self.end_token_ids,
            "groups_per_batch": self.groups_per_batch,
        }

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        """Yield (index into `groups`, samples in seed order), each group once.

        `Sample.logprob` is None where vLLM's numbers are not those that it stands for: with top-p or
        top-k, which vLLM applies before it reads them off, and without processed log-probabilities at
        another temperature than 1. A prompt that does not fit the model's context is an error.
        """
        prompts: list[dict[str, Any]] = []
        parameters: list[Any] = []
        fitting: list[int] = []
        context = int(self.llm.llm_engine.model_config.max_model_len)
        for index, group in enumerate(groups):
            ids = self.chat.prompt_ids(group.messages)
            limit = min(settings.max_tokens, context - len(ids))
            if not ids or limit < 1:
                problem = (
                    f"the prompt has {len(ids)} tokens, the model takes 1 to {context} with the response"
                )
                lost = Sample("", "error", input_tokens=len(ids), error=problem)
                yield index, [lost] * len(group.seeds)
                continue
            fitting.append(index)
            prompts += [{"prompt_token_ids": ids}] * len(group.seeds)
            parameters += [self._parameters(settings, seed, limit, group.grammar) for seed in group.seeds]
        outputs = iter(self.llm.generate(prompts, parameters, use_tqdm=False) if prompts else ())
        for index in fitting:
            yield index, [self._sample(next(outputs), settings) for _ in groups[index].seeds]

    def constraint(self) -> dict[str, Any]:
        """What enforces grammars: vLLM's structured outputs, which take xgrammar for GBNF."""
        return {"library": "xgrammar", "version": version("xgrammar")}

    def _parameters(
        self, settings: GenerationSettings, seed: int, limit: int, grammar: str | None = None
    ) -> Any:
        """vLLM's sampling parameters of one sample; nothing is left to the model's stored defaults."""
        import vllm

        return vllm.SamplingParams(
            n=1,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k or -1,
            min_p=0.0,
            repetition_penalty=1.0,
            max_tokens=limit,
            stop=list(settings.stop) or None,
            stop_token_ids=self.end_token_ids,
            seed=seed,
            logprobs=0,
            **({} if grammar is None else _structured(grammar)),
        )

    def _sample(self, output: Any, settings: GenerationSettings) -> Sample:
        [completion] = output.outputs
        tokens = list(completion.token_ids)
        faithful = settings.top_p == 1 and not settings.top_k and settings.temperature > 0
        logprob = None
        if completion.logprobs is not None and faithful and (self._processed or settings.temperature == 1):
            pairs = zip(tokens, completion.logprobs, strict=True)
            logprob = sum(float(at_place[token].logprob) for token, at_place in pairs)
        finish = _FINISHES.get(completion.finish_reason)
        if finish is None:
            problem = f"vLLM broke the response off (finish_reason {completion.finish_reason})"
            return Sample("", "error", input_tokens=len(output.prompt_token_ids), error=problem)
        return Sample(
            response=completion.text,
            finish_reason=finish,
            input_tokens=len(output.prompt_token_ids),
            output_tokens=len(tokens),
            logprob=logprob,
        )


def _structured(grammar: str) -> dict[str, Any]:
    """The sampling parameter that holds a response to a grammar, as this release names it."""
    from vllm import sampling_params

    if hasattr(sampling_params, "StructuredOutputsParams"):
        return {"structured_outputs": sampling_params.StructuredOutputsParams(grammar=grammar)}
    return {"guided_decoding": sampling_params.GuidedDecodingParams(grammar=grammar)}


def load_engine(
    name: str,
    *,
    dtype: str = "auto",
    groups_per_batch: int | None = None,
    revision: str | None = None,
    chat_template: bool = True,
    max_model_len: int | None = None,
) -> VLLMEngine:
    """Load a model folder or a hub id into vLLM.

    Args:
        name: a local folder, or a hub id.
        dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
        groups_per_batch: groups handed over at once; None for `GROUPS_PER_BATCH`.
        revision: branch, tag or commit of a hub model.
        chat_template: False asks the model in plain text even where it has a template.
        max_model_len: tokens of a prompt with its response at most; None for what the model takes.

    Raises:
        EngineUnavailable: vLLM or the model is missing; one line, with the cure.
    """
    try:
        import torch
        import vllm
        from vllm.engine.arg_utils import EngineArgs
    except ImportError as error:
        raise EngineUnavailable(
            f'vllm models need vLLM ({error}): pip install "modebench-toolkit[vllm]"'
        ) from error
    known = {field.name for field in dataclasses.fields(EngineArgs)}
    options: dict[str, Any] = {"dtype": dtype, "revision": revision, "trust_remote_code": False}
    if max_model_len is not None:
        options["max_model_len"] = max_model_len
    if not torch.cuda.is_available():
        # Compiling for a CPU takes longer than most evaluations on one.
        options["enforce_eager"] = True
        # A prompt read in pieces makes vLLM set a seeded generator back, which torch can't do on a CPU.
        options["enable_chunked_prefill"] = False
    # Older releases know raw log-probabilities only, and always sample with the values that they are given.
    wanted = {"logprobs_mode": "processed_logprobs", "generation_config": "vllm"}
    options |= {option: value for option, value in wanted.items() if option in known}
    folder = Path(name).expanduser()
    try:
        llm = vllm.LLM(model=str(folder) if folder.is_dir() else name, **options)
    except Exception as error:  # whatever a damaged folder, a typo or an absent device may raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise EngineUnavailable(f"vLLM did not load {name}: {reason}") from error
    from modebench.sampling.transformers import folder_fingerprint

    origin: dict[str, Any] = {"dtype": str(llm.llm_engine.model_config.dtype).removeprefix("torch.")}
    origin |= {"fingerprint": folder_fingerprint(folder)} if folder.is_dir() else {"revision": revision}
    return VLLMEngine(
        llm,
        name=name,
        processed="logprobs_mode" in known,
        groups_per_batch=groups_per_batch,
        chat_template=chat_template,
        origin=origin,
    )
