"""What eval and generate have in common: from options to a run, new or resumed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from modebench.cli.errors import FAILED, INCOMPLETE, INTERRUPTED, OK
from modebench.cli.progress import progress_reporter
from modebench.config import EvalConfig, Selection
from modebench.errors import UsageError
from modebench.evaluation import Progress, create_run, samples_asked
from modebench.probing import read_prefixes
from modebench.prompts import build_messages
from modebench.runs import MANIFEST, RunFolder, refuse_in_use
from modebench.sampling import Engine, EngineOptions, load_engine, parse_model
from modebench.sampling.base import GenerationSettings
from modebench.tiny import model_defaults


@dataclass(frozen=True)
class Work:
    """Runs of one engine: a single one, or one a temperature.

    Attributes:
        runs: the runs, in the order in which they are worked on.
        engine: what answers.
        path: what --resume takes: the folder of the single run, or the one that holds them all.
        command: the command that is carried out.
    """

    runs: list[RunFolder]
    engine: Engine
    path: Path
    command: str

    def carry_out(self, stage: Callable[[RunFolder, Engine, Progress | None], int], progress: bool) -> int:
        """Bring every run through a stage, which returns its number of missing samples; the exit code.

        Says how to go on where the work was interrupted or samples are missing.
        """
        missing = 0
        try:
            for run in self.runs:
                announce(run)
                with progress_reporter(progress) as reporter:
                    missing += stage(run, self.engine, reporter)
        except KeyboardInterrupt:
            click.echo(f"interrupted; resume with: {self.resume_command()}", err=True)
            return INTERRUPTED
        if not missing:
            return OK
        click.echo(f"{missing} samples are missing; resume with: {self.resume_command()}", err=True)
        return FAILED if any(run.manifest["status"] == "error" for run in self.runs) else INCOMPLETE

    def resume_command(self) -> str:
        return f"modebench {self.command} --resume {shlex.quote(str(self.path))}"


def configs_from(options: dict[str, Any]) -> list[EvalConfig]:
    """The checked typed configurations of command-line options, one a temperature."""
    options = dict(options, file=None if options["file"] is None else str(options["file"]))
    if options.get("prefixes") is not None:
        options["prefixes"] = read_prefixes(options["prefixes"])
    else:
        options.pop("prefixes", None)
    selection = Selection(**{entry.name: options[entry.name] for entry in fields(Selection)})
    named = [entry.name for entry in fields(GenerationSettings) if entry.name != "temperature"]
    settings = GenerationSettings(**{name: options[name] for name in named})
    rest = {entry.name: options[entry.name] for entry in fields(EvalConfig) if entry.name in options}
    asked = options["temperature"]
    temperatures = asked if isinstance(asked, tuple) else (asked,)
    configs = [
        EvalConfig(selection=selection, settings=replace(settings, temperature=temperature), **rest)
        for temperature in temperatures
    ]
    for config in configs:
        config.check()
    return configs


def with_model_defaults(ctx: click.Context, options: dict[str, Any]) -> dict[str, Any]:
    """The options with what the model's own folder says where the user said nothing.

    Raises:
        EngineUnavailable: not a known kind of model.
        InputError: the folder's profile cannot be read.
    """
    kind, name = parse_model(options["model"])
    told = model_defaults(Path(name).expanduser()) if kind in ("hf", "vllm") else {}
    free = {option for option in told if ctx.get_parameter_source(option) is ParameterSource.DEFAULT}
    return options | {option: value for option, value in told.items() if option in free}


def origins_of(ctx: click.Context, options: Mapping[str, Any]) -> dict[str, str]:
    """Where every option's value came from; those that differ from the command line's are the model's own."""
    names = {ParameterSource.COMMANDLINE: "command line", ParameterSource.DEFAULT: "default"}
    return {
        name: names.get(source, source.name.lower()) if options[name] == value else "model"
        for name, value in ctx.params.items()
        if (source := ctx.get_parameter_source(name)) is not None and name in options
    }


