"""Every method on the packaged policy, in one process: finite, resumable, and exact in what it counts."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from modebench.domains import DOMAINS
from modebench.training.checkpoint import checkpoints_in
from modebench.training.folder import TrainingFolder
from modebench.training.methods import METHODS
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan, recorded

STEPS, PROMPTS, GROUP = 20, 4, 8
ONE_OF_EACH_KIND = (
    "dr_grpo",  # credit
    "gapo",  # reward
    "semantic_maxent",  # bonus, with a memory
    "dapo",  # groups
    "grpo_dropout",  # rollouts
    "top_entropy",  # tokens
    "gspo",  # ratio
    "grpo_kl",  # regulariser
    "re_max",  # replay
    "rlep",  # joined rollouts
)
CASES = [(method, domain) for method in METHODS for domain in ("graph_coloring", "mathir")] + [
    (method, domain)
    for method in ONE_OF_EACH_KIND
    for domain in DOMAINS
    if domain not in ("graph_coloring", "mathir")
]


def settings(method: str, domain: str) -> dict[str, Any]:
    return {
        "method": method,
        "model": "tiny",
        "steps": STEPS,
        "data.domains": domain,
        "rollout.num_prompts": PROMPTS,
        "rollout.group_size": GROUP,
        "eval.every": 0,
        "eval.limit": 2,
        "eval.samples": 2,
        "eval.dev_limit": 0,
        "checkpoint.every": 0,
    }


@pytest.mark.slow
@pytest.mark.parametrize(("method", "domain"), CASES)
def test_twenty_steps_stopped_and_resumed(method: str, domain: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = open_trainer(plan([from_values(settings(method, domain), "test")]), path)

    def stop_in_the_middle(step: int, steps: int, metrics: dict[str, Any]) -> None:
        first.stop.made = step == STEPS // 2

    first.on_step = stop_in_the_middle
    assert not first.run()
    folder = TrainingFolder.open(path)
    assert list(checkpoints_in(folder.checkpoints)) == [0, STEPS // 2]
    assert open_trainer(recorded(folder), path, resume=True).run()
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    for line in lines:
        numbers = [value for value in line.values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers)), line
    totals = {name.removeprefix("total/"): lines[-1][name] for name in lines[-1] if name.startswith("total/")}
    assert totals == folder.summary()["totals"]
    if not METHODS[method].makers:  # `length` is of answers alone
        assert totals["tokens"] == round(
            sum(line["length"] * rollouts for line, rollouts in zip(lines, generated(lines), strict=True))
        )
    trained = totals["rollouts"] - totals["discarded"]
    if method == "dapo":
        assert totals["rollouts"] % (PROMPTS * GROUP) == 0
        assert trained <= STEPS * PROMPTS * GROUP <= totals["rollouts"]
        assert totals["updates"] == sum(line["learning_rate"] is not None for line in lines)
    elif METHODS[method].makers:
        assert totals["proposed"] == len((path / "tasks.jsonl").read_text().splitlines()) > 0
        assert trained <= totals["rollouts"]
    else:
        assert trained == totals["rollouts"] == STEPS * PROMPTS * GROUP
        assert totals["updates"] == STEPS
        passes = METHODS[method].needs_statistics + METHODS[method].needs_reference
        assert totals["scored"] == passes * trained


def generated(lines: list[dict[str, Any]]) -> list[int]:
    """Rollouts of every step, from the running totals."""
    totals = [0, *(line["total/rollouts"] for line in lines)]
    return [after - before for before, after in pairwise(totals)]
