"""The reward functions, called as TRL and verl call them."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import pytest

from modebench.domains import DOMAINS, get_domain
from modebench.tasks import Task, load_tasks
from modebench.training import reward
from modebench.verifiers import InvalidReference


def right_answer(task: Task) -> str:
    solution = next(iter(get_domain(task.domain).solutions(task.reference, task.level)))
    return solution.answer


TASKS = [load_tasks(domain, 1, "train")[0] for domain in DOMAINS]


def as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """What TRL makes of a batch of rows before it calls a reward function."""
    return {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}


@pytest.mark.parametrize("chat", [False, True])
def test_trl_pays_right_answers_of_every_domain_and_nothing_else(chat: bool) -> None:
    rows = reward.trl_rows(TASKS)
    texts = [right_answer(task) for task in TASKS]
    for answers, expected in ((texts, [1.0] * 5), (texts[1:] + texts[:1], [0.0] * 5), ([""] * 5, [0.0] * 5)):
        completions = [[{"role": "assistant", "content": text}] for text in answers] if chat else answers
        prompts = [row["prompt"] for row in rows]
        assert reward.trl_reward(prompts=prompts, completions=completions, **as_columns(rows)) == expected


def test_rows_survive_the_json_of_a_table() -> None:
    for row, task in zip(json.loads(json.dumps(reward.trl_rows(TASKS))), TASKS, strict=True):
        assert json.loads(row["answer"]) == task.reference
        assert row["prompt"][-1] == {"role": "user", "content": task.problem}


def test_verl_finds_the_function_in_its_file_and_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    specification = importlib.util.spec_from_file_location("custom_module", reward.__file__)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "custom_module", module)
    specification.loader.exec_module(module)
    for row, task in zip(module.verl_rows(TASKS), TASKS, strict=True):
        for text, expected in ((right_answer(task), 1.0), ("nothing", 0.0)):
            score = module.compute_score(
                data_source=row["data_source"],
                solution_str=text,
                ground_truth=row["reward_model"]["ground_truth"],
                extra_info=row["extra_info"],
            )
            assert score == expected


def test_reasoning_is_not_read_as_an_answer() -> None:
    task = TASKS[1]
    right = right_answer(task)
    given = (task.domain, task.level, task.reference_json)
    assert reward.judge(*given, f"<think>\\boxed{{1}}</think>{right}").status == "correct"
    assert reward.judge(*given, f"<think>{right}").status == "malformed"


# Row 19 of the faults that users of other trainers reported: a verifier that hangs, dies or silently pays 0.
def test_row_19_a_broken_task_is_an_error_not_a_zero_reward() -> None:
    rows = reward.trl_rows(TASKS[1:2])
    rows[0]["answer"] = json.dumps({"verifier": "countdown", "numbers": "none", "target": 3})
    with pytest.raises(InvalidReference, match="numbers"):
        reward.trl_reward(completions=["\\boxed{1}"], **as_columns(rows))


def test_row_19_rewards_do_not_depend_on_the_thread() -> None:
    from concurrent.futures import ThreadPoolExecutor

    given = [(task.domain, task.level, task.reference_json, right_answer(task)) for task in TASKS]
    with ThreadPoolExecutor(2) as threads:
        verdicts = list(threads.map(lambda entry: reward.judge(*entry), given))
    assert [verdict.status for verdict in verdicts] == ["correct"] * 5
