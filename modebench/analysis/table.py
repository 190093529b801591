"""Summaries as text: the table that a terminal prints, and the same cells as CSV, JSON, Markdown or LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from modebench.analysis.grid import DASH, INDENT, LAYOUTS, Grid, render_grid
from modebench.analysis.metrics import ELIGIBLE_ONLY
from modebench.analysis.summary import CLOSED_FORM, summary_document, tidy

FORMATS = (*LAYOUTS, "csv", "json")
_SIZE = "prompts×samples"
_TITLES = {
    "pcmd": "PCMD",
    "effective_modes": "effective modes",
    "certified_coverage": "coverage",
    "coverage_good_turing": "Good–Turing coverage",
    "malformed_rate": "malformed",
    "truncated_rate": "truncated",
    "error_rate": "error",
    "duplicate_rate": "duplicates",
    "chance.shuffled.accuracy": "shuffled accuracy",
    "chance.uniform.accuracy": "uniform",
    "chance.best_constant.accuracy": "constant",
    "units": "seeds",
}
_PERCENT = ("malformed_rate", "truncated_rate", "error_rate", "duplicate_rate")
_WITH_LIMITS = ("accuracy", "pcmd")
COLLAPSE_LIMITS = ("accuracy", "pass@8", "pcmd", "effective_modes", "chance.shuffled.accuracy")
COLLAPSE_COLUMNS = (*COLLAPSE_LIMITS, "chance.uniform.accuracy", "chance.best_constant.accuracy")
"""The metrics of a collapse table, and those that are printed with their intervals."""
CHANCE_TITLES = {
    "shuffled": "own answers shuffled",
    "uniform": "uniform answers",
    "best_constant": "best constant answer",
}
# Keys of a cell that say how much was measured, not which cell it is.
_HEAD = ("split", "prompts", "prompts_without_samples", "samples_per_prompt", "units")


def format_table(
    doc_or_df: Mapping[str, Any] | pd.DataFrame, columns: Sequence[str] | None = None, chance: bool = True
) -> str:
    """The plain-text table: one row a cell, its chance rows indented below, and at the end what it rests on.

    Args:
        doc_or_df: a summary document (`summary_document`), a tidy summary (`summarize`), or a long table of
            samples, which is summarised with the default settings.
        columns: what to print: keys of a cell, ``prompts×samples``, or names of metrics, in this order.
            By default the cell's keys, size, accuracy, pass@8 and modes@8 (the largest k at hand where no
            cell reaches 8), PCMD with its eligible prompts, effective modes, coverage, and the rates of
            malformed, truncated, failed and repeated samples. ``chance.shuffled.accuracy`` and the like are
            metrics of the chance rows.
        chance: with the chance rows that are defined.

    Returns:
        lines joined by newlines, without a final one. A dash stands where a value is undefined, a star
        where PCMD rests on too few prompts to be reported.

    Raises:
        ValueError: a column that no cell has.
    """
    return render_grid(_grid(_document(doc_or_df), columns, chance))


def render(
    doc: Mapping[str, Any] | pd.DataFrame,
    format: str = "text",
    columns: Sequence[str] | None = None,
    chance: bool = True,
    limits: Sequence[str] = _WITH_LIMITS,
) -> str:
    """A summary in one of the formats `FORMATS`.

    Args:
        doc: as in `format_table`.
        format: ``text``, ``markdown``, ``latex`` (needs the booktabs package), ``html`` (the table, and the
            notes without the warnings), ``csv`` (one row a cell and metric, full precision) or ``json`` (the
            document itself).
        columns: as in `format_table`; ignored by csv and json, which are complete.
        chance: likewise.
        limits: names of the metrics that are printed with their intervals.

    Raises:
        ValueError: another format, or an unknown column.
    """
    document = _document(doc)
    if format in LAYOUTS:
        shown = {**document, "warnings": ()} if format == "html" else document
        return render_grid(_grid(shown, columns, chance, limits), format)
    if format == "csv":
        return str(tidy(document["cells"], document.get("min_eligible", 30)).to_csv(index=False))
    if format == "json":
        return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    raise ValueError(f"unknown format {format!r}; expected one of {FORMATS}")


def _document(given: Mapping[str, Any] | pd.DataFrame) -> Mapping[str, Any]:
    if not isinstance(given, pd.DataFrame):
        return given
    if "metric" in given:
        return {"cells": _cells_of(given)}
    return summary_document(given)


def _cells_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Cells from a tidy summary."""
    keys = list(table.columns[: table.columns.get_loc("metric")])
    clean = table.astype(object).where(table.notna(), None)
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in clean.to_dict("records"):
        name = tuple(row[k] for k in keys)
        cell = cells.setdefault(name, {k: row[k] for k in keys})
        numbers = {k: row[k] for k in ("value", "low", "high", "n", "reportable")}
        *beside, metric = str(row["metric"]).split(".")
        home = cell.setdefault("chance", {}).setdefault(beside[1], {}) if beside else cell
        home[metric] = numbers
    return list(cells.values())


