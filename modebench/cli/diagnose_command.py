"""``modebench diagnose``: MEI, coupling and strategies of a saved policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.progress import progress_reporter
from modebench.config import Selection
from modebench.errors import UsageError
from modebench.prompts import PROFILES


@click.command("diagnose")
@click.argument("model")
@click.option("--domain", "domains", metavar="NAME[,NAME]", callback=shared.names, required=True)
@click.option(
    "--level", "levels", metavar="1-5[,1-5]", callback=shared.levels, default="1", show_default=True
)
@click.option("--split", default="eval", show_default=True, help="Frozen split.")
@click.option(
    "--limit", "-n", type=int, default=32, show_default=True, help="Tasks of each domain and level."
)
@click.option(
    "--samples",
    "-k",
    type=click.IntRange(min=2),
    default=16,
    show_default=True,
    help="Rollouts a task; MEI depends on it.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(min=0),
    default=0.05,
    show_default=True,
    help="Of the neighbourhoods, on cosines.",
)
@click.option(
    "--profile", type=click.Choice(PROFILES), help="Prompt profile  [default: the model's, or direct]"
)
@click.option("--max-tokens", type=int, help="Tokens of a response at most  [default: the model's, or 192]")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--device", default="auto", show_default=True, help="Torch device.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the readings of every task.")
@shared.progress_option
def command(model: str, as_json: bool, progress: bool, **options: Any) -> int:
    """Show how the responses of MODEL (tiny or hf/PATH-or-id) pull on each other, and what strategies that
    makes beside the modes that execute differently."""
    from modebench.sampling.base import GenerationSettings
    from modebench.tiny import model_defaults
    from modebench.training import policy
    from modebench.training.diagnose import diagnose
    from modebench.training.setup import model_name

    chosen = {name: options[name] for name in ("domains", "levels", "split", "limit")}
    sets = Selection(**chosen).load()
    name = model_name(model)
    told = model_defaults(Path(name).expanduser())
    profile = options["profile"] or told.get("profile", "direct")
    settings = GenerationSettings(max_tokens=options["max_tokens"] or told.get("max_tokens", 192))
    loaded = policy.load(name, device=options["device"], profile=profile)
    found = {}
    for tasks in sets:
        with progress_reporter(progress) as reporter:
            try:
                found[tasks.name] = diagnose(
                    loaded, tasks.tasks, settings, samples=options["samples"], seed=options["seed"],
                    epsilon=options["epsilon"], progress=reporter,
                )  # fmt: skip
            except ValueError as error:
                raise UsageError(f"{model} cannot be diagnosed: {error}") from None
    if as_json:
        click.echo(json.dumps({"model": model, "profile": profile, "cells": found}, indent=2))
    else:
        click.echo("\n\n".join(_table(cell, document) for cell, document in found.items()))
    return 0


def _table(cell: str, document: dict[str, Any]) -> str:
    """The numbers of a cell in words."""
    forms = document["mei"]
    lines = [
        f"{cell}: {document['tasks']} tasks, G = {document['samples']}",
        f"  accuracy {_text(document['accuracy'])}  PCMD {_text(document['pcmd'])}  "
        f"entropy {_text(document['entropy'])} nats a token",
        f"  MEI: mean of ratios {_text(forms['mean'])}, ratio of sums {_text(forms['ratio_of_sums'])}, "
        f"by advantage {_text(forms['advantage'])}, right only {_text(forms['correct'])}",
    ]
    titles = {
        "cosine_same_mode": "cosine, one mode",
        "cosine_other_mode": "cosine, two modes",
        "raw_same_mode": "product, one mode",
        "raw_other_mode": "product, two modes",
        "strategies": "strategies",
        "modes": "modes",
        "adjusted_rand": "adjusted Rand",
        "largest_strategy": "largest strategy",
    }
    places = document["coupling"]
    lines.append(f"  {'right rollouts of a task':26}" + "".join(f"{place:>14}" for place in places))
    for name, title in titles.items():
        lines.append(f"  {title:26}" + "".join(f"{_text(found.get(name)):>14}" for found in places.values()))
    lines.append(
        f"  {'tasks with two or more':26}" + "".join(f"{found['tasks']:>14.0f}" for found in places.values())
    )
    return "\n".join(lines)


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
