"""JSON Lines files of samples as columns, fast and in little memory.

A file is read once, a few megabytes of lines at a time, into one array a field: numbers as they are,
texts that repeat (task ids, modes, statuses) as integer codes of a short list, and raw responses as 64-bit
hashes, since to count duplicates one only has to know which are equal. What comes out is a function of the
bytes of the file and of the fields asked for. For a large file it is kept beside it as an ``.npz`` under
the SHA-256 of those bytes, so that a copy of other content is never used; where the folder can't be
written the file is read again next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from modebench.errors import InputError, UsageError

Kind = Literal["text", "count", "number", "flag", "hash", "label"]
Array = npt.NDArray[Any]

_LINES_AT_ONCE = 8 << 20  # bytes
_COPY_FROM = 16 << 20  # bytes; a smaller file is read about as fast as its copy
_COPY_VERSION = 1
_NONE: type = type(None)
_ALLOWED: dict[Kind, tuple[frozenset[type], str]] = {
    "text": (frozenset({str, _NONE}), "text"),
    "count": (frozenset({int}), "a count"),
    "number": (frozenset({int, float, _NONE}), "a number"),
    "flag": (frozenset({bool, _NONE}), "true or false"),
    "hash": (frozenset({str, _NONE}), "text"),
    "label": (frozenset({int, float, str, _NONE}), "a number or text"),
}


class Field(NamedTuple):
    """A field of a line.

    Attributes:
        name: its key.
        kind: ``text`` (few distinct values), ``count`` (an integer from 0), ``number``, ``flag``, or
            ``hash`` (many distinct texts, of which only equality matters), or ``label`` (the same for
            numbers and texts).
        required: whether null and a missing key are refused.
    """

    name: str
    kind: Kind
    required: bool = False


class Columns:
    """The fields of a file's lines. N lines.

    Attributes:
        line: line numbers from 1, [N].
        sha256: of the bytes of the file.
        arrays: field name -> [N]: codes (int32, -1 for null) of a text, int64 of a count, float64 (NaN for
            null) of a number or flag, int64 of a hash (0 for null). A field that no line has is left out.
        texts: field name -> the texts that its codes stand for, sorted.
    """

    def __init__(
        self, line: Array, sha256: str, arrays: dict[str, Array], texts: dict[str, list[str]]
    ) -> None:
        self.line = line
        self.sha256 = sha256
        self.arrays = arrays
        self.texts = texts

    def __len__(self) -> int:
        return len(self.line)

    def take(self, rows: Array) -> Columns:
        """The rows with these numbers (or where this mask holds)."""
        arrays = {name: values[rows] for name, values in self.arrays.items()}
        return Columns(self.line[rows], self.sha256, arrays, self.texts)

    def categorical(self, name: str) -> pd.Categorical:
        """A text column; all null where no line has it."""
        if name not in self.texts:
            return pd.Categorical.from_codes(np.full(len(self), -1), categories=pd.Index([], dtype=object))
        return pd.Categorical.from_codes(
            self.arrays[name], categories=pd.Index(self.texts[name], dtype=object)
        )

    def numbers(self, name: str) -> Array:
        """A number column: int64 where every value is a known whole number, else float64."""
        values = self.arrays.get(name)
        if values is None:
            return np.full(len(self), np.nan)
        if values.dtype.kind == "f" and len(values) and np.all(np.mod(values, 1) == 0):
            return values.astype(np.int64)
        return values


def read_columns(
    path: Path, fields: Sequence[Field], *, torn_end: bool = False, copy: Path | None = None
) -> Columns:
    """The columns of a file, from its columnar copy where that is of these very bytes.

    Args:
        path: a JSON Lines file.
        fields: what to read; other keys of a line are left alone.
        torn_end: a last line without its line break was cut by a crash, and is left out.
        copy: where the columnar copy of a large file is kept; None for no copy.

    Raises:
        InputError: a line that is not a JSON object, or a field of the wrong kind.
        UsageError: the file changed while it was read.
    """
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        key = json.dumps([_COPY_VERSION, sha256, torn_end, fields])
        found = _read_copy(copy, key, sha256) if copy else None
        if found is not None:
            return found
        file.seek(0)
        columns = _parse(file, path, fields, sha256, torn_end)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise UsageError(f"{path} changed while it was read; wait for whoever writes it, then try again")
    if copy and before.st_size >= _COPY_FROM:
        _write_copy(copy, key, columns)
    return columns


def read_texts(path: Path, name: str, lines: Array) -> list[str | None]:
    """One text field of the lines with these numbers (sorted, from 1)."""
    found: list[str | None] = []
    wanted = set(lines.tolist())
    with path.open("rb") as file:
        for numbers, records in _chunks(file, path, torn_end=True):
            found += [record.get(name) for n, record in zip(numbers, records, strict=True) if n in wanted]
    return found


def _parse(file: IO[bytes], path: Path, fields: Sequence[Field], sha256: str, torn_end: bool) -> Columns:
    codes = {field.name: _Codes() for field in fields if field.kind == "text"}
    parts: dict[str, list[Array]] = {field.name: [] for field in fields}
    lines: list[Array] = []
    for numbers, records in _chunks(file, path, torn_end=torn_end):
        lines.append(np.array(numbers, dtype=np.int64))
        for field, values in zip(fields, _values(records, [field.name for field in fields]), strict=True):
            _check(field, values, path, numbers)
            parts[field.name].append(_encoded(field.kind, values, codes.get(field.name)))
    if not lines:
        return Columns(np.empty(0, dtype=np.int64), sha256, {}, {})
    arrays = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    texts: dict[str, list[str]] = {}
    for name, known in codes.items():
        arrays[name], texts[name] = _sorted_codes(arrays[name], known)
    empty = [field.name for field in fields if _all_null(field.kind, arrays[field.name])]
    for name in empty:
        del arrays[name]
        texts.pop(name, None)
    return Columns(np.concatenate(lines), sha256, arrays, texts)


def _values(records: Sequence[dict[str, Any]], names: Sequence[str]) -> Sequence[Sequence[Any]]:
    """The values of each field, null where a line lacks it."""
    if not records:
        return [()] * len(names)
    try:
        return list(zip(*map(itemgetter(*names), records), strict=True))
    except KeyError:
        return [[record.get(name) for record in records] for name in names]


def _chunks(
    file: IO[bytes], path: Path, *, torn_end: bool
) -> Iterator[tuple[list[int], list[dict[str, Any]]]]:
    """Line numbers and objects of the non-blank lines, some megabytes of them at a time."""
    before = 0
    while raw := file.readlines(_LINES_AT_ONCE):
        if torn_end and not raw[-1].endswith(b"\n"):
            raw.pop()
        lines = [(number, line) for number, line in enumerate(raw, before + 1) if not line.isspace()]
        yield [number for number, _ in lines], [_record(line, path, number) for number, line in lines]
        before += len(raw)


def _record(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        # The strict parser refuses what Python writes: lone surrogates, NaN.
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(path, number, "record", f"is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise InputError(path, number, "record", f"must be a JSON object, not {type(value).__name__}")
    return value


def _check(field: Field, values: Sequence[Any], path: Path, numbers: Sequence[int]) -> None:
    allowed, what = _ALLOWED[field.kind]
    if field.required:
        allowed = allowed - {_NONE}
    if not set(map(type, values)) <= allowed:
        row = next(i for i, value in enumerate(values) if type(value) not in allowed)
        given = "is missing" if values[row] is None else f"must be {what}, not {values[row]!r}"
        raise InputError(path, numbers[row], field.name, given)
    if field.kind == "count" and min(values, default=0) < 0:
        row = next(i for i, value in enumerate(values) if value < 0)
        raise InputError(path, numbers[row], field.name, f"must be {what}, not {values[row]!r}")


class _Codes(dict[str | None, int]):
    """Texts numbered in the order in which they come; null is -1."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, text: str | None) -> int:
        self[text] = code = len(self) - 1
        return code


