"""The gates of a card: every one is executed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from modebench.compact import compact_answer, compact_problem
from modebench.domains import DOMAINS, get_domain
from modebench.prompts import build_messages
from modebench.synthesis.cards import LEAST_NOVELTY, WEIGHTS, Gates, grade_card, shows_answer
from modebench.synthesis.compact import CARD_FIELDS, write_card
from modebench.synthesis.novelty import HeldOut, Recent
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation

CARD = dict.fromkeys(CARD_FIELDS, "text") | {
    "problem": "P35,54,91",
    "solution": "lambda n: 7 if n%7==0 else 2",
    "final_answer": "lambda n: 7 if n%7==0 else 2",
}


def grade(
    reply: str, recent: Recent | None = None, domain: str = "python_factors", held_out: HeldOut | None = None
) -> Any:
    return grade_card(reply, domain, 1, Gates(recent or Recent(), held_out))


def changed(**fields: object) -> str:
    return json.dumps({**CARD, **fields})


def test_a_good_card() -> None:
    good = grade(write_card(CARD))
    assert (good.valid, good.quality, good.reliability, good.novelty) == (True, pytest.approx(1), 1, 1)
    assert good.task.modes == 2 * 6 * 2
    assert good.task.reference["cases"] == [35, 54, 91]
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_the_order_of_the_fields_does_not_matter() -> None:
    assert grade(json.dumps(dict(reversed(CARD.items())))) == grade(write_card(CARD))


def test_a_grade_is_a_function_of_the_card_and_the_memory() -> None:
    recent = Recent()
    for reply in (write_card(CARD), changed(problem="P8"), "no card"):
        first = asdict(grade(reply, recent))
        assert asdict(grade(reply, recent)) == first
    assert recent.texts == []


@pytest.mark.parametrize(
    ("reply", "rejection", "quality"),
    [
        ("", "unreadable", 0),
        ("[1]", "unreadable", 0),
        ("[" * 100_000, "unreadable", 0),
        (write_card(CARD) + "x", "unreadable", 0),
        (changed(problem="35,54,91"), "unreadable", 0.3 + 0.05),
        (changed(problem="P7"), "unsolvable", 0.3 + 0.05),
        (changed(novelty_notes=" "), "unreadable", 0.3 * 8 / 9 + 0.3 + 0.25 + 0.05 + 0.1),
        (changed(problem=3), "unreadable", 0.3 * 8 / 9 + 0.05),
    ],
)
def test_what_is_no_task_is_refused(reply: str, rejection: str, quality: float) -> None:
    graded = grade(reply)
    assert graded.rejection == rejection
    assert graded.quality == pytest.approx(quality)
    assert not graded.valid


@pytest.mark.parametrize(
    "fields",
    [
        {"solution": "lambda n: 7"},
        {"final_answer": "lambda n: 7"},
        {"solution": "{{", "final_answer": "{{"},
    ],
)
def test_a_wrong_answer_leaves_the_task_and_half_the_reliability(fields: dict[str, str]) -> None:
    graded = grade(changed(**fields))
    assert (graded.valid, graded.reliability) == (True, 0.5)
    assert graded.quality == pytest.approx(1 - 0.25 / 2)


def test_two_right_answers_that_differ_are_not_quite_reliable() -> None:
    graded = grade(changed(final_answer="lambda n: 7 if n%7==0 else 27"))
    assert (graded.valid, graded.reliability) == (True, 0.7)
    assert graded.quality == pytest.approx(1 - 0.25 * 0.3)


def test_copies_and_near_copies_are_refused() -> None:
    recent = Recent()
    recent.add("python_factors", "P54,35,91")
    same = grade(write_card(CARD), recent)
    assert (same.rejection, same.novelty) == ("repeated", 0)
    recent = Recent()
    recent.add("python_factors", "P35,54,91,93")  # three of four cases are shared: 1 - 3/4 is too near
    assert grade(write_card(CARD), recent).rejection == "repeated"
    recent = Recent()
    recent.add("python_factors", "P35,54,93")  # two of four: 1 - 2/4 is far enough
    assert grade(write_card(CARD), recent).novelty == 0.5 >= LEAST_NOVELTY
    assert grade(write_card(CARD), recent).valid


def test_a_held_out_task_is_refused() -> None:
    task = load_tasks("countdown", 1, "eval").tasks[0]
    card = {**CARD, "problem": get_variation("countdown").write(task.reference)}
    held_out = HeldOut(["countdown"])
    assert grade(write_card(card), None, "countdown", held_out).rejection == "held_out"
    assert grade(write_card(card), None, "countdown").valid


@pytest.mark.parametrize(
    ("domain", "text", "leaks"),
    [
        ("graph_coloring", "G12-12", True),
        ("graph_coloring", "G12-1?", False),
        ("countdown", "C6=6", True),
        ("countdown", "C2,3=6", False),
        ("mathir", "Mx=a +aA -aB;a=3;4", True),
        ("mathir", "Mx=a-x +xA -aB;a=3;4", False),
        ("mathir", "Mx+a=b -aA +bB;a=3,b=4;4", False),
    ],
)
def test_a_problem_that_shows_its_answer_leaks(domain: str, text: str, leaks: bool) -> None:
    assert shows_answer(domain, get_variation(domain).parse(text)) == leaks
    if leaks:
        assert grade(changed(problem=text), domain=domain).rejection in ("leak", "unsolvable")


def test_a_code_fence_costs_the_format_only() -> None:
    graded = grade(f"```json\n{write_card(CARD)}\n```\n")
    assert graded == replace(grade(write_card(CARD)), format=0)
    assert graded.quality == pytest.approx(0.95)


@pytest.mark.parametrize("domain", DOMAINS)
def test_frozen_tasks_make_cards_that_pass_and_are_asked_without_their_answer(domain: str) -> None:
    for task in load_tasks(domain, 1).tasks[:3]:
        solution = compact_answer(next(iter(get_domain(domain).solutions(task.reference, 1))).answer)
        problem = get_variation(domain).write(task.reference)
        fields = {**CARD, "problem": problem, "solution": solution, "final_answer": solution}
        graded = grade(write_card(fields), domain=domain)
        assert (graded.valid, graded.reliability, graded.task.modes) == (True, 1, task.modes)
        problem = get_domain(domain).problem(graded.task.reference, 1)
        asked = Task("t", domain, 1, "synthetic", problem, graded.task.reference)
        assert compact_problem(asked) == compact_problem(task)
        assert build_messages(asked)[-1]["content"] == problem
