"""Graph coloring: complete a proper colouring with colours 1, 2, 3.

The mode is the full colour vector. The published parser reads digits wherever they stand in the
candidate; that is part of the `published` contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from modebench.verifiers.extraction import SHORT_LINE, extract
from modebench.verifiers.reference import is_int, require_int, require_verifier
from modebench.verifiers.verdict import InvalidReference, Verdict, correct, incorrect, malformed

_COLOUR = re.compile("[123]")


class Spec(NamedTuple):
    """A checked reference.

    Attributes:
        n: number of vertices, numbered from 1.
        edges: vertex pairs, numbered from 0.
        partial: shown colours as digits, None where hidden; None when nothing is shown or hidden.
    """

    n: int
    edges: tuple[tuple[int, int], ...]
    partial: tuple[str | None, ...] | None


def compile_reference(reference: Mapping[str, Any], level: int) -> Spec:
    """Check a reference; the level changes nothing here.

    Raises:
        InvalidReference: naming the field.
    """
    require_verifier(reference, "graph_coloring")
    n = require_int(reference.get("n"), "reference.n", 1)
    return Spec(n, _edges(reference.get("edges"), n), _partial(reference.get("partial_colors"), n))


def _edges(value: object, n: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list):
        raise InvalidReference("reference.edges", f"must be a list, not {value!r}")
    edges = []
    for index, edge in enumerate(value):
        field = f"reference.edges[{index}]"
        if not isinstance(edge, list) or len(edge) != 2:
            raise InvalidReference(field, f"must be a pair of vertices, not {edge!r}")
        u, v = (require_int(end, field, 1, n) for end in edge)
        if u == v:
            raise InvalidReference(field, f"joins vertex {u} to itself")
        edges.append((u - 1, v - 1))
    return tuple(edges)


def _partial(value: object, n: int) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != n:
        raise InvalidReference("reference.partial_colors", f"must list {n} colours or nulls")
    for index, colour in enumerate(value):
        if colour is not None and not (is_int(colour) and colour in (1, 2, 3)):
            raise InvalidReference(
                f"reference.partial_colors[{index}]", f"must be 1, 2, 3 or null, not {colour!r}"
            )
    return tuple(None if colour is None else str(colour) for colour in value)


def judge(spec: Spec, response: str) -> Verdict:
    """The `published` verdict on a response."""
    candidate = extract(response, SHORT_LINE)
    if candidate is None:
        return malformed("no answer found")
    colours = read_colours(candidate, spec)
    if colours is None:
        return malformed("not a colouring")
    return judge_colours(spec, colours)


def judge_colours(spec: Spec, colours: str) -> Verdict:
    """Execute a full colour vector, a string of `spec.n` digits 1 to 3."""
    for vertex, shown in enumerate(spec.partial or ()):
        if shown is not None and colours[vertex] != shown:
            return incorrect(f"vertex {vertex + 1} is shown as {shown}")
    for u, v in spec.edges:
        if colours[u] == colours[v]:
            return incorrect(f"vertices {u + 1} and {v + 1} share colour {colours[u]}")
    return correct(f"graph_coloring:{colours}")


def read_colours(candidate: str, spec: Spec) -> str | None:
    """The full colour vector a candidate states, or None.

    The published parser strips labels and separators first, but none of them holds a digit 1 to 3,
    so what it accepts is exactly: all digits 1 to 3 found anywhere, when they are as many as the
    vertices (the full vector, tried first) or as the hidden vertices (the fill).
    """
    count = candidate.count("1") + candidate.count("2") + candidate.count("3")
    hidden = -1 if spec.partial is None else spec.partial.count(None)
    if count not in (spec.n, hidden):
        return None
    digits = _COLOUR.findall(candidate)
    if count == spec.n or spec.partial is None:
        return "".join(digits)
    fill = iter(digits)
    return "".join(next(fill) if shown is None else shown for shown in spec.partial)
