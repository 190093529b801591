"""The worst CPU milliseconds that a response of the greatest length costs, by domain and reading.

    python benchmarks/hostile.py [--profile] [--repeat 5]

Every family of `tests/verifiers/hostile.py` is judged at 131,072 characters, as it stands, in a box and
before a box. Printed are the slowest families, each at its best of several repeats, and what is over the
target (5 ms; for Countdown, which reads expressions of any length, 300 ms). ``--profile`` shows the time
of the worst by function.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from modebench.verifiers import Reading, verify
from modebench.verifiers.registry import READINGS
from tests.verifiers.examples import RIGHT, task
from tests.verifiers.hostile import GROWING, sized

TARGET_MS = 5.0
COUNTDOWN_TARGET_MS = 300.0
FORMS = ("bare", "boxed", "before a box")


class Cost(NamedTuple):
    """Time of one response at its best repeat."""

    ms: float
    family: str
    form: str
    text: str


def cost(name: str, reading: Reading, text: str, repeat: int) -> float:
    """Best CPU milliseconds of several calls; a slow one is not repeated often."""
    example = task(name)
    best = float("inf")
    for index in range(repeat):
        start = time.process_time()
        verify(example, text, reading)
        best = min(best, (time.process_time() - start) * 1_000)
        if index and best > 100:
            break
    return best


def worst(name: str, reading: Reading, repeat: int) -> list[Cost]:
    """Costs of every family and form, slowest first."""
    costs = [
        Cost(cost(name, reading, text, repeat), family, form, text)
        for family in GROWING
        for form, text in zip(FORMS, sized(family), strict=True)
    ]
    return sorted(costs, reverse=True)


def profile(name: str, reading: Reading, text: str) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(verify, task(name), text, reading)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    for reading in READINGS:
        for name in RIGHT:
            target = COUNTDOWN_TARGET_MS if (name, reading) == ("countdown", "published") else TARGET_MS
            costs = worst(name, reading, options.repeat)
            over = sum(each.ms > target for each in costs)
            slowest = ", ".join(f"{each.ms:.2f} {each.family} ({each.form})" for each in costs[:4])
            print(f"{reading:10}{name:16}{over:4} of {len(costs)} over {target:g} ms; worst ms: {slowest}")
            if options.profile and over:
                profile(name, reading, costs[0].text)


if __name__ == "__main__":
    main()
