"""``modebench coach``: prefixes that name ways to go about tasks, and the check that they tell no more."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.errors import FAILED, INCOMPLETE, OK
from modebench.coaching import CONTROLS, by_rule, check_leaks, write_prefixes
from modebench.config import Selection
from modebench.errors import UsageError
from modebench.prompts import PROFILES
from modebench.sampling import EngineOptions, load_engine
from modebench.sampling.base import GenerationSettings


@click.command("coach")
@shared.selection_options
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="direct",
    show_default=True,
    help="Prompt profile that the prefixes are for; compact has no wrapper.",
)
@click.option(
    "--coach", "model", metavar="MODEL", help="Let a model write them, for each task: hf/…, openai/…."
)
@click.option(
    "--control",
    type=click.Choice(CONTROLS),
    default="none",
    show_default=True,
    help="In place of the strategies: those of another domain, one for all, no text, or nonsense.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of nonsense, and of the coach's samples."
)
@click.option("--temperature", type=float, default=1.0, show_default=True, help="Of the coach.")
@click.option("--max-tokens", type=int, default=400, show_default=True, help="Of a coach's reply.")
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Requests for a task whose reply cannot be used.",
)
@shared.engine_options
@shared.server_options
@click.option("--output", "-o", type=shared.PATH, help="File to write.")
@click.option("--check", type=shared.PATH, help="A run of eval --prefixes before training, to check instead.")
@click.option(
    "--margin",
    type=float,
    default=0.05,
    show_default=True,
    help="With --check: by how much accuracy may be higher with a prefix.",
)
def command(**options: Any) -> int:
    """Write prefixes for tasks, a method and one sentence each, that no verifier finds an answer in.

    By rule there are four a cell. What is written is what eval --prefixes and coaching.file ask with.
    """
    if options["check"] is not None:
        return _check(options["check"], options["margin"])
    if options["output"] is None:
        raise UsageError("--output is missing, e.g. --output prefixes.jsonl")
    if options["output"].exists():
        raise UsageError(f"{options['output']} exists already; name another file")
    chosen = {entry.name: options[entry.name] for entry in fields(Selection)}
    sets = Selection(**(chosen | {"file": options["file"] and str(options["file"])})).load()
    tasks = [task for members in sets for task in members]
    refused: dict[str, str] = {}
    if options["model"] is None:
        cells = dict.fromkeys((task.domain, task.level) for task in tasks)
        prefixes = by_rule(cells, options["profile"], options["control"], options["seed"])
        check_leaks(prefixes, tasks)
    else:
        from modebench.coach_model import ask

        if options["control"] != "none":
            raise UsageError("--control is of the strategies by rule; leave --coach out")
        engine_options = EngineOptions(**{each.name: options[each.name] for each in fields(EngineOptions)})
        settings = GenerationSettings(temperature=options["temperature"], max_tokens=options["max_tokens"])
        prefixes, refused = ask(
            load_engine(options["model"], engine_options), tasks, options["profile"], settings,
            seed=options["seed"], attempts=options["attempts"],
        )  # fmt: skip
        if not prefixes:
            task, reason = next(iter(refused.items()))
            raise UsageError(f"{options['model']} wrote no usable prefixes; of {task}: {reason}")
    write_prefixes(options["output"], prefixes)
    click.echo(f"{options['output']}: {len(prefixes)} prefixes, no answer among them ({len(tasks)} tasks)")
    for task_id, reason in refused.items():
        click.echo(f"{task_id} has none: {reason}", err=True)
    return INCOMPLETE if refused else OK


def _check(path: Path, margin: float) -> int:
    from modebench.analysis.coach_check import step_zero
    from modebench.samples import load_run

    verdict = step_zero(load_run(path).samples(texts=False), margin)
    click.echo(verdict.text)
    return OK if verdict.passed else FAILED
