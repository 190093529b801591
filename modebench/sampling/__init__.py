"""Engines: whatever writes responses, behind one protocol, chosen by a model string."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from modebench.sampling.base import Engine, EngineUnavailable

__all__ = ["KINDS", "Engine", "EngineOptions", "EngineUnavailable", "load_engine", "parse_model"]

KINDS = ("hf", "recorded", "mock")


@dataclass(frozen=True)
class EngineOptions:
    """How a local model is loaded.

    Attributes:
        dtype: ``auto`` (as stored), ``float32``, ``bfloat16`` or ``float16``.
        device: ``auto`` (CUDA where there is one, else the CPU), or a torch device.
        revision: of a hub model.
        chat_template: use the tokenizer's chat template where it has one.
        batch_size: prompts a batch; None lets the engine choose.
        threads: CPU threads of this process; None leaves them as they are.
    """

    dtype: str = "auto"
    device: str = "auto"
    revision: str | None = None
    chat_template: bool = True
    batch_size: int | None = None
    threads: int | None = None


def parse_model(model: str) -> tuple[str, str]:
    """Kind and name of a model string, split at its first slash.

    Raises:
        EngineUnavailable: not a known kind.
    """
    kind, slash, name = model.partition("/")
    if not slash or not name or kind not in KINDS:
        close = get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {close[0]}/{name or 'NAME'}? " if close else ""
        raise EngineUnavailable(
            f"unknown model string {model!r}; {hint}expected hf/PATH-or-id, recorded/FILE or "
            "mock/oracle|uniform|collapsed|random"
        )
    return kind, name


def load_engine(model: str, options: EngineOptions | None = None) -> Engine:
    """The engine of a model string, split at its first slash: ``hf/PATH-or-id``, ``recorded/FILE``,
    ``mock/oracle`` and so on.

    Raises:
        EngineUnavailable: unknown kind, a missing extra, folder or file; one line with the cure.
    """
    options = options or EngineOptions()
    kind, name = parse_model(model)
    if kind == "mock":
        from modebench.sampling.mock import MockEngine

        return MockEngine(name)
    if kind == "recorded":
        from modebench.sampling.recorded import RecordedEngine

        return RecordedEngine(Path(name))
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
