"""What decides a run, as typed values with one source of defaults, and how a manifest records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from modebench.domains import DOMAINS, get_domain
from modebench.errors import InputError, SplitError, UsageError
from modebench.probing import Prefix
from modebench.sampling.base import GenerationSettings
from modebench.tasks import Task, TaskSet, load_tasks, read_tasks
from modebench.verifiers import Reading, check_task


@dataclass(frozen=True)
class Selection:
    """Which tasks are asked.

    Attributes:
        domains: names or aliases, in order; not used with `file`.
        levels: levels of every domain.
        split: frozen split.
        limit: tasks of each set, from its start; None for all.
        file: a JSON Lines file of tasks instead of the frozen splits.
        shard: (i, n) with 1 <= i <= n: every n-th task, from the i-th; None for all. Tasks are dealt by
            their place in the whole list, across sets, so that shards differ by one task at most.
    """

    domains: tuple[str, ...] = DOMAINS
    levels: tuple[int, ...] = (1,)
    split: str = "eval"
    limit: int | None = None
    file: str | None = None
    shard: tuple[int, int] | None = None

    def load(self) -> list[TaskSet]:
        """The task sets, a domain and level each.

        Raises:
            UsageError: unknown domain, level or split, an empty set, or a shard without tasks.
            InputError: a task of `file` that cannot be read.
        """
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit must be at least 1, not {self.limit}")
        try:
            sets = self._sets()
        except (InputError, SplitError, UsageError):
            raise
        except ValueError as error:
            raise UsageError(str(error)) from None
        sets = [tasks if self.limit is None else tasks.head(self.limit) for tasks in sets]
        return sets if self.shard is None else _dealt(sets, *self.shard)

    def _sets(self) -> list[TaskSet]:
        if self.file is None:
            names = dict.fromkeys(get_domain(name).name for name in self.domains)
            return [load_tasks(name, level, self.split) for name in names for level in self.levels]
        if not Path(self.file).is_file():
            raise UsageError(f"no file of tasks at {self.file}")
        level = self.levels[0] if len(self.levels) == 1 else None
        level = self.levels[0] if len(self.levels) == 1 else None
        tasks = read_tasks(self.file, level=level, check=check_task)
        if not len(tasks):
            raise UsageError(f"{self.file} holds no tasks")
        cells: dict[tuple[str, int], list[Task]] = {}
        for task in tasks:
            cells.setdefault((task.domain, task.level), []).append(task)
        return [
            TaskSet(f"{tasks.name}:{domain}/level{level}", tuple(members))
            for (domain, level), members in cells.items()
        ]


def _dealt(sets: list[TaskSet], shard: int, shards: int) -> list[TaskSet]:
    """One shard of the task sets, of the sets that it has a part of."""
    if not 1 <= shard <= shards:
        raise UsageError(f"--shard must be i/n with i from 1 to n, not {shard}/{shards}")
    parts = []
    before = 0
    for tasks in sets:
        first = (shard - 1 - before) % shards
        before += len(tasks)
        if first < len(tasks):
            parts.append(TaskSet(f"{tasks.name} {shard}/{shards}", tasks.tasks[first::shards]))
    if not parts:
        raise UsageError(f"--shard {shard}/{shards} has no tasks: there are {before} in all")
    return parts


@dataclass(frozen=True)
class EvalConfig:
    """Everything that decides what a run is, apart from the model.

    Attributes:
        selection: which tasks.
        samples: responses a task.
        settings: how they are drawn.
        seed: run seed; every sample's own seed derives from it.
        reading: verifier reading of the verdicts and the summary.
        profile: prompt profile.
        system: system message in place of the profile's; None keeps it.
        strip_reasoning: split reasoning off before verifying.
        arm: a label for comparisons.
        step: training step of the model, part of every sample's seed.
        error_budget: share of failed samples above which a run has failed.
        seed_bits: length of a sample's seed; 31 for a server that refuses 63.
        prefixes: texts that the tasks are asked with, beside once without; see `modebench.probing`.
        prefix_control: ask once more without a prefix, to tell new modes from the luck of the draw.
        constrained: hold the answers to the grammars of `modebench.domains.grammars`, where there are some.
    """

    selection: Selection = field(default_factory=Selection)
    samples: int = 8
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    seed: int = 0
    reading: Reading = "published"
    profile: str = "direct"
    system: str | None = None
    strip_reasoning: bool = True
    arm: str | None = None
    step: int = 0
    error_budget: float = 0.05
    seed_bits: int = 63
    prefixes: tuple[Prefix, ...] = ()
    prefix_control: bool = False
    constrained: bool = False

    def check(self) -> None:
        """Refuse what cannot give independent samples.

        Raises:
            UsageError: says which options disagree.
        """
        if self.samples < 1:
            raise UsageError(f"--samples must be at least 1, not {self.samples}")
        if self.settings.temperature < 0:
            raise UsageError(f"--temperature must not be negative, not {self.settings.temperature}")
        if self.settings.temperature == 0 and self.samples > 1:
            raise UsageError(
                f"--samples {self.samples} with --temperature 0 would be one response {self.samples} times; "
                "raise the temperature or ask for --samples 1"
            )
        if not 0 < self.settings.top_p <= 1:
            raise UsageError(f"--top-p must be in (0, 1], not {self.settings.top_p}")
        if self.settings.top_k < 0:
            raise UsageError(f"--top-k must be 0 (all tokens) or more, not {self.settings.top_k}")
        if self.settings.max_tokens < 1:
            raise UsageError(f"--max-tokens must be at least 1, not {self.settings.max_tokens}")
        if self.seed_bits not in (31, 63):
            raise UsageError(f"--seed-bits must be 31 or 63, not {self.seed_bits}")
        if self.prefix_control and not self.prefixes:
            raise UsageError("--prefix-control goes with --prefixes FILE")
        if self.prefixes and self.samples < 2:
            raise UsageError(f"--prefixes needs at least 2 samples a prompt, not {self.samples}")


def record_of(config: EvalConfig) -> dict[str, Any]:
    """The configuration as JSON-ready values; the inverse of `config_of`.

    Only a run that has prefixes or grammars says anything of them.
    """
    record = asdict(config)
    if not config.prefixes:
        del record["prefixes"], record["prefix_control"]
    if not config.constrained:
        del record["constrained"]
    return record


def config_of(manifest: Mapping[str, Any]) -> EvalConfig:
    """The configuration that a manifest records."""
    selection = dict(manifest["selection"])
    selection["domains"] = tuple(selection["domains"])
    selection["levels"] = tuple(selection["levels"])
    if selection.get("shard") is not None:
        selection["shard"] = tuple(selection["shard"])
    settings = dict(manifest["settings"])
    settings["stop"] = tuple(settings["stop"])
    plain = {name: manifest[name] for name in EvalConfig.__dataclass_fields__ if name in manifest}
    plain["prefixes"] = tuple(Prefix(**entry) for entry in manifest.get("prefixes", ()))
    return EvalConfig(
        **plain | {"selection": Selection(**selection), "settings": GenerationSettings(**settings)}
    )


def tasks_of(manifest: Mapping[str, Any]) -> list[TaskSet]:
    """The task sets of a recorded run, checked to be what they were.

    Raises:
        UsageError: a set is gone or has changed.
    """
    sets = config_of(manifest).selection.load()
    recorded = {entry["name"]: entry["sha256"] for entry in manifest["task_sets"]}
    for tasks in sets:
        if recorded.get(tasks.name) != tasks.sha256:
            raise UsageError(f"the tasks {tasks.name} are not those of the run any more (SHA-256 differs)")
    return sets
