"""From settings to a trainer: a new run, or one that is continued."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modebench.errors import UsageError
from modebench.evaluation import Progress
from modebench.sampling import EngineUnavailable, parse_model
from modebench.tasks import Task
from modebench.training.config import TYPES, TrainConfig, values_of
from modebench.training.folder import TrainingFolder
from modebench.training.method import Method
from modebench.training.methods import all_parts, build, parts_of
from modebench.training.part import options_of
from modebench.training.periodic import evaluations
from modebench.training.profiles import count_parameters, profile_layer
from modebench.training.settings import Layer, Setting, read_yaml, resolve, to_yaml, unknown

if TYPE_CHECKING:
    from modebench.training.trainer import StepProgress, Trainer

WAIT = timedelta(hours=6)
"""How long a process waits for the others: they do nothing while the main one evaluates."""


@dataclass(frozen=True)
class Plan:
    """A checked run before anything is loaded or written.

    Attributes:
        config: the trainer's settings.
        method: built with its options.
        values: every setting by dotted name, those of the method's parts included.
        origins: where each came from.
    """

    config: TrainConfig
    method: Method
    values: dict[str, Any]
    origins: dict[str, str]

    def to_yaml(self) -> str:
        """The text of config.yaml, from which `recorded` makes the same plan."""
        return to_yaml(self.values)


def plan(layers: Sequence[Layer]) -> Plan:
    """A new run from the user's layers; the model's profile comes before them.

    Raises:
        UsageError, InputError: a setting that does not exist or is out of range; says where it stands.
        EngineUnavailable: there is no such model.
    """
    config = resolve(layers).config
    config.check()
    name = model_name(config.model)
    profile = profile_layer(name, count_parameters(name), config.data)
    parts = parts_of(config.method, config.add)
    # A profile speaks of parts that only some methods have.
    fitting = {
        key: setting
        for key, setting in profile.items()
        if key.partition(".")[0] in parts or key.partition(".")[0] not in all_parts()
    }
    return _plan([fitting, *layers])


def recorded(folder: TrainingFolder) -> Plan:
    """The plan that a run was started with."""
    return _plan([read_yaml(folder.config_path, "recorded")])


def _plan(layers: Sequence[Layer]) -> Plan:
    resolved = resolve(layers)
    config = resolved.config
    config.check()
    training_tasks(config)
    for evaluation in evaluations(config, step=0).values():
        evaluation.check()
        evaluation.selection.load()
    method = _method(config, resolved.parts)
    whole = method.whole_groups()
    if whole is not None and config.update.mini_batch_unit == "rollout" and config.update.mini_batches > 1:
        raise UsageError(
            f"update.mini_batch_unit is rollout, and {whole} needs the whole groups of an update: take group"
        )
    schedule = config.optimizer.schedule
    if config.budget is not None and schedule != "constant" and method.may_generate_more:
        raise UsageError(
            f"optimizer.schedule is {schedule}, which needs to know the last step, and with {config.method} "
            "the budget may be spent before it: take constant, or steps without a budget"
        )
    options = {
        f"{part}.{option}": value
        for part, chosen in method.options().items()
        for option, value in chosen.items()
    }
    origins = {name: resolved.parts[name].origin if name in resolved.parts else "default" for name in options}
    return Plan(config, method, values_of(config) | options, resolved.origins | origins)


def _method(config: TrainConfig, settings: Mapping[str, Setting]) -> Method:
    """The method with its options; where they are refused, the error names the place of the first that is."""

    def built(options: Mapping[str, object]) -> Method:
        length = config.rollout.max_completion_length
        return build(config.method, options, config.add, max_completion_length=length)

    parts = parts_of(config.method, config.add)
    known = {f"{name}.{option}" for name, part in parts.items() for option in options_of(part)}
    for name, setting in settings.items():
        if name not in known:
            raise unknown(name, setting, [*sorted(known), *TYPES])
    try:
        # All together: some options are only right beside others.
        return built({name: setting.value for name, setting in settings.items()})
    except UsageError as error:
        refused = error
    taken: dict[str, object] = {}
    try:
        built(taken)
    except UsageError:  # parts that do not go together: no setting is to blame
        raise refused from None
    for name, setting in settings.items():
        taken[name] = setting.value
        try:
            built(taken)
        except UsageError as error:
            raise setting.refuse(name, str(error).removeprefix(name).strip()) from None
    raise refused


def model_name(model: str) -> str:
    """What stands behind ``hf/``: the only kind of model that can be trained.

    Raises:
        EngineUnavailable: another kind.
    """
    kind, name = parse_model(model)
    if kind != "hf":
        raise EngineUnavailable(f"{model} cannot be trained; expected hf/PATH-or-id")
    return name


def training_tasks(config: TrainConfig) -> list[Task]:
    """What is trained on.

    Raises:
        UsageError, InputError: see `modebench.config.Selection.load`.
    """
    return [task for tasks in config.data.selection().load() for task in tasks]


def make_accelerator(config: TrainConfig, folder: Path) -> Any:
    """The Accelerator of this process.

    Raises:
        UsageError: a tracker that is unknown or not installed; weights sharded over processes.
    """
    from accelerate import Accelerator
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
    from accelerate.utils import DistributedType, InitProcessGroupKwargs

    available = [str(name) for name in get_available_trackers()]
    for name in config.run.trackers:
        if name not in LOGGER_TYPE_TO_CLASS:
            known = ", ".join(map(str, LOGGER_TYPE_TO_CLASS))
            raise UsageError(f"run.trackers: no tracker is called {name!r}; there are {known}")
        if name not in available:
            raise UsageError(f"run.trackers: {name} is not installed: pip install {name}")
    accelerator = Accelerator(
        cpu=config.run.device == "cpu",
        log_with=list(config.run.trackers) or None,
        project_dir=str(folder),
        kwargs_handlers=[InitProcessGroupKwargs(timeout=WAIT)],
    )
    plain = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)
    if accelerator.distributed_type not in plain:
        kind = str(accelerator.distributed_type.value)
        raise UsageError(f"every process must hold the whole model; {kind} is not supported, use torchrun")
    return accelerator


def open_trainer(
    planned: Plan,
    path: Path,
    *,
    resume: bool = False,
    on_step: StepProgress | None = None,
    on_samples: Progress | None = None,
) -> Trainer:
    """Everything loaded and ready to `run`, on every process.

    Args:
        planned: the run.
        path: its folder: empty or missing, or with `resume` the one that `planned` was read from.
        resume: go on from the last checkpoint.
        on_step, on_samples: progress.

    Raises:
        UsageError: the folder is in use, or cannot be written to.
        EngineUnavailable: the model cannot be loaded.
    """
    import torch

    from modebench.training import policy
    from modebench.training.checkpoint import AGENTS
    from modebench.training.trainer import Trainer

    config = planned.config
    accelerator = make_accelerator(config, path)
    if config.run.threads is not None:
        torch.set_num_threads(config.run.threads)
    if accelerator.is_main_process and not resume:
        TrainingFolder.create(path, planned.to_yaml())
    accelerator.wait_for_everyone()
    folder = TrainingFolder.open(path)
    last = folder.last_checkpoint()
    start = model_name(config.model)
    as_asked: dict[str, Any] = {
        "device": str(accelerator.device),
        "chat_template": config.rollout.chat_template,
        "profile": config.rollout.profile,
    }
    loaded = policy.load(start if last is None else str(last), **as_asked)
    beside = {
        name: policy.load(start if last is None else str(last / AGENTS / name), **as_asked)
        for name in planned.method.agents
    }
    reference = None
    if planned.method.needs_reference:
        # Always the model that the run began with: a checkpoint is a policy that has moved.
        reference = policy.load(start, device=str(accelerator.device))
        reference.model.requires_grad_(False)
    if config.run.trackers:
        known = {name: str(value) for name, value in planned.values.items()}
        accelerator.init_trackers("modebench", config=known)
    return Trainer(
        config,
        planned.method,
        loaded,
        folder,
        accelerator,
        training_tasks(config),
        reference,
        on_step,
        on_samples,
        beside=beside,
    )
