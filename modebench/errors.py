"""Errors that end a command: one line that says where, what was given and what was expected."""

from __future__ import annotations

from os import PathLike, fspath


class InputError(ValueError):
    """A file that cannot be read as it stands.

    The message is ``FILE:LINE: field: problem``.

    Attributes:
        path: the file as it was named.
        line: line number from 1.
        field: the offending field; ``record`` when it is the whole line.
        problem: what is wrong with it.
    """

    def __init__(self, path: str | PathLike[str], line: int, field: str, problem: str) -> None:
        super().__init__(f"{fspath(path)}:{line}: {field}: {problem}")
        self.path = fspath(path)
        self.line = line
        self.field = field
        self.problem = problem


class SplitError(ValueError):
    """A split that cannot be built, is not shipped, or is not what was frozen."""


class UsageError(ValueError):
    """A request that cannot be carried out as it was made; says what to do instead."""


class TrainingError(RuntimeError):
    """A training run that cannot go on; says why, what is intact and what to do."""
