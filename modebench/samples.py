"""The long table of a run or of graded lines: one row a sample, as analysis wants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from modebench.analysis.summary import prompt_table, summary_document
from modebench.config import tasks_of
from modebench.domains import DOMAINS, get_domain
from modebench.errors import InputError, UsageError
from modebench.grading import differences_summary
from modebench.runs import RunFolder, file_sha256, read_jsonl, sample_key
from modebench.tasks import Task
from modebench.verifiers.clean.countdown import clean_modes

COLUMNS = (
    "task_id",
    "domain",
    "level",
    "split",
    "sample",
    "group",
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


class Run:
    """A finished or unfinished run, to look at.

    Attributes:
        folder: where it lies, with its manifest.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def samples(self, reading: str | None = None) -> pd.DataFrame:
        """One row a sample, with the columns `COLUMNS`; as `joined_samples`."""
        return joined_samples(self.folder, reading or self.folder.manifest["reading"])

    def prompts(self, reading: str | None = None) -> pd.DataFrame:
        """One row a prompt with its statistics; see `modebench.analysis.summary.prompt_table`."""
        return prompt_table(self.samples(reading))

    def summary(self, reading: str | None = None) -> dict[str, Any]:
        """The summary document, computed from the files."""
        return run_document(self.folder, reading or self.folder.manifest["reading"])


def load_run(path: str | PathLike[str]) -> Run:
    """A run folder.

    Raises:
        UsageError: there is no run at `path`.
        InputError: its manifest cannot be read.
    """
    return Run(RunFolder.open(Path(path)))


def run_document(folder: RunFolder, reading: str) -> dict[str, Any]:
    """The summary document of a graded run: numbers, and what they rest on."""
    manifest = folder.manifest
    document = summary_document(joined_samples(folder, reading), reading=reading, profile=manifest["profile"])
    head = {"model": manifest["model"], "settings": manifest["settings"]}
    return {**head, **document, **differences_summary(folder)}


def joined_samples(run: RunFolder, reading: str) -> pd.DataFrame:
    """Responses of a run with their verdicts and mode counts.

    Raises:
        UsageError: not graded with this reading, or the responses changed since.
        InputError: a verdict without a response, or a response without a verdict.
    """
    verdicts_path = run.verdicts_path(reading)
    graded = run.manifest.get("graded", {}).get(reading, {})
    if not verdicts_path.is_file() or graded.get("responses_sha256") != file_sha256(run.responses_path):
        raise UsageError(f"{run.path} is not graded as {reading}; run: modebench grade {run.path}")
    verdicts = {sample_key(record, verdicts_path, line): record for line, record in read_jsonl(verdicts_path)}
    modes = {task.id: _existing(task, reading) for tasks in tasks_of(run.manifest) for task in tasks}
    rows: list[dict[str, Any]] = []
    for line, record in enumerate(run.responses(), 1):
        key = sample_key(record, run.responses_path, line)
        row = {name: record.get(name) for name in COLUMNS}
        if record.get("error") is None:
            if key not in verdicts:
                raise InputError(run.responses_path, line, "sample", f"{key[1]} of {key[0]} has no verdict")
            row |= {name: verdicts[key].get(name) for name in ("status", "mode", "detail")}
        else:
            row |= {"status": "error", "detail": record["error"]}
        listed = reading == "clean" or _listed(record["domain"], row["mode"])
        row |= {"modes": modes.get(key[0]), "listed": listed}
        rows.append(row)
    return _in_domain_order(pd.DataFrame(rows, columns=list(COLUMNS)))


def load_samples(paths: Iterable[Path], reading: str) -> pd.DataFrame:
    """The long tables of run folders and graded files in one, with columns model, seed, step and arm.

    The model of a file is its name.

    Raises:
        UsageError, InputError: as `joined_samples` and `graded_samples`.
    """
    tables = []
    for path in paths:
        if path.is_dir():
            folder = RunFolder.open(path)
            origin = {name: folder.manifest[name] for name in ("model", "seed", "step", "arm")}
            table = joined_samples(folder, reading)
        else:
            origin = {"model": path.stem, "seed": None, "step": None, "arm": None}
            table = graded_samples(path)
        tables.append(table.assign(**origin))
    return _in_domain_order(pd.concat(tables, ignore_index=True))


def graded_samples(path: Path) -> pd.DataFrame:
    """The long table of a bare JSON Lines file of judged samples: task_id, domain, level, sample, status,
    mode, and any other column of `joined_samples`.

    Raises:
        UsageError: no such file.
        InputError: a line that cannot be read.
    """
    if not path.is_file():
        raise UsageError(f"no run folder and no file at {path}")
    rows = []
    for line, record in read_jsonl(path):
        sample_key(record, path, line)
        for name in ("domain", "level", "status"):
            if record.get(name) is None:
                raise InputError(path, line, name, "is missing")
        if record["status"] not in STATUSES:
            problem = f"must be one of {', '.join(STATUSES)}, not {record['status']!r}"
            raise InputError(path, line, "status", problem)
        if record["status"] == "correct" and not isinstance(record.get("mode"), str):
            raise InputError(path, line, "mode", f"a correct sample needs one, not {record.get('mode')!r}")
        rows.append(_graded_row(record))
    if not rows:
        raise UsageError(f"{path} holds no samples")
    return _in_domain_order(pd.DataFrame(rows))


def _in_domain_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ``domain`` as a categorical in the public order of domains, others behind."""
    others = sorted(set(table["domain"].astype(str)) - set(DOMAINS))
    kind = pd.CategoricalDtype([*DOMAINS, *others], ordered=True)
    return table.astype({"domain": kind})


def _graded_row(record: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: record[name] for name in COLUMNS if name in record}
    if "listed" not in row:
        row["listed"] = _listed(str(record["domain"]), record.get("mode"))
    return row


def _existing(task: Task, reading: str) -> int | None:
    """How many modes a task has in a reading; clean Countdown joins some that the published one parts."""
    if reading == "clean" and task.domain == "countdown":
        return len(clean_modes(task.reference, task.level))
    return task.modes


def _listed(domain: str, mode: object) -> bool:
    """Whether a mode belongs to the enumeration that `modes` counts."""
    return not isinstance(mode, str) or get_domain(domain).listed(mode)
