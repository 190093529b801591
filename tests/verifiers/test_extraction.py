"""Extraction against the published rules written out character by character and as one expression each."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from modebench.verifiers.extraction import MATHIR, PANTRY, PYTHON, SHORT_LINE, Surface, extract, plain_lambda
from tests.reference.texts import BLANKS, LABEL_WORDS, nonsense, surface

FENCES = {
    PYTHON: re.compile(r"```(?:python)?\s*(.*?)\s*```", re.IGNORECASE | re.DOTALL),
    MATHIR: re.compile(r"```(?:mathir)?\s*(.*?)\s*```", re.IGNORECASE | re.DOTALL),
}
LABELS = {
    SHORT_LINE: "answer|expression|coloring|program",
    PYTHON: "answer|program|function",
    PANTRY: "answer|plan|recipe",
}
LENGTHS = {SHORT_LINE: 160, PYTHON: 240, MATHIR: 200, PANTRY: 512}
BRACES = (
    "{",
    "}",
    "{",
    "}",
    "\\boxed{",
    "\\boxed",
    "\\boxed {",
    "a",
    "推",
    "\ud800",
    "😀",
    "\\{",
    " ",
    "\n",
    "{}",
)
FENCE_PIECES = (
    "```",
    "`",
    "``",
    "python",
    "Python",
    "pytho",
    "mathir",
    "MATHİR",
    "n",
    " ",
    "\n",
    "\u2003",
    "x```",
    "",
)
SURFACES = pytest.mark.parametrize("kind", list(LENGTHS), ids=["short line", "python", "mathir", "pantry"])


def boxed_by_rule(text: str) -> str | None:
    """Count braces from the last box on; the box must open at once and close somewhere."""
    start = text.rindex("\\boxed")
    depth = 0
    for position in range(start, len(text)):
        if text[position] == "{":
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                whole = text[start : position + 1]
                return whole[len("\\boxed{") : -1] if whole.startswith("\\boxed{") else None
    return None


def bare_by_rule(text: str, kind: Surface) -> str | None:
    candidate = text.strip()
    if kind in FENCES:
        fenced = FENCES[kind].fullmatch(candidate)
        candidate = fenced.group(1).strip() if fenced else candidate
    forbidden = "<>" if kind is MATHIR else "<>\n\r"
    if len(candidate) > LENGTHS[kind] or set(forbidden) & set(candidate):
        return None
    if kind in LABELS:
        label = rf"^\s*(?:the\s+)?(?:final\s+)?(?:{LABELS[kind]})\s*(?:is|=|:)\s*"
        candidate = re.sub(label, "", candidate, flags=re.IGNORECASE).strip()
    return candidate


def by_rule(text: str, kind: Surface) -> str | None:
    return (boxed_by_rule(text) if "\\boxed" in text else bare_by_rule(text, kind)) or None


@SURFACES
def test_boxes(kind: Surface) -> None:
    found: Counter[bool] = Counter()
    for index in range(3_000):
        rng = random.Random(f"boxes/{index}")
        text = "".join(rng.choice(BRACES) for _ in range(rng.randint(1, 14)))
        wanted = by_rule(text, kind)
        assert extract(text, kind) == wanted, text
        found[wanted is None] += 1
    assert min(found.values()) > 300


@pytest.mark.parametrize("size", [100, 4_090, 4_096, 4_097, 5_000, 20_000])
@pytest.mark.parametrize("filler", ["", "推", "😀"])
def test_boxes_with_many_braces(size: int, filler: str) -> None:
    """Long boxes are read in another way than short ones; both read the same."""
    rng = random.Random(size)
    for lean in (0.4, 0.49, 0.5, 0.51, 0.6):
        braces = "".join(rng.choice(("{", filler)) if rng.random() < lean else "}" for _ in range(size))
        for text in (
            f"{{ \\boxed{{{braces}",
            f"\\boxed{{{braces}}} }}",
            f"\\boxed{{{'{' * size}{'}' * size}}}{braces}",
        ):
            assert extract(text, SHORT_LINE) == by_rule(text, SHORT_LINE)


@SURFACES
def test_fences(kind: Surface) -> None:
    for index in range(3_000):
        rng = random.Random(f"fences/{index}")
        text = "".join(rng.choice(FENCE_PIECES) for _ in range(rng.randint(1, 9)))
        assert extract(text, kind) == by_rule(text, kind), text


@SURFACES
def test_labels(kind: Surface) -> None:
    for index in range(3_000):
        rng = random.Random(f"labels/{index}")
        words = [
            rng.choice(("the", "The", "final", "FINAL", "a", *LABEL_WORDS)) for _ in range(rng.randint(0, 4))
        ]
        ends = [rng.choice(("is", "=", ":", "is:", "are", "")) for _ in range(rng.randint(0, 2))]
        text = "".join(piece + rng.choice((" ", "", rng.choice(BLANKS))) for piece in (*words, *ends, "x"))
        assert extract(text, kind) == by_rule(text, kind), text


@SURFACES
def test_dressed_answers(kind: Surface) -> None:
    for index in range(2_000):
        rng = random.Random(f"dressed/{index}")
        text = surface(
            rng, rng.choice(("3+6+9", "lambda n: 2", "A;B", "oats=50", nonsense(rng, FENCE_PIECES)))
        )
        assert extract(text, kind) == by_rule(text, kind), text


@SURFACES
def test_length_limits(kind: Surface) -> None:
    """Counted after blanks and fence go, before the label goes; a box has none."""
    limit = LENGTHS[kind]
    assert extract(f"  {'x' * limit}\n", kind) == "x" * limit
    assert extract("x" * (limit + 1), kind) is None
    assert extract(f"\\boxed{{{'x' * 5_000}}}", kind) == "x" * 5_000
    if kind in FENCES:
        assert extract(f"```\n{'x' * limit}\n```", kind) == "x" * limit
        assert extract(f"```\n{'x' * (limit + 1)}\n```", kind) is None
    if kind in LABELS:
        assert extract(f"answer: {'x' * (limit - 8)}", kind) == "x" * (limit - 8)
        assert extract(f"answer: {'x' * (limit - 7)}", kind) is None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\\lambda n: 2", "lambda n: 2"),
        (" \\lambda  n :2 ", "lambda n: 2"),
        ("\\lambda\\,n: 2", "lambda n: 2"),
        ("\\lambda\\, n:\n2", "lambda n: 2"),
        ("\\lambda\\ n: 2", "\\lambda\\ n: 2"),
        ("\\lambda{}n: 2", "\\lambda{}n: 2"),
        ("\\lambdan: 2", "\\lambdan: 2"),
        ("\\lambda n: \\lambda n: 2", "lambda n: \\lambda n: 2"),
        ("2 \\lambda n: 2", "2 \\lambda n: 2"),
        (" lambda n: 2\n", "lambda n: 2"),
    ],
)
def test_latex_lambda(text: str, plain: str) -> None:
    assert plain_lambda(text) == plain
