"""From a response to its candidate answer, as the published reference reads it.

The last ``\\boxed`` wins; without one, the whole text is the candidate if it is short and plain. The
regular expressions are those of the published contract (arXiv:2610.11064, package modebench 0.4.0),
because verdicts depend on them.
"""

from __future__ import annotations

import re
from array import array
from itertools import accumulate
from typing import NamedTuple

MAX_RESPONSE_CHARACTERS = 131_072

_BOX = "\\boxed"
_WEIGHTS = bytes(1 if byte == 0x7B else 255 if byte == 0x7D else 0 for byte in range(256))
_MANY_BRACES = 4_096  # from here on numpy is faster than a loop
_NOT_BRACES = bytes(byte for byte in range(256) if byte not in b"{}")
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
    closing = _closing_brace(text[at:].encode("utf-8", "surrogatepass").translate(_WEIGHTS, _NOT_BRACES))
    return None if closing is None else text[at + 1 : _position_of_brace(text, at, closing)]


def _closing_brace(weights: bytes) -> int | None:
    """Index of the brace that closes the first one, given +1 and -1 (as signed bytes) a brace."""
    if len(weights) > _MANY_BRACES:
        import numpy as np

        depths = np.cumsum(np.frombuffer(weights, dtype=np.int8), dtype=np.int32)
        found = int(np.argmax(depths == 0))
        return found if depths[found] == 0 else None
    for index, depth in enumerate(accumulate(array("b", weights))):
        if depth == 0:
            return index
    return None


def _position_of_brace(text: str, at: int, index: int) -> int:
    """Position of the brace number `index` (from 0) at or after `at`."""
    low, high = at, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if text.count("{", at, middle) + text.count("}", at, middle) > index:
            high = middle
        else:
            low = middle
    return low


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
