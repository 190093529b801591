"""Bounded threads."""

from __future__ import annotations

import threading
import time

import pytest

from modebench.sampling.workers import in_threads


def test_every_job_is_done_once_and_never_too_many_at_a_time() -> None:
    lock = threading.Lock()
    now, most = 0, 0

    def work(job: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1
        return job * job

    results = dict(in_threads(work, range(100, 160), 4))
    assert results == {place: (100 + place) ** 2 for place in range(60)}
    assert 2 <= most <= 4


def test_jobs_are_begun_in_their_order() -> None:
    begun: list[int] = []
    assert len(list(in_threads(begun.append, range(20), 1))) == 20
    assert begun == list(range(20))


def test_no_jobs_no_threads() -> None:
    before = threading.active_count()
    assert list(in_threads(str, [], 4)) == []
    assert threading.active_count() == before


def test_an_exception_ends_it_and_nothing_more_is_begun() -> None:
    begun: list[int] = []

    def work(job: int) -> None:
        begun.append(job)
        if job == 3:
            raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        list(in_threads(work, range(1000), 1))
    assert begun == [0, 1, 2, 3]


def test_closing_begins_nothing_more() -> None:
    begun: list[int] = []

    def work(job: int) -> None:
        begun.append(job)
        time.sleep(0.01)

    results = in_threads(work, range(1000), 2)
    next(results)
    results.close()
    after = len(begun)
    time.sleep(0.05)
    assert len(begun) <= after + 2
