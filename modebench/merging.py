"""From the shards of a run, made by several processes or machines, to the run itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modebench.config import config_of, record_of, tasks_of
from modebench.errors import InputError, UsageError
from modebench.evaluation import asked_of, grade, samples_asked, settle, summarize_run
from modebench.provenance import versions
from modebench.runs import RunFolder, file_sha256, sample_key

# What may differ between the machines that made the shards.
MACHINE = ("base_url", "cpu_capability", "device", "threads")


def merge(paths: Sequence[Path], output: Path) -> RunFolder:
    """Join the shards of one run into a new run folder.

    Responses stand in the order of tasks and samples, as in a run that was never interrupted. Where every
    shard is graded with a reading, so is the merged run; with its own reading it is summarised too. It can
    be resumed as any other run, for samples that a shard lacks.

    Args:
        paths: run folders that were made with ``--shard``, in any order.
        output: a folder that is empty or does not exist.

    Raises:
        UsageError: not the shards of one run, a shard missing or given twice, tasks that have changed, or
            the folder is in use; nothing is written.
        InputError: a file that cannot be read, or a response to a task that the run does not have.
    """
    shards = [RunFolder.open(path) for path in paths]
    _check_whole(shards)
    for shard in shards:
        _check_same(shards[0], shard)
    first = shards[0].manifest
    config = config_of(first)
    config = replace(config, selection=replace(config.selection, shard=None))
    asked = asked_of(config)
    records = _records(shards, [task.id for tasks in config.selection.load() for task in tasks])
    run = RunFolder.create(
        output,
        {
            "status": "running",
            **{name: first[name] for name in ("model", "engine", "engine_options", "groups_per_batch")},
            "origins": first["origins"],
            **asked,
            "merged_from": [_origin(shard) for shard in shards],
            **versions(),
        },
    )
    with run.append() as writer:
        writer.write(records)
    graded = Counter(reading for shard in shards for reading in shard.manifest.get("graded", {}))
    for reading in sorted(reading for reading, count in graded.items() if count == len(shards)):
        grade(run, reading)
        if reading == config.reading:
            summarize_run(run)
    settle(run, samples_asked(run) - sum(mask.bit_count() for mask in run.recorded().values()))
    return run


def _check_whole(shards: Sequence[RunFolder]) -> None:
    """Every shard of one dealing, once."""
    places: dict[tuple[int, int], Path] = {}
    for shard in shards:
        place = shard.manifest["selection"].get("shard")
        if place is None:
            raise UsageError(f"{shard.path} is not a shard: it was made without --shard")
        if tuple(place) in places:
            raise UsageError(f"{places[tuple(place)]} and {shard.path} are both shard {place[0]}/{place[1]}")
        places[tuple(place)] = shard.path
    counts = {count for _, count in places}
    if len(counts) > 1:
        raise UsageError(f"shards of different dealings: {', '.join(f'{i}/{n}' for i, n in places)}")
    count = counts.pop()
    missing = [f"{place}/{count}" for place in range(1, count + 1) if (place, count) not in places]
    if missing:
        raise UsageError(f"missing shards: {', '.join(missing)}")


def _check_same(first: RunFolder, other: RunFolder) -> None:
    """Everything that decides the responses is the same in both."""
    tasks_of(other.manifest)
    left, right = _identity(first.manifest), _identity(other.manifest)
    for name in left | right:
        if left.get(name) != right.get(name):
            problem = f"{name} is {left.get(name)!r} and {right.get(name)!r}"
            raise UsageError(f"{first.path} and {other.path} are not shards of one run: {problem}")


def _identity(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What all shards of a run have in common, by dotted name."""
    config = config_of(manifest)
    record = record_of(replace(config, selection=replace(config.selection, shard=None)))
    engine = {name: value for name, value in manifest["engine"].items() if name not in MACHINE}
    common = {"model": manifest["model"], "engine": engine, **record}
    common["versions"] = {"modebench": manifest["versions"]["modebench"]}
    return dict(_flat(common))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _records(shards: Sequence[RunFolder], order: Sequence[str]) -> list[dict[str, Any]]:
    """The response lines of all shards, in the order of tasks and samples."""
    places = {task_id: place for place, task_id in enumerate(order)}
    placed: list[tuple[int, int, dict[str, Any]]] = []
    for shard in shards:
        shard.recorded()  # refuses a sample that stands twice
        for line, record in enumerate(shard.responses(), 1):
            task_id, sample = sample_key(record, shard.responses_path, line)
            if task_id not in places:
                problem = f"{task_id!r} is not a task of this run"
                raise InputError(shard.responses_path, line, "task_id", problem)
            placed.append((places[task_id], sample, record))
    return [record for _, _, record in sorted(placed, key=lambda entry: entry[:2])]


def _origin(shard: RunFolder) -> dict[str, Any]:
    """Where a part of a merged run comes from."""
    manifest = shard.manifest
    return {
        "path": str(shard.path),
        "shard": manifest["selection"]["shard"],
        **{name: manifest[name] for name in ("created", "platform", "git", "command", "engine")},
        "responses_sha256": file_sha256(shard.responses_path),
    }
