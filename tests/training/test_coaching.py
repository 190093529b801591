"""Coach prompting: who is asked what, in groups of what size, and that no loss is on a prefix."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modebench.errors import UsageError
from modebench.probing import Prefix
from modebench.strategies import STRATEGIES
from modebench.tasks import load_tasks
from modebench.training.coaching import Coach, Coaching
from modebench.training.folder import TrainingFolder
from modebench.training.methods import build
from modebench.training.part import Asked
from modebench.training.recipe import mini_batches
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan, recorded
from tests.training.groups import TASK, moded


def phrased(part: Coaching, sizes: list[int], task: Any = TASK) -> list[Asked]:
    method = build("dr_grpo", max_completion_length=8)
    method = replace(method, parts=(*method.parts, part))
    state = method.state(3)
    method.prepare([task], lambda text: (), state)
    asked = method.phrase([(task, size) for size in sizes], state)
    assert method.effects(state)["coaching"] == 1
    return asked


def test_a_group_for_every_strategy_at_the_same_budget() -> None:
    asked = phrased(Coaching(wrap=False), [16, 8])
    assert [each.size for each in asked] == [4] * 4 + [2] * 4
    prefixes = [each.prefix for each in asked[:4] if each.prefix]
    assert [(prefix.name, prefix.text) for prefix in prefixes] == list(STRATEGIES["countdown"])
    assert [each.size for each in phrased(Coaching(budget="full"), [16])] == [16] * 4
    with pytest.raises(UsageError, match="4 prefixes, among which 6 rollouts cannot be shared out"):
        phrased(Coaching(), [6])


def test_a_file_is_used_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    lines = [
        {"task_id": TASK.id, "name": "own", "prefix": "Try this."},
        {"domain": "countdown", "level": 1, "name": "all", "prefix": "Try that."},
    ]
    file.write_text("\n".join(map(json.dumps, lines)))
    asked = phrased(Coaching(file=str(file)), [4])
    assert [each.prefix and each.prefix.text for each in asked] == ["Try this.", "Try that."]
    part = Coaching(file=str(file))
    state = part.state(0)
    with pytest.raises(UsageError, match="has no prefix"):
        part.prepare([replace(TASK, id="x", domain="mathir")], lambda text: (), state)
    part.prepare([TASK], lambda text: (), state)
    saved = state.state_dict()
    state.load_state_dict(saved)
    file.write_text(json.dumps(lines[1]))
    other = part.state(0)
    part.prepare([TASK], lambda text: (), other)
    with pytest.raises(UsageError, match="not those that the run began with"):
        other.load_state_dict(saved)
    with pytest.raises(UsageError, match=r"leave coaching\.file out"):
        Coaching(file=str(file), control="empty")
    with pytest.raises(UsageError, match="must be a file of prefixes"):
        Coaching(file=str(tmp_path / "none"))


def test_the_groups_of_a_task_stay_in_one_mini_batch() -> None:
    groups = [
        replace(moded("a", "b"), task=replace(TASK, id=f"t{place // 4}"), prefix=f"p{place % 4}")
        for place in range(16)
    ]
    method = build("coach_only", max_completion_length=8)
    rows = method.credit(groups, method.state(0))
    parts = mini_batches(rows, 2, "group", 0, 1, 0, groups=groups)
    tasks = [{groups[rows[index].group].task.id for index in part} for part in parts]
    assert [len(part) for part in parts] == [16, 16]
    assert not tasks[0] & tasks[1]


def test_the_mass_of_the_strategies_by_hand() -> None:
    """Prefix p0 has two right ones of a mode, p1 one of another and a wrong one; PCMD is of the three."""
    groups = [replace(moded("a", "a"), prefix="p0"), replace(moded("b", None), prefix="p1")]
    cell = ("countdown", 1)
    state = Coach(0, {cell: [Prefix(name, "x", None, *cell) for name in ("p0", "p1", "p2")]})
    told = Coaching().metrics(groups, [], lambda length: 1.0, state)
    assert told == pytest.approx(
        {
            "coaching/best": 1.0,
            "coaching/worst": 0.5,
            "coaching/pcmd": 2 / 3,
            "coaching/mass/p0": 2 / 3,
            "coaching/mass/p1": 1 / 3,
            "coaching/mass/p2": 0.0,
        }
    )
    wrong = Coaching().metrics([replace(moded(None), prefix="p0")], [], lambda length: 1.0, state)
    assert (wrong["coaching/mass/p0"], wrong["coaching/pcmd"], wrong["coaching/best"]) == (None, None, 0)


def settings(method: str, **more: Any) -> dict[str, Any]:
    return {
        "method": method, "model": "tiny", "steps": 3, "data.domains": "countdown", "data.limit": 4,
        "rollout.num_prompts": 4, "rollout.group_size": 16, "eval.every": 0, "eval.limit": 1,
        "eval.samples": 2, "eval.dev_limit": 0, "checkpoint.every": 1, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "add", "mini_batches"),
    [("mesh", "mei", 1), ("dapo", "coaching,strategy_balance", 2), ("gspo", "coaching,strategy_balance", 2)],
)
def test_some_steps_on_each_base(method: str, add: str, mini_batches: int, tmp_path: Path) -> None:
    path = tmp_path / "run"
    values = settings(method, add=add, **{"update.mini_batches": mini_batches})
    trainer = open_trainer(plan([from_values(values, "test")]), path)
    assert trainer.run()
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]
    for line in lines:
        assert all(math.isfinite(value) for value in line.values() if isinstance(value, float))
        assert line["effect/coaching"] >= 1
        masses = [value for name, value in line.items() if name.startswith("coaching/mass/")]
        assert len(masses) == 4
        assert sum(masses) == pytest.approx(1)
    assert lines[-1]["effect/strategy_balance"] > 0
    assert lines[-1]["strategy_balance/divergence"] > 0
    assert lines[-1]["grad_norm/ratio"] > 0
    if method == "mesh":
        assert lines[0]["total/rollouts"] == 64
        assert lines[0]["total/scored"] == 2 * 64  # by the policy and by the reference
        assert lines[0]["grad_norm/ratio"] == 0  # nothing has grown before the first update
        assert lines[0]["mei/G"] == 4
        assert 0 < lines[0]["mei/mean"] <= 4
        assert "effect/mei" not in lines[0]
    # What is asked in an evaluation is plain.
    responses = next(path.glob("eval/*/**/responses.jsonl")).read_text().splitlines()
    assert all("prefix" not in json.loads(line) for line in responses)
    again = open_trainer(recorded(TrainingFolder.open(path)), path, resume=True)
    assert again.state.step == 3


def test_the_tokens_of_a_prefix_are_part_of_the_prompt() -> None:
    from modebench.sampling.base import GenerationSettings
    from modebench.tiny import tiny_folder
    from modebench.training import policy
    from modebench.training.sampling import rollouts

    tiny = policy.load(str(tiny_folder()), device="cpu", profile="compact")
    task = load_tasks("countdown", 1, "train")[0]
    strategy = STRATEGIES["countdown"][1]
    prefixes = [None, Prefix(strategy.name, strategy.advice, domain="countdown", level=1)]
    plain, told = rollouts(
        tiny, [task, task], [[1], [1]], GenerationSettings(max_tokens=6), prefixes=prefixes
    )
    assert plain.prefix is None
    assert told.prefix == strategy.name
    assert len(told.prompt_ids) > len(plain.prompt_ids)
    assert strategy.advice.split()[0] in tiny.tokenizer.decode(told.prompt_ids)
    method = build("reinforce", max_completion_length=8)
    [row] = method.credit([told], method.state(0))
    assert row.prompt_ids == told.prompt_ids
    assert len(row.weight_T) == len(told.rollouts[0].token_ids)
