"""How a policy is asked to write tasks, and how its replies are read."""

from __future__ import annotations

import json

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.synthesis.compact import (
    CARD_FIELDS,
    CardContext,
    card_prompt,
    evidence,
    free_prompt,
    menu_prompt,
    read_card,
    read_menu,
    write_card,
)
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation

CARD = {name: f"text {number}" for number, name in enumerate(CARD_FIELDS)}


def first(domain: str) -> tuple[Task, str]:
    task = load_tasks(domain, 1).tasks[0]
    return task, next(iter(get_domain(domain).solutions(task.reference, 1))).answer


def test_the_evidence_is_the_solution_and_not_the_task() -> None:
    graph = Task(
        "t",
        "graph_coloring",
        1,
        "x",
        "",
        {"verifier": "graph_coloring", "n": 4, "edges": [[1, 2]], "partial_colors": [None, 2, None, 1]},
    )
    assert evidence(graph, "\\boxed{13}") == evidence(graph, "1231") == "1231"
    numbers = Task(
        "t", "countdown", 1, "x", "", {"verifier": "countdown", "numbers": [3, 9, 12], "target": 6}
    )
    assert evidence(numbers, "\\boxed{(12-9)+3}") == "(12-9)+3=6"


@pytest.mark.parametrize("domain", DOMAINS)
def test_menus_name_every_operator_and_letters_are_read_back(domain: str) -> None:
    task, solution = first(domain)
    prompt = menu_prompt(task, solution)
    names = [operator.name for operator in get_variation(domain).operators]
    assert [read_menu(domain, letter) for letter in "ABCDEFGH"[: len(names)]] == names
    assert all(f"{letter}={name}" in prompt for letter, name in zip("ABCDEFGH", names, strict=False))
    for reply in ("", "AB", "a", "Z", "A "):
        with pytest.raises(ValueError, match="one of the letters"):
            read_menu(domain, reply)


@pytest.mark.parametrize("domain", ["graph_coloring", "countdown", "python_factors"])
def test_the_source_task_is_not_in_the_free_prompt(domain: str) -> None:
    task, solution = first(domain)
    assert get_variation(domain).write(task.reference) not in free_prompt(task, solution)


def test_a_card_is_read_back() -> None:
    assert read_card(write_card(CARD)) == CARD
    assert list(json.loads(write_card(CARD))) == list(CARD_FIELDS)


def test_the_order_of_a_cards_fields_does_not_matter() -> None:
    assert read_card(json.dumps(dict(reversed(CARD.items())))) == CARD


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no JSON",
        "[]",
        "[" * 100_000,
        json.dumps({**CARD, "more": "x"}),
        json.dumps({k: v for k, v in CARD.items() if k != "problem"}),
        json.dumps({**CARD, "solution": ""}),
        json.dumps({**CARD, "solution": "  "}),
        json.dumps({**CARD, "solution": 3}),
        write_card(CARD) + "x",
    ],
)
def test_what_is_no_card_is_refused_in_one_line(reply: str) -> None:
    with pytest.raises(ValueError, match=r"reply|card") as caught:
        read_card(reply)
    assert "\n" not in str(caught.value)


def test_a_context_says_everything() -> None:
    context = CardContext((3, 20, 1), "lowest", "highest", "tightest", "copy")
    assert card_prompt("graph_coloring", context) == (
        "card:graph_coloring,easy=3,learnable=20,hard=1,often=lowest,rare=highest,weak=tightest,rejected=copy"
    )
