"""Frozen splits: drawn once from recorded seeds, shipped in the package, checked when loaded.

A task is drawn with a generator of its own, seeded by SHA-256 of (seed, domain, level, split, index,
attempt), so neighbouring tasks and splits share no randomness. Splits are built in the order eval,
dev, train and a task whose identity occurred before, in them or in a frozen split of a lower level, is
drawn again: eval never depends on the sizes of the others. At levels 2 to 5 a task's number of modes and
tier follow from its index (`modebench.laws.cells`).

``python -m modebench.splits`` rebuilds the files that are shipped, ``--domain`` and ``--level`` one cell.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from modebench.domains import DOMAINS, get_domain
from modebench.domains.base import Domain
from modebench.errors import SplitError
from modebench.laws import Cell, Impossible, cells
from modebench.tasks import Task, TaskSet, canonical_json

SEED = 1
SIZES = MappingProxyType({"eval": 128, "dev": 128, "train": 384})
"""Tasks of each frozen split, in the order in which splits are built."""
LEVELS = (1, 2, 3, 4, 5)
"""Levels that have frozen splits."""

SCHEMA = "modebench-splits-v1"
MAX_ATTEMPTS = 10_000


def task_seed(seed: int, domain: str, level: int, split: str, index: int, attempt: int) -> int:
    """256 bits of SHA-256 over the canonical JSON list of the arguments."""
    text = canonical_json([seed, domain, level, split, index, attempt])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def make_split(
    domain: str, level: int, split: str, seed: int = SEED, sizes: Mapping[str, int] = SIZES
) -> TaskSet:
    """Draw a split; the splits that stand before it in `sizes` are drawn to keep it disjoint from them.

    Ids are ``countdown/level1/eval/0007``; with a seed or sizes that are not the frozen ones they carry
    the seed, ``countdown/level1/eval@5/0007``, so that no two different tasks share an id by accident.

    Args:
        domain: name or alias.
        level: level of the law.
        split: a key of `sizes`.
        seed: of the whole family of splits.
        sizes: tasks of each split, in building order.

    Raises:
        SplitError: unknown split, or the law has too few tasks.
        ValueError: unknown domain or level.
    """
    if split not in sizes:
        raise SplitError(f"no split is called {split!r}; splits: {', '.join(sizes)}")
    wanted = list(sizes.items())[: list(sizes).index(split) + 1]
    source = get_domain(domain)
    _require_enough(source, level, sum(size for _, size in wanted))
    seen = lower_identities(source, level)
    *_, tasks = _build(source, level, seed, dict(wanted), _mark(seed, sizes), seen)
    return tasks


def fresh_split(domain: str, level: int, split: str, size: int, seed: int) -> TaskSet:
    """A split of another size or seed, disjoint from the splits of that seed that stand before it.

    Raises:
        SplitError: unknown split, or the law has too few tasks.
        ValueError: unknown domain or level.
    """
    return make_split(domain, level, split, seed, {**SIZES, split: size} if split in SIZES else SIZES)


def _mark(seed: int, sizes: Mapping[str, int]) -> str:
    return "" if seed == SEED and list(sizes.items()) == list(SIZES.items()) else f"@{seed}"


def _build(
    domain: Domain, level: int, seed: int, sizes: Mapping[str, int], mark: str, seen: set[str]
) -> Iterator[TaskSet]:
    """The splits of one family, in the order of `sizes`, disjoint by identity and from `seen`."""
    for split, size in sizes.items():
        name = f"{domain.name}/level{level}/{split}{mark}"
        places = enumerate(islice(cells(domain.name, level, split), size))
        tasks = (_draw(domain, level, split, seed, index, cell, seen, name) for index, cell in places)
        yield TaskSet(name, tuple(tasks))


def lower_identities(domain: Domain, level: int) -> set[str]:
    """Identities of the frozen tasks of all lower levels; none for a domain without frozen splits."""
    data = files("modebench.data")
    registry = _registry(data)
    names = [f"{domain.name}/level{lower}/{split}" for lower in range(1, level) for split in SIZES]
    return {
        domain.identity(row["reference"])
        for name in names
        if name in registry
        for row in _rows(data, name, registry[name]["file"])
    }


def _require_enough(domain: Domain, level: int, wanted: int) -> None:
    size = domain.law_size(level)
    if size is not None and wanted > size:
        raise SplitError(
            f"{domain.name} level {level} has {size} tasks in all, and {wanted} were asked for "
            "over all splits; ask for fewer"
        )


def _draw(
    domain: Domain,
    level: int,
    split: str,
    seed: int,
    index: int,
    cell: Cell | None,
    seen: set[str],
    name: str,
) -> Task:
    """Task number `index` of a split: the first attempt whose identity is not in `seen`."""
    for attempt in range(MAX_ATTEMPTS):
        rng = random.Random(task_seed(seed, domain.name, level, split, index, attempt))
        try:
            reference = domain.generate(rng, level) if cell is None else domain.generate(rng, level, cell)
        except Impossible as error:
            raise SplitError(f"{domain.name} level {level}: {error}; ask for fewer") from None
        identity = domain.identity(reference)
        if identity not in seen:
            seen.add(identity)
            modes = domain.count_modes(reference, level)
            return _task(domain, level, split, f"{name}/{index:04}", reference, modes)
    kind = "task" if cell is None else f"task with {cell.support} modes"
    raise SplitError(
        f"{domain.name} level {level} gave no new {kind} in {MAX_ATTEMPTS} draws after {len(seen)} different "
        "ones; ask for fewer"
    )


def _task(
    domain: Domain, level: int, split: str, task_id: str, reference: Mapping[str, Any], modes: int
) -> Task:
    return Task(task_id, domain.name, level, split, domain.problem(reference, level), reference, modes)


def load_split(domain: str, level: int = 1, split: str = "eval", folder: Path | None = None) -> TaskSet:
    """A frozen split; prompts are written anew from the references, then everything is checked.

    Args:
        domain: name or alias.
        level: level of the law.
        split: ``eval``, ``dev`` or ``train``.
        folder: where `build_all` wrote its files; the package's own data when None.

    Raises:
        SplitError: there is no such split, or its files don't give the tasks that were frozen.
        ValueError: unknown domain.
    """
    source = get_domain(domain)
    name = f"{source.name}/level{level}/{split}"
    data: Traversable = files("modebench.data") if folder is None else folder
    entry = _registry(data).get(name)
    if entry is None:
        known = (
            f"domains {', '.join(DOMAINS)}; levels {', '.join(map(str, LEVELS))}; splits {', '.join(SIZES)}"
        )
        raise SplitError(f"no split {name} is frozen; there are: {known}")
    try:
        tasks = TaskSet(
            name,
            tuple(
                _task(source, level, split, f"{name}/{index:04}", row["reference"], row["modes"])
                for index, row in enumerate(_rows(data, name, entry["file"]))
            ),
        )
    except (ValueError, LookupError, TypeError) as error:
        raise _unreadable(name, entry["file"], error) from error
    if tasks.sha256 != entry["sha256"]:
        raise SplitError(
            f"{name}: SHA-256 of the tasks is {tasks.sha256}, frozen was {entry['sha256']}; "
            f"{entry['file']} or the code that writes prompts was altered"
        )
    return tasks


def _rows(data: Traversable, name: str, file: str) -> list[dict[str, Any]]:
    """Reference and modes of the tasks of a shipped file."""
    try:
        raw = gzip.decompress(data.joinpath(file).read_bytes())
        return [json.loads(line) for line in raw.splitlines()]
    except (OSError, EOFError, ValueError) as error:
        raise _unreadable(name, file, error) from error


def _unreadable(name: str, file: str, error: Exception) -> SplitError:
    return SplitError(f"{name}: {file} cannot be read ({error!r}); reinstall the package")


def frozen_splits() -> dict[str, dict[str, Any]]:
    """Every frozen split by name: seed, count, law, sha256 and file.

    Raises:
        SplitError: the registry cannot be read.
    """
    return _registry(files("modebench.data"))


def _registry(data: Traversable) -> dict[str, dict[str, Any]]:
    """Entries of ``splits.json`` by split name: seed, count, law, sha256, file."""
    try:
        registry = json.loads(data.joinpath("splits.json").read_text(encoding="utf-8"))
        if registry["schema"] != SCHEMA:
            raise ValueError(f"schema is {registry['schema']!r}, expected {SCHEMA!r}")
        return dict(registry["splits"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SplitError(f"splits.json cannot be read ({error!r}); reinstall the package") from error


def build_all(
    folder: Path, domains: Iterable[str] = DOMAINS, levels: Iterable[int] = LEVELS
) -> dict[str, TaskSet]:
    """Draw frozen splits and write their compact files and their entries of ``splits.json`` in `folder`.

    Entries of other splits are kept. Tasks of lower levels are taken from the package's own files, so a
    rebuild of all levels there goes upwards.

    Returns:
        The splits by name.
    """
    built: dict[str, TaskSet] = {}
    for source in map(get_domain, domains):
        for level in sorted(levels):
            (folder / f"level{level}").mkdir(parents=True, exist_ok=True)
            seen = lower_identities(source, level)
            _require_enough(source, level, sum(SIZES.values()))
            cell = {tasks.name: tasks for tasks in _build(source, level, SEED, SIZES, "", seen)}
            _write_cell(folder, source, level, cell)
            built |= cell
    return built


def _write_cell(folder: Path, domain: Domain, level: int, cell: Mapping[str, TaskSet]) -> None:
    """Files and entries of the splits of a domain and level."""
    entries = _registry(folder) if (folder / "splits.json").exists() else {}
    for name, tasks in cell.items():
        file = f"level{level}/{domain.name}.{name.rpartition('/')[2]}.jsonl.gz"
        _write_compact(folder / file, tasks)
        entries[name] = {
            "seed": SEED,
            "count": len(tasks),
            "law": domain.law(level),
            "sha256": tasks.sha256,
            "file": file,
        }
    order = [f"{name}/level{level}/{split}" for name in DOMAINS for level in LEVELS for split in SIZES]
    splits = {name: entries[name] for name in sorted(entries, key=order.index)}
    registry = json.dumps({"schema": SCHEMA, "splits": splits}, indent=1) + "\n"
    (folder / "splits.json").write_text(registry, encoding="utf-8")


def _write_compact(path: Path, tasks: TaskSet) -> None:
    """Reference and modes a line, gzip without a time stamp; keys keep their order."""
    lines = [
        json.dumps({"modes": task.modes, "reference": task.reference}, separators=(",", ":")) + "\n"
        for task in tasks
    ]
    path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def main() -> None:
    """Rebuild shipped files in place and say what they hold."""
    parser = argparse.ArgumentParser(description="Rebuild the frozen splits that are shipped.")
    parser.add_argument("--domain", action="append", choices=DOMAINS, help="only this domain")
    parser.add_argument("--level", action="append", type=int, choices=LEVELS, help="only this level")
    asked = parser.parse_args()
    folder = Path(__file__).parent / "data"
    for domain in asked.domain or DOMAINS:
        for level in sorted(asked.level or LEVELS):
            for name, tasks in build_all(folder, [domain], [level]).items():
                modes = sorted(task.modes or 0 for task in tasks)
                print(f"{name}: {len(tasks)} tasks, {modes[0]} to {modes[-1]} modes, sha256 {tasks.sha256}")


if __name__ == "__main__":
    main()
