"""Judging many responses: each different one once, over several processes where that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context

from modebench.tasks import Task
from modebench.verifiers.registry import Answerable, verify
from modebench.verifiers.verdict import Reading, Verdict

CHUNK = 4_096
"""Responses a process is handed at once: large enough that handing over costs little."""


def verify_many(
    items: Iterable[tuple[Answerable, str]], reading: Reading = "published", *, processes: int = 1
) -> list[Verdict]:
    """Judge many (task, response) pairs; the verdicts in their order.

    Args:
        items: pairs; a task that stands in several should be the same object, so that it is sent once.
        reading: as in `verify`.
        processes: how many judge. More than one starts fresh interpreters (the calling script needs the
            usual ``if __name__ == "__main__"``), which pays from some ten thousand responses on.

    Raises:
        InvalidReference: as `verify`.
        ValueError: unknown reading, or processes below 1.
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, not {processes}")
    chunks = _chunks(items)
    if processes == 1:
        return [verdict for chunk in chunks for verdict in _judge(chunk, reading)]
    verdicts: list[Verdict] = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        # A bounded number of chunks is under way, so that a long stream of items is never held whole.
        waiting = [pool.submit(_judge, chunk, reading) for chunk in islice(chunks, 2 * processes)]
        while waiting:
            verdicts += waiting.pop(0).result()
            waiting += [pool.submit(_judge, chunk, reading) for chunk in islice(chunks, 1)]
    return verdicts


class _Chunk:
    """Some items with every task once: (index of the task, response) a pair."""

    def __init__(self, tasks: Sequence[Answerable], pairs: Sequence[tuple[int, str]]) -> None:
        self.tasks = tasks
        self.pairs = pairs


def _chunks(items: Iterable[tuple[Answerable, str]]) -> Iterator[_Chunk]:
    stream = iter(items)
    while part := list(islice(stream, CHUNK)):
        places: dict[int, int] = {}
        tasks: list[Answerable] = []
        pairs = []
        for task, response in part:
            if id(task) not in places:
                places[id(task)] = len(tasks)
                tasks.append(task)
            pairs.append((places[id(task)], response))
        yield _Chunk([_plain(task) for task in tasks], pairs)


def _plain(task: Answerable) -> Answerable:
    """A task as little data: what verification reads, its reference as text."""
    if isinstance(task, Task):
        return {"domain": task.domain, "level": task.level, "reference": task.reference_json}
    return task


def _judge(chunk: _Chunk, reading: Reading) -> list[Verdict]:
    known: dict[tuple[int, str], Verdict] = {}
    verdicts = []
    for key in chunk.pairs:
        if key not in known:
            place, response = key
            known[key] = verify(chunk.tasks[place], response, reading)
        verdicts.append(known[key])
    return verdicts
