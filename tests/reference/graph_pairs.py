"""Graph coloring: references and answers."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

from tests.reference.texts import BLANKS, edit, guesses, nonsense

# fmt: off
PIECES = (
    "1", "2", "3", "1", "2", "3", "12", "0", "4", "11", "?", " ", ",", ";", "|", "-", ".", "vertex", "=", ":",
    "red",
)
# fmt: on


def reference(rng: random.Random, level: int) -> dict[str, Any]:
    n = rng.choice((1, 2, 3, 4, 4, 5, 5, 6, 6, 7))
    colours = [rng.randint(1, 3) for _ in range(n)]
    possible = [[u, v] for u in range(1, n + 1) for v in range(1, n + 1) if u != v]
    if rng.random() < 0.85:
        possible = [[u, v] for u, v in possible if colours[u - 1] != colours[v - 1]]
    if rng.random() < 0.8:
        possible = [[u, v] for u, v in possible if u < v]
    edges = rng.sample(possible, rng.randint(0, min(len(possible), 10)))
    if edges and rng.random() < 0.05:
        edges.append(rng.choice(edges)[::-1])
    result: dict[str, Any] = {"verifier": "graph_coloring", "n": n, "edges": edges}
    hidden = set(rng.sample(range(n), rng.choice((0, 1, n // 2, min(3, n), n))))
    shown = [None if i in hidden else colour for i, colour in enumerate(colours)]
    if rng.random() < 0.9:
        result["partial_colors"] = shown if rng.random() < 0.95 else None
    if rng.random() < 0.5:
        result |= {"num_solutions": 6, "num_completions": 4, "source": "test", "instance_id": "t-0"}
    return result


def _sizes(reference: dict[str, Any]) -> tuple[int, list[Any]]:
    """Vertices and shown colours; a small graph where a changed reference makes no sense."""
    n, shown = reference.get("n"), reference.get("partial_colors")
    n = n if type(n) is int and 1 <= n <= 9 else 4
    return n, shown if isinstance(shown, list) and len(shown) == n else [None] * n


def _solution(rng: random.Random, reference: dict[str, Any]) -> list[int]:
    n, shown = _sizes(reference)
    listed = reference.get("edges")
    edges = [e for e in listed if isinstance(e, list) and len(e) == 2] if isinstance(listed, list) else []
    edges = [(u, v) for u, v in edges if type(u) is int and type(v) is int and 1 <= u <= n and 1 <= v <= n]
    choices = list(product(*((1, 2, 3) if c not in (1, 2, 3) else (c,) for c in shown)))
    rng.shuffle(choices)
    for colours in choices[:300]:
        if all(colours[u - 1] != colours[v - 1] for u, v in edges):
            return list(colours)
    return list(choices[0])


def _spell(rng: random.Random, digits: list[int]) -> str:
    """A list of colours in one of many spellings."""
    separator = rng.choice(
        ("", "", "", ",", ", ", " ", ";", "-", ".", "|", ":", "][", "+", "/", "_", rng.choice(BLANKS))
    )
    text = separator.join(map(str, digits))
    style = rng.randrange(12)
    if style == 0:
        return f"[{text}]"
    if style == 1:
        return f"({text})"
    if style == 2:
        return ", ".join(f"{i + 1}={d}" for i, d in enumerate(digits))
    if style == 3:
        return " ".join(f"v{i + 4}:{d}" for i, d in enumerate(digits))
    if style == 4:
        return "".join(rng.choice(("a", "x ", "-", "0", "49", "n")) + str(d) for d in digits)
    if style == 5:
        return (
            rng.choice(
                (
                    "coloring: ",
                    "answer=",
                    "missing colors are ",
                    "Colors: ",
                    "digit is ",
                    "MISSING  DIGITS ARE",
                )
            )
            + text
        )
    if style == 6:
        return (
            text.replace("1", rng.choice(("red", "１", "I", "one"))) if rng.random() < 0.5 else f"{{{text}}}"
        )
    return text


def answer(rng: random.Random, reference: dict[str, Any], level: int) -> str:
    n, shown = _sizes(reference)
    full = _solution(rng, reference)
    fill = [colour for colour, known in zip(full, shown, strict=True) if known is None]
    kind = rng.randrange(12)
    if kind < 3:
        return _spell(rng, full)
    if kind < 6:
        return _spell(rng, fill)
    if kind < 8:
        return _spell(
            rng, [rng.randint(1, 3) for _ in range(rng.choice((n, len(fill), len(fill), n + 1, n - 1)))]
        )
    if kind == 8:
        return guesses(rng, [_spell(rng, rng.choice((full, fill))) for _ in range(2)])
    if kind == 9:
        return edit(rng, _spell(rng, rng.choice((full, fill))), PIECES, rng.randint(1, 3))
    if kind == 10:
        return "".join("?" if known is None else str(known) for known in shown)
    return nonsense(rng, PIECES)
