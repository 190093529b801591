"""Run folders: one run, one folder, append-only samples, everything else derived from them.

Layout::

    run.json                  what was asked, of what, how; status running|success|error|cancelled
    responses.jsonl           a line per (task, sample), appended a group at a time, never rewritten
    verdicts.<reading>.jsonl  a line per judged response, written whole
    chance.<reading>.jsonl    a line per task: what chance does on it, written whole
    summary.json              numbers; a function of the files above alone
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from modebench.errors import InputError, UsageError

RUN_SCHEMA = "modebench-run-v1"
MANIFEST = "run.json"
RESPONSES = "responses.jsonl"
SUMMARY = "summary.json"
_SYNC_SECONDS = 2.0
_DRAFTS = "*.part"
_SUCCEEDED = b'"error":null'  # as `json_line` writes it; inside a text its quotes would be escaped


class RunFolder:
    """A run on disk.

    Attributes:
        path: the folder.
        manifest: the content of run.json; change it through `update`.
        responses_path: the response log.
        summary_path: the summary document.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.responses_path = path / RESPONSES
        self.summary_path = path / SUMMARY

    @classmethod
    def create(cls, path: Path, manifest: Mapping[str, Any]) -> RunFolder:
        """A new run in an empty or missing folder.

        Raises:
            UsageError: the folder holds something already; nothing is touched.
        """
        refuse_in_use(path)
        path.mkdir(parents=True, exist_ok=True)
        remove_drafts(path)
        run = cls(path, {"schema": RUN_SCHEMA, **manifest})
        run.update()
        return run

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run.

        Raises:
            UsageError: there is no run at `path`.
            InputError: its run.json cannot be read.
        """
        file = path / MANIFEST
        if not file.is_file():
            raise UsageError(f"{path} is not a run folder: it has no {MANIFEST}")
        manifest = read_json_object(file)
        if manifest.get("schema") != RUN_SCHEMA:
            raise InputError(file, 1, "schema", f"is {manifest.get('schema')!r}, expected {RUN_SCHEMA!r}")
        return cls(path, manifest)

    def update(self, **changes: Any) -> None:
        """Change the manifest and write it whole."""
        self.manifest.update(changes)
        write_atomically(self.path / MANIFEST, json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n")

    def verdicts_path(self, reading: str) -> Path:
        return self.path / f"verdicts.{reading}.jsonl"

    def responses(self) -> Iterator[dict[str, Any]]:
        """Recorded samples in file order; a sample that failed and was drawn again stands once."""
        superseded = self._superseded()
        for line, record in read_jsonl(self.responses_path, torn_end=True):
            if line not in superseded:
                yield record

    def _superseded(self) -> set[int]:
        """Lines of failed samples for which a later line exists."""
        with self.responses_path.open("rb") as file:
            if all(_SUCCEEDED in line for line in file):
                return set()
        failed: dict[tuple[str, int], int] = {}
        superseded: set[int] = set()
        for line, record in read_jsonl(self.responses_path, torn_end=True):
            key = sample_key(record, self.responses_path, line)
            if key in failed:
                superseded.add(failed.pop(key))
            if record.get("error") is not None:
                failed[key] = line
        return superseded

    def recorded(self) -> dict[str, int]:
        """Samples that need not be drawn again: a bit mask over sample indices for every task."""
        done: dict[str, int] = {}
        if self.responses_path.exists():
            for line, record in read_jsonl(self.responses_path, torn_end=True):
                if record.get("error") is None:
                    task, sample = sample_key(record, self.responses_path, line)
                    if done.get(task, 0) >> sample & 1:
                        problem = f"{sample} of {task} stands twice"
                        raise InputError(self.responses_path, line, "sample", problem)
                    done[task] = done.get(task, 0) | 1 << sample
        return done

    @contextlib.contextmanager
    def append(self) -> Iterator[ResponseWriter]:
        """Open the response log at its end, after dropping a line that a crash cut short.

        The log is locked meanwhile; the kernel lets go of the lock when the process ends.

        Raises:
            UsageError: another process is writing to this run.
        """
        with self.responses_path.open("ab", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(
                    f"another process is writing to {self.path}; wait for it or stop it"
                ) from None
            drop_torn_line(self.responses_path)
            remove_drafts(self.path)
            writer = ResponseWriter(file)
            try:
                yield writer
            finally:
                writer.sync()


class ResponseWriter:
    """Appends whole groups: one system call each, flushed to the disk every two seconds."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._synced = time.monotonic()

    def write(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._file.write(b"".join(json_line(record) for record in records))
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def in_use(path: Path) -> bool:
    """Whether something stands at `path`, other than what a killed process was still writing."""
    return path.exists() and (not path.is_dir() or any(not entry.match(_DRAFTS) for entry in path.iterdir()))


def refuse_in_use(path: Path) -> None:
    """Say that a new run cannot be written to `path`, where it cannot.

    Raises:
        UsageError: something stands there.
    """
    if in_use(path):
        raise UsageError(
            f"output folder {path} is in use; choose another, or continue it with --resume {path}"
        )


def remove_drafts(path: Path) -> None:
    """Delete files that a killed process left half-written beside those they were to replace."""
    for draft in path.glob(_DRAFTS):
        draft.unlink(missing_ok=True)


def sample_key(record: Mapping[str, Any], path: Path, line: int) -> tuple[str, int]:
    """(task id, sample index) of a response line.

    Raises:
        InputError: a field is missing or of the wrong kind.
    """
    task, sample = record.get("task_id"), record.get("sample")
    if not isinstance(task, str):
        raise InputError(path, line, "task_id", f"must be text, not {task!r}")
    if type(sample) is not int or sample < 0:
        raise InputError(path, line, "sample", f"must be a count, not {sample!r}")
    return task, sample


def json_line(record: Mapping[str, Any]) -> bytes:
    """One JSON line in UTF-8; numbers that JSON lacks become null."""
    plain = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
    try:
        return (json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form, only an escape
        return (json.dumps(plain, separators=(",", ":")) + "\n").encode()


def read_jsonl(path: Path, *, torn_end: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of every non-blank line.

    Args:
        path: the file.
        torn_end: a last line without its line break was cut by a crash, and is left out.

    Raises:
        InputError: a line that is not a JSON object in UTF-8.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if torn_end and not raw.endswith(b"\n"):
                return
            if not raw.strip():
                continue
            try:
                value = json.loads(raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError) as error:
                raise InputError(path, number, "record", f"is not JSON ({error})") from None
            if not isinstance(value, dict):
                raise InputError(path, number, "record", f"must be a JSON object, not {type(value).__name__}")
            yield number, value


def drop_torn_line(path: Path) -> None:
    """Cut a last line that has no line break: it was being written when the process died."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65_536)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds one object.

    Raises:
        InputError: it does not.
    """
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(path, getattr(error, "lineno", 1), "record", f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(path, 1, "record", f"must be a JSON object, not {type(value).__name__}")
    return value


def write_atomically(path: Path, content: str) -> None:
    """Write a text file so that it is either whole or absent, and on the disk when this returns."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
