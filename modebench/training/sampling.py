"""Rollouts of the policy, judged and paid; and the policy as an engine for the ordinary harness.

Sampler and trainer share one model, so its weights are never stale. Every rollout has its own seed, and a
prompt is encoded once for its group (see `modebench.sampling.decoding`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from modebench.errors import TrainingError, UsageError
from modebench.grading import judge
from modebench.probing import Prefix
from modebench.prompts import build_messages
from modebench.sampling import base, decoding
from modebench.sampling.base import GenerationSettings, Message
from modebench.sampling.transformers import TransformersEngine
from modebench.tasks import Task
from modebench.training.batch import POLICY, Group, Purpose, Rollout
from modebench.training.policy import Policy
from modebench.verifiers import Reading


class LiveEngine(TransformersEngine):
    """The policy as it is at the moment of each call, for `modebench.evaluation.evaluate`.

    Args:
        policy: is asked, and left as it is.
        groups_per_batch: groups decoded together; None chooses by device.
    """

    def __init__(self, policy: Policy, *, groups_per_batch: int | None = None) -> None:
        super().__init__(
            policy.model,
            policy.tokenizer,
            name=policy.name,
            groups_per_batch=groups_per_batch,
            chat_template=policy.chat_template,
            origin={"trained_from": policy.origin},
        )


def rollouts(
    policy: Policy,
    tasks: Sequence[Task],
    seeds: Sequence[Sequence[int]],
    settings: GenerationSettings,
    *,
    prefixes: Sequence[Prefix | None] | None = None,
    messages: Sequence[tuple[Message, ...] | None] | None = None,
    purpose: Purpose = "solve",
    agent: str = POLICY,
    groups_per_batch: int | None = None,
    reading: Reading = "published",
    truncated_support: bool = False,
) -> list[Group]:
    """Sample every task, judge the responses, and pay 1 for a correct one that came to its end.

    A response that was cut is paid 0 whatever its verdict, as by the published trainer of arXiv:2610.11064.

    Args:
        policy: is sampled.
        tasks: a group each, in their order.
        seeds: [B][G] one seed a rollout, different within a group.
        settings: how responses are drawn.
        prefixes: of each task, the text that it is asked with; None asks all of them plainly.
        messages: of each task, the prompt; None for the task's own.
        purpose: responses to ``write`` are not judged; their reward is 0 and their status ``written``.
        agent: what the groups say of who was sampled.
        groups_per_batch: groups decoded together; None chooses by device.
        reading: verifier reading of the rewards.
        truncated_support: allow top-p and top-k. Likelihoods are over the whole vocabulary, so rollouts
            from a part of it bias the gradient.

    Raises:
        UsageError: settings that training cannot use, or seeds that repeat.
        TrainingError: a rollout that could not be drawn.
        InvalidReference: a task that cannot be executed against; never a reward of 0.
    """
    _check(settings, truncated_support)
    prefixes = [None] * len(tasks) if prefixes is None else prefixes
    messages = [None] * len(tasks) if messages is None else messages
    asked = []
    for task, seeds_G, prefix, prompt in zip(tasks, seeds, prefixes, messages, strict=True):
        if len(set(seeds_G)) < len(seeds_G):
            raise UsageError(f"{task.id}: a seed occurs twice, so two rollouts would be the same")
        text = "" if prefix is None else prefix.text
        prompt = build_messages(task, policy.profile, prefix=text) if prompt is None else prompt
        asked.append(base.Group(task, prompt, tuple(seeds_G)))
    engine = LiveEngine(policy, groups_per_batch=groups_per_batch)
    groups: dict[int, Group] = {}
    for index, drawn in engine.rollouts(asked, settings):
        task, prefix = tasks[index], prefixes[index]
        prompt_ids = drawn[0].prompt_ids if drawn else engine.prompt_ids(asked[index].messages)
        paid = (_written(task, each) if purpose == "write" else _paid(task, each, reading) for each in drawn)
        name = None if prefix is None else prefix.name
        groups[index] = Group(task, tuple(prompt_ids), tuple(paid), name, purpose, agent=agent)
    return [groups[index] for index in range(len(tasks))]


def _check(settings: GenerationSettings, truncated_support: bool) -> None:
    if settings.temperature == 0:
        raise UsageError("temperature 0 gives every rollout of a prompt the same response; use 1")
    if not truncated_support and (settings.top_p < 1 or settings.top_k):
        raise UsageError(
            f"top_p {settings.top_p} and top_k {settings.top_k} cut the distribution that rollouts are drawn "
            "from, and likelihoods are of the whole one; use top_p 1 and top_k 0, or ask for the bias with "
            "truncated_support"
        )


def _paid(task: Task, drawn: decoding.Rollout, reading: Reading) -> Rollout:
    response = _written(task, drawn)
    verdict = judge(task, response.text, reading, True, response.finish_reason)
    reward = float(verdict.status == "correct" and response.finish_reason == "stop")
    return replace(response, reward=reward, status=verdict.status, mode=verdict.mode)


def _written(task: Task, drawn: decoding.Rollout) -> Rollout:
    """A response as it was sampled, without a verdict."""
    if drawn.error is not None or drawn.text is None:
        raise TrainingError(f"{task.id}: no rollout with seed {drawn.seed}: {drawn.error}")
    return Rollout(
        token_ids=tuple(drawn.token_ids),
        logp=tuple(drawn.logp),
        text=drawn.text,
        finish_reason=drawn.finish_reason,
        seed=drawn.seed,
        reward=0.0,
        status="written",
        mode=None,
    )