def _grid(
    document: Mapping[str, Any],
    columns: Sequence[str] | None,
    chance: bool,
    limits: Sequence[str] = _WITH_LIMITS,
) -> Grid:
    cells = document["cells"]
    chosen = list(columns) if columns is not None else _default_columns(cells)
    known = {_SIZE}.union(*cells, *map(_chance_names, cells)) if cells else set(chosen)
    unknown = [c for c in chosen if c not in known]
    if unknown:
        raise ValueError(f"no cell has {unknown}; it has {sorted(known)}")
    left = [bool(cells) and not isinstance(_value(cells[0], c), Mapping) and c != _SIZE for c in chosen]
    rows, beside = [], False
    for cell in cells:
        rows.append([_text(cell, column, limits) for column in chosen])
        if "distinct_streams" in cell and left and left[0]:
            rows.append(_streams_row(cell["distinct_streams"], document["streams"], chosen))
        if chance and left and left[0]:
            below = _chance_rows(cell.get("chance", {}), chosen)
            rows += below
            beside = beside or bool(below)
    overall = None
    if len(cells) > 1 and document.get("overall"):
        overall = [_text(document["overall"], c, limits) for c in chosen]
        overall[0] = overall[0] or "mean of cells"
    notes = _notes(document, chosen, beside, limits)
    return Grid([_title(c) for c in chosen], rows, overall, notes, left)


