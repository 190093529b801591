"""RLEP: stored successes in the group's credit, and where they come from."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modebench.errors import InputError, UsageError
from modebench.runs import RunFolder
from modebench.tasks import Task
from modebench.training.batch import Group
from modebench.training.method import Method, MethodState
from modebench.training.methods import build
from modebench.training.rlep import Pool, read_pool
from tests.training.groups import TASK, moded, rewarded, rollout, worth

STORED = [((3, 4, 7), "a"), ((3, 7), "b"), ((5, 5, 5, 7), "a")]


def rlep(name: str = "rlep", **options: object) -> Method:
    adds = [] if name == "rlep" else ["rlep"]
    sets = {f"rlep.{option}": value for option, value in options.items()}
    return build(name, sets, adds, max_completion_length=8)


def with_pool(method: Method, stored: Any = STORED) -> MethodState:
    """The method's state with these responses to the task of the test groups, once each."""
    state = method.state(0)
    pool = state.parts["rlep"]
    assert isinstance(pool, Pool)
    pool.responses = {TASK.id: Counter(stored)}
    return state


def test_without_stored_responses_it_is_the_base() -> None:
    group = rewarded(1, 0, 0, 1, lengths=[2, 5, 3, 4])
    for base, count in (("grpo", 0), ("dr_grpo", 0), ("dr_grpo", 2)):
        method = rlep(base, count=count)
        state = with_pool(method) if count == 0 else method.state(0)
        plain = build(base, max_completion_length=8)
        rows = plain.credit([group], plain.state(0))
        for row, expected in zip(method.credit([group], state), rows, strict=True):
            assert np.array_equal(row.weight_T, expected.weight_T)
            assert row.advantage_T is not None
            assert np.array_equal(row.advantage_T, expected.advantage_T)  # type: ignore[arg-type]


def test_credit_over_fresh_and_stored_by_hand() -> None:
    """One of four is right and two join: the mean is 1/2 over six, whatever aggregation comes after."""
    method = rlep("dr_grpo")
    advantage = worth(method, rewarded(1, 0, 0, 0), with_pool(method))
    assert advantage == [0.5, -0.5, -0.5, -0.5, 0.5, 0.5]
    method = rlep()
    advantage = worth(method, rewarded(1, 0, 0, 0), with_pool(method))
    std = np.std([1, 0, 0, 0, 1, 1], ddof=1)
    assert advantage == pytest.approx(np.array([1, -1, -1, -1, 1, 1]) / 2 / std, abs=1e-5)


@pytest.mark.parametrize("rewards", [(1, 0, 0, 0), (0, 0, 0), (1, 1, 0), (1, 1, 1, 1)])
def test_the_dr_form_of_the_port(rewards: tuple[float, ...]) -> None:
    """Over the constant length a fresh one weighs (r - mean) G/(G + M) as in a group of G alone, a stored
    one (1 - mean)/(G + M), with mean = (sum r + M)/(G + M)."""
    method = rlep("dr_grpo")
    rows = method.credit([rewarded(*rewards)], with_pool(method))
    size, count, length = len(rewards), 2, 8
    mean = (sum(rewards) + count) / (size + count)
    scaled = [row.weight_T[0] * row.advantage_T[0] for row in rows if row.advantage_T is not None]
    fresh = [(reward - mean) * size / (size + count) / (size * length) for reward in rewards]
    assert scaled == pytest.approx([*fresh, *[(1 - mean) / (size + count) / length] * count])
    assert sum(scaled) == pytest.approx(0)
    stored = scaled[size:]
    assert all(value == 0 for value in stored) if all(rewards) else min(stored) > 0


def test_stored_rows_are_told_apart_and_have_no_sampler() -> None:
    method = rlep()
    rows = method.credit([rewarded(1, 0)], with_pool(method))
    assert [row.term for row in rows] == ["fresh", "fresh", "rlep", "rlep"]
    assert [row.sampler_logp_T is None for row in rows] == [False, False, True, True]
    assert all(row.logp_old_T is None for row in rows)
    assert {row.token_ids for row in rows[2:]} < {tokens for tokens, _ in STORED}
    assert rows[2].token_ids != rows[3].token_ids  # without replacement
    tokens = sum(len(row.token_ids) for row in rows)
    assert {weight for row in rows for weight in row.weight_T} == {1 / tokens}


@pytest.mark.parametrize(("incomplete", "joined"), [("fewer", 1), ("none", 0)])
def test_fewer_stored_than_asked(incomplete: str, joined: int) -> None:
    method = rlep(incomplete=incomplete)
    state = with_pool(method, STORED[:1])
    rows = method.credit([rewarded(1, 0, 0)], state)
    assert len(rows) == 3 + joined
    lengths = sum(len(row.token_ids) for row in rows)
    assert rows[0].weight_T[0] == 1 / lengths  # nothing stands in for what is missing
    assert method.metrics([rewarded(1, 0, 0)], [], state)["rlep/joined"] == joined


def test_draws_are_a_function_of_seed_update_and_task() -> None:
    method = rlep(count=1)
    seen = set()
    state = with_pool(method)
    for _ in range(12):
        drawn = [method.credit([rewarded(1, 0)], state)[2].token_ids for _ in range(2)]
        assert drawn[0] == drawn[1]
        seen.add(drawn[0])
        method.observe([moded(None)], state)
    assert len(seen) == 3


