"""The compact prompt profile: what stands in it decides the verdict."""

from __future__ import annotations

import random
from typing import Any

import pytest

from modebench.compact import UNITS, compact_answer, compact_problem
from modebench.domains import DOMAINS, get_domain
from modebench.prompts import build_messages
from modebench.tasks import Task, load_tasks
from modebench.verifiers import verify


def task(domain: str, reference: dict[str, Any], level: int = 1) -> Task:
    return Task("t", domain, level, "x", "", reference)


@pytest.mark.parametrize(
    ("partial", "edges", "text"),
    [
        ([3, None, None, None], [[1, 2], [2, 4], [3, 4]], "G3ABC:3C|C|AB"),
        ([None, 2, 1, None], [[1, 2], [1, 3], [2, 3]], "GA21B:12|"),
        ([None, 1, 1], [[1, 2], [3, 1]], "GA11:1"),
    ],
)
def test_a_graph_shows_each_missing_vertex_with_its_neighbours(
    partial: list[int | None], edges: list[list[int]], text: str
) -> None:
    reference = {"verifier": "graph_coloring", "n": len(partial), "edges": edges, "partial_colors": partial}
    assert compact_problem(task("graph_coloring", reference)) == text


def test_graphs_of_one_text_have_one_set_of_modes() -> None:
    seen: dict[str, set[str]] = {}
    rng = random.Random(1)
    for _ in range(2_000):
        reference = get_domain("graph_coloring").generate(rng, 1)
        text = compact_problem(task("graph_coloring", reference))
        modes = {solution.mode for solution in get_domain("graph_coloring").solutions(reference, 1)}
        assert seen.setdefault(text, modes) == modes
    assert len(seen) < 2_000


def test_a_menu_stands_without_values() -> None:
    [first, *_] = load_tasks("mathir", 1).tasks
    text = compact_problem(first)
    assert text.startswith("M")
    assert ";" not in text
    assert all(f"{letter}" in text for letter in first.reference["actions"])


def test_pantry_bounds_are_rounded_inwards() -> None:
    for known in load_tasks("pantry_plan", 1).tasks[:40]:
        bounds, rows = compact_problem(known)[1:].split(";")
        targets = known.reference["targets"]
        low, high = bounds[1:].partition("e")[0].split("-")
        assert int(low) * UNITS["mass_g"] >= float(targets["mass_g"]["min"])
        assert int(high) * UNITS["mass_g"] <= float(targets["mass_g"]["max"])
        amounts = [int(character) for character in rows if character.isdigit()]
        available = [row["available_g"] for row in known.reference["ingredients"]]
        assert [amount * UNITS["available_g"] for amount in amounts] == available


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_all_frozen_eval_tasks_have_a_text(domain: str, level: int) -> None:
    texts = [compact_problem(known) for known in load_tasks(domain, level).tasks]
    assert all(text.isascii() and "\n" not in text and ">" not in text for text in texts)
    assert len(set(texts)) > 0.9 * len(texts)


@pytest.mark.parametrize("domain", DOMAINS)
def test_bare_answers_are_right(domain: str) -> None:
    for known in load_tasks(domain, 1).tasks[:10]:
        for solution, _ in zip(get_domain(domain).solutions(known.reference, 1), range(20), strict=False):
            bare = compact_answer(solution.answer)
            assert "boxed" not in bare
            assert verify(known, bare).mode == solution.mode


def test_the_profile_is_one_message_without_a_system_text() -> None:
    known = load_tasks("countdown", 1).tasks[0]
    [message] = build_messages(known, "compact", prefix="Try sums.")
    assert message == {"role": "user", "content": f"Try sums.\n\n{compact_problem(known)}"}


def test_more_missing_colors_than_letters_are_refused() -> None:
    reference = {"verifier": "graph_coloring", "n": 27, "edges": [[1, 2]], "partial_colors": [None] * 27}
    with pytest.raises(ValueError, match="27 missing colors"):
        compact_problem(task("graph_coloring", reference))
