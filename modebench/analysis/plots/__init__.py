"""Figures of summaries, curves and comparisons: a table and axes in, the axes out.

Every function draws on the axes it is given (new ones where none are) and returns them; titles, sizes and
files stay with the caller. Tables are those of `modebench.summarize`, `modebench.analysis.curves` and
`modebench.compare`: tidy, with the columns value, low and high. A series is a distinct value of the `by`
columns; it has a colour, a marker and a line style of its own, so that a figure survives colour blindness
and a black-and-white printer. A hollow marker is a value that rests on too few prompts to be reported.
Where nothing is defined, the axes say so.

Needs matplotlib: ``pip install "modebench-toolkit[plots]"``.
"""

from __future__ import annotations

from modebench.errors import UsageError

try:
    from modebench.analysis.plots.figures import (
        accuracy_diversity,
        before_after,
        collapse_curve,
        forest,
        k_curves,
        mode_spectrum,
        temperature_frontier,
    )
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "matplotlib":
        raise
    raise UsageError('figures need matplotlib: pip install "modebench-toolkit[plots]"') from None

__all__ = [
    "accuracy_diversity",
    "before_after",
    "collapse_curve",
    "forest",
    "k_curves",
    "mode_spectrum",
    "temperature_frontier",
]
