"""From a response to its answer, as the `clean` reading finds it.

First the place: the last complete box, else ``<answer>…</answer>``, else the only fenced block, else the
last line that is not blank. Then layers of formatting are peeled off from the outside, then characters
are made plain. Everything is linear in the text, with explicit stacks and positions instead of copies.
"""

from __future__ import annotations

import re

MAX_ANSWER_CHARACTERS = 4_096
MAX_FORMATTED_CHARACTERS = 8_192
MAX_LAYERS = 256
MAX_BOXES = 1_000

_BRACE = re.compile(
    r"(?P<box>\\boxed\s*\{)|(?P<escaped>\\(?:[{}]|\\(?!boxed)))|(?P<open>\{)|(?P<close>\})",
)
_BOX = re.compile(r"\\boxed\s*\{")
_LONG = 2_048  # characters from which on arrays are faster than steps
_FENCE = "```"
_LANGUAGE_LINE = re.compile(r"[^\S\n]*(?:[A-Za-z][\w+-]*)?[^\S\n]*\n")
_LANGUAGE_WORD = re.compile(r"(?:python|py|mathir|text)\s+", re.IGNORECASE)

_LABEL_WORD = (
    "(?:the|my|final|correct|answer|expression|solution|coloring|colouring|colors|digits|plan|recipe|program"
    "|function|lambda|actions)"
)
_LABEL = re.compile(
    rf"{_LABEL_WORD}(?:\s+{_LABEL_WORD})*(?:\s+(?:is|are)(?![A-Za-z])(?:\s*:)?|\s*[:=])", re.IGNORECASE
)
_MACRO = re.compile(r"\\(?:text|mathrm|mathtt|texttt)\s*\{")
_SPACES = ("\\,", "\\;", "\\!", "\\ ")
_PAIRS = (
    ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("__", "__"), ("`", "`"),
    ('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"),
)  # fmt: skip
_OPENERS = frozenset(first[0] for first, _ in _PAIRS)

_COMMAND = re.compile(r"\\(?:(?P<word>left|right|times|cdot|div)(?![A-Za-z])|(?P<sign>[%_{}&])|[,;! ])")
_WORDS = {"times": "*", "cdot": "*", "div": "/"}
_FULL_WIDTH = "＋－＊／％＝＜＞（）０１２３４５６７８９"
_CHARACTERS = str.maketrans("×·⋅÷−–" + _FULL_WIDTH, "***/--" + "+-*/%=<>()0123456789")


def answer(response: str, truncated: bool) -> str | None:
    """The peeled answer of a response, characters as written, or None where there is none.

    Args:
        response: the text, reasoning taken off.
        truncated: it was cut at a length limit, so an open box or answer tag at its end is unfinished.
    """
    found = (find(response, truncated) or "").strip()
    if not found or len(found) > MAX_FORMATTED_CHARACTERS:
        return None
    peeled = peel(found)
    return peeled if peeled and len(peeled) <= MAX_ANSWER_CHARACTERS else None


def plain_answer(response: str, truncated: bool) -> str | None:
    """The peeled answer in plain characters, or None where there is none."""
    peeled = answer(response, truncated)
    return None if peeled is None else plain(peeled).strip() or None


def find(response: str, truncated: bool) -> str | None:
    """The place of the answer, formatting included."""
    if response.count("\\boxed") > MAX_BOXES:
        return None
    box, open_after = _last_box(response)
    if truncated and open_after:
        return None
    if box is not None:
        return box
    lowered = response.replace("İ", "i").lower()  # no other letter changes its length
    end = lowered.rfind("</answer>")
    start = lowered.rfind("<answer>", 0, end) if end >= 0 else -1
    if truncated and lowered.rfind("<answer>") > end:
        return None
    if start >= 0:
        return response[start + len("<answer>") : end]
    if response.count(_FENCE) == 2:
        return _without_language(response.split(_FENCE)[1])
    written = response.rstrip()
    return written[max(written.rfind("\n"), written.rfind("\r")) + 1 :] or None


def _last_box(text: str) -> tuple[str | None, bool]:
    """Inside of the complete box that begins last, and whether a box after it stays open."""
    if "\\boxed" not in text:
        return None, False
    inside, open_after = last_box_by_steps(text) if len(text) < _LONG else last_box_by_arrays(text)
    return (text[inside.start : inside.stop] if inside.start >= 0 else None), open_after


def last_box_by_steps(text: str) -> tuple[range, bool]:
    """Positions inside the complete box that begins last (from -1 where there is none), and whether one
    after it stays open; brace by brace."""
    inside = range(-1, -1)
    stack: list[tuple[bool, int]] = []
    for brace in _BRACE.finditer(text):
        kind = brace.lastgroup
        if kind in ("box", "open"):
            stack.append((kind == "box", brace.end()))
        elif kind == "close" and stack:
            is_box, start = stack.pop()
            if is_box and start > inside.start:
                inside = range(start, brace.start())
    return inside, any(is_box and start > inside.start for is_box, start in stack)


def last_box_by_arrays(text: str) -> tuple[range, bool]:
    """As `last_box_by_steps`, over arrays."""
    import numpy as np

    boxes = np.array([box.end() for box in _BOX.finditer(text)], dtype=np.int64)
    if len(boxes) == 0:
        return range(-1, -1), False
    braces = text.replace("\\boxed", "\0boxed")
    for escaped in ("\\\\", "\\{", "\\}"):
        braces = braces.replace(escaped, "\0\0")
    characters = np.frombuffer(braces.encode("latin-1", "replace"), dtype=np.uint8)
    opened = (characters == ord("{")).astype(np.int32)
    sums = np.cumsum(opened - (characters == ord("}")), dtype=np.int32)
    # Depth after each character; a brace that closes nothing is ignored.
    depth = sums - np.minimum(np.minimum.accumulate(sums), 0)
    least_later = np.minimum.accumulate(depth[::-1])[::-1]
    complete = least_later[boxes - 1] < depth[boxes - 1]
    if not complete.any():
        return range(-1, -1), True
    last = int(np.flatnonzero(complete)[-1])
    start = int(boxes[last])
    end = start + int(np.argmax(depth[start:] < depth[start - 1]))
    return range(start, end), last < len(boxes) - 1


def _without_language(block: str) -> str:
    opening = _LANGUAGE_LINE.match(block) or _LANGUAGE_WORD.match(block)
    return block[opening.end() :] if opening else block


def peel(text: str) -> str:
    """Take layers of formatting off, from the outside, until none is left; idempotent.

    Nothing is left of a text in more than `MAX_LAYERS` layers.

    >>> peel("The final answer is: **$3+6+9$**.")
    '3+6+9'
    """
    peeler = _Peeler(text)
    for _ in range(MAX_LAYERS):
        if not peeler.layer():
            return text[peeler.low : peeler.high]
    return ""


class _Peeler:
    """Two positions that move inwards over one text.

    Attributes:
        low, high: what is left is ``text[low:high]``.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.low, self.high = 0, len(text)
        self._closing: dict[int, int] | None = None
        self._no_label_at = -1

    def layer(self) -> bool:
        """Take one layer off; False where there is none."""
        return self._blank() or self._pair() or self._macro() or self._label() or self._stop()

    def _starts(self, piece: str) -> bool:
        return self.text.startswith(piece, self.low, self.high)

    def _ends(self, piece: str) -> bool:
        return self.text.endswith(piece, self.low, self.high)

    def _blank(self) -> bool:
        before = self.low, self.high
        while self.low < self.high and self.text[self.low].isspace():
            self.low += 1
        while self.low < self.high and self.text[self.high - 1].isspace() and not self._ends("\\ "):
            self.high -= 1
        if self._starts("\\") and any(map(self._starts, _SPACES)):
            self.low += 2
        elif self.high - self.low > 1 and self.text[self.high - 2] == "\\" and any(map(self._ends, _SPACES)):
            self.high -= 2
        return before != (self.low, self.high)

    def _pair(self) -> bool:
        if self.low >= self.high or self.text[self.low] not in _OPENERS:
            return False
        for first, last in _PAIRS:
            if self.high - self.low >= len(first) + len(last) and self._starts(first) and self._ends(last):
                if first == "`" and self._fence():
                    return True
                self.low += len(first)
                self.high -= len(last)
                return True
        return False

    def _fence(self) -> bool:
        """A fenced block around the whole, with its language."""
        if self.high - self.low < 2 * len(_FENCE) or not (self._starts(_FENCE) and self._ends(_FENCE)):
            return False
        self.low += len(_FENCE)
        self.high -= len(_FENCE)
        opening = _LANGUAGE_LINE.match(self.text, self.low, self.high)
        opening = opening or _LANGUAGE_WORD.match(self.text, self.low, self.high)
        if opening:
            self.low = opening.end()
        return True

    def _macro(self) -> bool:
        if not self._ends("}") or not self._starts("\\"):
            return False
        macro = _MACRO.match(self.text, self.low, self.high)
        if macro is None or self._matching().get(macro.end()) != self.high - 1:
            return False
        self.low = macro.end()
        self.high -= 1
        return True

    def _matching(self) -> dict[int, int]:
        """Where the brace that opens just before a position closes."""
        if self._closing is None:
            self._closing = {}
            stack: list[int] = []
            for brace in _BRACE.finditer(self.text):
                if brace.lastgroup in ("box", "open"):
                    stack.append(brace.end())
                elif brace.lastgroup == "close" and stack:
                    self._closing[stack.pop()] = brace.start()
        return self._closing

    def _label(self) -> bool:
        # Nothing that begins with a letter is peeled but a label: one that failed need not be tried again.
        if self.low == self._no_label_at or self.low >= self.high:
            return False
        label = _LABEL.match(self.text, self.low, self.high)
        if label is None:
            self._no_label_at = self.low
            return False
        self.low = label.end()
        return True

    def _stop(self) -> bool:
        if not (self._ends(".") or self._ends(";")):
            return False
        self.high -= 1
        while self.high - self.low > 1 and self.text[self.high - 2 : self.high] in (";;", "..", ".;", ";."):
            self.high -= 1
        return True


def plain(text: str) -> str:
    """Characters made plain: escapes, LaTeX spacing and signs, Unicode signs, full-width ASCII.

    >>> plain(r"3 \\times \\left(6 − 2\\right)\\,")
    '3 * (6 - 2)'
    """
    return _COMMAND.sub(_replacement, text).translate(_CHARACTERS)


def _replacement(command: re.Match[str]) -> str:
    return _WORDS.get(command["word"] or "", "") or command["sign"] or ""
