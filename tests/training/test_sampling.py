"""Rollouts: log-probabilities that training agrees with, rewards, and the live policy as an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modebench as mb
from modebench.config import EvalConfig, Selection
from modebench.domains import get_domain
from modebench.errors import TrainingError, UsageError
from modebench.sampling.base import GenerationSettings
from modebench.sampling.decoding import Rollout as Drawn
from modebench.sampling.transformers import TransformersEngine
from modebench.tasks import Task, load_tasks
from modebench.training import policy, sampling
from modebench.training.batch import Group
from modebench.training.loss import backward
from modebench.training.policy import Policy
from modebench.training.sampling import LiveEngine, rollouts
from modebench.verifiers import InvalidReference
from tests.sampling.tiny_models import save_tiny
from tests.training.scoring_cases import surrogate

SETTINGS = GenerationSettings(temperature=0.6, max_tokens=24)
SEEDS = [[11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]]


@pytest.fixture(params=["llama", "qwen2"])
def tiny(request: pytest.FixtureRequest, tmp_path: Path) -> Policy:
    return policy.load(str(save_tiny(tmp_path / "model", request.param)), device="cpu", profile="plain")


@pytest.fixture
def llama(tmp_path: Path) -> Policy:
    return policy.load(str(save_tiny(tmp_path / "model", "llama")), device="cpu", profile="plain")


def short_tasks() -> list[Task]:
    """Tasks of different lengths whose text fits the tiny context."""
    tasks = load_tasks("graph_coloring", 1, "train").head(3)
    return [replace(task, problem="colour " * n + "it") for n, task in enumerate(tasks, 1)]


def gap(asked: Policy, groups: Sequence[Group], temperature: float) -> dict[str, float]:
    """How far the sampler's log-probabilities are from the trainer's."""
    rows = [
        surrogate(group.prompt_ids, each.token_ids, 0.0, sampler_logp_T=np.array(each.logp))
        for group in groups
        for each in group.rollouts
    ]
    options = {"temperature": temperature, "epsilon": 0.2, "epsilon_high": 0.2}
    return backward(asked.scorer, rows, **options).metrics()


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.5])
def test_row_8_sampler_and_trainer_agree_at_any_temperature(tiny: Policy, temperature: float) -> None:
    """Behaviour log-probabilities at another temperature, or of a cut support, make ratios of 2."""
    settings = replace(SETTINGS, temperature=temperature)
    groups = rollouts(tiny, short_tasks(), SEEDS, settings)
    # Weights this wide give log-probabilities down to -20 and below, and rounding in proportion.
    largest = max(abs(logp) for group in groups for each in group.rollouts for logp in each.logp)
    assert gap(tiny, groups, temperature)["sampler_gap_max"] < 2e-6 * largest
    assert gap(tiny, groups, temperature)["sampler_gap_mean"] < 1e-5
    assert gap(tiny, groups, temperature + 0.2)["sampler_gap_max"] > 1e-2


def test_row_11_an_update_reaches_the_sampler_at_once(llama: Policy) -> None:
    """A sampler with stale weights or a stale prefix cache looks like training, and learns nothing."""
    tasks = short_tasks()
    before = rollouts(llama, tasks, SEEDS, SETTINGS)
    rows = [surrogate(g.prompt_ids, r.token_ids, 1.0) for g in before for r in g.rollouts]
    backward(llama.scorer, rows, temperature=0.6, epsilon=0.2, epsilon_high=0.2)
    torch.optim.SGD(llama.model.parameters(), lr=1e-3).step()
    assert gap(llama, before, 0.6)["sampler_gap_max"] > 1e-2  # the old rollouts are not of this policy
    after = rollouts(llama, tasks, SEEDS, SETTINGS)
    assert gap(llama, after, 0.6)["sampler_gap_max"] < 1e-4
    assert gap(llama, after, 0.6)["sampler_gap_mean"] < 1e-5


def test_row_11_other_weights_between_sampling_and_scoring_are_told(llama: Policy) -> None:
    groups = rollouts(llama, short_tasks(), SEEDS, SETTINGS)
    with torch.no_grad():
        llama.model.get_output_embeddings().weight[5] += 1.0
    told = gap(llama, groups, 0.6)
    assert told["sampler_gap_mean"] > 1e-3
    assert told["sampler_kl"] > 0


def test_row_12_responses_end_with_their_end_token(tiny: Policy) -> None:
    """Padding that doubles as an end token must neither hide the real one nor add others."""
    tiny.tokenizer.pad_token = tiny.tokenizer.eos_token
    groups = rollouts(tiny, short_tasks(), SEEDS, replace(SETTINGS, temperature=4.0))
    ends = set(LiveEngine(tiny).end_token_ids)
    drawn = [each for group in groups for each in group.rollouts]
    assert {each.finish_reason for each in drawn} == {"stop", "length"}
    assert len({len(each.token_ids) for each in drawn}) > 2
    for each in drawn:
        assert len(each.logp) == len(each.token_ids)
        assert not ends & set(each.token_ids[:-1])
        assert (each.token_ids[-1] in ends) is (each.finish_reason == "stop")
    ended = next((g, r) for g in groups for r in g.rollouts if r.finish_reason == "stop")
    only_end_T = np.arange(len(ended[1].token_ids)) == len(ended[1].token_ids) - 1
    row = surrogate(ended[0].prompt_ids, ended[1].token_ids, 1.0, weight_T=only_end_T.astype(float))
    backward(tiny.scorer, [row], temperature=1.0, epsilon=0.2, epsilon_high=0.2)
    assert tiny.model.get_output_embeddings().weight.grad[ended[1].token_ids[-1]].norm() > 0


def test_groups_are_those_of_the_ordinary_engine(llama: Policy) -> None:
    tasks = short_tasks()
    groups = rollouts(llama, tasks, SEEDS, SETTINGS)
    assert [group.task for group in groups] == tasks
    assert [[each.seed for each in group.rollouts] for group in groups] == SEEDS
    assert [group.prompt_ids for group in groups] == [llama.prompt_ids(task) for task in tasks]
    engine = TransformersEngine(llama.model, llama.tokenizer)
    asked = [
        mb.sampling.base.Group(task, ({"role": "user", "content": task.problem},), tuple(seeds))
        for task, seeds in zip(tasks, SEEDS, strict=True)
    ]
    texts = dict(engine.generate(asked, SETTINGS))
    assert [[each.text for each in group.rollouts] for group in groups] == [
        [sample.response for sample in texts[index]] for index in range(3)
    ]
    assert llama.model.training
    assert groups == rollouts(llama, tasks, SEEDS, SETTINGS)


def speaks(monkeypatch: pytest.MonkeyPatch, texts: Sequence[tuple[str, str]]) -> None:
    """Let every group draw these (text, finish reason)s."""

    def scripted(self: Any, groups: Sequence[Any], settings: Any) -> Iterator[tuple[int, list[Drawn]]]:
        for place in reversed(range(len(groups))):
            drawn = [Drawn(place, n, [1, 2], seed, 9) for n, seed in enumerate(groups[place].seeds)]
            for each, (text, reason) in zip(drawn, texts, strict=True):
                each.token_ids, each.logp = [3, 4], [-0.1, -0.2]
                each.finish(reason, text)  # type: ignore[arg-type]
            yield place, drawn

    monkeypatch.setattr(sampling.LiveEngine, "rollouts", scripted)


def test_rewards_are_for_correct_responses_that_came_to_their_end(
    llama: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_tasks("countdown", 1, "train")[0]
    right = next(get_domain("countdown").solutions(task.reference, 1)).answer
    verdict = mb.verify(task, right)
    cases = [(right, "stop"), (right, "length"), ("\\boxed{1+1}", "stop"), ("no idea", "stop")]
    cases += [(f"<think>{right}", "stop"), (f"<think>hm</think>{right}", "stop")]
    speaks(monkeypatch, cases)
    groups = rollouts(llama, [task, task], [[1, 2, 3, 4, 5, 6]] * 2, SETTINGS)
    for group in groups:
        assert group.reward_G.tolist() == [1, 0, 0, 0, 0, 1]
        assert [each.mode for each in group.rollouts] == [
            verdict.mode,
            verdict.mode,
            None,
            None,
            None,
            verdict.mode,
        ]
        assert [each.status for each in group.rollouts][3:5] == ["malformed", "malformed"]
        assert group.mixed


def test_a_broken_task_is_never_a_reward_of_zero(llama: Policy) -> None:
    broken = replace(short_tasks()[0], reference={"verifier": "graph_coloring"})
    with pytest.raises(InvalidReference):
        rollouts(llama, [broken], [[1, 2]], SETTINGS)


def test_a_rollout_that_cannot_be_drawn_is_named(llama: Policy) -> None:
    long = replace(short_tasks()[0], problem="x" * 300)
    with pytest.raises(TrainingError, match=rf"{long.id}: no rollout with seed 7: the prompt has \d+ tokens"):
        rollouts(llama, [long], [[7]], SETTINGS)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"top_p": 0.9}, "top_p 0.9 and top_k 0 cut the distribution"),
        ({"top_k": 50}, "top_p 1.0 and top_k 50 cut the distribution"),
        ({"temperature": 0.0}, "temperature 0"),
    ],
)
def test_settings_that_bias_the_gradient_are_refused(
    llama: Policy, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        rollouts(llama, short_tasks(), SEEDS, replace(SETTINGS, **changes))


def test_a_cut_support_is_had_by_name_and_told_as_a_gap_of_zero(llama: Policy) -> None:
    cut = replace(SETTINGS, top_k=3)
    groups = rollouts(llama, short_tasks(), SEEDS, cut, truncated_support=True)
    # The sampler's log-probabilities are before cutting, so they stay those of the trainer.
    assert gap(llama, groups, 0.6)["sampler_gap_mean"] < 1e-5


def test_a_seed_that_repeats_is_refused(llama: Policy) -> None:
    with pytest.raises(UsageError, match="a seed occurs twice"):
        rollouts(llama, short_tasks()[:1], [[5, 5]], SETTINGS)


def test_the_harness_measures_the_policy_as_it_is(llama: Policy, tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    mb.tasks.write_tasks(file, short_tasks())
    config = EvalConfig(Selection(file=str(file)), samples=2, settings=SETTINGS, profile="plain")
    first = mb.evaluate(LiveEngine(llama), tmp_path / "first", config)
    with torch.no_grad():
        llama.model.get_output_embeddings().weight.mul_(-1)
    second = mb.evaluate(LiveEngine(llama, groups_per_batch=1), tmp_path / "second", config)
    texts = [list(run.samples()["response"]) for run in (first, second)]
    assert len(texts[0]) == 6
    assert texts[0] != texts[1]
    llama.save(tmp_path / "saved")
    reloaded = mb.evaluate(LiveEngine(policy.load(str(tmp_path / "saved"))), tmp_path / "third", config)
    assert list(reloaded.samples()["response"]) == texts[1]
