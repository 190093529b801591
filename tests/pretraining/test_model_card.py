"""How replies of the writing formats are judged, and how the card is written."""

from __future__ import annotations

import random

import pytest

from modebench.domains import get_domain
from modebench.pretraining.corpus import Frozen
from modebench.pretraining.model_card import _JUDGES, render
from modebench.synthesis.compact import CARD_FIELDS, write_card
from modebench.tasks import load_tasks
from modebench.variation import get_variation

FROZEN = Frozen(["countdown"])
TASK = load_tasks("countdown", 1, "dev")[0]
SOLUTION = next(iter(get_domain("countdown").solutions(TASK.reference, 1))).answer
FROZEN_TEXT = get_variation("countdown").write(load_tasks("countdown", 1)[0].reference)
TARGET = TASK.reference["target"]


def card(problem: str, solution: str) -> str:
    return write_card({**dict.fromkeys(CARD_FIELDS, "x"), "problem": problem, "solution": solution})


@pytest.mark.parametrize(
    ("kind", "reply", "read", "works", "new"),
    [
        ("menu", "Z", False, False, False),
        ("menu", "A", True, True, False),
        ("free", "no text", False, False, False),
        ("free", get_variation("countdown").write(TASK.reference), True, False, False),
        ("free", f"C2,97,{97 + TARGET + 2}={TARGET}", True, True, True),
        ("card", "no card", False, False, False),
        ("card", card("no text", "1"), False, False, False),
        ("card", card("C2,31,97=130", "1"), True, False, False),
        ("card", card("C2,31,97=130", "2+(31+97)"), True, True, True),
        ("card", card("C2,3=500", "2+3"), True, False, False),
    ],
)
def test_replies_are_executed(kind: str, reply: str, read: bool, works: bool, new: bool) -> None:
    assert _JUDGES[kind](random.Random(0), TASK, SOLUTION, reply, FROZEN) == (read, works, new)


def test_a_frozen_problem_is_not_new() -> None:
    solution = next(iter(get_domain("countdown").solutions(load_tasks("countdown", 1)[0].reference, 1)))
    bare = solution.answer.removeprefix("\\boxed{").removesuffix("}")
    reply = card(FROZEN_TEXT, bare)
    assert _JUDGES["card"](random.Random(0), TASK, SOLUTION, reply, FROZEN) == (True, True, False)


def test_the_card_shows_every_figure_and_a_dash_where_there_is_none() -> None:
    figures = {
        "solving": [{"domain": "countdown", "level": 1, "accuracy": 0.25, "pcmd": None}],
        "coached": [{"domain": "countdown", "bits": float("nan")}],
        "writing": [{"domain": "countdown", "format": "menu", "works": 1.0}],
    }
    facts = {
        "parameters": 1_234_567,
        "vocabulary": 99,
        "seed": 7,
        "steps": 3_000,
        "frozen": 16_000,
        "pools": {"countdown": {"tasks": 12, "excluded": 3}},
        "versions": {"torch": "2"},
    }
    text = render(figures, facts)
    for told in (
        "1,234,567 parameters",
        "--seed 7",
        "3,000 steps",
        "| countdown | 1 | 0.250 | – |",
        "| countdown | – |",
        "| countdown | menu | 1.000 |",
        "| countdown | 12 | 3 |",
    ):
        assert told in text