def _encoded(kind: Kind, values: Sequence[Any], codes: _Codes | None) -> Array:
    if codes is not None:
        return np.fromiter(map(codes.__getitem__, values), dtype=np.int32, count=len(values))
    if kind == "label":
        values = [None if value is None else str(value) for value in values]
    if kind in ("hash", "label"):
        return np.frombuffer(b"".join(map(_digest, values)), dtype="<i8")
    return np.array(values, dtype=np.int64 if kind == "count" else np.float64)


def _digest(text: str | None) -> bytes:
    """64 bits of BLAKE2b: among a million texts two different ones agree with chance 3e-8."""
    if text is None:
        return bytes(8)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _sorted_codes(codes: Array, known: Mapping[str | None, int]) -> tuple[Array, list[str]]:
    """Codes that follow the order of the texts, so that sorting by code sorts by text."""
    texts = sorted(text for text in known if text is not None)
    place = np.full(len(texts) + 1, -1, dtype=np.int32)  # the last one answers to code -1
    place[[known[text] for text in texts]] = np.arange(len(texts), dtype=np.int32)
    return place[codes], texts


def _all_null(kind: Kind, values: Array) -> bool:
    if kind == "text":
        return bool(np.all(values < 0))
    if kind in ("hash", "label"):
        return not np.any(values)
    return kind != "count" and bool(np.all(np.isnan(values)))


def _read_copy(path: Path, key: str, sha256: str) -> Columns | None:
    """The columns kept in a copy; None where there is none, or it is damaged or of another content."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            if bytes(kept["key"]).decode() != key:
                return None
            arrays = {name[7:]: kept[name] for name in kept.files if name.startswith("values.")}
            texts = json.loads(bytes(kept["texts"]))
            return Columns(kept["line"], sha256, arrays, texts)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write_copy(path: Path, key: str, columns: Columns) -> None:
    """Keep columns for the next reader; a folder that cannot be written is left as it is."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    content: dict[str, Any] = {
        "key": np.frombuffer(key.encode(), dtype=np.uint8),
        "texts": np.frombuffer(json.dumps(columns.texts).encode(), dtype=np.uint8),
        "line": columns.line,
        **{f"values.{name}": values for name, values in columns.arrays.items()},
    }
    try:
        with draft.open("wb") as file:
            np.savez(file, **content)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
