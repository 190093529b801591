"""Responses with the verdicts that the rules of the clean reading give them, adjudicated by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from modebench.domains import get_domain
from modebench.tasks import Task, load_tasks
from modebench.verifiers import Verdict, verify
from modebench.verifiers.registry import DOMAINS

FOLDER = Path(__file__).resolve().parents[2] / "data" / "clean"
__all__ = ["DOMAINS", "clean", "rows", "solutions"]


@cache
def rows(domain: str) -> list[dict[str, Any]]:
    with (FOLDER / f"{domain}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def clean(task: Any, response: str, truncated: bool = False) -> Verdict:
    return verify(task, response, "clean", truncated)


def solutions(domain: str, count: int) -> Iterator[tuple[Task, list[tuple[str, str]]]]:
    """Frozen level-1 tasks with (published mode, answer) of every listed solution."""
    splits = [task for split in ("eval", "train") for task in load_tasks(domain, 1, split)]
    for task in splits[:count]:
        yield task, [tuple(each) for each in get_domain(domain).solutions(task.reference, 1)]  # type: ignore[misc]
