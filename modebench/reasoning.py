"""Splitting a response into reasoning and answer, before it is verified."""

from __future__ import annotations

from typing import NamedTuple

OPEN, CLOSE = "<think>", "</think>"


class Split(NamedTuple):
    """A response taken apart.

    Attributes:
        answer: the text to verify; None where the reasoning never ended.
        reasoning: what stood before it, tags removed; None where there was none.
    """

    answer: str | None
    reasoning: str | None


def split_reasoning(response: str) -> Split:
    """Take reasoning off a response.

    Understood are ``<think>…</think>``, a closing tag alone (the chat template opened it), several
    blocks (the last closing tag counts), and reasoning that was cut before its closing tag, after which
    there is no answer.

    >>> split_reasoning("<think>2 is \\\\boxed{2}</think>so \\\\boxed{3}").answer
    'so \\\\boxed{3}'
    >>> split_reasoning("<think>perhaps \\\\boxed{2}").answer is None
    True
    """
    before, closed, after = response.rpartition(CLOSE)
    kept, opened, unfinished = after.partition(OPEN)
    if not closed and not opened:
        return Split(response, None)
    reasoning = "\n".join(piece for piece in (_untagged(before), _untagged(unfinished)) if piece)
    return Split(None if opened else kept, reasoning or None)


def _untagged(text: str) -> str:
    return text.replace(OPEN, "").replace(CLOSE, "").strip()
