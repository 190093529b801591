"""The verifiers as a reward function of other trainers. Imports neither torch nor any trainer.

Each trainer is given rows of tasks in its layout and a function that pays 1 for a correct answer and 0 for
any other; docs/rewards.md shows both in five lines. A reference travels as JSON text, since the references of
different domains have different fields, which a column of a table cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from modebench.prompts import build_messages
from modebench.reasoning import split_reasoning
from modebench.tasks import Task
from modebench.verifiers import Verdict, verify
from modebench.verifiers.verdict import malformed


def judge(domain: str, level: int, reference: str | Mapping[str, Any], response: str) -> Verdict:
    """The verdict on a response: reasoning is split off first, and unfinished reasoning is malformed.

    Args:
        domain, level: of the task.
        reference: of the task, as JSON text or decoded.
        response: of the policy, special tokens removed.

    Raises:
        InvalidReference: the reference cannot be executed against; a broken task is never a zero reward.
        ValueError: the reference is not JSON.
    """
    answer = split_reasoning(response).answer
    if answer is None:
        return malformed("the reasoning never ends")
    decoded = json.loads(reference) if isinstance(reference, str) else reference
    return verify({"domain": domain, "level": level, "reference": decoded}, answer)


def trl_rows(tasks: Iterable[Task], profile: str = "direct") -> list[dict[str, Any]]:
    """Rows for ``datasets.Dataset.from_list``: the chat in ``prompt``, beside it what `trl_reward` needs."""
    return [
        {
            "prompt": [dict(message) for message in build_messages(task, profile)],
            "task_id": task.id,
            "domain": task.domain,
            "level": task.level,
            "answer": task.reference_json,
        }
        for task in tasks
    ]


def trl_reward(
    completions: Sequence[str | Sequence[Mapping[str, str]]],
    domain: Sequence[str],
    level: Sequence[int],
    answer: Sequence[str],
    **columns: Any,
) -> list[float]:
    """Rewards of a batch, as GRPOTrainer of TRL asks for them in ``reward_funcs``.

    Args:
        completions: texts, or chats whose last message is the response.
        domain, level, answer: columns of `trl_rows`, a value a completion.
        columns: whatever else TRL hands over; not used.

    Raises:
        InvalidReference, ValueError: see `judge`.
    """
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    given = zip(domain, level, answer, texts, strict=True)
    return [_reward(judge(name, number, reference, text)) for name, number, reference, text in given]


def verl_rows(tasks: Iterable[Task], profile: str = "direct") -> list[dict[str, Any]]:
    """Rows for a Parquet file that verl trains on, with what it hands over to `compute_score`."""
    return [
        {
            "data_source": f"modebench/{task.domain}",
            "prompt": [dict(message) for message in build_messages(task, profile)],
            "ability": task.domain,
            "reward_model": {"style": "rule", "ground_truth": task.reference_json},
            "extra_info": {"index": task.id, "split": task.split, "domain": task.domain, "level": task.level},
        }
        for task in tasks
    ]


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any], **others: Any
) -> float:
    """Reward of one response, as verl calls its ``custom_reward_function``.

    Args:
        data_source: column of `verl_rows`; not used.
        solution_str: the response.
        ground_truth: the reference as JSON text.
        extra_info: column of `verl_rows`.
        others: whatever else verl hands over; not used.

    Raises:
        InvalidReference, ValueError: see `judge`.
    """
    return _reward(judge(extra_info["domain"], extra_info["level"], ground_truth, solution_str))


def _reward(verdict: Verdict) -> float:
    return float(verdict.status == "correct")
