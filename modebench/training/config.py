"""What decides a training run: frozen dataclasses, which are the one source of defaults.

Values come in layers, a later one winning: the defaults below, the model's profile
(`modebench.training.profiles`), a YAML file, the command line. A setting is named by its dotted path,
``optimizer.learning_rate``. Names whose first part is none of the sections below belong to the parts of the
method (``replay.coefficient``); the method checks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_type_hints

from modebench.config import Selection
from modebench.errors import UsageError
from modebench.prompts import PROFILES

Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class DataConfig:
    """Which tasks are trained on; every epoch runs through them in a fresh seeded order.

    Attributes:
        domains: names or aliases.
        levels: levels of every domain.
        split: frozen split.
        limit: tasks of each domain and level, from the first; None for all.
        file: a JSON Lines file of tasks to train on instead; `domains` and `levels` are then evaluated only.
    """

    domains: tuple[str, ...] = ()
    levels: tuple[int, ...] = (1,)
    split: str = "train"
    limit: int | None = None
    file: str | None = None

    def selection(self, split: str | None = None, limit: int | None = None) -> Selection:
        """The same domains and levels, of the training split or of another one."""
        own = {"split": self.split, "limit": self.limit, "file": self.file}
        chosen: dict[str, Any] = own if split is None else {"split": split, "limit": limit}
        return Selection(domains=self.domains, levels=self.levels, **chosen)


@dataclass(frozen=True)
class RolloutConfig:
    """How the policy is sampled, in training and in evaluation.

    Attributes:
        num_prompts: prompts a step, over all processes.
        group_size: rollouts of a prompt.
        temperature: of the sampler, and of the likelihoods that are trained.
        max_completion_length: tokens of a response at most; also the constant divisor of Dr.GRPO.
        profile: prompt profile.
        chat_template: use the tokenizer's chat template where it has one.
        groups_per_batch: groups decoded together; None lets the engine choose.
    """

    num_prompts: int = 1
    group_size: int = 16
    temperature: float = 1.0
    max_completion_length: int = 192
    profile: str = "direct"
    chat_template: bool = True
    groups_per_batch: int | None = None


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW (arXiv:1711.05101) and its learning rate.

    Attributes:
        learning_rate: after the warm-up.
        schedule: from there to `final_learning_rate`, which the last step reaches.
        final_learning_rate: not used by ``constant``.
        warmup_steps: linear from 0.
        beta1, beta2, eps, weight_decay: of AdamW.
        max_grad_norm: the summed gradient is scaled down to this norm; 0 turns clipping off.
    """

    learning_rate: float = 1e-6
    schedule: Schedule = "constant"
    final_learning_rate: float = 0.0
    warmup_steps: int = 0
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0


@dataclass(frozen=True)
class UpdateConfig:
    """What is done with a batch.

    Attributes:
        num_iterations: passes over the same batch. With 1, and one mini-batch, the update is exactly
            on-policy: the ratio is 1 and clipping never binds.
        mini_batches: optimizer steps of a pass, each on a part of the batch, drawn anew in every pass. Token
            weights are folded over the part, not over the batch.
        mini_batch_unit: what the parts are made of: whole groups, or rollouts whatever their group.
        micro_batch_tokens: tokens scored together; bounds the memory, cannot change the result.
        all_wrong_patience: steps from the start without one correct response after which the run gives up;
            0 never does.
    """

    num_iterations: int = 1
    mini_batches: int = 1
    mini_batch_unit: Literal["group", "rollout"] = "group"
    micro_batch_tokens: int = 8192
    all_wrong_patience: int = 20

    @property
    def per_step(self) -> int:
        """Optimizer steps a step."""
        return self.num_iterations * self.mini_batches


