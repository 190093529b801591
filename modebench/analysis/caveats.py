"""What a reader of the numbers has to know before using them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from modebench.analysis.duplicates import MAX_POSITIONS, position_test
from modebench.analysis.intervals import mean_interval
from modebench.analysis.long_table import LongTable
from modebench.analysis.pass_at_k import FloatArray, IntArray

# Fewer prompts with one repeated text can be an accident of a small task set.
_MIN_ONE_TEXT = 5
_MAX_TRUNCATED = 0.05


def cell_warnings(
    table: LongTable,
    prompts: pd.DataFrame,
    cells: Sequence[IntArray],
    by: Sequence[str],
    ks: Sequence[int],
) -> list[str]:
    """Warnings of every cell, in the order of the cells.

    Each text starts with a stable code and the cell: ``duplicate-samples`` (two positions carry the same
    text in more prompts than chance allows), ``one-text`` (all samples of every prompt are one text),
    ``truncated`` (more than 5 % of the graded samples were cut off), ``dropped-prompts`` (prompts without a
    graded sample), ``unequal-samples`` (some prompts have too few samples for a k that others reach),
    ``mixed-splits``, ``excess-modes`` (more listed modes found than exist).

    Args:
        table: the coded samples.
        prompts: their prompt table, same order of prompts.
        cells: row numbers of each cell's prompts.
        by: columns that make the cells.
        ks: the k of pass@k and modes@k.
    """
    cell = np.full(len(prompts), -1)
    for number, rows in enumerate(cells):
        cell[rows] = number
    # Samples with a text, those of one cell side by side.
    known = np.flatnonzero(table.graded & (table.text >= 0))
    known = known[np.argsort(cell[table.prompt[known]], kind="stable")]
    ends = np.searchsorted(cell[table.prompt[known]], np.arange(len(cells) + 1))
    warnings = []
    for number, rows in enumerate(cells):
        own = prompts.iloc[rows]
        label = _label(own, by)
        texts = _text_matrix(table, known[ends[number] : ends[number + 1]])
        found = [*_duplicates(texts), *_counts(own, ks)]
        warnings += [f"{code}: {label}: {message}" for code, message in found]
    return warnings


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


def _text_matrix(table: LongTable, chosen: IntArray) -> IntArray:
    """Codes of the texts of one cell, [prompts, positions], -1 where there is none."""
    prompt = np.unique(table.prompt[chosen], return_inverse=True)[1]
    position = np.unique(table.position[chosen], return_inverse=True)[1]
    inside = position < MAX_POSITIONS
    shape = (int(prompt.max(initial=-1)) + 1, min(int(position.max(initial=-1)) + 1, MAX_POSITIONS))
    texts = np.full(shape, -1, dtype=np.int64)
    texts[prompt[inside], position[inside]] = table.text[chosen][inside]
    return texts


def _duplicates(texts: IntArray) -> list[tuple[str, str]]:
    result = position_test(texts)
    if result is None:
        return []
    if result.one_text and len(texts) >= _MIN_ONE_TEXT:
        message = (
            "all samples of every prompt are the same text; temperature 0, one seed for all samples and a "
            "fully collapsed model look alike here, so check the sampling before reading diversity"
        )
        return [("one-text", message)]
    if not result.flagged:
        return []
    message = (
        f"samples are not independent: {result.flagged} pairs of sample positions repeat each other's text "
        f"beyond chance (positions {result.first} and {result.second} in {result.agreeing} of "
        f"{result.prompts} prompts, chance gives {result.expected:.1f}); look for reused seeds or a cache"
    )
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
