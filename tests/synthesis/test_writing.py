"""How a policy is asked for a task around a solution, in every prompt profile."""

from __future__ import annotations

import random

import pytest

from modebench.compact import compact_answer
from modebench.domains import DOMAINS, get_domain
from modebench.prompts import PROFILES
from modebench.synthesis.compact import evidence, free_prompt, menu_prompt, read_menu
from modebench.synthesis.writing import free_messages, menu_messages, reply_of, shown_solution
from modebench.tasks import Task, load_tasks
from modebench.variation import get_variation
from modebench.verifiers import verify


def solved(domain: str) -> tuple[Task, str]:
    task = load_tasks(domain, 1).tasks[0]
    found = next(iter(get_domain(domain).solutions(task.reference, 1)))
    thought = "I think that\n" if "\\boxed" in found.answer else ""
    shown = shown_solution(task, thought + found.answer, found.mode)
    assert shown is not None
    return task, shown


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_compact_profile_has_the_lines_that_the_tiny_policy_was_taught(domain: str) -> None:
    task, solution = solved(domain)
    assert menu_messages("compact", task, solution) == (
        {"role": "user", "content": menu_prompt(task, solution)},
    )
    assert free_messages("compact", task, solution) == (
        {"role": "user", "content": free_prompt(task, solution)},
    )
    assert reply_of("compact", "A") == "A"


@pytest.mark.parametrize("profile", [name for name in PROFILES if name != "compact"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_model_that_reads_is_shown_the_solution_and_not_the_task(domain: str, profile: str) -> None:
    task, solution = solved(domain)
    for messages in (menu_messages(profile, task, solution), free_messages(profile, task, solution)):
        text = messages[-1]["content"]
        assert evidence(task, solution) in text
        assert task.problem not in text
        assert "\\boxed{}" in text
    menu = menu_messages(profile, task, solution)[-1]["content"]
    for operator in get_variation(domain).operators:
        assert operator.name.replace("_", " ") in menu
    assert (
        read_menu(domain, reply_of(profile, "Well.\n\\boxed{A}")) == get_variation(domain).operators[0].name
    )


@pytest.mark.parametrize(
    ("response", "reply"),
    [
        ("<think>\\boxed{B}</think>The task:\n\\boxed{P8,25}", "P8,25"),
        (" P8,25\n", "P8,25"),
        ("\\boxed{P6,35} or rather \\boxed{ P8,25 }", "P8,25"),
        ("<think>\\boxed{P8,25}", ""),
        ("\\boxed{P8,25", ""),
    ],
)
def test_replies_are_taken_from_the_last_box(response: str, reply: str) -> None:
    assert reply_of("direct", response) == reply


def test_solutions_are_shown_without_what_stands_around_them() -> None:
    graph = Task("t", "graph_coloring", 1, "x", "", get_variation("graph_coloring").parse("G1223-?2?"))
    assert shown_solution(graph, "so 1, 3: \\boxed{13}", "graph_coloring:123") == "\\boxed{123}"
    program = Task("t", "python_factors", 1, "x", "", get_variation("python_factors").parse("P6,35"))
    shown = shown_solution(
        program, "<think>hm</think>\\boxed{lambda n: 2 if n%2==0 else 5}", "python_factor:2,5"
    )
    assert shown == "\\boxed{lambda n: 2 if n%2==0 else 5}"
    assert shown_solution(program, "lambda n: 2 if n%2==0 else 5", "python_factor:2,5") == shown
    assert shown_solution(program, "lambda n: 5", None) is None


FORMS = ("{}", "{}\n", "\\boxed{{{}}}", "I think that\n\\boxed{{{}}}", "Answer: {}", "```\n{}\n```")


@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_operator_takes_what_is_shown_of_a_right_response_in_any_form(domain: str, level: int) -> None:
    task = load_tasks(domain, level, "train").tasks[0]
    answer = compact_answer(next(iter(get_domain(domain).solutions(task.reference, level))).answer)
    right = [form.format(answer) for form in FORMS if verify(task, form.format(answer)).mode is not None]
    assert len(right) >= 2
    for response in right:
        shown = shown_solution(task, response, verify(task, response).mode)
        assert shown is not None
        assert verify(task, shown).mode == verify(task, response).mode
        for operator in get_variation(domain).operators:
            operator.apply(random.Random(0), task.reference, shown)  # raises where it is not right
