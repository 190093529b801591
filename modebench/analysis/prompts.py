"""One row a prompt: every per-prompt statistic, from a long table of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from modebench.analysis.diversity import certified_coverage, pcmd, prompt_diversity
from modebench.analysis.long_table import LongTable, distinct_counts, over_counts, read_long_table
from modebench.analysis.pass_at_k import FloatArray, IntArray, distinct_group, pass_group


def default_ks(most: int) -> tuple[int, ...]:
    """1, 2, 4, 8 always, then on in powers of two up to `most` samples.

    >>> default_ks(3), default_ks(40)
    ((1, 2, 4, 8), (1, 2, 4, 8, 16, 32))
    """
    return tuple(2**i for i in range(max(4, most.bit_length())))


def checked_ks(ks: Sequence[int] | None, most: int) -> tuple[int, ...]:
    """The k asked for, sorted and without repeats; the default ones when none are.

    Raises:
        ValueError: a k that is not a positive integer.
    """
    if ks is None:
        return default_ks(most)
    for k in ks:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k must be a positive integer, got {k!r}")
    return tuple(sorted({int(k) for k in ks}))


def prompt_table(
    samples: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "level"),
    ks: Sequence[int] | None = None,
    group_size: int = 8,
) -> pd.DataFrame:
    """Per-prompt statistics; undefined ones are NaN.

    An `error` sample is no attempt: it lowers K (column `graded`) and enters `error_rate` alone.

    Args:
        samples: long table, one row a sample; see `read_long_table` for its columns and errors.
        by: columns that make the cells (kept first in the result).
        ks: the k of pass@k and modes@k; None for powers of two up to the largest K, and at least 8.
        group_size: size that a group must have to enter the published per-group forms.

    Returns:
        one row a prompt, sorted by its identifying columns: those columns, then counts (samples, graded,
        correct, incorrect, malformed, error, truncated, modes_found, uncertified_modes, excess_modes), then
        accuracy, pass@k, modes@k, distinct_pair_rate, pcmd, pcmd_variance, pcmd_per_group, hill_0, hill_1,
        hill_2, coverage_good_turing, chao1, certified_coverage, pass@G_group, distinct@G_group,
        wrong_distinct_pair_rate, malformed_rate, truncated_rate, error_rate, duplicate_rate, tokens, entropy.
    """
    return prompt_statistics(read_long_table(samples, by), ks, group_size)


def prompt_statistics(table: LongTable, ks: Sequence[int] | None, group_size: int) -> pd.DataFrame:
    """`prompt_table` of a table that is already coded."""
    columns: dict[str, FloatArray | IntArray] = dict(_counts(table))
    graded = columns["graded"].astype(np.int64)
    row, count, first = distinct_counts(*_modes_of(table))
    columns |= _certified(table, row, first)
    columns["accuracy"] = _share(columns["correct"], graded)
    asked = checked_ks(ks, int(graded.max(initial=0)))
    columns |= over_counts(
        row, count, len(table.prompts), lambda dense, block: prompt_diversity(dense, graded[block], asked)
    )
    columns |= _group_forms(table, group_size)
    columns |= _texts(table)
    columns |= {
        "malformed_rate": _share(columns["malformed"], graded),
        "truncated_rate": _truncated_share(table, columns["truncated"], graded),
        "error_rate": _share(columns["error"], columns["samples"]),
        "tokens": _mean_of(table, "output_tokens"),
        "entropy": _mean_of(table, "entropy"),
    }
    return pd.concat([table.prompts, pd.DataFrame(columns, index=table.prompts.index)], axis=1)


def _share(part: FloatArray | IntArray, whole: FloatArray | IntArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def _counts(table: LongTable) -> dict[str, IntArray]:
    truncated = np.zeros(len(table.frame), dtype=np.bool_)
    if "finish_reason" in table.frame:
        truncated = (table.frame["finish_reason"] == "length").fillna(False).to_numpy(dtype=np.bool_)
    selected = {
        "samples": np.ones(len(table.frame), dtype=np.bool_),
        "graded": table.graded,
        **{status: table.having(status) for status in ("correct", "incorrect", "malformed", "error")},
        "truncated": truncated & table.graded,
    }
    return {name: table.per_prompt(where) for name, where in selected.items()}


def _truncated_share(
    table: LongTable, truncated: FloatArray | IntArray, graded: FloatArray | IntArray
) -> FloatArray:
    if "finish_reason" not in table.frame:
        return np.full(len(graded), np.nan)
    return _share(truncated, graded)


def _modes_of(table: LongTable) -> tuple[IntArray, IntArray]:
    """Prompt and mode code of every correct sample."""
    found = table.mode >= 0
    return table.prompt[found], table.mode[found]


def _certified(table: LongTable, row: IntArray, first: IntArray) -> dict[str, FloatArray | IntArray]:
    """Distinct modes found, and how many of them stand in the enumeration of the task's modes."""
    prompts = len(table.prompts)
    listed = np.ones(len(first), dtype=np.bool_)
    if "listed" in table.frame:
        flags = table.frame["listed"]
        listed = (flags.isna() | flags.eq(True)).to_numpy(dtype=np.bool_)[table.mode >= 0][first]
    found = np.bincount(row, minlength=prompts)
    inside = np.bincount(row[listed], minlength=prompts)
    existing = np.full(prompts, -np.inf)
    np.maximum.at(existing, table.prompt, np.nan_to_num(table.numbers("modes"), nan=-np.inf))
    existing = np.where(np.isinf(existing), np.nan, existing)
    coverage = np.where(table.per_prompt(table.graded) > 0, certified_coverage(inside, existing), np.nan)
    beyond = np.maximum(inside - np.nan_to_num(existing, nan=np.inf), 0).astype(np.int64)
    return {
        "modes_found": found,
        "uncertified_modes": found - inside + beyond,
        "excess_modes": beyond,
        "certified_coverage": coverage,
    }


