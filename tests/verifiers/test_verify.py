"""The public call: what it takes, what it refuses, what it never does."""

from __future__ import annotations

import json
import types
from itertools import product
from typing import Any

import pytest

from modebench.tasks import Task
from modebench.verifiers import InvalidReference, Verdict, verify, verify_many
from tests.reference.pairs import DOMAINS, pairs
from tests.verifiers.examples import REFERENCES, RIGHT, task

every_example = pytest.mark.parametrize("name", list(RIGHT))


def as_task(example: dict[str, Any]) -> Task:
    return Task("id", example["domain"], example["level"], "eval", "problem", example["reference"])


@every_example
def test_right_answer(name: str) -> None:
    answer, mode = RIGHT[name]
    assert verify(task(name), answer) == Verdict("correct", mode, None)


@every_example
def test_every_form_of_a_task_gives_the_same_verdict(name: str) -> None:
    example = task(name)
    reference = example["reference"]
    forms = [
        as_task(example),
        {**example, "reference": json.dumps(reference)},
        {**example, "reference": f" \n{json.dumps(reference, indent=2)}\n"},
        {**example, "reference": types.MappingProxyType(reference)},
        types.MappingProxyType(example),
        {"domain": example["domain"], "level": example["level"], "answer": reference},
        {**example, "level": str(example["level"])},
        {**example, "level": f"level{example['level']}"},
        {**example, "reference": {**reference, "unknown": {"is": ["ignored", None]}}},
        {**example, "answer": {"verifier": "ignored where there is a reference"}},
    ]
    answer, mode = RIGHT[name]
    for form in forms:
        assert verify(form, answer) == Verdict("correct", mode, None)
        assert verify(form, "\\boxed{?}").status != "correct"


@pytest.mark.parametrize(
    ("alias", "name"),
    [("graph", "graph_coloring"), ("python", "python_factors"), ("pantry", "pantry_plan")],
)
def test_aliases(alias: str, name: str) -> None:
    assert verify(task(name, domain=alias), RIGHT[name][0]).status == "correct"


def test_the_task_is_not_changed() -> None:
    for name in RIGHT:
        example = task(name)
        verify(example, RIGHT[name][0])
        assert example == task(name)
        assert example["reference"] == REFERENCES[name]


@pytest.mark.parametrize(
    "level", [0, 6, -1, True, None, 1.0, "0", "6", " 1", "Level1", "level", "１", "", [1]]
)
def test_levels_that_are_none(level: object) -> None:
    with pytest.raises(InvalidReference) as caught:
        verify(task("countdown", level=level), "3+6+9")
    assert caught.value.field == "level"


@pytest.mark.parametrize("domain", ["", "count_down", "Countdown", "mathir_algebra", None, 1, ["countdown"]])
def test_domains_that_are_none(domain: object) -> None:
    with pytest.raises(InvalidReference, match="known: graph_coloring, countdown") as caught:
        verify(task("countdown", domain=domain), "3+6+9")
    assert caught.value.field == "domain"


@pytest.mark.parametrize("odd", [None, "3+6+9", [], 1, object()])
def test_tasks_that_are_none(odd: Any) -> None:
    with pytest.raises(InvalidReference) as caught:
        verify(odd, "3+6+9")
    assert caught.value.field == "task"


@every_example
@pytest.mark.parametrize("response", [None, b"110000", 110000, 1.5, ["\\boxed{9+6+3}"], {}, object()])
def test_a_response_that_is_not_text(name: str, response: Any) -> None:
    verdict = verify(task(name), response)
    assert (verdict.status, verdict.mode) == ("malformed", None)
    assert type(response).__name__ in str(verdict.detail)


@every_example
@pytest.mark.parametrize(
    "response", ["", " ", "\n\t", "\u3000", "\\boxed{}", "\\boxed", "{", "}", "\0", "\ud800"]
)
def test_next_to_nothing(name: str, response: str) -> None:
    assert verify(task(name), response).status == "malformed"


def test_length_limit() -> None:
    answer, mode = RIGHT["countdown"]
    padding = "z" * (131_072 - len(answer))
    assert verify(task("countdown"), padding + answer) == Verdict("correct", mode, None)
    assert verify(task("countdown"), padding + "z" + answer).status == "malformed"


@pytest.mark.parametrize("reading", ["", "Published", "exact", None, "lenient"])
def test_unknown_reading(reading: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown reading .*known: published") as caught:
        verify(task("countdown"), "3+6+9", reading)
    assert not isinstance(caught.value, InvalidReference)


def test_verify_many_is_verify_in_order() -> None:
    items: list[tuple[Any, str]] = []
    for domain in DOMAINS:
        for pair in pairs(3, domain, 60):
            try:
                verify(pair.task(), pair.response)
            except InvalidReference:
                continue
            items += [(pair.task(), pair.response)] * 2
    examples = [task(name) for name in RIGHT]
    items += [(example, answer) for example in examples for answer, _ in RIGHT.values()]
    items += items[::7]
    assert verify_many(iter(items)) == [verify(*item) for item in items]
    assert verify_many([]) == []


def test_verify_many_tells_equal_responses_of_different_tasks_apart() -> None:
    other = task("countdown")
    other["reference"]["target"] = 0
    verdicts = verify_many([(task("countdown"), "3+6+9"), (other, "3+6+9"), (task("countdown"), "3+6+9")])
    assert [verdict.status for verdict in verdicts] == ["correct", "incorrect", "correct"]


def test_verify_many_with_tasks_that_live_for_one_step() -> None:
    """A freed task's identity may be reused; its verdicts must not be."""

    def fleeting() -> Any:
        for target in range(200):
            yield {**task("countdown"), "reference": {**REFERENCES["countdown"], "target": target}}, "3+6+9"

    assert [verdict.status for verdict in verify_many(fleeting())].count("correct") == 1


def test_a_broken_reference_stops_verify_many() -> None:
    with pytest.raises(InvalidReference):
        verify_many([(task("countdown"), "1"), (task("countdown", reference={}), "1")])


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("mathir", [";".join(letters) for size in (1, 2, 3) for letters in product("ABC", repeat=size)]),
        ("pantry_mask", ["".join(bits) for bits in product("01", repeat=6)]),
    ],
)
def test_verdicts_do_not_depend_on_what_was_judged_before(name: str, answers: list[str]) -> None:
    """Menu moves and plans are remembered per task: order must not matter."""
    fresh = {}
    for index, answer in enumerate(answers):
        example = task(name)
        example["reference"]["instance_id"] = f"never seen before, number {index}"
        fresh[answer] = verify(example, answer)
    for answer in reversed(answers):
        assert verify(task(name), answer) == fresh[answer]
    assert {verdict.status for verdict in fresh.values()} == {"correct", "incorrect"}
