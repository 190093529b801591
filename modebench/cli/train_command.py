"""``modebench train``: change a model, and measure it all the way."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from modebench.cli import options as shared
from modebench.cli.errors import INTERRUPTED, OK
from modebench.cli.progress import TrainingReporter
from modebench.errors import TrainingError, UsageError
from modebench.prompts import build_messages
from modebench.sampling import EngineUnavailable

_NAMES = {
    "method": "method", "model": "model", "steps": "steps", "domains": "data.domains",
    "levels": "data.levels", "seed": "run.seed", "adds": "add",
}  # fmt: skip
"""Options of this command and the settings that they are."""


@click.command("train")
@click.option("--method", help="Id of a method; see: modebench methods.")
@click.option("--model", "-m", help="hf/PATH-or-id.")
@click.option("--domain", "domains", metavar="NAME[,NAME]", help="Domains, comma-separated.")
@click.option("--level", "levels", metavar="1-5[,1-5]", help="Levels, comma-separated  [default: 1]")
@click.option("--steps", type=int, help="Updates of the policy  [default: 100]")
@click.option("--seed", type=int, help="Run seed; samples and task order derive from it  [default: 0]")
@click.option("--output", "-o", type=shared.PATH, help="Training folder, empty or new.")
@click.option("--config", "file", type=shared.PATH, help="A YAML file of settings.")
@click.option(
    "--set", "sets", multiple=True, metavar="PART.OPTION=VALUE", help="One setting; may be repeated."
)
@click.option("--add", "adds", multiple=True, metavar="PART", help="A further part; may be repeated.")
@click.option("--resume", type=shared.PATH, help="Continue this training folder; its own settings apply.")
@click.option("--dry-run", "dry", is_flag=True, help="Print every setting with its origin, the first prompt.")
@shared.progress_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> int:
    """Train a model with a method, and evaluate it all the way by the ordinary harness.

    Settings come from the defaults, the model's profile, --config, then the command line; --dry-run shows
    which. Writes config.yaml, metrics.jsonl (a line a step), timing.jsonl, eval/step-… (ordinary run folders;
    summarise them with --by arm,step), checkpoints/step-… (ordinary model folders) and summary.json. The last
    checkpoint is the result. A killed run goes on with --resume DIR. For several processes:
    torchrun --nproc_per_node N -m modebench train …
    """
    require_extra()
    from modebench.training.folder import TrainingFolder
    from modebench.training.setup import plan, recorded

    if options["resume"] is not None:
        _refuse_others(ctx)
        path = options["resume"]
        return _train(recorded(TrainingFolder.open(path)), path, options["progress"], resume=True)
    planned = plan(_layers(options))
    if options["dry"]:
        _dry_run(planned)
        return OK
    if options["output"] is None:
        raise UsageError("--output is missing, e.g. --output runs/dr_grpo")
    return _train(planned, options["output"], options["progress"], resume=False)


def require_extra() -> None:
    """Say what to install where the packages of training are missing."""
    missing = [name for name in ("torch", "transformers", "accelerate", "yaml") if find_spec(name) is None]
    if missing:
        raise EngineUnavailable(
            f'training needs {", ".join(missing)}: pip install "modebench-toolkit[train]"'
        )


def _refuse_others(ctx: click.Context) -> None:
    """A resumed run takes nothing from the command line, so nothing given there may pass unnoticed."""
    given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    others = [name for name in given if name not in ("resume", "progress")]
    if others:
        flags = [parameter.opts[0] for parameter in ctx.command.params if parameter.name in others]
        raise UsageError(f"--resume goes on with the settings of the run; leave out {', '.join(flags)}")


def _layers(options: Mapping[str, Any]) -> list[Any]:
    """The user's settings: the file, the options of this command, --set."""
    from modebench.training.settings import from_assignments, from_values, read_yaml

    given = {name: options[option] for option, name in _NAMES.items() if options[option] not in (None, ())}
    layers = [from_values(given, "command line"), from_assignments(options["sets"])]
    file: Path | None = options["file"]
    return layers if file is None else [read_yaml(file, str(file)), *layers]


def _dry_run(planned: Any) -> None:
    """Print the resolved settings, their origins, and what is asked first."""
    from modebench.training.setup import training_tasks

    for name, value in planned.values.items():
        shown = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
        click.echo(f"{name:30} {shown}  ({planned.origins[name]})")
    tasks = training_tasks(planned.config)
    rollout = planned.config.rollout
    wanted = planned.config.steps * rollout.num_prompts
    click.echo(f"{'tasks':30} {len(tasks)}, {wanted / len(tasks):.2f} epochs")
    click.echo(f"{'rollouts':30} {_rollouts(planned)}")
    for message in build_messages(tasks[0], rollout.profile):
        click.echo(f"--- {message['role']}\n{message['content']}")


def _rollouts(planned: Any) -> str:
    """How many a run generates, as far as it is known before."""
    config, method = planned.config, planned.method
    rollouts = config.steps * method.least_rollouts(config.rollout.num_prompts * config.rollout.group_size)
    least = rollouts if config.budget is None else min(rollouts, config.budget)
    if not method.may_generate_more:
        return str(least)
    if config.budget is not None:
        return f"{least} to {config.budget}"
    return f"{least} to {least * method.rounds}" if method.rounds > 1 else f"{least} or more"


def _train(planned: Any, path: Path, progress: bool, *, resume: bool) -> int:
    """Carry a run out; says how to go on where it was stopped or cannot go on."""
    import transformers

    from modebench.training.setup import open_trainer

    transformers.utils.logging.disable_progress_bar()  # one for every checkpoint otherwise
    command = f"modebench train --resume {shlex.quote(str(path))}"
    reporter = TrainingReporter() if progress else None
    on_step, on_samples = (reporter.step, reporter.samples) if reporter else (None, None)
    trainer = open_trainer(planned, path, resume=resume, on_step=on_step, on_samples=on_samples)
    try:
        finished = trainer.run()
    except TrainingError as error:
        last = trainer.folder.last_checkpoint()
        intact = f"; the last checkpoint, {last}, is intact; go on with: {command}" if last else ""
        raise TrainingError(f"{error}{intact}") from None
    except KeyboardInterrupt:
        finished = False
    if not trainer.accelerator.is_main_process:
        return OK if finished else INTERRUPTED
    if not finished:
        click.echo(f"interrupted; resume with: {command}", err=True)
        return INTERRUPTED
    if trainer.inert:
        click.echo(f"without effect in this run (counted 0 times): {', '.join(trainer.inert)}", err=True)
    click.echo(f"{trainer.folder.last_checkpoint()}")
    return OK
