"""The alarm: its threshold, when it sounds, and its lead over a fall, on curves that are known."""

from __future__ import annotations

import numpy as np
import pytest

from modebench.analysis.alarm import Threshold, calibrate, first_fall, first_sounding, lead_times

STEPS = list(range(0, 100, 10))


def test_the_threshold_is_three_deviations_out() -> None:
    above = calibrate([1.0, 2.0, 3.0])
    assert (above.value, above.mean, above.sd, above.readings) == (5.0, 2.0, 1.0, 3)
    assert calibrate([1.0, 2.0, 3.0], "below").value == -1.0
    assert calibrate([1.0, 2.0, 3.0], groups=9).value == pytest.approx(3.0)
    with pytest.raises(ValueError, match="1 readings"):
        calibrate([1.0])


def test_a_threshold_for_a_mean_of_groups_is_seldom_passed_by_chance() -> None:
    random = np.random.default_rng(0)
    threshold = calibrate(random.normal(1, 0.2, 400).tolist(), groups=16)
    steps = random.normal(1, 0.2, (2000, 16)).mean(1)
    assert np.mean([threshold.sounds(float(step)) for step in steps]) < 0.01


def test_when_it_sounds() -> None:
    threshold = Threshold(2.0, "above", 1.0, 1 / 3, 9)
    readings = [1.0, 3.0, None, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert first_sounding(STEPS, readings, threshold) == 10
    assert first_sounding(STEPS, readings, threshold, patience=2) == 40
    assert first_sounding(STEPS, readings, threshold, patience=3) is None


@pytest.mark.parametrize(
    ("values", "falls"),
    [
        ([0.9, 0.9, 0.8, 0.7], 20),
        ([0.9, 0.9, 0.8, 0.9], None),
        ([0.5, 0.9, 0.88, 0.7], 30),
        ([0.9, None, 0.7, None], 20),
        ([None, None, None, None], None),
        ([0.1, 0.5, 0.6, 0.7], None),
    ],
)
def test_when_a_value_falls(values: list[float | None], falls: int | None) -> None:
    assert first_fall(STEPS[:4], values, 0.05) == falls


def test_leads_beside_each_other() -> None:
    """MEI sounds at 20, entropy at 50; PCMD falls at 40 and pass@8 never."""
    mei = [1.0] * 2 + [1.5] * 8
    entropy = [0.8] * 5 + [0.2] * 5
    rows = lead_times(
        STEPS,
        {
            "mei": (mei, calibrate([0.99, 1.0, 1.01])),
            "entropy": (entropy, calibrate([0.79, 0.8, 0.81], "below")),
        },
        {
            "pcmd": ([0, 20, 40, 60], [0.9, 0.9, 0.6, 0.3]),
            "pass@8": ([0, 20, 40, 60], [0.5, 0.6, 0.7, 0.8]),
        },
    )
    assert [(row["signal"], row["measure"], row["sounds"], row["lead"]) for row in rows] == [
        ("mei", "pcmd", 20, 20),
        ("mei", "pass@8", 20, None),
        ("entropy", "pcmd", 50, -10),
        ("entropy", "pass@8", 50, None),
    ]
