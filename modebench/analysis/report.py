"""One self-contained page: settings, warnings, numbers, figures, and every prompt with its responses.

The page needs no network and may open none (its content security policy says so). Prompts and responses are
columns of small integers over lists of distinct texts, as JSON, deflated, in base64: that is small, quick to
open, and holds no character of a model's text that a browser could take for markup. The script puts texts
into the page as text nodes only, and builds what is looked at.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.long_table import STATUSES
from modebench.analysis.report_figures import Figure
from modebench.analysis.table import render

_SLOT = re.compile(r"@@(\w+)@@")


@dataclass(frozen=True)
class Report:
    """What a page is made of.

    Attributes:
        title: its title.
        samples: long table of all samples, with the columns task_id, domain, level, status, mode, and where
            known run (a name), response, detail, finish_reason, modes.
        document: the summary document of these samples.
        figures: what to show between the summary and the settings.
        problems: text of every task, by domain, level and id; the others are listed without theirs.
        settings: name of a run -> its settings, in the order in which they are shown.
        remarks: more warnings than the document's.
        notes: texts below the summary, set as they are.
        version: of the program.
    """

    title: str
    samples: pd.DataFrame
    document: Mapping[str, Any]
    figures: Sequence[Figure]
    problems: Mapping[tuple[str, int, str], str]
    settings: Mapping[str, Mapping[str, object]]
    remarks: Sequence[str]
    notes: Sequence[str]
    version: str


def render_report(report: Report) -> str:
    """The page as HTML."""
    page = files("modebench.analysis") / "report_page"
    script = (page / "page.js").read_text(encoding="utf-8")
    data = pack(report.samples, report.problems)
    slots = {
        "title": escape(report.title),
        "subtitle": escape(_subtitle(report, len(data["prompts"]))),
        "warnings": _warnings([*report.remarks, *report.document.get("warnings", ())]),
        "summary": render(report.document, "html") + "".join(map(_note, report.notes)),
        "figures": "".join(map(_figure, report.figures)),
        "settings": _settings(report.settings),
        "version": escape(report.version),
        "data": _compressed(data),
        "style": (page / "page.css").read_text(encoding="utf-8"),
        "script": script,
        "script_sha256": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    template = (page / "page.html").read_text(encoding="utf-8")
    # In one pass: a text that itself looks like a slot stays what it is.
    text = _SLOT.sub(lambda match: slots[match[1]], template)
    # A lone surrogate in a name has no UTF-8 form.
    return text.encode("utf-8", "replace").decode("utf-8")


def _subtitle(report: Report, prompts: int) -> str:
    rests = [
        f"{name} {report.document[name]}"
        for name in ("reading", "profile", "constrained")
        if report.document.get(name)
    ]
    runs = max(1, len(report.settings))
    sizes = [
        f"{runs:,} run{'s' if runs > 1 else ''}",
        f"{prompts:,} prompts",
        f"{len(report.samples):,} samples",
    ]
    return " · ".join([*sizes, *rests])


def _warnings(texts: Sequence[str]) -> str:
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<section class="warnings" id="warnings"><strong>Warnings</strong><ul>{items}</ul></section>'


def _note(text: str) -> str:
    return f'<div class="scroll"><pre class="table">{escape(text)}</pre></div>'


def _figure(figure: Figure) -> str:
    source = "data:image/svg+xml;base64," + base64.b64encode(figure.svg).decode()
    return (
        f'<figure><img decoding="async" alt="{escape(figure.title)}" src="{source}">'
        f"<figcaption><strong>{escape(figure.title)}.</strong> {escape(figure.caption)}</figcaption></figure>"
    )


def _settings(settings: Mapping[str, Mapping[str, object]]) -> str:
    """What all runs share as a list, and a row a run for what differs."""
    if not settings:
        return "<p>These samples come from files without settings.</p>"
    names = list(dict.fromkeys(name for values in settings.values() for name in values))
    texts = {run: {name: _setting(values.get(name)) for name in names} for run, values in settings.items()}
    shared = [name for name in names if len({values[name] for values in texts.values()}) == 1]
    first = next(iter(texts.values()))
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(first[name])}</td></tr>" for name in shared)
    tables = [f'<table class="settings">{rows}</table>']
    differing = [name for name in names if name not in shared]
    if differing:
        head = _row("th", ("run", *differing))
        body = "".join(_row("td", (run, *(values[n] for n in differing))) for run, values in texts.items())
        tables.insert(0, f'<table class="settings">{head}{body}</table>')
    return "".join(f'<div class="scroll">{table}</div>' for table in tables)


def _row(tag: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"


def _setting(value: object) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pack(samples: pd.DataFrame, problems: Mapping[tuple[str, int, str], str]) -> dict[str, Any]:
    """Samples as lists of distinct texts and columns of numbers into them.

    Args:
        samples: as `Report.samples`.
        problems: as `Report.problems`.

    Returns:
        JSON-ready: ``runs``, ``domains``, ``statuses``, ``modes``, ``texts``, ``details`` (lists of texts);
        ``tasks`` (each [id, number of its domain, level, problem, existing modes or null]); ``prompts``
        (each [run, task, number of samples]); and a number a sample, prompt by prompt: ``status``, ``mode``,
        ``text``, ``detail`` (-1 for none), and ``cut``, the places of the samples that the token limit cut.
    """
    plain = samples if "run" in samples else samples.assign(run="")
    run, runs = _coded(plain["run"])
    # Runs and tasks stand in the order in which they first appear, and samples in theirs.
    task = (
        plain.groupby(["domain", "level", "task_id"], sort=False, observed=True, dropna=False)
        .ngroup()
        .to_numpy()
    )
    order = np.lexsort((np.arange(len(plain)), task, run))
    table, run, task = plain.iloc[order], run[order], task[order]
    new = np.flatnonzero(np.r_[True, (run[1:] != run[:-1]) | (task[1:] != task[:-1])][: len(table)])
    counts = np.diff(np.r_[new, len(table)])
    _, first = np.unique(task, return_index=True)
    tasks, domains = _tasks(table.iloc[first], problems)
    columns = {name: _coded(table.get(name), len(table)) for name in ("mode", "detail")}
    text, texts = _coded(table.get("response"), len(table))
    status = table["status"].astype(object).map(STATUSES.index).to_numpy()
    mode = np.where(status == STATUSES.index("correct"), columns["mode"][0], -1)
    cut = np.flatnonzero(table["finish_reason"] == "length") if "finish_reason" in table else np.empty(0, int)
    return {
        "runs": runs,
        "domains": domains,
        "statuses": list(STATUSES),
        "modes": columns["mode"][1],
        "texts": texts,
        "details": columns["detail"][1],
        "tasks": tasks,
        "prompts": np.column_stack([run[new], task[new], counts]).tolist(),
        "status": status.tolist(),
        "mode": mode.tolist(),
        "text": text.tolist(),
        "detail": columns["detail"][0].tolist(),
        "cut": cut.tolist(),
    }


def _coded(column: pd.Series | None, rows: int = 0) -> tuple[Any, list[str]]:
    """Numbers of texts in the order of their first appearance (-1 for none), and the texts."""
    if column is None:
        return np.full(rows, -1), []
    codes, values = pd.factorize(column.astype(object))
    return codes, [str(value) for value in values]


def _tasks(
    rows: pd.DataFrame, problems: Mapping[tuple[str, int, str], str]
) -> tuple[list[list[Any]], list[str]]:
    domain, domains = _coded(rows["domain"])
    modes = rows["modes"].to_numpy(dtype=float) if "modes" in rows else np.full(len(rows), np.nan)
    tasks = []
    for number, existing, name, level, task in zip(
        domain, modes, rows["domain"], rows["level"], rows["task_id"], strict=True
    ):
        problem = problems.get((str(name), int(level), str(task)), "(the text of this task is not known)")
        known = None if np.isnan(existing) else int(existing)
        tasks.append([str(task), int(number), int(level), problem, known])
    return tasks, domains


def _compressed(data: object) -> str:
    """JSON, deflated, in base64; characters outside ASCII are escaped, lone surrogates among them."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode("ascii"))).decode("ascii")
