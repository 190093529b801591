"""The order of tasks: a function of seed and cursor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modebench.tasks import Task
from modebench.training.order import tasks_at


def tasks(count: int) -> list[Task]:
    return [Task(f"t/{place}", "countdown", 1, "train", "", {}) for place in range(count)]


@given(count=st.integers(1, 9), seed=st.integers(0, 3), cuts=st.lists(st.integers(1, 5), max_size=8))
def test_every_epoch_has_every_task_once_however_it_is_cut(count: int, seed: int, cuts: list[int]) -> None:
    total = sum(cuts)
    whole = tasks_at(tasks(count), seed, 0, total)
    pieces, cursor = [], 0
    for size in cuts:
        pieces += tasks_at(tasks(count), seed, cursor, size)
        cursor += size
    assert pieces == whole
    for start in range(0, total - count + 1, count):
        assert {task.id for task in whole[start : start + count]} == {f"t/{p}" for p in range(count)}


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [
        tuple(task.id for task in tasks_at(tasks(30), seed, epoch * 30, 30))
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert len(set(orders)) == 4
