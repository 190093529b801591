"""The order in which tasks are taken: endless epochs, each a seeded shuffle of all of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache

from modebench.tasks import Task


def tasks_at(tasks: Sequence[Task], seed: int, cursor: int, count: int) -> list[Task]:
    """The tasks at the places `cursor` to `cursor + count` of the endless sequence of a run seed.

    It depends on nothing else, so a cursor is all that a checkpoint needs.
    """
    places = [divmod(place, len(tasks)) for place in range(cursor, cursor + count)]
    return [tasks[_shuffled(seed, epoch, len(tasks))[place]] for epoch, place in places]


@lru_cache(maxsize=4)
def _shuffled(seed: int, epoch: int, count: int) -> tuple[int, ...]:
    digest = hashlib.sha256(f"{seed}|epoch|{epoch}".encode()).digest()
    order = list(range(count))
    random.Random(int.from_bytes(digest[:8], "big")).shuffle(order)
    return tuple(order)
