"""What every variation module offers, and what the modules share.

A variation module writes the references of its domain as one short line, varies a task around a
solution, and takes one mode away from a task. Nothing is believed: a varied task is returned only after
its check was executed. Variation around a solution follows the idea of SVS (arXiv:2508.14029), where a
new problem must keep the answer of the old one; here the verifier decides whether it does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NoReturn, Protocol

from modebench.domains import get_domain
from modebench.domains.base import Reference
from modebench.verifiers.reference import canonical_text, parse_reference
from modebench.verifiers.registry import check_task, verify
from modebench.verifiers.verdict import InvalidReference

Invariant = Literal["strict", "value", "set"]
"""What a variation keeps. ``strict``: the source solution itself is right on the varied task. ``value``:
the target stays and a right answer exists by construction. ``set``: the modes are exactly the same."""

Propose = Callable[[random.Random, Reference, str], dict[str, Any] | None]
Check = Callable[[Reference, str, Reference], str | None]
Carry = Callable[[Reference, str, Reference], str]

COPY = "a copy of the source task"

MAX_TEXT = 1_000
"""Longest compact text, so that reading one is cheap whatever it says."""
TRIES = 64
"""Proposals of one `Operator.apply`; each is checked by execution."""


class CompactError(ValueError):
    """A text that is no compact reference, or a reference that has no compact text.

    Attributes:
        position: index of the first character that does not fit; None where a reference can't be written.
        expected: what was expected there.
    """

    def __init__(self, position: int | None, expected: str) -> None:
        where = "cannot be written" if position is None else f"position {position}"
        super().__init__(f"{where}: expected {expected}")
        self.position = position
        self.expected = expected


class NotExecutable(CompactError):  # noqa: N818 - as below
    """A text in the form of a task that no answer can be executed against."""


class Unsolvable(ValueError):  # noqa: N818 - a verdict on a task, not a failure of the program
    """A well-formed reference without a mode, or one too large to count its modes exactly."""


def _same(before: Reference, solution: str, after: Reference) -> str:
    return solution


@dataclass(frozen=True)
class Operator:
    """One way to vary a task around a solution of it.

    Attributes:
        name: unique within the domain.
        invariant: what the variation keeps.
        propose: a candidate, not yet checked; None where the task has no room for this operator.
        check: why `after` is no valid variation of `before` around the solution; None when it is.
        carry: a response that is correct on the varied task: the source solution, spelled anew where its
            spelling depends on the task; another right answer where the invariant is ``value``.
    """

    name: str
    invariant: Invariant
    propose: Propose
    check: Check
    carry: Carry = _same

    def apply(self, rng: random.Random, reference: Reference, solution: str) -> dict[str, Any] | None:
        """A variation that passes `check`, or None where none was found in `TRIES` proposals.

        Args:
            rng: the only source of randomness.
            reference: the source task; it is not changed.
            solution: a full response that is correct on it.
        """
        for _ in range(TRIES):
            after = self.propose(rng, reference, solution)
            if after is None or self.check(reference, solution, after) is None:
                return after
        return None


class Variation(Protocol):
    """The interface of a variation module.

    ``write`` and ``parse`` are inverse: ``write(parse(t)) == t`` for every text that is read at all, and
    ``parse(write(r))`` is executed exactly as ``r`` is. Fields that no verdict depends on are left out.
    """

    name: str
    operators: tuple[Operator, ...]

    def write(self, reference: Reference) -> str:
        """One line of ASCII; raises `CompactError` or `InvalidReference`."""

    def parse(self, text: str) -> dict[str, Any]:
        """The reference; raises `CompactError` for all but the one spelling of a valid reference."""

    def validate(self, reference: Reference, level: int) -> int:
        """The exact number of modes; raises `InvalidReference` or `Unsolvable`."""

    def canonical_form(self, reference: Reference) -> str:
        """Equal exactly for tasks that differ in names, order or unread fields alone."""

    def remove_option(
        self, reference: Reference, level: int, mode: str, answer: str | None = None
    ) -> dict[str, Any] | None:
        """A near task without `mode` and with others left; None where one step can't do that.

        Args:
            reference: the task.
            level: its level.
            mode: the favourite, a mode of the task.
            answer: a response of that mode that must fail too; one is made up when None.
        """


class Scanner:
    """Reads a text from left to right; what doesn't fit raises `CompactError` at its position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, expected: str) -> NoReturn:
        raise CompactError(self.at, expected)

    def skip(self, literal: str) -> bool:
        """Pass over `literal` where it stands; whether it did."""
        found = self.text.startswith(literal, self.at)
        self.at += len(literal) * found
        return found

    def take(self, literal: str) -> None:
        if not self.skip(literal):
            self.fail(repr(literal))

    def read(self, pattern: re.Pattern[str], expected: str) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            self.fail(expected)
        self.at = match.end()
        return match.group()

    def done(self) -> bool:
        return self.at == len(self.text)


