"""Options that several commands share. Defaults come from the typed configuration, nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import reduce
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from modebench.config import EvalConfig, Selection
from modebench.prompts import PROFILES
from modebench.sampling import EngineOptions
from modebench.sampling.base import GenerationSettings
from modebench.verifiers.registry import READINGS

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
MODEL_HELP = (
    "hf/PATH-or-id, vllm/PATH-or-id, openai/NAME, recorded/FILE or mock/oracle|uniform|collapsed|random."
)


def default_of(config: type, name: str) -> Any:
    """The default of a field of a configuration class."""
    [value] = [entry.default for entry in fields(config) if entry.name == name]
    return value


def names(ctx: click.Context, param: click.Parameter, value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Callback: a comma-separated list of names, none where the option has neither value nor default."""
    if value is None or isinstance(value, tuple):
        return value or ()
    found = tuple(name.strip() for name in value.split(",") if name.strip())
    if not found:
        raise click.BadParameter("names nothing", ctx, param)
    return found


def levels(ctx: click.Context, param: click.Parameter, value: str | tuple[int, ...]) -> tuple[int, ...]:
    """Callback: a comma-separated list of levels 1 to 5."""
    if isinstance(value, tuple):
        return value
    pieces = [piece.strip().removeprefix("level") for piece in value.split(",")]
    if any(piece not in {"1", "2", "3", "4", "5"} for piece in pieces):
        raise click.BadParameter(f"{value!r} is not a list of levels 1 to 5", ctx, param)
    return tuple(dict.fromkeys(map(int, pieces)))


def shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Callback: i/n, checked where the tasks are known."""
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]+/[0-9]+", value, re.ASCII):
        raise click.BadParameter(f"{value!r} is not i/n, such as 1/4", ctx, param)
    first, _, count = value.partition("/")
    return int(first), int(count)


def json_object(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, Any] | None:
    """Callback: a JSON object."""
    if value is None:
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"is not JSON ({error})", ctx, param) from None
    if not isinstance(found, dict):
        raise click.BadParameter(f"must be a JSON object, not {value}", ctx, param)
    return found


def temperatures(
    ctx: click.Context, param: click.Parameter, value: str | float | tuple[float, ...]
) -> float | tuple[float, ...]:
    """Callback: a number, or a comma-separated list of different ones."""
    if not isinstance(value, str):
        return value
    try:
        found = tuple(dict.fromkeys(float(piece) for piece in value.split(",")))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number or a list of numbers", ctx, param) from None
    if not all(map(isfinite, found)):
        raise click.BadParameter(f"{value!r} is not finite", ctx, param)
    return found if len(found) > 1 else found[0]


def _apply(options: list[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


selection_options = _apply(
    [
        click.option(
            "--domain", "domains", metavar="NAME[,NAME]", callback=names,
            default=",".join(default_of(Selection, "domains")), show_default="all five",
            help="Domains, comma-separated.",
        ),
        click.option(
            "--level", "levels", metavar="1-5[,1-5]", callback=levels,
            default=",".join(map(str, default_of(Selection, "levels"))), show_default=True,
            help="Levels, comma-separated.",
        ),
        click.option(
            "--split", default=default_of(Selection, "split"), show_default=True, help="Frozen split.",
        ),
        click.option("--limit", "-n", type=int, help="Tasks of each domain and level, from the first."),
        click.option(
            "--tasks", "file", type=PATH, help="A JSON Lines file of tasks instead of frozen splits.",
        ),
        click.option(
            "--shard", metavar="i/n", callback=shard,
            help="Every n-th task, from the i-th; modebench merge joins the n runs.",
        ),
    ]
)  # fmt: skip

sampling_options = _apply(
    [
        click.option(
            "--samples", "-k", type=int, default=default_of(EvalConfig, "samples"), show_default=True,
            help="Responses a task, each with its own seed.",
        ),
        click.option(
            "--temperature", metavar="FLOAT[,FLOAT]", callback=temperatures,
            default=str(default_of(GenerationSettings, "temperature")), show_default=True,
            help="Sampling temperature; the model's own defaults are not used. Several make a run folder "
            "each (T0.4, T1.0, …) under --output.",
        ),
        click.option(
            "--top-p", type=float, default=default_of(GenerationSettings, "top_p"), show_default=True,
            help="Nucleus mass; 1 keeps every token.",
        ),
        click.option(
            "--top-k", type=int, default=default_of(GenerationSettings, "top_k"), show_default=True,
            help="Tokens kept; 0 keeps every token.",
        ),
        click.option(
            "--max-tokens", type=int, default=default_of(GenerationSettings, "max_tokens"), show_default=True,
            help="New tokens a response at most.",
        ),
        click.option("--stop", multiple=True, help="A text that ends a response; may be given again."),
        click.option(
            "--seed", type=int, default=default_of(EvalConfig, "seed"), show_default=True,
            help="Run seed; every sample's seed derives from it.",
        ),
        click.option(
            "--seed-bits", type=int, default=default_of(EvalConfig, "seed_bits"), show_default=True,
            help="Length of a sample's seed: 63, or 31 for a server that refuses more.",
        ),
        click.option(
            "--profile", type=click.Choice(PROFILES), default=default_of(EvalConfig, "profile"),
            show_default=True, help="Prompt profile: with a system message, the problem alone, or a line for "
            "the tiny policy; a model folder may have a default of its own.",
        ),
        click.option(
            "--system", help="System message in place of the profile's; an empty text leaves it out.",
        ),
        click.option(
            "--strip-reasoning/--no-strip-reasoning", default=default_of(EvalConfig, "strip_reasoning"),
            show_default=True, help="Split <think>…</think> off before verifying.",
        ),
        click.option(
            "--constrained", is_flag=True,
            help="Hold answers to the grammar of their domain: levels 2 to 5 without graph coloring, and "
            "pantry level 1.",
        ),
        click.option("--arm", help="A label for comparisons."),
        click.option(
            "--error-budget", type=float, default=default_of(EvalConfig, "error_budget"), show_default=True,
            help="Share of failed samples above which the run has failed.",
        ),
    ]
)  # fmt: skip

engine_options = _apply(
    [
        click.option(
            "--dtype", type=click.Choice(("auto", "float32", "bfloat16", "float16")),
            default=default_of(EngineOptions, "dtype"), show_default=True, help="Weights of a local model.",
        ),
        click.option(
            "--device", default=default_of(EngineOptions, "device"), show_default=True,
            help="Torch device of a local model.",
        ),
        click.option("--revision", help="Revision of a hub model."),
        click.option(
            "--chat-template/--no-chat-template", default=default_of(EngineOptions, "chat_template"),
            show_default=True, help="Use the chat template; of a server, the chat endpoint.",
        ),
        click.option("--batch-size", type=int, help="Prompts a batch  [default: chosen by the engine]"),
        click.option("--threads", type=int, help="CPU threads  [default: as they are]"),
        click.option(
            "--max-model-len", type=int, help="Tokens of prompt and response in vLLM  [default: the model's]"
        ),
    ]
)  # fmt: skip

server_options = _apply(
    [
        click.option("--base-url", metavar="URL", help="Server of an openai/ model  [default: OpenAI's]"),
        click.option(
            "--api-key-env", metavar="NAME", default=default_of(EngineOptions, "api_key_env"),
            show_default=True, help="Environment variable that holds the server's key.",
        ),
        click.option(
            "--concurrency", type=int, default=default_of(EngineOptions, "concurrency"), show_default=True,
            help="Requests in flight at most.",
        ),
        click.option(
            "--samples-per-request", type=int, default=default_of(EngineOptions, "samples_per_request"),
            show_default=True, help="Samples of one request; more than 1 share its seed.",
        ),
        click.option(
            "--timeout", type=float, default=default_of(EngineOptions, "timeout"), show_default=True,
            help="Seconds that a server may stay silent.",
        ),
        click.option(
            "--retries", type=int, default=default_of(EngineOptions, "retries"), show_default=True,
            help="Further tries of a request.",
        ),
        click.option(
            "--extra-body", metavar="JSON", callback=json_object, help="Further fields of every request.",
        ),
        click.option("--price-in", type=click.FloatRange(0), help="Price of a million input tokens."),
        click.option("--price-out", type=click.FloatRange(0), help="Price of a million output tokens."),
    ]
)  # fmt: skip

reading_option = click.option(
    "--reading", type=click.Choice(READINGS), default=default_of(EvalConfig, "reading"), show_default=True,
    help="How verifiers read answers.",
)  # fmt: skip
output_option = click.option(
    "--output", "-o", type=PATH, help="Run folder, empty or new  [default: runs/<time>_<model>]"
)
resume_option = click.option(
    "--resume", type=PATH, help="Continue this run folder; its own settings apply, other options do not."
)
prefix_options = _apply(
    [
        click.option(
            "--prefixes", type=PATH,
            help="Ask every task with these texts before it too: JSON Lines of {task_id, name, prefix} or "
            "{domain, level, name, prefix}.",
        ),
        click.option(
            "--prefix-control", is_flag=True,
            help="With --prefixes: ask once more without, to see what more samples alone bring.",
        ),
    ]
)  # fmt: skip
progress_option = click.option("--progress/--no-progress", default=True, help="Progress on stderr.")
