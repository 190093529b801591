"""Finding and peeling: formatting never changes a verdict, and time stays linear."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.verifiers.clean.extraction import (
    MAX_ANSWER_CHARACTERS,
    MAX_BOXES,
    MAX_LAYERS,
    answer,
    find,
    last_box_by_arrays,
    last_box_by_steps,
    peel,
    plain,
)
from tests.verifiers.clean.vectors import DOMAINS, clean, rows, solutions

LAYERS = (
    " {} ", "\n{}\n", "${}$", "$${}$$", "\\({}\\)", "\\[{}\\]", "**{}**", "__{}__", "`{}`", "```\n{}\n```",
    '"{}"', "'{}'", "“{}”", "‘{}’", "\\text{{{}}}", "\\mathrm{{{}}}", "\\mathtt{{{}}}", "\\texttt{{{}}}",
    "The final answer is {}", "Answer: {}", "my solution = {}", "Correct answer is: {}", "{}.", "{};",
    "\\, {}\\;",
)  # fmt: skip
PIECES = (
    *(
        "$",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "**",
        "__",
        "`",
        "```",
        '"',
        "'",
        "“",
        "”",
        "\\text{",
        "{",
        "}",
        "\\{",
    ),
    *(
        "\\}",
        "\\",
        "\\\\",
        "\\boxed{",
        "\\boxed",
        " ",
        "\n",
        ".",
        ";",
        "the ",
        "answer",
        " is",
        ":",
        "=",
        "A",
        "1",
    ),
    *("\\,", "\\ ", "\\left(", "×", "<answer>", "</answer>"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@settings(max_examples=400, deadline=None)
@given(texts)
def test_peeling_is_idempotent(text: str) -> None:
    once = peel(text)
    assert peel(once) == once
    assert once in text
    assert plain(once) == plain(plain(once)) or "\\" in once


@settings(max_examples=1_000, deadline=None)
@given(texts)
def test_both_ways_to_the_last_box_agree(text: str) -> None:
    assert last_box_by_arrays(text) == last_box_by_steps(text)


def test_formatting_has_limits() -> None:
    assert answer("$" * 100 + "3" + "$" * 100, truncated=False) == "3"
    assert answer("'" * MAX_LAYERS + "3" + "'" * MAX_LAYERS, truncated=False) is None
    assert answer("\\boxed{" + " " * 100_000 + "3 }", truncated=False) == "3"
    assert answer("\\boxed{$" + " " * 10_000 + "3$}", truncated=False) is None
    assert answer("\\boxed{3}" * MAX_BOXES, truncated=False) == "3"
    assert answer("\\boxed{3}" * (MAX_BOXES + 1), truncated=False) is None


@settings(max_examples=150, deadline=None)
@given(texts, st.booleans())
def test_any_text_has_a_verdict(text: str, truncated: bool) -> None:
    for domain in DOMAINS:
        for row in rows(domain)[:: len(rows(domain)) - 1]:
            assert clean(row, text, truncated).status in ("correct", "incorrect", "malformed")


@pytest.mark.parametrize("domain", DOMAINS)
def test_layers_never_change_a_verdict(domain: str) -> None:
    rng = random.Random(7)
    for row in rows(domain):
        inside = find(row["response"], row.get("truncated", False))
        if not inside or not inside.strip() or _unbalanced(inside):
            continue
        verdict = clean(row, f"\\boxed{{{inside}}}")
        assert (verdict.status, verdict.mode) == (row["status"], row["mode"])
        if verdict.status == "malformed":
            continue
        for layer in LAYERS:
            assert clean(row, f"\\boxed{{{layer.format(inside)}}}") == verdict, layer
        for _ in range(3):
            wrapped = inside
            for layer in rng.choices(LAYERS, k=4):
                wrapped = layer.format(wrapped)
            assert clean(row, f"so \\boxed{{{wrapped}}} holds") == verdict, wrapped


def _unbalanced(text: str) -> bool:
    """Texts that a box around them would change."""
    return "\\boxed" in text or text.count("{") != text.count("}") or text.endswith("\\")


@pytest.mark.parametrize("domain", DOMAINS)
def test_listed_solutions_are_correct_in_the_asked_for_form(domain: str) -> None:
    for task, listed in solutions(domain, 50):
        for mode, written in listed:
            verdict = clean(task, written)
            assert verdict.status == "correct", written
            if domain != "countdown":
                assert verdict.mode == mode


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 18_000, "\\boxed{}" * 16_000, "{" * 131_000, "}" * 131_000, "$" * 131_072, " " * 131_072,
        "\\boxed" + " " * 131_000, "\\boxed " * 18_000, "the " * 32_000, "the" + " " * 60_000 + ";" * 60_000,
        "the " * 16_000 + ";" * 60_000, "<answer>" * 16_000, "\\text{" * 18_000 + "}" * 18_000, "`" * 131_071,
        "answer:" * 18_000, "\\" * 131_072, "\\ " * 65_000, "\n" * 131_072, "1 " * 65_000, "-" * 131_072,
        "\\boxed{" + "\\text{" * 9_000 + "}" * 9_001, "3+" * 65_000 + "3", "(" * 65_000 + ")" * 65_000,
        "\u0130" * 131_000, "a" * 131_072, "\\boxed{" + " " * 131_000 + "}", ";" * 131_072, "a=" * 65_000,
        "(" * 2_000 + "3" + ")" * 2_000, "-" * 4_000 + "3", "9" * 4_096, "*".join(["99"] * 1_360),
        "a " * 2_000, "1=1 " * 1_000, " ,".join(["A"] * 1_000), "oats=" + "9" * 4_000,
        "z;" + "\t" * 4_000 + "y",
        "oats" + " \t" * 2_000 + "x", "1" + " " * 4_000 + "x1", "lambda n: " + "\\text{a}" * 500,
    ],
    ids=lambda text: f"{text[:12]!r} {len(text)}",
)  # fmt: skip
def test_bounded_time_on_odd_texts(text: str) -> None:
    for domain in DOMAINS:
        row = rows(domain)[-1]
        for response in (text, text[: MAX_ANSWER_CHARACTERS - 10]):
            start = time.process_time()
            assert clean(row, response, truncated=True).status in ("incorrect", "malformed")
            assert time.process_time() - start < 2.0
