"""Prompt profiles: from a task to the chat messages that a model is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from modebench.compact import compact_problem
from modebench.domains import get_domain
from modebench.sampling.base import Message
from modebench.tasks import Task

PROFILES = ("direct", "plain", "compact")
"""``direct``: the domain's one-sentence system message, then the problem. ``plain``: the problem alone.
``compact``: a line for the tiny policy (`modebench.compact`)."""
_BOX = "\\boxed{"


def build_messages(
    task: Task, profile: str = "direct", system: str | None = None, prefix: str = ""
) -> tuple[Message, ...]:
    """The chat of a task; nothing of its reference is in it.

    Args:
        task: the task.
        profile: one of `PROFILES`.
        system: replaces the profile's system message; an empty text leaves it out.
        prefix: text before the problem, in the same message, with a blank line between.

    Raises:
        ValueError: unknown profile, or a task that has no compact text.
    """
    if profile not in PROFILES:
        raise ValueError(f"unknown prompt profile {profile!r}; profiles: {', '.join(PROFILES)}")
    if system is None:
        system = get_domain(task.domain).system(task.level) if profile == "direct" else ""
    problem = compact_problem(task) if profile == "compact" else task.problem
    user = Message(role="user", content=f"{prefix}\n\n{problem}" if prefix else problem)
    return (Message(role="system", content=system), user) if system else (user,)


def is_canonical(task: Task, profile: str, response: str) -> bool:
    """Whether a response has the form that a profile asks for, its rightness apart.

    ``compact`` asks for the bare candidate. The others ask for what the domain's system message says: an
    answer in ``\\boxed{}``, of pantry plans the bare digits.

    Args:
        task: what was asked.
        profile: one of `PROFILES`.
        response: raw text.
    """
    wants_box = profile != "compact" and _BOX in get_domain(task.domain).system(task.level)
    return wants_box == (_BOX in response)


def prompts_hash(prompts: Iterable[tuple[Message, ...]]) -> str:
    """SHA-256 over the canonical JSON of all chats of a run, in order."""
    digest = hashlib.sha256()
    for messages in prompts:
        digest.update(json.dumps(messages, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()