def test_the_same_response_is_drawn_as_often_as_it_is_stored() -> None:
    method = rlep(count=3)
    state = with_pool(method, {STORED[0]: 2, STORED[1]: 1})
    for _ in range(8):
        drawn = Counter(row.token_ids for row in method.credit([rewarded(1, 0)], state)[2:])
        assert drawn == {(3, 4, 7): 2, (3, 7): 1}
        method.observe([moded(None)], state)


def test_an_online_pool_takes_successes_in_after_their_update() -> None:
    method = rlep()
    state = method.state(0)
    group = moded("a", "a", "b", None)
    method.observe([group], state)
    assert len(method.credit([group], state)) == 4
    method.observe([moded(None, None)], state)
    rows = method.credit([group], state)
    assert len(rows) == 6
    right = {one.token_ids for one in group.rollouts if one.reward}
    assert {row.token_ids for row in rows[4:]} <= right
    logged = method.metrics([group], [], state)
    assert logged["rlep/pool_responses"] == 3
    assert logged["rlep/pool_prompts"] == 1
    assert logged["rlep/pool_modes"] == 2
    assert logged["rlep/pool_pcmd"] == pytest.approx(2 / 3)
    cut = Group(TASK, (1, 2), (rollout([3], 0, "a", "length"), rollout([3, 7], 1, "a")))
    fresh = method.state(0)
    method.observe([cut], fresh)
    method.observe([], fresh)
    assert method.metrics([cut], [], fresh)["rlep/pool_responses"] == 1


def test_the_state_goes_through_json() -> None:
    method = rlep()
    state, again = method.state(3), method.state(0)
    for group in (moded("a", "b", None), moded("a", None)):
        method.observe([group], state)
    again.load_state_dict(json.loads(json.dumps(state.state_dict())))
    for each in (state, again):
        method.observe([moded("c", "c")], each)
    assert again.state_dict() == state.state_dict()
    rows = [[row.token_ids for row in method.credit([moded("a", None)], each)] for each in (state, again)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4


def saved_run(path: Path, *records: dict[str, Any]) -> Path:
    run = RunFolder.create(path, {"schema": "modebench-run-v1"})
    defaults = {"task_id": "t/0", "error": None, "finish_reason": "stop", "response": r"\boxed{(1 + 2) * 3}"}
    with run.append() as writer:
        for sample, record in enumerate(records):
            writer.write([{**defaults, "sample": sample, **record}])
    return path


REFERENCE = {"verifier": "countdown", "numbers": [1, 2, 3], "target": 9}
COUNTDOWN = Task("t/0", "countdown", 1, "train", "", REFERENCE)


def encode(text: str) -> tuple[int, ...]:
    return (*(ord(letter) % 8 for letter in text), 7)


def test_an_offline_pool_is_verified_again(tmp_path: Path) -> None:
    folder = saved_run(
        tmp_path / "run",
        {},
        {},
        {"response": r"\boxed{3 * (2 + 1)}"},
        {"response": r"\boxed{1 + 2 + 3}"},
        {"response": r"\boxed{(1 + 2) * 3}", "finish_reason": "length"},
        {"response": None, "error": "timeout"},
        {"task_id": "t/1"},
    )
    found = read_pool(folder, [COUNTDOWN], encode)
    assert {task: stored.total() for task, stored in found.items()} == {"t/0": 3}
    assert found["t/0"][encode(r"\boxed{(1 + 2) * 3}"), next(iter(found["t/0"]))[1]] == 2
    assert all(mode is not None for _, mode in found["t/0"])
    method = rlep(pool=str(folder))
    state = method.state(0)
    method.prepare([COUNTDOWN], encode, state)
    group = replace(rewarded(1, 0), task=COUNTDOWN)
    method.observe([group], state)
    method.observe([group], state)
    assert len(method.credit([group], state)) == 4
    logged = method.metrics([group], [], state)
    assert logged["rlep/pool_responses"] == 3  # an offline pool does not grow
    # The checkpoint names the file; the responses are read again, and must be the same.
    saved = json.loads(json.dumps(state.state_dict()))
    assert saved["rlep"]["responses"] == {}
    again = method.state(0)
    method.prepare([COUNTDOWN], encode, again)
    again.load_state_dict(saved)
    rows = [[row.token_ids for row in method.credit([group], each)] for each in (state, again)]
    assert rows[0] == rows[1]
    with RunFolder.open(folder).append() as writer:
        writer.write(
            [{"task_id": "t/0", "sample": 9, "error": None, "response": "1 + 2", "finish_reason": "stop"}]
        )
    changed = method.state(0)
    method.prepare([COUNTDOWN], encode, changed)
    with pytest.raises(UsageError, match=r"rlep\.pool are not those that the run began with"):
        changed.load_state_dict(saved)


def test_pools_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rlep\.pool must be a run folder with responses"):
        rlep(pool=str(tmp_path))
    wrong = saved_run(tmp_path / "wrong", {"response": r"\boxed{1 + 2 + 3}"})
    with pytest.raises(UsageError, match="has no right response to a task that is trained on"):
        read_pool(wrong, [COUNTDOWN], encode)
    broken = saved_run(tmp_path / "broken", {"response": 5})
    with pytest.raises(InputError, match="response: must be a text"):
        read_pool(broken, [COUNTDOWN], encode)
    with pytest.raises(UsageError, match=r"rlep\.count must not be negative"):
        rlep(count=-1)
    with pytest.raises(UsageError, match=r"rlep\.pool must be a text or none, not 3"):
        rlep(pool=3)
