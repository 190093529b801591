"""Graph coloring, `clean`: nothing but the digits, or an explicit assignment.

The mode is the full colour vector, as published.
"""

from __future__ import annotations

import re

from modebench.verifiers.clean.extraction import plain_answer
from modebench.verifiers.graph_coloring import Spec, judge_colours
from modebench.verifiers.verdict import Verdict, malformed

_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_SEPARATED = re.compile(r"[123](?P<rest>(?:\s*[,;|/-]\s*[123]|\s+[123])*)")
_ASSIGNMENT = re.compile(r"(?P<vertex>[0-9]{1,9})\s*(?P<sign>[=:])\s*(?P<colour>[123])(?![0-9])")
_BETWEEN = re.compile(r"\s*[,;]\s*|\s+")


def judge(spec: Spec, response: str, truncated: bool = False) -> Verdict:
    """The `clean` verdict on a response."""
    answer = plain_answer(response, truncated)
    if answer is None:
        return malformed("no answer found")
    if len(answer) > 1 and _BRACKETS.get(answer[0]) == answer[-1]:
        answer = answer[1:-1].strip()
    colours = _vector(answer, spec) or _assigned(answer, spec)
    return malformed("not a colouring") if colours is None else judge_colours(spec, colours)


def _vector(answer: str, spec: Spec) -> str | None:
    """All colours, or those of the hidden vertices, as digits with one kind of separator or none."""
    digits = answer
    if answer.strip("123"):
        match = _SEPARATED.fullmatch(answer)
        if match is None:
            return None
        kinds = {kind.strip() for kind in _separators(match["rest"])}
        if len(kinds) > 1:
            return None
        digits = re.sub("[^123]", "", answer)
    if len(digits) == spec.n:
        return digits
    if spec.partial is None or not digits or len(digits) != spec.partial.count(None):
        return None
    fill = iter(digits)
    return "".join(next(fill) if shown is None else shown for shown in spec.partial)


def _separators(rest: str) -> list[str]:
    """What stands between digits; a sign with blanks around it is that sign."""
    return re.split("[123]", rest)[:-1]


def _assigned(answer: str, spec: Spec) -> str | None:
    """``vertex=colour`` pairs that name every hidden vertex, none twice, shown ones as they are."""
    partial = spec.partial or (None,) * spec.n
    colours: dict[int, str] = {}
    signs: set[str] = set()
    separators: set[str] = set()
    at = 0
    while at < len(answer):
        between = _BETWEEN.match(answer, at) if colours else None
        pair = _ASSIGNMENT.match(answer, between.end() if between else at)
        if pair is None or (colours and between is None):
            return None
        separators |= {between.group().strip()} if between else set()
        vertex = int(pair["vertex"]) - 1
        if not 0 <= vertex < spec.n or vertex in colours or partial[vertex] not in (None, pair["colour"]):
            return None
        colours[vertex] = pair["colour"]
        signs.add(pair["sign"])
        at = pair.end()
    needed = [vertex for vertex, shown in enumerate(partial) if shown is None] or range(spec.n)
    if len(signs) != 1 or len(separators) > 1 or any(vertex not in colours for vertex in needed):
        return None
    return "".join(colours.get(vertex) or shown or "" for vertex, shown in enumerate(partial))
