"""What a reader of the numbers has to know before using them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from modebench.analysis.duplicates import PositionTest
from modebench.analysis.intervals import mean_interval
from modebench.analysis.long_table import LongTable
from modebench.analysis.pass_at_k import FloatArray, IntArray
from modebench.analysis.streams import Streams, repeated_seeds

# Fewer prompts with one repeated text can be an accident of a small task set.
_MIN_ONE_TEXT = 5
_MAX_TRUNCATED = 0.05


def cell_warnings(
    table: LongTable,
    prompts: pd.DataFrame,
    cells: Sequence[IntArray],
    by: Sequence[str],
    ks: Sequence[int],
    streams: Streams,
) -> list[str]:
    """Warnings of every cell, in the order of the cells.

    Each text starts with a stable code and the cell: ``duplicate-samples`` (two positions carry the same
    text, or outcome where no text is known, in more prompts than chance allows), ``one-text`` (all samples of
    every prompt are one text), ``truncated`` (more than 5 % of the graded samples were cut off),
    ``dropped-prompts`` (prompts without a graded sample), ``unequal-samples`` (some prompts have too few
    samples for a k that others reach), ``mixed-splits``, ``excess-modes`` (more listed modes found than
    exist).

    Args:
        table: the coded samples.
        prompts: their prompt table, same order of prompts.
        cells: row numbers of each cell's prompts.
        by: columns that make the cells.
        ks: the k of pass@k and modes@k.
        streams: what was found of copies in these cells.
    """
    texts = bool(np.any(table.text >= 0))
    warnings = []
    for rows, test in zip(cells, streams.tests, strict=True):
        own = prompts.iloc[rows]
        found = [*_duplicates(test, streams, len(own), texts), *_counts(own, ks)]
        warnings += [f"{code}: {_label(own, by)}: {message}" for code, message in found]
    return warnings


def seed_warnings(table: LongTable) -> list[str]:
    """``repeated-seeds`` where recorded seeds of samples occur again: in the same prompt, or for the same
    task in a run of another seed."""
    within, across = repeated_seeds(table)
    found = []
    if within:
        found.append(f"repeated-seeds: {within} samples have the seed of another sample of their prompt")
    if across:
        found.append(
            f"repeated-seeds: {across} samples have the seed of a sample of the same task in a run of "
            "another seed; these runs are not independent repetitions"
        )
    return found


def _label(rows: pd.DataFrame, by: Sequence[str]) -> str:
    return ", ".join(f"{name} {rows[name].iloc[0]}" for name in by)


def chance_warnings(
    prompts: pd.DataFrame,
    shuffled_accuracy: FloatArray,
    cells: Sequence[IntArray],
    by: Sequence[str],
    level: float,
) -> list[str]:
    """``not-above-chance`` for every cell whose accuracy isn't above that of its own answers shuffled.

    The difference is paired by prompt. It is above when the lower limit of its t interval is; where there
    is no interval, when the difference itself is.

    Args:
        prompts: the prompt table, P rows.
        shuffled_accuracy: accuracy of the answers to another prompt on each prompt, [P]; NaN where unknown.
        cells: row numbers of each cell's prompts.
        by: columns that make the cells.
        level: of the interval.
    """
    difference = prompts["accuracy"].to_numpy(dtype=np.float64) - shuffled_accuracy
    warnings = []
    for rows in cells:
        gain = mean_interval(difference[rows], level, -1.0, 1.0)
        least = gain.value if np.isnan(gain.low) else gain.low
        if least <= 0:
            text = (
                f"not-above-chance: {_label(prompts.iloc[rows], by)}: accuracy is not above that of the same "
                f"answers on other prompts (difference {gain.value:+.3f}, from {gain.low:+.3f} to "
                f"{gain.high:+.3f}): what is right here may come from the form of the answers alone"
            )
            warnings.append(text)
    return warnings


def _duplicates(
    result: PositionTest | None, streams: Streams, prompts: int, texts: bool
) -> list[tuple[str, str]]:
    if result is None:
        return []
    if texts and result.one_text and prompts >= _MIN_ONE_TEXT:
        message = (
            "all samples of every prompt are the same text; temperature 0, one seed for all samples and a "
            "fully collapsed model look alike here, so check the sampling before reading diversity"
        )
        return [("one-text", message)]
    flagged, worst = len(result.copies()), result.worst
    if not flagged:
        return []
    first, second = result.pairs[worst]
    message = (
        f"samples are not independent: {flagged} pairs of sample positions repeat each other's "
        f"{'text' if texts else 'outcome'} beyond chance (positions {first} and {second} in "
        f"{result.agreeing[worst]:.0f} of {result.prompts[worst]:.0f} prompts, chance gives "
        f"{result.expected[worst]:.1f}); look for reused seeds or a cache"
    )
    if streams.distinct < len(streams.first):
        message += f"; the {len(streams.first)} samples are {streams.distinct} distinct streams"
    return [("duplicate-samples", message)]


def _counts(rows: pd.DataFrame, ks: Sequence[int]) -> list[tuple[str, str]]:
    found = []
    graded = rows["graded"][rows["graded"] > 0]
    truncated = int(rows["truncated"].sum()) / max(int(rows["graded"].sum()), 1)
    if truncated > _MAX_TRUNCATED:
        found.append(("truncated", f"{truncated:.1%} of the graded samples were cut off at the token limit"))
    if len(graded) < len(rows):
        message = f"{len(rows) - len(graded)} of {len(rows)} prompts have no graded sample and are left out"
        found.append(("dropped-prompts", message))
    partial = [k for k in ks if len(graded) and graded.min() < k <= graded.max()]
    if partial:
        message = (
            f"prompts have {graded.min()} to {graded.max()} graded samples, so metrics at k = "
            f"{', '.join(map(str, partial))} rest on some of them"
        )
        found.append(("unequal-samples", message))
    if "split" in rows and rows["split"].nunique() > 1:
        splits = ", ".join(sorted(rows["split"].dropna().astype(str).unique()))
        found.append(("mixed-splits", f"one cell mixes the splits {splits}"))
    excess = int(rows["excess_modes"].sum())
    if excess:
        message = f"{excess} modes that count as listed were found beyond the number that exists"
        found.append(("excess-modes", message))
    return found
