"""Many blocking calls at once, a bounded number of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[Job], Result], jobs: Sequence[Job], threads: int
) -> Iterator[tuple[int, Result]]:
    """Yield (index into `jobs`, `work(job)`) as results come, jobs being begun in their order.

    Threads rather than an event loop, which a notebook already runs. They are daemons: a program that is
    interrupted does not wait for a server that hangs. When the iterator is closed, or ends with an
    exception, no further job is begun.

    Args:
        work: called in the threads, at most `threads` calls at a time.
        jobs: its arguments.
        threads: how many.

    Raises:
        BaseException: the first that a call raised.
    """
    waiting = deque(enumerate(jobs))
    results: SimpleQueue[tuple[int, Result] | BaseException] = SimpleQueue()

    def serve() -> None:
        while waiting:
            try:
                index, job = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results.put((index, work(job)))
            except BaseException as error:
                waiting.clear()
                results.put(error)

    for _ in range(min(threads, len(jobs))):
        threading.Thread(target=serve, daemon=True).start()
    try:
        for _ in jobs:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        waiting.clear()
