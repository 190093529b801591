"""An alarm on a training curve: its threshold, when it sounds, and how long before the fall.

Mesh Learning (arXiv:2610.02835) sounds at MEI = 1.013, mean plus three standard deviations of untrained
models, and gives no lead time. A threshold is good for one model, group size and domain, so it is set here
from readings of the untrained policy of the very run: mean + 3 sd for a signal that rises (MEI), mean - 3 sd
for one that falls (entropy). An alarm is worth something only where it sounds before PCMD or pass@8 falls,
and earlier than entropy, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

DEVIATIONS = 3.0
Side = Literal["above", "below"]


@dataclass(frozen=True)
class Threshold:
    """Where a signal sounds.

    Attributes:
        value: the threshold.
        side: of it on which the signal sounds.
        mean, sd: of the readings that it was set from.
        readings: how many those were.
    """

    value: float
    side: Side
    mean: float
    sd: float
    readings: int

    def sounds(self, reading: float | None) -> bool:
        """Whether a reading is beyond it; one that is not defined isn't."""
        if reading is None:
            return False
        return reading > self.value if self.side == "above" else reading < self.value


def calibrate(readings: Sequence[float], side: Side = "above", groups: int = 1) -> Threshold:
    """The threshold from readings of the untrained policy.

    Args:
        readings: of the signal, independent ones.
        side: on which it sounds.
        groups: how many such readings one later reading is the mean of: readings of single groups set the
            threshold for a step of that many.

    Raises:
        ValueError: fewer than two readings, or groups below 1.

    >>> calibrate([1.0, 3.0], groups=2).value
    5.0
    """
    if len(readings) < 2 or groups < 1:
        raise ValueError(f"{len(readings)} readings and {groups} groups; expected 2 or more, and 1 or more")
    mean, sd = float(np.mean(readings)), float(np.std(readings, ddof=1)) / float(np.sqrt(groups))
    sign = 1 if side == "above" else -1
    return Threshold(mean + sign * DEVIATIONS * sd, side, mean, sd, len(readings))


def first_sounding(
    steps: Sequence[int], readings: Sequence[float | None], threshold: Threshold, patience: int = 1
) -> int | None:
    """The step at which a signal is beyond its threshold the `patience`-th time in a row; None if never."""
    run = 0
    for step, reading in zip(steps, readings, strict=True):
        run = run + 1 if threshold.sounds(reading) else 0
        if run == patience:
            return step
    return None


def first_fall(steps: Sequence[int], values: Sequence[float | None], drop: float) -> int | None:
    """The step from which on a measured value stays more than `drop` below the highest that it had before;
    None where it does not, or recovers. Undefined values are passed over."""
    defined = [(step, value) for step, value in zip(steps, values, strict=True) if value is not None]
    fell: int | None = None
    peak = -np.inf
    for step, value in defined:
        low = value < peak - drop
        fell = (step if fell is None else fell) if low else None
        peak = max(peak, value)
    return fell


def lead_times(
    steps: Sequence[int],
    signals: Mapping[str, tuple[Sequence[float | None], Threshold]],
    measured: Mapping[str, tuple[Sequence[int], Sequence[float | None]]],
    drop: float = 0.05,
    patience: int = 1,
) -> list[dict[str, Any]]:
    """How many steps before each fall each signal sounds.

    Args:
        steps: at which the signals were read.
        signals: by name, readings and threshold, e.g. MEI and entropy.
        measured: by name, steps and values of what may fall, e.g. PCMD and pass@8 of the evaluations.
        drop: how far it must fall to count.
        patience: see `first_sounding`.

    Returns:
        a row a signal and fall: signal, threshold, sounds (step or None), measure, falls (step or None), lead
        (steps from the sound to the fall, negative where it sounds too late, None where either is missing).
    """
    rows = []
    for signal, (readings, threshold) in signals.items():
        sounds = first_sounding(steps, readings, threshold, patience)
        for measure, (at, values) in measured.items():
            falls = first_fall(at, values, drop)
            rows.append(
                {
                    "signal": signal,
                    "threshold": threshold.value,
                    "sounds": sounds,
                    "measure": measure,
                    "falls": falls,
                    "lead": None if sounds is None or falls is None else falls - sounds,
                }
            )
    return rows
