"""Which samples are copies of which: distinct random streams, and repeated seeds.

How samples were drawn is a property of the harness, so two positions are taken for copies of one stream in
all cells of a table or in none: where they fail the position test of `duplicates` in some cell, at a
threshold divided by the number of cells, and where over all cells together their agreement beyond chance,

    kappa = (agreeing - expected) / (prompts - expected)        (the form of Cohen 1960, 20:37)

is near 1. The first alone is not enough: one list of seeds shared by all prompts makes unlike seeds agree
beyond chance too, but not always. A table in which the model has collapsed can't tell seeds apart, and in
one of few outcomes distinct seeds can look alike; the more cells, the surer the number of streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from modebench.analysis.duplicates import (
    MAX_POSITIONS,
    THRESHOLD,
    PositionTest,
    lag_agreement,
    position_test,
    stream_of_position,
)
from modebench.analysis.long_table import STATUSES, LongTable
from modebench.analysis.pass_at_k import FloatArray, IntArray

# Copies agree but for the rounding of another batch (0.98 and more in published evaluations), distinct seeds
# under one list for all prompts in less than half of what chance leaves open.
_MIN_KAPPA = 0.8


class Streams(NamedTuple):
    """The streams behind the samples of a table.

    Attributes:
        first: for each of K positions the first position that carries the same stream, [K].
        tests: the position test of each cell; None in a cell without two samples of one prompt.
        lags: `lag_agreement` over all cells, of the lags at which copies stand.
    """

    first: IntArray
    tests: list[PositionTest | None]
    lags: pd.DataFrame

    @property
    def distinct(self) -> int:
        """Number of distinct streams."""
        return len(np.unique(self.first))


def find_streams(table: LongTable, cells: Sequence[IntArray]) -> Streams:
    """Test every cell for copies.

    Texts are compared; where the table has none, outcomes: the mode of a correct sample, else its status.

    Args:
        table: the coded samples, N of P prompts.
        cells: numbers of each cell's prompts.
    """
    position = _positions(table)
    count = min(int(position.max(initial=-1)) + 1, MAX_POSITIONS)
    tests = [position_test(codes) for codes in _matrices(table, position, count, cells)]
    made = [test for test in tests if test is not None]
    found = [test.copies(THRESHOLD / len(made)) for test in made]
    alike = _kappa(made) >= _MIN_KAPPA
    copies = np.concatenate([np.empty((0, 2), dtype=np.int64), *found])
    copies = copies[alike[copies[:, 0], copies[:, 1]]]
    lags = lag_agreement(made)
    return Streams(
        first=stream_of_position(copies, count),
        tests=tests,
        lags=lags[lags["lag"].isin(copies[:, 1] - copies[:, 0])],
    )


def _kappa(tests: Sequence[PositionTest]) -> FloatArray:
    """Agreement of each pair of positions beyond chance, over all cells, [K, K] above the diagonal."""
    if not tests:
        return np.empty((0, 0))
    pairs = tests[0].pairs
    agreeing, expected, prompts = (
        np.sum([getattr(test, name) for test in tests], axis=0)
        for name in ("agreeing", "expected", "prompts")
    )
    kappa = np.zeros((int(pairs.max()) + 1,) * 2)
    open_ = prompts - expected
    kappa[pairs[:, 0], pairs[:, 1]] = np.divide(
        agreeing - expected, open_, out=np.zeros_like(open_), where=open_ > 1e-9
    )
    return kappa


def without_copies(table: LongTable, streams: Streams) -> pd.DataFrame:
    """The samples of a table, of each prompt and stream the one at the first position that is there."""
    position = _positions(table)
    # Positions that were not compared stand for themselves.
    every = np.arange(int(position.max(initial=-1)) + 1)
    every[: len(streams.first)] = streams.first
    place = pd.DataFrame({"prompt": table.prompt, "stream": every[position], "position": position})
    copy = place.sort_values("position", kind="stable").duplicated(["prompt", "stream"]).sort_index()
    return table.frame[~copy.to_numpy()]


def _positions(table: LongTable) -> IntArray:
    """Places of the samples numbered from 0 without gaps, the same number at the same place, [N]."""
    return np.unique(table.position, return_inverse=True)[1].astype(np.int64)


def _outcomes(table: LongTable) -> IntArray:
    """What is compared between samples: codes, -1 where there is nothing, [N]."""
    if np.any(table.text >= 0):
        return np.where(table.graded, table.text, -1)
    outcome = np.where(table.mode >= 0, table.mode + len(STATUSES), table.status)
    return np.where(table.graded, outcome, -1)


def _matrices(
    table: LongTable, position: IntArray, count: int, cells: Sequence[IntArray]
) -> Iterator[IntArray]:
    """Outcome codes of the prompts of each cell in turn, [prompts, count], -1 where there is none."""
    cell = np.full(len(table.prompts), -1)
    for number, prompts in enumerate(cells):
        cell[prompts] = number
    outcome = _outcomes(table)
    used = np.flatnonzero((outcome >= 0) & (position < count))
    # Samples of one cell side by side.
    used = used[np.argsort(cell[table.prompt[used]], kind="stable")]
    ends = np.searchsorted(cell[table.prompt[used]], np.arange(len(cells) + 1))
    for number in range(len(cells)):
        chosen = used[ends[number] : ends[number + 1]]
        prompt = np.unique(table.prompt[chosen], return_inverse=True)[1]
        codes = np.full((int(prompt.max(initial=-1)) + 1, count), -1, dtype=np.int64)
        codes[prompt, position[chosen]] = outcome[chosen]
        yield codes


def repeated_seeds(table: LongTable) -> tuple[int, int]:
    """Samples whose recorded seed was used before.

    Reads the columns sample_seed (0 or null where unknown) and seed (that of the run), where they are there.

    Returns:
        samples that share their seed with an earlier sample of the same prompt, and those that share it with
        a sample of the same task in a run of another seed. Equal seeds in runs of one seed are meant: arms
        are compared on common random numbers.
    """
    if "sample_seed" not in table.frame:
        return 0, 0
    seeds = pd.DataFrame({"prompt": table.prompt, "sample_seed": table.frame["sample_seed"].to_numpy()})
    seeds = seeds[seeds["sample_seed"].notna() & (seeds["sample_seed"] != 0)]
    within = int(seeds.duplicated().sum())
    if "seed" not in table.frame:
        return within, 0
    task = ["task_id", *(name for name in ("domain", "level", "split") if name in table.frame)]
    run = table.frame.loc[seeds.index, [*task, "sample_seed", "seed"]].drop_duplicates()
    return within, int(run.duplicated([*task, "sample_seed"]).sum())
