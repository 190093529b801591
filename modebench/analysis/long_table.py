"""The long table of samples, checked and turned into small integers.

One row is one sample: the answer number `sample` to the task `task_id`. Required columns are task_id,
sample, status, mode and the columns that cells are grouped by; see `read_long_table`. Everything after
this module works on integer codes, so a table of a million rows costs a few passes over numpy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from modebench.analysis.pass_at_k import FloatArray, IntArray

STATUSES = ("correct", "incorrect", "malformed", "error")
BoolArray = npt.NDArray[np.bool_]

# Dense count matrices are built for a block of prompts at a time, of at most this many entries.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class LongTable:
    """Samples as codes. N samples, P prompts; -1 stands for "none" in every code.

    Attributes:
        frame: the rows given, index reset.
        prompts: the identifying columns of each prompt, sorted, [P].
        prompt: which prompt a sample belongs to, [N].
        status: index into `STATUSES`, [N].
        mode: code of the mode of a correct sample, else -1, [N].
        text: code of the raw response text, -1 where there is none, [N].
        position: place of the sample in its prompt, the same number at the same place of every prompt, [N].
        group: code of the group within the prompt, [N].
    """

    frame: pd.DataFrame
    prompts: pd.DataFrame
    prompt: IntArray
    status: IntArray
    mode: IntArray
    text: IntArray
    position: IntArray
    group: IntArray

    @property
    def graded(self) -> BoolArray:
        """Samples that have a verdict, [N]; an engine error has none."""
        return np.asarray(self.status != STATUSES.index("error"))

    def having(self, status: str) -> BoolArray:
        """Samples of one status, [N]."""
        return np.asarray(self.status == STATUSES.index(status))

    def per_prompt(self, where: BoolArray) -> IntArray:
        """Number of selected samples of each prompt, [P]."""
        return np.bincount(self.prompt[where], minlength=len(self.prompts))

    def numbers(self, column: str) -> FloatArray:
        """An optional numeric column as float64 [N], NaN where missing; all NaN without the column."""
        if column not in self.frame:
            return np.full(len(self.frame), np.nan)
        return pd.to_numeric(self.frame[column]).to_numpy(dtype=np.float64, na_value=np.nan)


def read_long_table(samples: pd.DataFrame, by: str | Sequence[str] = ("domain", "level")) -> LongTable:
    """Check a long table of samples and code it.

    Args:
        samples: one row a sample, with the columns
            task_id; sample (place within the task, unique there); status (one of `STATUSES`);
            mode (text, for correct samples); every column of `by`;
            and optionally domain, level, split, group, response (or response_hash, equal where the
            responses are), finish_reason, output_tokens, entropy, modes (number of existing modes of the
            task), listed (False where the mode stands outside the
            enumeration). Other columns are ignored.
        by: columns whose distinct values make the cells.

    Returns:
        the coded table. A prompt is a distinct (by, domain, level, split, task_id).

    Raises:
        ValueError: `by` is empty, a column is missing, a status is unknown, a correct sample has no mode,
            two rows stand for the same sample of the same prompt, or a column prefix has several values
            and is not in `by`.
    """
    by = columns_of(by)
    missing = [c for c in dict.fromkeys([*by, "task_id", "sample", "status", "mode"]) if c not in samples]
    if missing:
        raise ValueError(f"the table of samples lacks the columns {missing}; it has {list(samples.columns)}")
    if "prefix" in samples and "prefix" not in by and samples["prefix"].nunique(dropna=False) > 1:
        raise ValueError(
            "samples asked with different prefixes would be mixed: add 'prefix' to `by`, or choose one"
        )
    frame = samples.reset_index(drop=True)
    status = _status_codes(frame["status"])
    prompt, prompts = _prompts(frame, by)
    is_correct = status == STATUSES.index("correct")
    mode = np.where(is_correct, _codes(frame["mode"]), -1)
    if np.any(is_correct & (mode < 0)):
        row = int(np.flatnonzero(is_correct & (mode < 0))[0])
        raise ValueError(f"row {row}: a correct sample needs a mode, got {frame['mode'].iloc[row]!r}")
    group = _codes(frame["group"]) if "group" in frame else np.zeros(len(frame), dtype=np.int64)
    texts = next((name for name in ("response", "response_hash") if name in frame), None)
    text = np.full(len(frame), -1) if texts is None else _codes(frame[texts])
    position = _positions(frame, prompt, group)
    return LongTable(frame, prompts, prompt, status, mode, text, position, group)


def columns_of(by: str | Sequence[str]) -> list[str]:
    """The columns that make the cells, as a list; one name may stand alone.

    Raises:
        ValueError: no column.
    """
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        raise ValueError("`by` needs at least one column")
    return columns


def _codes(column: pd.Series, sort: bool = False) -> IntArray:
    return pd.factorize(column, sort=sort)[0].astype(np.int64)


def _status_codes(column: pd.Series) -> IntArray:
    codes, values = pd.factorize(column)
    unknown = [v for v in values if v not in STATUSES]
    if unknown or np.any(codes < 0):
        raise ValueError(f"unknown status {unknown or [None]}; expected one of {STATUSES}")
    index = np.array([STATUSES.index(v) for v in values], dtype=np.int64)
    return index[codes] if len(codes) else codes.astype(np.int64)


def _prompts(frame: pd.DataFrame, by: Sequence[str]) -> tuple[IntArray, pd.DataFrame]:
    """Prompt number of each row, and the identifying columns of each prompt, sorted."""
    keys = [c for c in dict.fromkeys([*by, "domain", "level", "split", "task_id"]) if c in frame]
    numbered = frame.groupby(keys, sort=True, dropna=False, observed=True).ngroup()
    codes = np.asarray(numbered, dtype=np.int64)
    _, first = np.unique(codes, return_index=True)
    return codes, frame.loc[first, keys].reset_index(drop=True)


def _positions(frame: pd.DataFrame, prompt: IntArray, group: IntArray) -> IntArray:
    """Place of each sample; numbering that restarts in every group is told apart by the group."""
    place = _codes(frame["sample"], sort=True)
    if _has_repeats(prompt, place):
        place = (group + 1) * (int(place.max(initial=0)) + 1) + place
        if _has_repeats(prompt, place):
            raise ValueError(
                "several rows stand for the same sample of the same task: pass one run, or add the column "
                "that tells the runs apart to `by`"
            )
    return place


def _has_repeats(prompt: IntArray, place: IntArray) -> bool:
    key = prompt * (int(place.max(initial=0)) + 1) + place
    return bool(pd.Series(key).duplicated().any())


def distinct_counts(row: IntArray, code: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """How often each code occurs in each row.

    Args:
        row: row number of each observation, [N].
        code: code of each observation, not negative, [N].

    Returns:
        row [D], count [D] and the index of the first observation [D] of every distinct (row, code),
        sorted by row.

    >>> [x.tolist() for x in distinct_counts(np.array([1, 0, 1, 1]), np.array([5, 5, 5, 7]))]
    [[0, 1, 1], [1, 2, 1], [1, 0, 3]]
    """
    width = int(code.max(initial=0)) + 1
    keys, first, counts = np.unique(row * width + code, return_index=True, return_counts=True)
    return keys // width, counts.astype(np.int64), first.astype(np.int64)


def over_counts(
    row: IntArray,
    count: IntArray,
    rows: int,
    estimate: Callable[[IntArray, IntArray], dict[str, FloatArray]],
) -> dict[str, FloatArray]:
    """Apply estimators of padded counts to ragged counts, in blocks of bounded size.

    Args:
        row: row number of each count, sorted, [D].
        count: how often one code occurs in that row, [D].
        rows: number of rows R, also those without any count.
        estimate: maps (counts [B, M], row numbers [B]) to columns of shape [B].

    Returns:
        column name -> [R].
    """
    width = np.bincount(row, minlength=rows)
    start = np.cumsum(width) - width
    # Rows of like width share a block, so that one long row does not pad all the others.
    order = np.argsort(width, kind="stable")
    pieces = max(1, -(-rows * int(width.max(initial=1)) // _BLOCK))
    columns: dict[str, FloatArray] = {}
    for block in np.array_split(order, pieces):
        dense = np.zeros((len(block), int(width[block].max(initial=0))), dtype=np.int64)
        inside = np.arange(dense.shape[1]) < width[block][:, None]
        dense[inside] = count[(start[block][:, None] + np.arange(dense.shape[1]))[inside]]
        # Float sums depend on their order; sorted counts make the result one of the counts alone.
        dense.sort(axis=1)
        for name, values in estimate(dense, block).items():
            columns.setdefault(name, np.full(rows, np.nan))[block] = values
    return columns