def open_work(ctx: click.Context, options: dict[str, Any], command: str) -> Work:
    """What there is to do: new runs, or those to resume with their recorded settings."""
    if options["resume"] is not None:
        return _resumed(options["resume"], options["model"], command)
    if options["model"] is None:
        raise UsageError("--model is missing, e.g. --model hf/PATH or --model mock/uniform")
    kind, _ = parse_model(options["model"])
    options = with_model_defaults(ctx, options)
    configs = configs_from(options)
    configs[0].selection.load()
    engine_options = EngineOptions(**{entry.name: options[entry.name] for entry in fields(EngineOptions)})
    output = options["output"] or _default_output(options["model"])
    refuse_in_use(output)
    if kind in ("hf", "vllm"):
        click.echo(f"loading {options['model']} …", err=True)
    engine = load_engine(options["model"], engine_options)

    def create(path: Path, config: EvalConfig) -> RunFolder:
        origins, settings = origins_of(ctx, options), asdict(engine_options)
        return create_run(path, engine, options["model"], config, origins=origins, engine_options=settings)

    runs = [create(output, configs[0])] if len(configs) == 1 else _create_all(output, configs, create)
    return Work(runs, engine, output, command)


def _create_all(
    output: Path, configs: Sequence[EvalConfig], create: Callable[[Path, EvalConfig], RunFolder]
) -> list[RunFolder]:
    """A run folder for every temperature; all of them appear at once, so that none is missing on resuming."""
    draft = output.with_name(f"{output.name}.{os.getpid()}.part")
    try:
        names = [f"T{config.settings.temperature}" for config in configs]
        for name, config in zip(names, configs, strict=True):
            create(draft / name, config)
        draft.replace(output)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [RunFolder.open(output / name) for name in names]


def _resumed(path: Path, model: str | None, command: str) -> Work:
    folders = [manifest.parent for manifest in path.glob(f"T*/{MANIFEST}")]
    runs = [RunFolder.open(folder) for folder in folders or [path]]
    runs.sort(key=lambda run: float(run.manifest["settings"]["temperature"]))
    manifest = runs[0].manifest
    if model is not None and model != manifest["model"]:
        raise UsageError(f"{path} is a run of {manifest['model']}, not {model}")
    recorded = EngineOptions(**manifest["engine_options"])
    options = replace(recorded, batch_size=manifest["groups_per_batch"])
    return Work(runs, load_engine(manifest["model"], options), path, command)


def _default_output(model: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "--", model).strip("-")[-60:]
    return Path("runs") / f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}_{name}"


def announce(run: RunFolder) -> None:
    """Say up front how much is asked."""
    samples, asked = run.manifest["samples"], samples_asked(run)
    prompts = "prompts" if "prefixes" in run.manifest else "tasks"
    click.echo(f"{samples} samples × {asked // samples} {prompts} = {asked} responses → {run.path}", err=True)
    held = run.manifest.get("grammars", {}).get("tasks", {})
    free = [name for name, count in held.items() if not count]
    if free:
        click.echo(f"not constrained, as there is no grammar: {', '.join(free)}", err=True)


def dry_run(options: dict[str, Any], ctx: click.Context) -> None:
    """Print the resolved configuration, where each value came from, and the first prompt."""
    if options["model"] is not None:
        options = with_model_defaults(ctx, options)
    config = configs_from(options)[0]
    sets = config.selection.load()
    origins = origins_of(ctx, options)
    for name, value in options.items():
        if name in origins and name not in ("dry_run", "progress"):
            click.echo(f"{name:16} {value!r}  ({origins[name]})")
    for tasks in sets:
        click.echo(f"{'task set':16} {tasks.name}: {len(tasks)} tasks, sha256 {tasks.sha256[:16]}…")
    for message in build_messages(sets[0][0], config.profile, config.system):
        click.echo(f"--- {message['role']}\n{message['content']}")
