"""Are the samples of a prompt independent draws? A test on identical raw texts.

Identical texts alone prove nothing: a model that has settled on a short answer repeats it honestly. What
honest repeats do not know is the position of a sample. If the K texts of a prompt are independent draws,
every order of them is equally likely, so given the texts, positions i and j agree with probability

    r = sum c (c - 1) / (K (K - 1))        (c: how often each text occurs)

whatever i and j are, and prompts are independent. The number X_ij of prompts in which positions i and j
carry the same text is then a sum of independent Bernoulli variables with known rates r. A reused seed, a
cache hit or a server that returns one completion for several makes two *fixed* positions agree in every
prompt, far beyond that. A collapsed model raises r for all pairs alike and is not flagged.

One list of seeds shared by all prompts shows as well: where prompts have like answer distributions, the
same two positions then agree in prompt after prompt, because they are no longer independent.

The tail of X_ij is bounded by the binomial with the mean rate (Hoeffding 1956, Ann. Math. Stat. 27:713:
P(X >= x) <= P(Bin(n, mean r) >= x) for x >= n * mean r + 1), multiplied by the number of pairs. No
randomness, no tuning: the chance of a false alarm in a cell of independent samples is below the threshold.

What it can't see: when all K texts of every prompt are one text, r = 1 and positions carry no information.
Then temperature 0, one seed for all samples and full collapse look the same; see `PositionTest.one_text`.

How many streams there are, and the numbers without the copies: `modebench.analysis.streams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import bdtrc

from modebench.analysis.pass_at_k import FloatArray, IntArray

# Pairs of positions beyond these are not compared: the work grows with the square of the positions.
MAX_POSITIONS = 1024
# A pair is taken for copies when its bounded p-value, over all pairs, lies below this.
THRESHOLD = 1e-6


class PositionTest(NamedTuple):
    """Result of the position test in one cell: every pair of positions, and the most surprising one.

    Attributes:
        pairs: positions i < j of each pair, [N, 2].
        agreeing: prompts in which the pair carries the same text, [N].
        prompts: prompts in which both positions carry a text, [N].
        expected: how many agreements chance gives, [N].
        p_values: upper bound, over all pairs, for the chance of such an agreement, [N].
        one_text: every prompt with at least two texts repeats a single one (and there are such prompts).
    """

    pairs: IntArray
    agreeing: FloatArray
    prompts: FloatArray
    expected: FloatArray
    p_values: FloatArray
    one_text: bool

    @property
    def worst(self) -> int:
        """Number of the most surprising pair."""
        return int(np.argmin(self.p_values))

    def copies(self, threshold: float = THRESHOLD) -> IntArray:
        """The pairs whose p-value lies below the threshold, [F, 2]."""
        return self.pairs[self.p_values < threshold]


def position_test(texts: npt.ArrayLike) -> PositionTest | None:
    """Look for pairs of sample positions whose texts agree beyond chance.

    Args:
        texts: [P, K] integer codes; equal codes in a row are equal texts, negative ones are missing.

    Returns:
        the result, or None when no prompt has two texts.

    >>> reused = [[3 * p, 3 * p + 1, 3 * p, 3 * p + 2] for p in range(20)]  # third repeats first
    >>> position_test(reused).copies().tolist()
    [[0, 2]]
    >>> float(position_test([[p] * 4 for p in range(20)]).p_values.min())  # collapse: nothing to see
    1.0
    """
    codes = np.asarray(texts, dtype=np.int64)[:, :MAX_POSITIONS]
    rate, eligible = _agreement_rate(codes)
    codes, rate = codes[eligible], rate[eligible]
    if len(codes) == 0 or codes.shape[1] < 2:
        return None
    agreeing = _agreements(codes)
    weight = (codes >= 0).astype(np.float64)
    both = np.rint(weight.T @ weight)
    expected = (weight * rate[:, None]).T @ weight
    i, j = np.triu_indices(codes.shape[1], k=1)
    return PositionTest(
        pairs=np.stack([i, j], axis=1),
        agreeing=agreeing[i, j],
        prompts=both[i, j],
        expected=expected[i, j],
        p_values=np.minimum(_tail(agreeing[i, j], both[i, j], expected[i, j]) * len(i), 1.0),
        one_text=bool(np.all(rate == 1.0)),
    )


def stream_of_position(copies: npt.ArrayLike, positions: int) -> IntArray:
    """Which positions carry the same random stream, copies of copies included.

    Args:
        copies: [F, 2] pairs of positions that repeat each other.
        positions: number of positions K.

    Returns:
        the first position of the stream of each position, [K].

    >>> stream_of_position([[1, 3], [3, 4]], 5).tolist()
    [0, 1, 2, 1, 1]
    """
    # A quarter of a second that every command would wait for, and few need.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = np.asarray(copies, dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(positions, positions))
    _, stream = connected_components(graph, directed=False)
    first = np.full(positions, positions)
    np.minimum.at(first, stream, np.arange(positions))
    return np.asarray(first[stream])


def lag_agreement(tests: Sequence[PositionTest]) -> pd.DataFrame:
    """Agreement of positions at each distance, over all prompts of some cells.

    Copies that come from overlapping ranges of seeds stand at fixed distances, which stick out here.

    Returns:
        a row a lag j - i, from 1: ``lag``, ``agreement`` and ``chance`` (share of the compared prompts in
        which the texts agree, and would agree by chance), ``compared`` (their number, each once a pair).

    >>> shifted = [[p, 100 + p, 200 + p, p, 100 + p, 200 + p] for p in range(0, 50)]
    >>> table = lag_agreement([position_test(shifted)]).set_index("lag")
    >>> table["agreement"].round(2).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    columns = {name: np.zeros(MAX_POSITIONS) for name in ("agreeing", "expected", "prompts")}
    for test in tests:
        lag = test.pairs[:, 1] - test.pairs[:, 0]
        for name, total in columns.items():
            total += np.bincount(lag, weights=getattr(test, name), minlength=MAX_POSITIONS)
    lags = np.flatnonzero(columns["prompts"])
    agreeing, expected, compared = (values[lags] for values in columns.values())
    return pd.DataFrame(
        {
            "lag": lags,
            "agreement": agreeing / compared,
            "chance": expected / compared,
            "compared": compared.astype(np.int64),
        }
    )


