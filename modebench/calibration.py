"""Whether a model finds a level as hard as the published gates ask (arXiv:2610.11064).

The published levels 3, 4 and 5 were fitted so that Qwen2.5-Instruct of 3B, 7B and 14B parameters scores on
them what the 0.5B one scores on level 1: pass@1 within .04 and pass@8 within .08. A level is calibrated for
a model only where its own runs say so; nothing here is known in advance.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from modebench.analysis.pass_at_k import pass_at_k

REFERENCE = {
    "graph_coloring": (0.2078, 0.5625),
    "countdown": (0.0127, 0.0859),
    "python_factors": (0.2109, 0.7695),
    "mathir": (0.0437, 0.2402),
    "pantry_plan": (0.0586, 0.2598),
}
"""Published pass@1 and pass@8 of Qwen2.5-0.5B-Instruct on level 1."""
TOLERANCES = (0.04, 0.08)
LEVEL2_RANGE = (0.10, 0.90)
"""Level 2 is gated otherwise: pass@8 in this range, and below the same model's at level 1."""


class Gate(NamedTuple):
    """A model on a domain and level.

    Attributes:
        model, domain, level: the cell.
        prompts: prompts with at least 8 graded responses.
        pass1, pass8: means over these prompts; NaN without any.
        wanted1, wanted8: the published reference.
        passed: whether the gates of the level hold; None where that can't be told.
    """

    model: str
    domain: str
    level: int
    prompts: int
    pass1: float
    pass8: float
    wanted1: float
    wanted8: float
    passed: bool | None


def calibrate(samples: pd.DataFrame) -> list[Gate]:
    """Gates of every model, domain and level of a long table (`modebench.samples.load_samples`).

    Responses without a verdict are left out; domains without a published reference too.
    """
    graded = samples[samples["status"] != "error"]
    graded = graded.assign(correct=graded["status"] == "correct")
    by = ["model", "domain", "level", "task_id"]
    counts = graded.groupby(by, sort=False, observed=True)["correct"].agg(["sum", "size"])
    gates: dict[tuple[str, str, int], Gate] = {}
    for key, cell in counts.groupby(level=by[:3], sort=True, observed=True):
        model, domain, level = map(str, key)
        if domain in REFERENCE:
            gates[model, domain, int(level)] = _measure(model, domain, int(level), cell)
    return [gate._replace(passed=_passed(gate, gates)) for gate in gates.values()]


def _measure(model: str, domain: str, level: int, cell: pd.DataFrame) -> Gate:
    cell = cell[cell["size"] >= 8]
    correct, attempts = cell["sum"].to_numpy(), cell["size"].to_numpy()
    pass1, pass8 = (
        float(pass_at_k(correct, attempts, k).mean()) if len(cell) else float("nan") for k in (1, 8)
    )
    return Gate(model, domain, level, len(cell), pass1, pass8, *REFERENCE[domain], None)


def _passed(gate: Gate, gates: dict[tuple[str, str, int], Gate]) -> bool | None:
    if not gate.prompts:
        return None
    if gate.level == 2:
        below = gates.get((gate.model, gate.domain, 1))
        if below is None or not below.prompts:
            return None
        return LEVEL2_RANGE[0] <= gate.pass8 <= LEVEL2_RANGE[1] and gate.pass8 < below.pass8
    close1 = abs(gate.pass1 - gate.wanted1) <= TOLERANCES[0]
    return close1 and abs(gate.pass8 - gate.wanted8) <= TOLERANCES[1]
