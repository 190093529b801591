"""The folder of a training run.

Layout::

    config.yaml            the resolved configuration
    metrics.jsonl          a line a step; depends on the configuration alone, not on the clock
    timing.jsonl           a line a step: seconds of its stages
    tasks.jsonl            a line a task that the method proposed; only where it makes tasks
    eval/step-000000/      ordinary run folders: the periodic evaluations
    dev/step-000000/       the same on the dev split, by which the best checkpoint is named
    checkpoints/           see `modebench.training.checkpoint`
    summary.json           how the run stands, its last checkpoint (the result) and the best on dev
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from modebench.errors import InputError, UsageError
from modebench.provenance import versions
from modebench.runs import (
    drop_torn_line,
    json_line,
    read_json_object,
    read_jsonl,
    refuse_in_use,
    write_atomically,
)
from modebench.training.checkpoint import checkpoints_in, remove_drafts, step_name
from modebench.training.proposals import PROPOSALS

SCHEMA = "modebench-training-v1"
CONFIG, METRICS, TIMING, SUMMARY = "config.yaml", "metrics.jsonl", "timing.jsonl", "summary.json"


class TrainingFolder:
    """A training run on disk.

    Attributes:
        path: the folder.
        checkpoints: the folder of its checkpoints.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"

    @classmethod
    def create(cls, path: Path, config: str) -> TrainingFolder:
        """A new run, with the text of its configuration, in an empty or missing folder.

        Raises:
            UsageError: something stands there already, or it cannot be written to.
        """
        refuse_in_use(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_atomically(path / CONFIG, config)
        except OSError as error:
            raise UsageError(f"cannot write to the output folder {path}: {error.strerror}") from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> TrainingFolder:
        """An existing run.

        Raises:
            UsageError: there is none at `path`.
        """
        if not (path / CONFIG).is_file():
            raise UsageError(f"{path} is not a training folder: it has no {CONFIG}")
        return cls(path)

    @property
    def config_path(self) -> Path:
        return self.path / CONFIG

    def evaluation(self, split: str, step: int) -> Path:
        """Where the evaluation of a step stands; `split` is ``eval`` or ``dev``."""
        return self.path / split / step_name(step)

    def last_checkpoint(self) -> Path | None:
        return next(reversed(checkpoints_in(self.checkpoints).values()), None)

    def steps(self) -> Iterator[dict[str, Any]]:
        """The lines of metrics.jsonl, a step each; none before the first."""
        path = self.path / METRICS
        return (record for _, record in read_jsonl(path, torn_end=True)) if path.is_file() else iter(())

    def summary(self) -> dict[str, Any]:
        """The content of summary.json; empty before it is first written."""
        path = self.path / SUMMARY
        return read_json_object(path) if path.is_file() else {}

    def update_summary(self, **changes: Any) -> None:
        """Change summary.json and write it whole."""
        known = self.summary() or {"schema": SCHEMA, **versions()}
        document = known | changes
        write_atomically(self.path / SUMMARY, json.dumps(document, indent=2, ensure_ascii=False) + "\n")

    @contextlib.contextmanager
    def log(self, step: int, proposed: int | None = None) -> Iterator[StepLog]:
        """Open the logs behind the line of `step`; what a killed process wrote after it is dropped.

        The folder is locked meanwhile; the kernel lets go of the lock when the process ends.

        Args:
            step: the last that was done.
            proposed: tasks that the method had proposed by then; None where it makes no tasks.

        Raises:
            UsageError: another process trains in this folder.
            InputError: a line up to `step` is missing.
        """
        with contextlib.ExitStack() as opened:
            metrics, timing = (
                opened.enter_context((self.path / name).open("ab", buffering=0)) for name in (METRICS, TIMING)
            )
            try:
                fcntl.flock(metrics, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"another process trains in {self.path}; wait for it or stop it") from None
            remove_drafts(self.checkpoints)
            _cut(self.path / METRICS, step)
            _cut(self.path / TIMING, step)
            proposals = None
            if proposed is not None:
                proposals = opened.enter_context((self.path / PROPOSALS).open("ab", buffering=0))
                _keep(self.path / PROPOSALS, proposed)
            yield StepLog(metrics, timing, proposals)


class StepLog:
    """Appends a line a step to the two logs, and a line a proposed task to that of the tasks."""

    def __init__(self, metrics: IO[bytes], timing: IO[bytes], proposals: IO[bytes] | None = None) -> None:
        self._metrics, self._timing, self._proposals = metrics, timing, proposals

    def propose(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Write the proposed tasks of a step, before `write`: a step that has metrics then has all."""
        if self._proposals is not None:
            self._proposals.write(b"".join(map(json_line, records)))

    def write(self, metrics: Mapping[str, Any], timing: Mapping[str, Any]) -> None:
        # Timing first: a step that has metrics then has both.
        self._timing.write(json_line(timing))
        self._metrics.write(json_line(metrics))

    def sync(self) -> None:
        """Bring them to the disk; to be done before the checkpoint that they lead up to."""
        for file in (self._timing, self._metrics, self._proposals):
            if file is not None:
                os.fsync(file.fileno())


def _cut(path: Path, step: int) -> None:
    """Drop the lines of the steps after `step`.

    Raises:
        InputError: the lines before are not those of the steps 1 to `step`.
    """
    drop_torn_line(path)
    for line, record in read_jsonl(path):
        if line <= step and record.get("step") != line:
            raise InputError(path, line, "step", f"is {record.get('step')!r}, expected {line}")
    _keep(path, step)


def _keep(path: Path, count: int) -> None:
    """Drop the lines after the first `count`.

    Raises:
        InputError: there are fewer.
    """
    drop_torn_line(path)
    with path.open("rb+") as file:
        lines = sum(1 for _ in zip(range(count), file, strict=False))
        if lines < count:
            raise InputError(path, lines, "step", f"is the last line, expected {count} lines")
        file.truncate(file.tell())