def _agreement_rate(codes: IntArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Share of equal pairs among the texts of each prompt [P], and which prompts have two texts at all."""
    ordered = np.sort(codes, axis=1)
    n = (ordered >= 0).sum(axis=1)
    # In a sorted row, a text that stands at place t of its run (from 0) closes t equal pairs.
    starts = np.ones(ordered.shape, dtype=np.bool_)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    place = np.arange(ordered.shape[1])
    run = place - np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    equal = np.where(ordered >= 0, run, 0).sum(axis=1)
    return equal / np.maximum(n * (n - 1) / 2, 1), n >= 2


def _agreements(codes: IntArray) -> FloatArray:
    """[K, K] number of prompts in which positions i < j carry the same text."""
    size = codes.shape[1]
    table = np.zeros((size, size))
    columns = np.ascontiguousarray(codes.T)
    for lag in range(1, size):
        equal = (columns[lag:] == columns[:-lag]) & (columns[lag:] >= 0)
        table[np.arange(size - lag), np.arange(lag, size)] = equal.sum(axis=1)
    return table


def _tail(agreeing: FloatArray, both: FloatArray, expected: FloatArray) -> FloatArray:
    """Bound for the chance of at least this many agreements; 1 where the bound does not hold."""
    mean = np.clip(expected / np.maximum(both, 1), 0.0, 1.0)
    usable = (both > 0) & (agreeing >= expected + 1)
    # bdtrc(x, n, p) is the chance of more than x.
    tail = bdtrc(np.maximum(agreeing - 1, 0), np.maximum(both, 1).astype(np.int64), mean)
    return np.where(usable, tail, 1.0)
