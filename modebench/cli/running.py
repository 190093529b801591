"""What eval and generate have in common: from options to a run, new or resumed."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from modebench.cli.errors import FAILED, INCOMPLETE, OK
from modebench.config import EvalConfig, Selection
from modebench.errors import UsageError
from modebench.evaluation import create_run
from modebench.prompts import build_messages
from modebench.runs import RunFolder, in_use
from modebench.sampling import Engine, EngineOptions, load_engine, parse_model
from modebench.sampling.base import GenerationSettings


def config_from(options: dict[str, Any]) -> EvalConfig:
    """The typed configuration of command-line options."""
    options = dict(options, file=None if options["file"] is None else str(options["file"]))
    selection = Selection(**{entry.name: options[entry.name] for entry in fields(Selection)})
    settings = GenerationSettings(**{entry.name: options[entry.name] for entry in fields(GenerationSettings)})
    rest = {entry.name: options[entry.name] for entry in fields(EvalConfig) if entry.name in options}
    return EvalConfig(selection=selection, settings=settings, **rest)


def origins_of(ctx: click.Context) -> dict[str, str]:
    """Where every option's value came from."""
    names = {ParameterSource.COMMANDLINE: "command line", ParameterSource.DEFAULT: "default"}
    return {
        name: names.get(source, source.name.lower())
        for name in ctx.params
        if (source := ctx.get_parameter_source(name)) is not None
    }


def open_run(ctx: click.Context, options: dict[str, Any]) -> tuple[RunFolder, Engine]:
    """The run to work on and its engine: a new one, or the one to resume with its recorded settings."""
    if options["resume"] is not None:
        run = RunFolder.open(options["resume"])
        if options["model"] is not None and options["model"] != run.manifest["model"]:
            raise UsageError(
                f"{options['resume']} is a run of {run.manifest['model']}, not {options['model']}"
            )
        recorded = EngineOptions(**run.manifest["engine_options"])
        return run, load_engine(
            run.manifest["model"], replace(recorded, batch_size=run.manifest["groups_per_batch"])
        )
    if options["model"] is None:
        raise UsageError("--model is missing, e.g. --model hf/PATH or --model mock/uniform")
    kind, _ = parse_model(options["model"])
    config = config_from(options)
    config.check()
    config.selection.load()
    engine_options = EngineOptions(**{entry.name: options[entry.name] for entry in fields(EngineOptions)})
    output = options["output"] or _default_output(options["model"])
    if in_use(output):
        raise UsageError(
            f"output folder {output} is in use; choose another, or continue it with --resume {output}"
        )
    if kind == "hf":
        click.echo(f"loading {options['model']} …", err=True)
    engine = load_engine(options["model"], engine_options)
    run = create_run(
        output,
        engine,
        options["model"],
        config,
        origins=origins_of(ctx),
        engine_options=asdict(engine_options),
    )
    return run, engine


def _default_output(model: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "--", model).strip("-")[-60:]
    return Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}_{name}"


def announce(run: RunFolder) -> None:
    """Say up front how much is asked."""
    samples = run.manifest["samples"]
    tasks = sum(entry["count"] for entry in run.manifest["task_sets"])
    click.echo(f"{samples} samples × {tasks} tasks = {samples * tasks} responses → {run.path}", err=True)


def outcome(run: RunFolder, missing: int, command: str) -> int:
    """The exit code of a run; says how to go on where samples are missing."""
    if not missing:
        return OK
    click.echo(f"{missing} samples are missing; resume with: {resume_command(run, command)}", err=True)
    return FAILED if run.manifest["status"] == "error" else INCOMPLETE


def resume_command(run: RunFolder, command: str) -> str:
    return f"modebench {command} --resume {shlex.quote(str(run.path))}"


def dry_run(options: dict[str, Any], ctx: click.Context) -> None:
    """Print the resolved configuration, where each value came from, and the first prompt."""
    config = config_from(options)
    config.check()
    sets = config.selection.load()
    origins = origins_of(ctx)
    for name, value in options.items():
        if name in origins and name not in ("dry_run", "progress"):
            click.echo(f"{name:16} {value!r}  ({origins[name]})")
    for tasks in sets:
        click.echo(f"{'task set':16} {tasks.name}: {len(tasks)} tasks, sha256 {tasks.sha256[:16]}…")
    for message in build_messages(sets[0][0], config.profile, config.system):
        click.echo(f"--- {message['role']}\n{message['content']}")