@dataclass(frozen=True)
class EvalConfig:
    """Periodic evaluation by the ordinary harness: at step 0, every so many steps, and at the end.

    Attributes:
        every: steps between evaluations; 0 evaluates at the start and at the end only.
        split: what is measured.
        limit: tasks of each domain and level; None for all.
        samples: responses a task.
        dev_limit: tasks of the dev split by which the best checkpoint is named; 0 names none.
        dev_samples: responses to each of them.
    """

    every: int = 100
    split: str = "eval"
    limit: int | None = None
    samples: int = 8
    dev_limit: int = 32
    dev_samples: int = 4


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints: one at every evaluation, and between.

    Attributes:
        every: steps between checkpoints; 0 writes those of the evaluations only.
        keep: how many of the latest are kept, the best on dev beside them; 0 keeps all.
    """

    every: int = 100
    keep: int = 2


@dataclass(frozen=True)
class RunConfig:
    """Where and how the run is carried out.

    Attributes:
        seed: of samples, task order and everything random in a method.
        arm: what the run is called beside others; None for its method's id.
        device: ``auto`` takes the accelerator where there is one.
        threads: CPU threads of torch; None leaves them as they are.
        trackers: of Accelerate, by name: tensorboard, wandb, trackio, …
    """

    seed: int = 0
    arm: str | None = None
    device: Literal["auto", "cpu"] = "auto"
    threads: int | None = None
    trackers: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run, except the options of its method's parts.

    Attributes:
        method: id of a method.
        model: ``hf/PATH-or-id``.
        steps: updates of the policy, each on a batch of its own.
        budget: rollouts of all kinds after which the run ends, if it has not made its steps by then; None for
            any number. The last step draws what is left in whole groups: exactly so many are generated where
            the sizes of groups divide it.
        add: further parts, by name.
    """

    method: str = ""
    model: str = ""
    steps: int = 100
    budget: int | None = None
    add: tuple[str, ...] = ()
    data: DataConfig = field(default_factory=DataConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    update: UpdateConfig = field(default_factory=UpdateConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def check(self) -> None:
        """Refuse what is out of range.

        Raises:
            UsageError: names the setting, what was given and what was expected.
        """
        if not self.method:
            raise UsageError("--method is missing, e.g. --method dr_grpo; see: modebench methods")
        if not self.model:
            raise UsageError("--model is missing, e.g. --model hf/PATH")
        if not self.data.domains:
            raise UsageError("--domain is missing, e.g. --domain graph_coloring")
        if not self.data.levels or not set(self.data.levels) <= {1, 2, 3, 4, 5}:
            given = ", ".join(map(str, self.data.levels)) or "nothing"
            raise UsageError(f"data.levels is {given}, expected levels 1 to 5")
        if self.rollout.profile not in PROFILES:
            raise UsageError(f"rollout.profile is {self.rollout.profile!r}; profiles: {', '.join(PROFILES)}")
        values = values_of(self)
        for name, least in _LEAST.items():
            if values[name] is not None and not values[name] >= least:
                raise UsageError(f"{name} is {values[name]}, expected at least {least}")
        if self.budget is not None and self.budget < self.rollout.group_size:
            raise UsageError(
                f"budget is {self.budget}, expected at least {self.rollout.group_size}, a group's rollouts"
            )
        units = self.rollout.num_prompts
        if self.update.mini_batch_unit == "rollout":
            units *= self.rollout.group_size
        if self.update.mini_batches > units:
            raise UsageError(
                f"update.mini_batches is {self.update.mini_batches}, but a step has {units} "
                f"{self.update.mini_batch_unit}s: raise rollout.num_prompts, or take mini-batches of "
                "rollouts with update.mini_batch_unit=rollout"
            )
        for name in ("rollout.temperature", "optimizer.learning_rate", "optimizer.eps"):
            if not values[name] > 0:
                raise UsageError(f"{name} is {values[name]}, expected more than 0")
        for name in ("optimizer.beta1", "optimizer.beta2"):
            if not 0 <= values[name] < 1:
                raise UsageError(f"{name} is {values[name]}, expected at least 0 and below 1")


_LEAST: dict[str, float] = {
    "steps": 1,
    "data.limit": 1,
    "rollout.num_prompts": 1,
    "rollout.group_size": 2,
    "rollout.max_completion_length": 1,
    "rollout.groups_per_batch": 1,
    "optimizer.final_learning_rate": 0,
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0,
    "optimizer.max_grad_norm": 0,
    "update.num_iterations": 1,
    "update.mini_batches": 1,
    "update.micro_batch_tokens": 1,
    "update.all_wrong_patience": 0,
    "eval.every": 0,
    "eval.limit": 1,
    "eval.samples": 1,
    "eval.dev_limit": 0,
    "eval.dev_samples": 1,
    "checkpoint.every": 0,
    "checkpoint.keep": 0,
    "run.threads": 1,
}


def values_of(config: Any, prefix: str = "") -> dict[str, Any]:
    """Dotted name to value, of a configuration or of one of its sections."""
    found: dict[str, Any] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            found |= values_of(value, f"{prefix}{entry.name}.")
        else:
            found[prefix + entry.name] = value
    return found


def _types_of(config: Any, prefix: str = "") -> dict[str, Any]:
    """Dotted name to type, likewise."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(config).items():
        found |= _types_of(hint, f"{prefix}{name}.") if is_dataclass(hint) else {prefix + name: hint}
    return found


TYPES = _types_of(TrainConfig)
SECTIONS = tuple(name for name, hint in get_type_hints(TrainConfig).items() if is_dataclass(hint))
