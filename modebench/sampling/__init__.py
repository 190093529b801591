"""Engines: whatever writes responses, behind one protocol, chosen by a model string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from modebench.sampling.base import Engine, EngineUnavailable
from modebench.tiny import TINY, tiny_folder

__all__ = ["KINDS", "Engine", "EngineOptions", "EngineUnavailable", "load_engine", "parse_model"]

KINDS = ("hf", "vllm", "openai", "recorded", "mock")


@dataclass(frozen=True)
class EngineOptions:
    """How a local model is loaded, or a server asked.

    Attributes:
        dtype: ``auto`` (as stored), ``float32``, ``bfloat16`` or ``float16``.
        device: ``auto`` (CUDA where there is one, else the CPU), or a torch device.
        revision: of a hub model.
        chat_template: use the tokenizer's chat template where it has one; of a server, its chat endpoint,
            else its completions endpoint, with the prompt as plain text.
        batch_size: prompts a batch; None lets the engine choose.
        threads: CPU threads of this process; None leaves them as they are.
        max_model_len: tokens of a prompt with its response that vLLM makes room for; None for the model's.
        base_url: of a server, up to and with ``/v1``; None for OpenAI's own.
        api_key_env: name of the environment variable that holds a server's key.
        concurrency: requests in flight at most.
        samples_per_request: samples asked for in one request, with the seed of the first of them.
        timeout: seconds that a server may stay silent.
        retries: further tries of a request.
        extra_body: further fields of every request.
        price_in, price_out: price of a million input and output tokens; None where unknown.
    """

    dtype: str = "auto"
    device: str = "auto"
    revision: str | None = None
    chat_template: bool = True
    batch_size: int | None = None
    threads: int | None = None
    max_model_len: int | None = None
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 16
    samples_per_request: int = 1
    timeout: float = 300.0
    retries: int = 8
    extra_body: Mapping[str, Any] | None = None
    price_in: float | None = None
    price_out: float | None = None


def parse_model(model: str) -> tuple[str, str]:
    """Kind and name of a model string, split at its first slash; ``tiny`` is the packaged policy.

    Raises:
        EngineUnavailable: not a known kind.
    """
    kind, slash, name = model.partition("/")
    if model == TINY or (kind in ("hf", "vllm") and name == TINY):
        return (kind if slash else "hf"), str(tiny_folder())
    if not slash or not name or kind not in KINDS:
        close = get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {close[0]}/{name or 'NAME'}? " if close else ""
        raise EngineUnavailable(
            f"unknown model string {model!r}; {hint}expected tiny, hf/PATH-or-id, vllm/PATH-or-id, "
            "openai/NAME, recorded/FILE "
            "or mock/oracle|uniform|collapsed|random"
        )
    return kind, name


def load_engine(model: str, options: EngineOptions | None = None) -> Engine:
    """The engine of a model string, split at its first slash: ``tiny``, ``hf/PATH-or-id``,
    ``vllm/PATH-or-id``, ``openai/NAME``, ``recorded/FILE``, ``mock/oracle`` and so on.

    Raises:
        EngineUnavailable: unknown kind, a missing extra, folder, file or server; one line with the cure.
        UsageError: an option out of range.
    """
    options = options or EngineOptions()
    kind, name = parse_model(model)
    if kind == "mock":
        from modebench.sampling.mock import MockEngine

        return MockEngine(name)
    if kind == "recorded":
        from modebench.sampling.recorded import RecordedEngine

        return RecordedEngine(Path(name))
    if kind == "openai":
        from modebench.sampling.openai_compatible import OpenAICompatibleEngine

        return OpenAICompatibleEngine(name, options)
    if kind == "vllm":
        from modebench.sampling.vllm import load_engine as load_vllm

        return load_vllm(
            name,
            dtype=options.dtype,
            groups_per_batch=options.batch_size,
            revision=options.revision,
            chat_template=options.chat_template,
            max_model_len=options.max_model_len,
        )
    from modebench.sampling.transformers import load_engine as load_transformers

    return load_transformers(
        name,
        dtype=options.dtype,
        device=options.device,
        groups_per_batch=options.batch_size,
        threads=options.threads,
        revision=options.revision,
        chat_template=options.chat_template,
    )
