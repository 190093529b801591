"""From a response to its candidate answer, as the published reference reads it.

The last ``\\boxed`` wins; without one, the whole text is the candidate if it is short and plain. The
regular expressions are those of the published contract (arXiv:2610.11064, package modebench 0.4.0),
because verdicts depend on them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_RESPONSE_CHARACTERS = 131_072

_BOX = "\\boxed"
_BRACES = re.compile("[{}]")
_MANY_BRACES = 1_024  # from here on numpy is faster than a loop
_IGNORE = re.IGNORECASE


class Surface(NamedTuple):
    """How a domain reads a response that has no box.

    Attributes:
        max_length: characters allowed, after stripping and unfencing, before the prefix goes.
        one_line: line breaks are refused.
        fence: the opening of a code fence that may wrap the whole text.
        prefix: one leading label that is dropped.
    """

    max_length: int
    one_line: bool = True
    fence: re.Pattern[str] | None = None
    prefix: re.Pattern[str] | None = None


def _prefix(words: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*(?:the\s+)?(?:final\s+)?(?:{words})\s*(?:is|=|:)\s*", _IGNORE)


SHORT_LINE = Surface(160, prefix=_prefix("answer|expression|coloring|program"))
PYTHON = Surface(240, fence=re.compile("```(?:python)?", _IGNORE), prefix=_prefix("answer|program|function"))
MATHIR = Surface(200, one_line=False, fence=re.compile("```(?:mathir)?", _IGNORE))
PANTRY = Surface(512, prefix=_prefix("answer|plan|recipe"))


def extract(text: str, surface: Surface) -> str | None:
    """The candidate answer of `text`, or None where there is none of the required form."""
    start = text.rfind(_BOX)
    candidate = boxed(text, start + len(_BOX)) if start >= 0 else bare(text, surface)
    return candidate or None


def boxed(text: str, at: int) -> str | None:
    """The inside of the balanced braces that open exactly at `at`, or None."""
    if text[at : at + 1] != "{":
        return None
    closing = _closing_brace(text, at)
    return None if closing is None else text[at + 1 : closing]


def _closing_brace(text: str, at: int) -> int | None:
    """Position of the brace that closes the one at `at`."""
    if text.count("{", at) + text.count("}", at) > _MANY_BRACES:
        return _closing_brace_of_many(text, at)
    depth = 0
    for brace in _BRACES.finditer(text, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None


def _closing_brace_of_many(text: str, at: int) -> int | None:
    import numpy as np

    characters = np.frombuffer(text[at:].encode("latin-1", "replace"), dtype=np.uint8)
    steps = (characters == ord("{")).astype(np.int8) - (characters == ord("}")).astype(np.int8)
    closed = np.cumsum(steps, dtype=np.int32) == 0
    first = int(np.argmax(closed))
    return at + first if closed[first] else None


def bare(text: str, surface: Surface) -> str | None:
    """The whole text as candidate, when it is as plain as `surface` asks."""
    candidate = text.strip()
    if surface.fence is not None:
        candidate = _unfence(candidate, surface.fence)
    if len(candidate) > surface.max_length or "<" in candidate or ">" in candidate:
        return None
    if surface.one_line and ("\n" in candidate or "\r" in candidate):
        return None
    if surface.prefix is not None:
        candidate = surface.prefix.sub("", candidate).strip()
    return candidate


def _unfence(text: str, fence: re.Pattern[str]) -> str:
    opening = fence.match(text)
    if opening is None or not text.endswith("```") or opening.end() > len(text) - 3:
        return text
    return text[opening.end() : -3].strip()


_LATEX_LAMBDA = re.compile(r"^\\lambda(?:\s+|\\,\s*)n\s*:\s*")


def plain_lambda(candidate: str) -> str:
    """LaTeX's ``\\lambda n:`` as Python's ``lambda n:``; blanks at the ends removed."""
    return _LATEX_LAMBDA.sub("lambda n: ", candidate.strip(), count=1).strip()