def _streams_row(cell: Mapping[str, Any], streams: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The row of a cell's numbers on distinct streams alone; the first column holds its title."""
    title = f"{INDENT}on {streams['distinct']} distinct streams of {streams['positions']}"
    return [title, *("" if c == _SIZE else _text(cell, c) for c in columns[1:])]


def _chance_rows(chance: Mapping[str, Any], columns: Sequence[str]) -> list[list[str]]:
    """The chance rows of a cell that define any of the columns; the first column holds their titles."""
    rows = []
    for name, metrics in chance.items():
        lower = metrics.get("bound") == "lower"
        texts = [_chance_text(metrics, column, lower) for column in columns]
        if any(texts):
            rows.append([INDENT + CHANCE_TITLES[name], *texts[1:]])
    return rows


def _default_columns(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    if not cells:
        return ["domain", "level", _SIZE, "accuracy"]
    keys = [k for k, v in cells[0].items() if not isinstance(v, Mapping) and k not in _HEAD]
    if len({cell.get("split") for cell in cells}) > 1:
        keys.append("split")
    k = _shown_k(cells)
    at_k = [f"pass@{k}", f"modes@{k}"] if k else []
    enumerated = any(_defined(cell, "certified_coverage") for cell in cells)
    coverage = "certified_coverage" if enumerated else "coverage_good_turing"
    return [*keys, _SIZE, "accuracy", *at_k, "pcmd", "effective_modes", coverage, *_PERCENT]


def _shown_k(cells: Sequence[Mapping[str, Any]]) -> int | None:
    """8 where some cell reaches it, else the largest k that some cell reaches."""
    reached = {
        int(name.removeprefix("pass@"))
        for cell in cells
        for name in cell
        if name.startswith("pass@") and not name.endswith("_group") and _defined(cell, name)
    }
    return 8 if 8 in reached else max(reached, default=None)


def _defined(cell: Mapping[str, Any], name: str) -> bool:
    return isinstance(cell.get(name), Mapping) and cell[name]["value"] is not None


def _title(column: str) -> str:
    return _TITLES.get(column, column.replace("_", " "))


def _value(cell: Mapping[str, Any], column: str) -> Any:
    """What a cell has of a column, None where nothing."""
    if not column.startswith("chance."):
        return cell.get(column)
    _, row, metric = column.split(".", 2)
    return cell.get("chance", {}).get(row, {}).get(metric)


def _bound(cell: Mapping[str, Any], column: str) -> str:
    """The sign of a number that a better constant answer may exceed."""
    row = cell["chance"]["best_constant"] if column.startswith("chance.best_constant.") else {}
    return "≥" if row.get("bound") == "lower" else ""


def _chance_names(cell: Mapping[str, Any]) -> set[str]:
    rows = cell.get("chance", {}).items()
    return {f"chance.{row}.{name}" for row, metrics in rows for name in metrics}


def _text(cell: Mapping[str, Any], column: str, limits: Sequence[str] = _WITH_LIMITS) -> str:
    if column == _SIZE:
        if "prompts" not in cell:
            return f"{cell['cells']} cells" if "cells" in cell else ""
        return f"{cell['prompts']}×{cell['samples_per_prompt']}"
    entry = _value(cell, column)
    if not isinstance(entry, Mapping):
        return "" if entry is None else str(entry)
    text = DASH
    if entry.get("value") is not None:
        text = _bound(cell, column) + _formatted(column, entry["value"])
        if column in limits and entry["low"] is not None:
            high = "∞" if entry["high"] is None else _formatted(column, entry["high"])
            text += f" [{_formatted(column, entry['low'])}, {high}]"
        if column in ELIGIBLE_ONLY and not cell.get("pcmd", entry).get("reportable", True):
            text += "*"
    if column == "pcmd" and "cells" not in cell:
        text += f" ({entry['n']})"
    return text


def _formatted(column: str, value: float) -> str:
    if column in _PERCENT:
        return f"{value:.1%}"
    return f"{value:.2f}" if column in ("effective_modes", "chao1") or value >= 10 else f"{value:.3f}"


def _chance_text(metrics: Mapping[str, Any], column: str, lower: bool) -> str:
    if not _defined(metrics, column):
        return ""
    sign = "≥" if lower and column != "pcmd" else ""  # one answer is one mode, whichever it is
    return sign + _formatted(column, metrics[column]["value"])


def _notes(
    document: Mapping[str, Any], chosen: Sequence[str], chance: bool, limits: Sequence[str]
) -> list[str]:
    """What the numbers rest on, what the signs mean, then the warnings."""
    rests = [
        f"{name}: {document[name]}" for name in ("reading", "profile", "constrained") if document.get(name)
    ]
    level = document.get("interval")
    if level is not None and set(chosen) & set(limits):
        method = document.get("interval_method", CLOSED_FORM)
        if method == CLOSED_FORM:
            method = "Wilson on the effective sample size for rates, t over prompts for PCMD"
        rests.append(f"{100 * level:g}% intervals: {method}")
    signs = [f"{DASH}: undefined"]
    if "certified_coverage" in chosen:
        signs.append("coverage: found share of the modes that exist")
    if set(chosen) & set(ELIGIBLE_ONLY):
        signs.append("(n): eligible prompts, those with two correct samples, on which PCMD rests")
        signs.append(f"*: fewer than {document.get('min_eligible', 30)} of them, not reportable")
    if "chance.shuffled.accuracy" in chosen:
        signs.append(
            "beside accuracy, what can be had without reading the task: the same answers judged on other "
            "prompts, uniform answers, the best constant answer"
        )
    if chance:
        signs.append("indented: what can be had without reading the task")
    lines = ["; ".join(part) for part in (rests, signs) if part]
    return lines + _grouped_warnings(document.get("warnings", ()))


def _grouped_warnings(warnings: Iterable[str]) -> list[str]:
    """One line for each kind of warning: the first in full, the others counted."""
    kinds: dict[str, list[str]] = {}
    for text in warnings:
        kinds.setdefault(text.split(":", 1)[0], []).append(text)
    return [
        f"warning: {texts[0]}" + (f" (and {len(texts) - 1} more cells)" if len(texts) > 1 else "")
        for texts in kinds.values()
    ]
