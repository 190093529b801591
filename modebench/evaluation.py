"""The harness: task sets × engine → run folder.

Three stages, each usable alone: `generate` appends responses, `grade_run` judges them, `summarize_run`
turns verdicts into numbers; `evaluate` does all three. A killed run continues where it stopped: the
group of a prompt is what is committed, and batches are cut at fixed places, so a local engine meets the
same batches again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from modebench.chance import grade_chance
from modebench.config import EvalConfig, config_of, record_of, tasks_of
from modebench.domains.grammars import grammar_of
from modebench.errors import UsageError
from modebench.grading import grade_run
from modebench.probing import Ask, asks_of
from modebench.prompts import build_messages, prompts_hash
from modebench.provenance import versions
from modebench.runs import RunFolder, write_atomically
from modebench.samples import Run, run_document
from modebench.sampling.base import ConstrainedEngine, Engine, Group, Message, Sample
from modebench.tasks import TaskSet
from modebench.verifiers import Reading

Progress = Callable[[int, int], None]
"""Called with (samples on disk, samples in all) at the start and after every committed group."""


def sample_seed(run_seed: int, step: int, task_id: str, sample: int) -> int:
    """63 bits of SHA-256 over ``run seed | step | task id | sample index``: one seed a sample."""
    digest = hashlib.sha256(f"{run_seed}|{step}|{task_id}|{sample}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def task_seeds(config: EvalConfig, task_id: str, count: int) -> list[int]:
    """Seeds of a task's first samples, all different: the leading `config.seed_bits` bits of `sample_seed`.

    Two that coincide in these bits are told apart by counting up.
    """
    seeds: dict[int, None] = {}
    for index in range(count):
        seed = sample_seed(config.seed, config.step, task_id, index) >> 63 - config.seed_bits
        while seed in seeds:
            seed = (seed + 1) % (1 << config.seed_bits)
        seeds[seed] = None
    return list(seeds)


def create_run(
    output: Path,
    engine: Engine,
    model: str,
    config: EvalConfig,
    *,
    origins: Mapping[str, str] | None = None,
    engine_options: Mapping[str, Any] | None = None,
) -> RunFolder:
    """A new run folder whose manifest says everything that decides its content.

    Raises:
        UsageError: a bad configuration, an engine that cannot hold answers to grammars as it asks, or the
            folder is in use; nothing is touched.
        EngineUnavailable: what enforces grammars is missing.
    """
    constraint = {"constraint": constraint_of(engine)} if config.constrained else {}
    return RunFolder.create(
        output,
        {
            "status": "running",
            "model": model,
            "engine": {**engine.describe(), **constraint},
            "engine_options": dict(engine_options or {}),
            "groups_per_batch": engine.groups_per_batch,
            "origins": dict(origins or {}),
            **asked_of(config),
            **versions(),
        },
    )


def constraint_of(engine: Engine) -> dict[str, Any]:
    """What enforces grammars for an engine: library and version.

    Raises:
        UsageError: nothing does.
        EngineUnavailable: it is missing.
    """
    if not isinstance(engine, ConstrainedEngine):
        raise UsageError("--constrained needs a model of hf/, vllm/ or openai/ (a vLLM server)")
    return engine.constraint()


def _grammars(sets: Iterable[TaskSet]) -> dict[str, Any]:
    """What a manifest records of the grammars: how many tasks of each set have one, and SHA-256 over all.

    Raises:
        UsageError: no task has one.
    """
    digest = hashlib.sha256()
    counts = {}
    for tasks in sets:
        grammars = [grammar for task in tasks if (grammar := grammar_of(task)) is not None]
        counts[tasks.name] = len(grammars)
        for grammar in grammars:
            digest.update(hashlib.sha256(grammar.encode()).digest())
    if not any(counts.values()):
        raise UsageError(
            f"--constrained: {', '.join(counts)} have no grammar; levels 2 to 5 of every domain but "
            "graph_coloring and level 1 of pantry_plan have one"
        )
    return {"grammars": {"notation": "GBNF", "sha256": digest.hexdigest(), "tasks": counts}}


def asked_of(config: EvalConfig) -> dict[str, Any]:
    """What a manifest records of a configuration and of the tasks and prompts that follow from it.

    Raises:
        UsageError: a bad configuration.
    """
    config.check()
    sets = config.selection.load()
    prompts = [_messages(ask, config) for ask in _asks(sets, config)]
    return {
        **record_of(config),
        "prompts_sha256": prompts_hash(prompts),
        "first_prompt": list(prompts[0]),
        "task_sets": [{"name": tasks.name, "count": len(tasks), "sha256": tasks.sha256} for tasks in sets],
        **(_grammars(sets) if config.constrained else {}),
    }


def generate(run: RunFolder, engine: Engine, progress: Progress | None = None) -> int:
    """Draw every sample that the run still lacks; returns how many are missing afterwards.

    Samples that failed in an earlier attempt are drawn again, recorded ones never.

    Raises:
        UsageError: another process writes to the run; an engine returned a wrong number of samples.
    """
    config = config_of(run.manifest)
    sets = tasks_of(run.manifest)
    if config.constrained and _grammars(sets)["grammars"] != run.manifest["grammars"]:
        raise UsageError("the grammars are not those of the run any more (SHA-256 differs)")
    asks = _asks(sets, config)
    total = len(asks) * config.samples
    with run.append() as writer:
        done = run.recorded()
        written = sum(mask.bit_count() for mask in done.values())
        if progress:
            progress(written, total)
        size = run.manifest["groups_per_batch"]
        for batch in _batches(asks, size):
            if not any(_missing(ask, config, done.get(ask.task.id, 0)) for ask in batch):
                continue
            # Only a server is asked for parts of groups: a local model's batches stay as they were.
            asked = [_request(ask, config, 0 if size else done.get(ask.task.id, 0)) for ask in batch]
            asked = [request for request in asked if request.indices]
            for place, samples in engine.generate([request.group for request in asked], config.settings):
                records = _records(asked[place], samples, done.get(asked[place].group.task.id, 0))
                writer.write(records)
                written += sum(record["error"] is None for record in records)
                if progress:
                    progress(written, total)
    return total - written


def samples_asked(run: RunFolder) -> int:
    """How many samples the run consists of when it is complete."""
    config = config_of(run.manifest)
    return len(_asks(tasks_of(run.manifest), config)) * config.samples


def _asks(sets: Iterable[TaskSet], config: EvalConfig) -> list[Ask]:
    tasks = (task for tasks in sets for task in tasks)
    return asks_of(tasks, config.samples, config.prefixes, config.prefix_control)


def _messages(ask: Ask, config: EvalConfig) -> tuple[Message, ...]:
    return build_messages(ask.task, config.profile, config.system, ask.text)


def _missing(ask: Ask, config: EvalConfig, done: int) -> tuple[int, ...]:
    """The samples of a prompt, numbered within its task, whose bits are not set in `done`."""
    return tuple(n for n in range(ask.first, ask.first + config.samples) if not done >> n & 1)


def _batches(asks: Sequence[Ask], size: int | None) -> Iterator[Sequence[Ask]]:
    for start in range(0, len(asks), size or len(asks)):
        yield asks[start : start + size] if size else asks


class _Request(NamedTuple):
    """What is asked of one prompt, and which samples of its task that gives."""

    group: Group
    indices: tuple[int, ...]


def _request(ask: Ask, config: EvalConfig, done: int) -> _Request:
    """The missing samples of a prompt."""
    seeds = task_seeds(config, ask.task.id, ask.first + config.samples)
    indices = _missing(ask, config, done)
    wanted = tuple(seeds[index] for index in indices)
    grammar = grammar_of(ask.task) if config.constrained else None
    group = Group(ask.task, _messages(ask, config), wanted, ask.prefix, ask.first, grammar)
    return _Request(group, indices)


def _records(request: _Request, samples: Sequence[Sample], done: int) -> list[dict[str, Any]]:
    """Response lines of a group, without those recorded before."""
    task, seeds = request.group.task, request.group.seeds
    prefix = {} if request.group.prefix is None else {"prefix": request.group.prefix}
    if len(samples) != len(seeds):
        raise UsageError(f"the engine returned {len(samples)} samples of {task.id}, asked were {len(seeds)}")
    return [
        {
            "task_id": task.id,
            "domain": task.domain,
            "level": task.level,
            "split": task.split,
            "sample": index,
            "group": 0,
            **prefix,
            "seed": seed,
            **vars(sample),
        }
        for index, seed, sample in zip(request.indices, seeds, samples, strict=True)
        if not done >> index & 1
    ]


def grade(run: RunFolder, reading: Reading | None = None) -> Path:
    """Judge the recorded responses of a run, and count what chance does; returns the file of verdicts."""
    tasks = [task for tasks in tasks_of(run.manifest) for task in tasks]
    verdicts = grade_run(run, tasks, reading or run.manifest["reading"])
    grade_chance(run, tasks, reading or run.manifest["reading"])
    return verdicts


def summarize_run(run: RunFolder, reading: Reading | None = None) -> dict[str, Any]:
    """Write and return the summary document of a graded run: a function of the run's files alone."""
    document = run_document(run, reading or run.manifest["reading"])
    write_atomically(
        run.summary_path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )
    return document