def strict_parse(
    text: str, read: Callable[[Scanner], dict[str, Any]], write: Callable[[Reference], str]
) -> dict[str, Any]:
    """Read a text that must be exactly what `write` gives for an executable reference."""
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise CompactError(0, f"a text of at most {MAX_TEXT} characters")
    scanner = Scanner(text)
    reference = read(scanner)
    if not scanner.done():
        scanner.fail("the end")
    try:
        spelling = write(reference)
    except (InvalidReference, CompactError) as error:
        raise NotExecutable(0, f"a valid reference, but {error}") from None
    if spelling != text:
        same = (a == b for a, b in zip(spelling, text, strict=False))
        at = next((i for i, equal in enumerate(same) if not equal), min(len(spelling), len(text)))
        raise CompactError(at, f"{spelling[at : at + 12]!r}, the one spelling")
    return reference


def write_checked(
    name: str, reference: Reference, spell: Callable[[Reference], str], *, digits_are_numbers: bool = True
) -> str:
    """The text of an executable reference (of any level).

    `digits_are_numbers` is False where a run of digits is no number, as in the edges of a graph.
    """
    check_task({"domain": name, "level": 2, "reference": reference})
    text = spell(reference)
    if digits_are_numbers and _TOO_LONG.search(text):
        raise CompactError(None, "numbers of at most 18 digits")
    if len(text) > MAX_TEXT:
        raise CompactError(None, f"at most {MAX_TEXT} characters, not {len(text)}")
    return text


def count_valid(name: str, reference: Reference, level: int) -> int:
    """Exact number of modes of an executable reference that has one."""
    check_task({"domain": name, "level": level, "reference": reference})
    modes = get_domain(name).count_modes(reference, level)
    if modes < 1:
        raise Unsolvable("the task has no mode")
    return modes


def mode_of(name: str, reference: Reference, level: int, solution: str) -> str | None:
    """The mode of a response; None unless it is correct."""
    return verify({"domain": name, "level": level, "reference": reference}, solution).mode


def require_mode(name: str, reference: Reference, level: int, solution: str) -> str:
    """The mode of a response that must be correct."""
    mode = mode_of(name, reference, level, solution)
    if mode is None:
        raise ValueError("solution: must be correct on the reference that is varied")
    return mode


def listed_modes(name: str, reference: Reference, level: int) -> Mapping[str, str]:
    """Every listed mode with a response that has it."""
    return _listed(name, canonical_text(reference), level)


@lru_cache(maxsize=32)  # an operator and its check ask for the same task
def _listed(name: str, text: str, level: int) -> Mapping[str, str]:
    solutions = get_domain(name).solutions(parse_reference(text), level)
    return MappingProxyType({solution.mode: solution.answer for solution in solutions})


def strict_failure(name: str, level: int, before: Reference, solution: str, after: Reference) -> str | None:
    """Why the source solution is not right on a varied task; None when it is.

    A right solution is itself the proof that the varied task has a mode.
    """
    if mode_of(name, before, level, solution) is None:
        return "the solution is not correct on the source task"
    try:
        right = mode_of(name, after, level, solution) is not None
    except InvalidReference as error:
        return str(error)
    return None if right else "the solution is not correct on the varied task"


def kept(reference: Reference, fields: Sequence[str]) -> dict[str, Any]:
    """A copy of some fields: counts and digests of a published row don't hold for a changed task."""
    return {field: reference[field] for field in fields if field in reference}


def integer(scanner: Scanner, expected: str) -> int:
    """A decimal integer of at most 18 digits; `strict_parse` sees to leading zeros."""
    return int(scanner.read(_INTEGER, expected))


_INTEGER = re.compile("-?[0-9]{1,18}")
_TOO_LONG = re.compile("[0-9]{19}")


def numbers(scanner: Scanner, expected: str) -> list[int]:
    """Integers separated by commas."""
    found = [integer(scanner, expected)]
    while scanner.skip(","):
        found.append(integer(scanner, expected))
    return found
