"""Two long tables paired by prompt, and what became of each prompt and mode between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from modebench.analysis.long_table import LongTable, columns_of, read_long_table
from modebench.analysis.pass_at_k import FloatArray, IntArray, draw_none
from modebench.analysis.prompts import prompt_statistics

SIDE = "side"


@dataclass(frozen=True)
class Pairs:
    """The prompts that both sides answered, one row each (and each seed). Q pairs, U (pair, mode) couples.

    Attributes:
        identity: the columns that name a prompt, and the column of the upper level where there are several
            units, [Q].
        a: per-prompt statistics of side A, [Q].
        b: of side B, [Q].
        mode_pair: which pair a mode was found in, [U].
        mode_a: correct samples of A in that mode, [U].
        mode_b: of B, [U].
        only_a: prompts that only A answered.
        only_b: prompts that only B answered.
    """

    identity: pd.DataFrame
    a: pd.DataFrame
    b: pd.DataFrame
    mode_pair: IntArray
    mode_a: IntArray
    mode_b: IntArray
    only_a: int
    only_b: int


def pair_prompts(
    a: pd.DataFrame,
    b: pd.DataFrame,
    by: str | Sequence[str],
    upper_level: str | None,
    ks: Sequence[int] | None = None,
    group_size: int = 8,
) -> Pairs:
    """Pair the prompts of two long tables of samples.

    Args:
        a: long table of side A; see `read_long_table` for columns and errors.
        b: of side B.
        by: columns that make the cells.
        upper_level: column whose values are paired too (``seed``); None where each side has one unit.
        ks: the k of pass@k and modes@k.
        group_size: of the published per-group forms.
    """
    keys = [*columns_of(by), *([upper_level] if upper_level else [])]
    joined = pd.concat([a.assign(**{SIDE: 0}), b.assign(**{SIDE: 1})], ignore_index=True)
    table = read_long_table(joined, [SIDE, *keys])
    prompts = prompt_statistics(table, ks, group_size)
    names = [name for name in table.prompts if name != SIDE]
    pair = table.prompts.groupby(names, sort=True, dropna=False, observed=True).ngroup().to_numpy()
    row = np.full((2, int(pair.max(initial=-1)) + 1), -1)
    # A prompt without a verdict was not answered.
    answered = (prompts["graded"] > 0).to_numpy()
    row[table.prompts[SIDE].to_numpy()[answered], pair[answered]] = np.flatnonzero(answered)
    both = (row >= 0).all(axis=0)
    number = np.where(both, np.cumsum(both) - 1, -1)
    side_a, side_b = (prompts.iloc[rows[both]].reset_index(drop=True) for rows in row)
    mode_pair, mode_a, mode_b = _modes(table, number[pair])
    return Pairs(
        side_a[names],
        side_a,
        side_b,
        mode_pair,
        mode_a,
        mode_b,
        only_a=int(((row[0] >= 0) & ~both).sum()),
        only_b=int(((row[1] >= 0) & ~both).sum()),
    )


def _modes(table: LongTable, pair: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Pair, samples of A and samples of B of every mode found in a pair."""
    found = (table.mode >= 0) & (pair[table.prompt] >= 0)
    width = int(table.mode.max(initial=0)) + 1
    key, couple = np.unique(pair[table.prompt[found]] * width + table.mode[found], return_inverse=True)
    side = table.prompts[SIDE].to_numpy()[table.prompt[found]]
    of_a, of_b = (np.bincount(couple[side == number], minlength=len(key)) for number in (0, 1))
    return key // width, of_a, of_b


def outcomes(pairs: Pairs, rows: IntArray) -> dict[str, dict[str, float]]:
    """What became of the prompts and modes of a cell.

    A prompt is ``learned`` when none of A's samples is correct and some of B's is, ``lost`` the other way
    round, ``retained`` when both have a correct one, ``never`` when neither has. A mode of a prompt is
    ``gained``, ``lost`` or ``kept`` in the same way; counts are summed over prompts.

    Found in K samples is not the same as known: two sets of samples of *one* model differ as well. So each
    count has its expectation if A and B were the same policy: then, given all samples of a prompt, any K_A
    of the K_A + K_B could as well have been A's, and a mode of c samples in all (or a prompt of c correct
    ones) is missed by A with chance C(K_A + K_B - c, K_A) / C(K_A + K_B, K_A).

    Args:
        pairs: the paired prompts.
        rows: which of them make the cell.

    Returns:
        ``prompts`` (learned, retained, lost, never), ``prompts_expected``, ``modes`` (gained, kept, lost)
        and ``modes_expected``.
    """
    k_a, k_b, n_a, n_b = (
        side[name].to_numpy(dtype=np.int64)[rows]
        for name in ("graded", "correct")
        for side in (pairs.a, pairs.b)
    )
    inside = np.isin(pairs.mode_pair, rows)
    of, c_a, c_b = pairs.mode_pair[inside], pairs.mode_a[inside], pairs.mode_b[inside]
    every_a, every_b = (side["graded"].to_numpy(dtype=np.int64)[of] for side in (pairs.a, pairs.b))
    prompts, prompts_expected = _appearances(n_a, n_b, k_a, k_b)
    modes, modes_expected = _appearances(c_a, c_b, every_a, every_b)
    of_prompts, of_modes = ("learned", "retained", "lost", "never"), ("gained", "kept", "lost")
    return {
        "prompts": dict(zip(of_prompts, prompts, strict=True)),
        "prompts_expected": dict(zip(of_prompts, prompts_expected, strict=True)),
        # No mode of the list appears in neither.
        "modes": dict(zip(of_modes, modes, strict=False)),
        "modes_expected": dict(zip(of_modes, modes_expected, strict=False)),
    }


def _appearances(
    in_a: IntArray, in_b: IntArray, k_a: IntArray, k_b: IntArray
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """How many things appear in B only, both, A only and neither; and the same expected of one policy."""
    seen = (int(((in_a == 0) & (in_b > 0)).sum()), int(((in_a > 0) & (in_b > 0)).sum()))
    gone, never = int(((in_a > 0) & (in_b == 0)).sum()), int(((in_a == 0) & (in_b == 0)).sum())
    some = in_a + in_b > 0
    missed_a, missed_b = (
        float(_missed((in_a + in_b)[some], (k_a + k_b)[some], k[some]).sum()) for k in (k_a, k_b)
    )
    expected = (missed_a, float(some.sum()) - missed_a - missed_b, missed_b, float(never))
    return (*seen, gone, never), expected


def _missed(marked: IntArray, total: IntArray, draws: IntArray) -> FloatArray:
    """`draw_none` where the number of draws differs from row to row."""
    found = np.empty(len(marked))
    for k in np.unique(draws):
        where: npt.NDArray[np.bool_] = draws == k
        found[where] = draw_none(marked[where], total[where], int(k))
    return found