def evaluate(
    engine: Engine,
    output: Path | str,
    config: EvalConfig | None = None,
    *,
    model: str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Measure a model: generate, grade and summarise into a new run folder.

    Args:
        engine: from `modebench.sampling.load_engine`, or any object with the same methods.
        output: a folder that is empty or does not exist.
        config: what is asked and how; see `EvalConfig`.
        model: name to record; the engine's class name when None.
        progress: called after every committed group.

    Returns:
        the run, whose ``samples()`` is a tidy table.
    """
    config = config or EvalConfig()
    run = create_run(Path(output), engine, model or type(engine).__name__, config)
    finish(run, engine, progress)
    return Run(run)


def finish(run: RunFolder, engine: Engine, progress: Progress | None = None) -> int:
    """Bring a run to its end from wherever it stands; returns the number of missing samples."""
    run.update(status="running")
    try:
        missing = generate(run, engine, progress)
        grade(run)
        summarize_run(run)
    except BaseException as error:
        run.update(status="cancelled" if isinstance(error, KeyboardInterrupt) else "error")
        raise
    settle(run, missing)
    return missing


def settle(run: RunFolder, missing: int) -> None:
    """Record how a run ended: with an error where more is missing than its error budget allows."""
    over = missing > run.manifest["error_budget"] * samples_asked(run)
    run.update(status="error" if over else "success", missing=missing)
