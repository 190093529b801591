"""Prefixes: by rule, by a model, their controls, and that none holds an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from modebench.analysis.coach_check import step_zero
from modebench.cli.coach_command import command
from modebench.coach_model import REQUEST, ask, read_reply
from modebench.coaching import CONTROLS, Control, by_rule, check_leaks, leaked, wrapped, write_prefixes
from modebench.domains import DOMAINS, get_domain
from modebench.errors import UsageError
from modebench.probing import asks_of, read_prefixes
from modebench.sampling.base import GenerationSettings, Group, Sample
from modebench.strategies import STRATEGIES
from modebench.tasks import Task, load_tasks

CELLS = [(domain, 1) for domain in DOMAINS]


def first(domain: str) -> Task:
    return load_tasks(domain, 1, "eval")[0]


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_answer_in_a_text_is_found(domain: str) -> None:
    task = first(domain)
    solution = next(iter(get_domain(domain).solutions(task.reference, 1))).answer
    bare = solution.removeprefix("\\boxed{").removesuffix("}")
    for answer in (solution, bare):
        found = leaked(f"Look around and try {answer} before the rest.", task)
        assert found is not None
        assert bare in found or found in bare or found in solution
    prefix = replace(by_rule([(domain, 1)], "compact")[0], name="x", text=f"try {bare}")
    with pytest.raises(UsageError, match=f"prefix 'x' holds the answer .* of {task.id}"):
        check_leaks([prefix], [task])


@pytest.mark.parametrize("control", CONTROLS)
def test_no_strategy_and_no_control_holds_an_answer(control: Any) -> None:
    prefixes = by_rule(CELLS, "direct", control)
    assert len(prefixes) == 4 * len(CELLS)
    check_leaks(prefixes, [task for domain in DOMAINS for task in load_tasks(domain, 1, "eval").head(3)])


def test_what_the_controls_are() -> None:
    own = [prefix.text for prefix in by_rule([("countdown", 1)], "compact")]
    told = {
        control: [prefix.text for prefix in by_rule([("countdown", 1)], "compact", control, 3)]
        for control in CONTROLS
    }
    assert told["none"] == own == [strategy.advice for strategy in STRATEGIES["countdown"]]
    assert told["shuffled"] == [strategy.advice for strategy in STRATEGIES["python_factors"]]
    assert told["identical"] == own[:1] * 4
    assert told["empty"] == [""] * 4
    assert [len(text) for text in told["nonsense"]] == [len(text) for text in own]
    assert not set(told["nonsense"]) & set(own)
    assert len({prefix.name for prefix in by_rule([("countdown", 1)], "compact", "identical")}) == 4
    with pytest.raises(UsageError, match="no strategies for letters"):
        by_rule([("letters", 1)], "direct")


def test_the_wrapper() -> None:
    assert wrapped("Do this.", "compact") == "Do this."
    assert wrapped("", "direct") == ""
    for profile in ("direct", "plain"):
        text = wrapped("Do this.", profile)
        assert "Do this." in text
        assert "unverified" in text
        assert "Check that it applies" in text


@pytest.mark.parametrize("control", ["none", "empty"])
def test_the_file_is_what_an_evaluation_asks_with(control: Control, tmp_path: Path) -> None:
    path = tmp_path / "prefixes.jsonl"
    arguments = ["--domain", "countdown,mathir", "-n", "2", "--control", control, "-o", str(path)]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert (done.return_value, done.exception) == (0, None)
    prefixes = read_prefixes(path)
    assert list(prefixes) == by_rule([("countdown", 1), ("mathir", 1)], "direct", control)
    asks = asks_of([first("mathir")], 2, prefixes, control=False)
    assert [ask.prefix for ask in asks] == ["none", *(s.name for s in STRATEGIES["mathir"])]
    again = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert "exists already" in str(again.exception)


GOOD = """\
1. **Sums**: Try additions only.
- Product: End with a product.
Back: Undo the last.
Helper: Find one."""


class Coach:
    """Says these texts in turn."""

    groups_per_batch = None

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), list[Group]()

    def describe(self) -> dict[str, Any]:
        return {}

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        for place, group in enumerate(groups):
            self.asked.append(group)
            yield place, [Sample(self.replies.pop(0))]


def test_a_model_as_coach() -> None:
    task = first("countdown")
    answer = next(iter(get_domain("countdown").solutions(task.reference, 1))).answer[7:-1]
    coach = Coach("I think so.", GOOD.replace("Find one", f"Take {answer}"), GOOD)
    found = ask(coach, [task], "compact", GenerationSettings())
    assert [(prefix.name, prefix.text, prefix.task_id) for prefix in found.prefixes][:2] == [
        ("Sums", "Try additions only.", task.id),
        ("Product", "End with a product.", task.id),
    ]
    assert len(found.prefixes) == 4
    assert found.refused == {}
    assert len({group.seeds for group in coach.asked}) == 3
    assert coach.asked[0].messages[0]["content"] == REQUEST.format(count=4, problem=task.problem)
    refused = ask(Coach("no", "no"), [task], "direct", GenerationSettings(), attempts=2)
    assert refused == ([], {task.id: "it names 0 methods, not 4"})


def test_reading_a_reply() -> None:
    assert read_reply("<think>a: b</think>" + GOOD) == {
        "Sums": "Try additions only.",
        "Product": "End with a product.",
        "Back": "Undo the last.",
        "Helper": "Find one.",
    }
    assert read_reply("nothing here") == {}
    assert read_reply("control: x\nnone: y\nA: z") == {"A": "z"}


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("x")
    with pytest.raises(FileExistsError):
        write_prefixes(tmp_path / "p", [])


def samples(with_prefix: float, tasks: int = 20) -> pd.DataFrame:
    """Half right without a prefix, this share with it."""
    return pd.DataFrame(
        [
            {
                "task_id": f"t{task}",
                "domain": "countdown",
                "level": 1,
                "status": "correct" if number < 10 * share else "incorrect",
                "mode": "m" if number < 10 * share else None,
                "prefix": prefix,
            }
            for task in range(tasks)
            for prefix, share in (("none", 0.5), ("sums", with_prefix))
            for number in range(10)
        ]
    )


@pytest.mark.parametrize(("share", "passed"), [(0.3, True), (0.5, True), (0.6, False)])
def test_the_check_at_step_zero(share: float, passed: bool) -> None:
    verdict = step_zero(samples(share))
    assert verdict.passed is passed
    assert "\n" not in verdict.text
    assert f"{share - 0.5:+.3f}" in verdict.text
    assert step_zero(samples(share), margin=0.2).passed
    with pytest.raises(UsageError, match="not asked with prefixes"):
        step_zero(samples(share).drop(columns="prefix"))
    with pytest.raises(UsageError, match="must not be negative"):
        step_zero(samples(share), -1)
