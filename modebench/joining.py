"""Responses joined with their verdicts, and files of judged samples, as long tables: one row a sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import union_categoricals

from modebench.analysis.pass_at_k import IntArray
from modebench.columns import Columns, Field, read_columns, read_texts
from modebench.config import tasks_of
from modebench.domains import DOMAINS, get_domain
from modebench.errors import InputError, UsageError
from modebench.runs import RunFolder
from modebench.tasks import Task
from modebench.verifiers.clean.countdown import clean_modes

COLUMNS = (
    "task_id",
    "domain",
    "level",
    "split",
    "sample",
    "group",
    "prefix",
    "status",
    "mode",
    "detail",
    "listed",
    "modes",
    "response",
    "finish_reason",
    "input_tokens",
    "output_tokens",
    "logprob",
    "entropy",
)
STATUSES = ("correct", "incorrect", "malformed", "error")

_PLACE = (Field("task_id", "text", True), Field("sample", "count", True))
_CELL = (Field("domain", "text", True), Field("level", "count", True), Field("split", "text"))
_ANSWER = (
    Field("group", "number"),
    Field("prefix", "text"),
    Field("response", "hash"),
    Field("seed", "label"),
    Field("finish_reason", "text"),
    *(Field(name, "number") for name in ("input_tokens", "output_tokens", "logprob", "entropy")),
)
_VERDICT = (Field("status", "text", True), Field("mode", "text"), Field("detail", "text"))
# Columns of hashes have names of their own; `seed` is that of the run.
_HASHED = {"response": "response_hash", "seed": "sample_seed"}
_RESPONSE_FIELDS = (*_PLACE, *_CELL, *_ANSWER, Field("error", "text"))
_VERDICT_FIELDS = (*_PLACE, *_VERDICT)
_FILE_FIELDS = (*_PLACE, *_CELL, *_VERDICT, *_ANSWER, Field("modes", "number"), Field("listed", "flag"))


def joined_samples(run: RunFolder, reading: str, *, texts: bool = True) -> pd.DataFrame:
    """Responses of a run with their verdicts and mode counts; see `Run.samples`."""
    graded = run.manifest.get("graded", {}).get(reading, {}).get("responses_sha256")
    stale = UsageError(f"{run.path} is not graded as {reading}; run: modebench grade {run.path}")
    if graded is None or not run.verdicts_path(reading).is_file() or not run.responses_path.is_file():
        raise stale
    responses = _columns_of(run.responses_path, _RESPONSE_FIELDS, torn_end=True)
    if responses.sha256 != graded:
        raise stale
    if not len(responses):
        raise UsageError(f"{run.path} has no responses yet; go on with: modebench eval --resume {run.path}")
    superseded = _superseded(responses)
    if superseded.any():
        responses = responses.take(~superseded)
    table = _table(responses).drop(columns="error", errors="ignore")
    table = table.assign(**_judged(run, reading, responses))
    existing = {task.id: _existing(task, reading) for tasks in tasks_of(run.manifest) for task in tasks}
    table["modes"] = pd.to_numeric(table["task_id"].map(existing).astype(object))
    table["listed"] = True if reading == "clean" else _listed(table)
    return _finished(table, run.responses_path, responses, texts)


def graded_samples(path: Path, *, texts: bool = True) -> pd.DataFrame:
    """The long table of a bare JSON Lines file of judged samples; see `SampleFile.samples`."""
    columns = read_columns(path, _FILE_FIELDS)
    if not len(columns):
        raise UsageError(f"{path} holds no samples")
    table = _table(columns)
    unknown = ~table["status"].isin(STATUSES).to_numpy()
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        problem = f"must be one of {', '.join(STATUSES)}, not {table['status'].iloc[row]!r}"
        raise InputError(path, int(columns.line[row]), "status", problem)
    if "mode" not in table:
        table["mode"] = columns.categorical("mode")
    lacking = (table["status"] == "correct").to_numpy() & table["mode"].isna().to_numpy()
    if lacking.any():
        line = int(columns.line[np.flatnonzero(lacking)[0]])
        raise InputError(path, line, "mode", "a correct sample needs one, not None")
    known = table.get("listed")
    table["listed"] = _listed(table) if known is None else known.fillna(1.0).astype(bool)
    return _finished(table, path, columns, texts)


def _columns_of(path: Path, fields: Sequence[Field], *, torn_end: bool = False) -> Columns:
    return read_columns(path, fields, torn_end=torn_end, copy=path.with_suffix(".npz"))


def _table(columns: Columns) -> pd.DataFrame:
    """Columns as a table, without those that no line has."""
    kinds = {field.name: field.kind for field in (*_FILE_FIELDS, *_RESPONSE_FIELDS)}
    content: dict[str, Any] = {}
    for name in columns.arrays:
        if kinds[name] == "text":
            content[name] = columns.categorical(name)
        else:
            content[_HASHED.get(name, name)] = columns.numbers(name)
    return pd.DataFrame(content, index=pd.RangeIndex(len(columns)))


def _superseded(responses: Columns) -> npt.NDArray[np.bool_]:
    """Failed samples for which a later line exists, [N]."""
    if "error" not in responses.arrays:
        return np.zeros(len(responses), dtype=np.bool_)
    key = responses.arrays["task_id"] * (responses.arrays["sample"].max() + 1) + responses.arrays["sample"]
    order = np.argsort(key, kind="stable")
    followed = np.zeros(len(key), dtype=np.bool_)
    followed[order[:-1]] = key[order[1:]] == key[order[:-1]]
    return np.asarray(followed & (responses.arrays["error"] >= 0))


def _judged(run: RunFolder, reading: str, responses: Columns) -> dict[str, pd.Series]:
    """Status, mode and detail of every response, [N]; a failed one has the status ``error``."""
    path = run.verdicts_path(reading)
    verdicts = _columns_of(path, _VERDICT_FIELDS)
    strange = sorted(set(verdicts.texts.get("status", ())) - set(STATUSES[:3]))
    if strange:
        row = int(np.flatnonzero(verdicts.categorical("status") == strange[0])[0])
        problem = f"must be one of {', '.join(STATUSES[:3])}, not {strange[0]!r}"
        raise InputError(path, int(verdicts.line[row]), "status", problem)
    failed = responses.categorical("error")
    at = np.where(failed.isna(), _places(responses, verdicts), -1)
    missing = (at < 0) & failed.isna()
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        sample, task = responses.arrays["sample"][row], responses.categorical("task_id")[row]
        problem = f"{sample} of {task} has no verdict"
        raise InputError(run.responses_path, int(responses.line[row]), "sample", problem)
    status, mode, detail = (_drawn(verdicts, name, at) for name in ("status", "mode", "detail"))
    if (at < 0).any():
        detail = detail.astype(object).where(at >= 0, pd.Series(failed).astype(object)).astype("category")
        status = status.cat.add_categories("error").fillna("error")
    return {"status": status, "mode": mode, "detail": detail}


def _places(responses: Columns, verdicts: Columns) -> IntArray:
    """Row of the verdict on each response, [N]; -1 where there is none."""
    if not len(verdicts):
        return np.full(len(responses), -1)
    known = pd.Index(responses.texts["task_id"]).get_indexer(pd.Index(verdicts.texts["task_id"]))
    width = max(int(columns.arrays["sample"].max(initial=0)) for columns in (responses, verdicts)) + 1
    ours = responses.arrays["task_id"].astype(np.int64) * width + responses.arrays["sample"]
    theirs = known[verdicts.arrays["task_id"]] * width + verdicts.arrays["sample"]
    order = np.argsort(theirs, kind="stable")
    place = order[np.minimum(np.searchsorted(theirs, ours, sorter=order), len(theirs) - 1)]
    return np.where(theirs[place] == ours, place, -1)


def _drawn(verdicts: Columns, name: str, at: IntArray) -> pd.Series:
    """A text column of the verdicts in these rows, null at -1."""
    if name not in verdicts.arrays:
        return pd.Series(
            pd.Categorical.from_codes(np.full(len(at), -1), categories=pd.Index([], dtype=object))
        )
    codes = np.where(at >= 0, verdicts.arrays[name][at], -1)
    return pd.Series(
        pd.Categorical.from_codes(codes, categories=pd.Index(verdicts.texts[name], dtype=object))
    )


def _listed(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether the mode of each sample belongs to the enumeration that `modes` counts, [N]."""
    if "mode" not in table:
        return np.ones(len(table), dtype=np.bool_)
    domain, mode = table["domain"].cat, table["mode"].cat
    domains, modes = list(domain.categories), list(mode.categories)
    width = len(modes) + 1  # code -1, no mode, makes one more
    number, pairs = pd.factorize(domain.codes.to_numpy(np.int64) * width + mode.codes.to_numpy() + 1)
    listed = [
        pair % width == 0 or _is_listed(domains[pair // width], modes[pair % width - 1]) for pair in pairs
    ]
    return np.array(listed, dtype=np.bool_)[number]


def _is_listed(domain: str, mode: str) -> bool:
    try:
        return get_domain(domain).listed(mode)
    except ValueError:  # of a domain that is not installed we have no enumeration
        return True


def _finished(table: pd.DataFrame, path: Path, columns: Columns, texts: bool) -> pd.DataFrame:
    """The table with its columns in order, raw texts where asked, domains in the public order."""
    if texts and "response_hash" in table:
        table["response"] = pd.Series(read_texts(path, "response", columns.line), dtype=object)
        del table["response_hash"]
    order = [
        *COLUMNS[: COLUMNS.index("response") + 1],
        *_HASHED.values(),
        *COLUMNS[COLUMNS.index("response") + 1 :],
    ]
    return _in_domain_order(table[[name for name in order if name in table]])


def _in_domain_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``domain`` as a categorical in the public order of domains, others behind."""
    seen = set(table["domain"].cat.categories)
    kind = pd.CategoricalDtype([*DOMAINS, *sorted(seen - set(DOMAINS))], ordered=True)
    return table.assign(domain=table["domain"].cat.set_categories(kind.categories, ordered=True))


def together(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Long tables below each other; texts stay categorical."""
    if len(tables) == 1:
        return tables[0]
    joined = pd.concat([table.drop(columns="domain") for table in tables], ignore_index=True)
    domains = [table["domain"].cat.as_unordered() for table in tables]
    joined["domain"] = union_categoricals(domains, sort_categories=True)
    for name in ("task_id", "split", "status", "mode", "detail", "finish_reason"):
        if all(name in table and isinstance(table[name].dtype, pd.CategoricalDtype) for table in tables):
            joined[name] = union_categoricals([table[name] for table in tables], sort_categories=True)
    return _in_domain_order(joined[list(dict.fromkeys(name for table in tables for name in table))])


def _existing(task: Task, reading: str) -> int | None:
    """How many modes a task has in a reading; clean Countdown joins some that the published one parts."""
    if reading == "clean" and task.domain == "countdown":
        return len(clean_modes(task.reference, task.level))
    return task.modes