def _group_forms(table: LongTable, size: int) -> dict[str, FloatArray]:
    """Per group first, then the mean over the prompt's groups where the value is defined."""
    graded = table.graded
    key = table.prompt * (int(table.group.max(initial=0)) + 2) + table.group + 1
    _, group = np.unique(key, return_inverse=True)
    groups = int(group.max(initial=-1)) + 1
    prompt = np.zeros(groups, dtype=np.int64)
    prompt[group] = table.prompt
    members = np.bincount(group[graded], minlength=groups)
    is_correct = table.mode >= 0
    correct = np.bincount(group[is_correct], minlength=groups)
    row, count, _ = distinct_counts(group[is_correct], table.mode[is_correct])
    per_group = over_counts(row, count, groups, lambda dense, _: {"pcmd_per_group": pcmd(dense)})
    per_group[f"pass@{size}_group"] = pass_group(correct, members, size)
    per_group[f"distinct@{size}_group"] = distinct_group(np.bincount(row, minlength=groups), members, size)
    return {name: _mean_by(prompt, values, len(table.prompts)) for name, values in per_group.items()}


def _mean_by(row: IntArray, values: FloatArray, rows: int) -> FloatArray:
    """Mean of the defined values of each row, [rows]; the same to the last bit in any order of them."""
    defined = ~np.isnan(values)
    row, values = row[defined], values[defined]
    order = np.lexsort((values, row))
    total = np.bincount(row[order], weights=values[order], minlength=rows)
    return _share(total, np.bincount(row, minlength=rows))


def _mean_of(table: LongTable, column: str) -> FloatArray:
    return _mean_by(table.prompt, np.where(table.graded, table.numbers(column), np.nan), len(table.prompts))


def _texts(table: LongTable) -> dict[str, FloatArray]:
    """How often raw texts repeat: among all graded samples, and among wrong answers."""
    prompts = len(table.prompts)
    known = table.graded & (table.text >= 0)
    row, _, _ = distinct_counts(table.prompt[known], table.text[known])
    texts = table.per_prompt(known)
    wrong = known & table.having("incorrect")
    wrong_row, wrong_count, _ = distinct_counts(table.prompt[wrong], table.text[wrong])
    return {
        "duplicate_rate": _share(texts - np.bincount(row, minlength=prompts), texts),
        **over_counts(
            wrong_row, wrong_count, prompts, lambda dense, _: {"wrong_distinct_pair_rate": pcmd(dense)}
        ),
    }
