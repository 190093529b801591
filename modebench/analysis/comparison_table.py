"""Comparisons as text: the differences, what was learned and lost, and what both rest on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from modebench.analysis.compare import ALPHA, tidy_comparison
from modebench.analysis.grid import DASH, LAYOUTS, Grid, render_grid
from modebench.analysis.table import CHANCE_TITLES

FORMATS = (*LAYOUTS, "csv", "json")
_TITLES = {"pcmd": "PCMD", "distinct_pair_rate": "distinct-pair rate"}


def render_comparison(document: Mapping[str, Any], layout: str = "text") -> str:
    """A comparison document in one of `FORMATS`.

    ``text``, ``markdown``, ``latex`` and ``html`` show the starred metrics, and below them how many prompts
    and modes were learned and lost; ``csv`` (one row a cell and metric) and ``json`` are complete.

    Raises:
        ValueError: another format.
    """
    if layout == "csv":
        return str(tidy_comparison(document).to_csv(index=False))
    if layout == "json":
        return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    keys = _keys(document["cells"])
    grids = [_differences(document, keys), _outcomes(document, keys)]
    if set(document["starred"]) & set(document["cells"][0]["chance"]["a"]["shuffled"]):
        grids.append(_chance(document, keys))
    return "\n\n".join(render_grid(grid, layout) for grid in grids)


def _keys(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        name
        for name, value in cells[0].items()
        if not isinstance(value, Mapping) and name not in ("prompts", "pairs")
    ]


def _differences(document: Mapping[str, Any], keys: Sequence[str]) -> Grid:
    cells, level = document["cells"], document["upper_level"]
    by_unit = any("seeds" in cell["accuracy"] for cell in cells)
    header = [*keys, "metric", "n", "A", "B", "B − A", "p", "p (Holm)"]
    header += [f"over {level}s", f"p over {level}s"] if by_unit else []
    rows = []
    for cell in cells:
        for name in document["starred"]:
            entry = cell[name]
            star = "*" if entry["p_holm"] is not None and entry["p_holm"] < ALPHA else ""
            few = "†" if entry["n"] and not entry.get("reportable", True) else ""
            difference = _with_limits(entry["difference"], entry) + star + few
            row = [*(str(cell[key]) for key in keys), _TITLES.get(name, name), str(entry["n"])]
            row += [_number(entry["a"]), _number(entry["b"]), difference, _p(entry["p"]), _p(entry["p_holm"])]
            row += [_with_limits(None, entry["seeds"]), _p(entry["seeds"]["p"])] if by_unit else []
            rows.append(row)
    left = [True] * (len(keys) + 1) + [False] * (len(header) - len(keys) - 1)
    notes = [
        f"{100 * document['interval']:g}% intervals: {document['interval_method']}; p: {document['test']}",
        f"*: p below {ALPHA} after Holm's adjustment over all rows; n: prompts (and seeds) where both sides "
        f"define the metric; †: fewer than {document['min_eligible']} of them; {DASH}: undefined",
        *(f"warning: {text}" for text in document["warnings"]),
    ]
    return Grid(header, rows, None, notes, left)


def _outcomes(document: Mapping[str, Any], keys: Sequence[str]) -> Grid:
    of_prompts, of_modes = ("learned", "retained", "lost", "never"), ("gained", "kept", "lost")
    level = document["upper_level"]
    header = [*keys, "prompts" if level is None else f"prompts×{level}s"]
    header += [f"{name} (same)" for name in of_prompts]
    header += [f"modes {name} (same)" for name in of_modes]
    rows = []
    for cell in document["cells"]:
        found = cell["outcomes"]
        rows.append(
            [
                *(str(cell[key]) for key in keys),
                str(cell["pairs"]),
                *(f"{found['prompts'][n]} ({found['prompts_expected'][n]:.1f})" for n in of_prompts),
                *(f"{found['modes'][n]} ({found['modes_expected'][n]:.1f})" for n in of_modes),
            ]
        )
    notes = [
        "learned: no correct sample in A, some in B; (same): what two samplings of one policy would show, "
        "since a prompt or mode that no sample shows may still be within reach"
    ]
    left = [True] * len(keys) + [False] * (len(header) - len(keys))
    return Grid(header, rows, None, notes, left)


def _chance(document: Mapping[str, Any], keys: Sequence[str]) -> Grid:
    """What can be had without reading the tasks, by either side."""
    cells = document["cells"]
    names = [name for name in document["starred"] if name in cells[0]["chance"]["a"]["shuffled"]]
    header = [*keys, "chance", *(f"{_TITLES.get(name, name)} {side}" for name in names for side in "AB")]
    rows = [
        [
            *(str(cell[key]) for key in keys),
            title,
            *(_number(cell["chance"][side][row][name]) for name in names for side in "ab"),
        ]
        for cell in cells
        for row, title in CHANCE_TITLES.items()
    ]
    left = [True] * (len(keys) + 1) + [False] * (len(header) - len(keys) - 1)
    return Grid(header, rows, None, ["chance: what can be had without reading the task"], left)


def _number(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"


def _p(value: float | None) -> str:
    return DASH if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def _with_limits(value: float | None, entry: Mapping[str, Any]) -> str:
    limits = "" if entry["low"] is None else f"[{entry['low']:+.3f}, {entry['high']:+.3f}]"
    return f"{'' if value is None else f'{value:+.3f}'} {limits}".strip() or DASH
