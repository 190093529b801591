"""The laws of levels 2 to 5, one module a domain (arXiv:2610.11064).

A task of these levels stands in a cell: the number of modes that it must have and a tier of the law.
Numbers of modes are those of the frozen level-1 tasks, so that levels differ in difficulty and not in
how many modes there are. Every module has `TEXTS` (the law in one sentence), `CYCLES` (the tiers in the
order in which tasks with one number of modes take them), `generate` and `law_size`.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import count, repeat
from typing import NamedTuple

from modebench.verifiers.registry import DOMAINS

SPLITS = ("eval", "dev", "train")


class Cell(NamedTuple):
    """What a task of levels 2 to 5 must be.

    Attributes:
        support: its exact number of modes.
        tier: position of its kind in the tiers of the law.
    """

    support: int
    tier: int


class Impossible(ValueError):  # noqa: N818 - an answer, not an error
    """No task of the law has this number of modes in this tier."""


@cache
def level1_supports(domain: str, split: str) -> tuple[int, ...]:
    """Numbers of modes of a frozen level-1 split, in its order."""
    raw = files("modebench.data").joinpath(f"level1/{domain}.{split}.jsonl.gz").read_bytes()
    return tuple(json.loads(line)["modes"] for line in gzip.decompress(raw).splitlines())


def cells(domain: str, level: int, split: str) -> Iterator[Cell | None]:
    """Cells of a split's tasks in order, without end; None each where the law has no cells."""
    if level == 1 or domain not in DOMAINS:
        return repeat(None)
    return schedule(domain, split, import_module(f"{__name__}.{domain}").CYCLES[level])


def schedule(domain: str, split: str, cycle: Sequence[int]) -> Iterator[Cell]:
    """Cells of a split's tasks, without end.

    Task number i has the number of modes of level 1's task i (of the split of that name, else of eval;
    from its start again after its end), so the histograms are equal. Tasks with one number of modes go
    through the cycle of tiers, from a place that depends on the number: rare ones take all tiers too.
    """
    supports = level1_supports(domain, split if split in SPLITS else "eval")
    met: Counter[int] = Counter()
    for index in count():
        support = supports[index % len(supports)]
        yield Cell(support, cycle[(support + met[support]) % len(cycle)])
        met[support] += 1


def draw_cell(rng: random.Random, domain: str, cycle: Sequence[int]) -> Cell:
    """A cell for a task outside a split: modes of a random frozen level-1 task, a random tier."""
    supports = level1_supports(domain, rng.choices(SPLITS, weights=(1, 1, 3))[0])
    return Cell(rng.choice(supports), rng.choice(cycle))
