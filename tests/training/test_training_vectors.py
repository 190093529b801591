"""Three updates of four methods against vectors that were computed apart, by numpy in float64.

The inputs are those of a test fixture of the published trainer (github.com/liv-daliberti/remax, Apache-2.0).
They hold what mode replay can get wrong: two responses of a new mode, a truncated success, a success without
a mode, a group of failures, a bank of one mode, and a cursor over a growing list of banks.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from modebench.training.batch import Group, Row
from modebench.training.likelihood import Scorer, row_logprobs
from modebench.training.methods import build
from tests.training.groups import TASK, Bigram, gradient, rollout

VECTORS = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/evidence/training-vectors.json.gz").read_bytes())
)
LEARNING_RATE = 0.2
IDS = {"drgrpo": "dr_grpo", "redr": "re_dr", "maxrl": "maxrl", "remax": "re_max"}


def group_of(step: dict[str, Any]) -> Group:
    """A recorded group; an inactive row is one that was cut."""
    columns = zip(step["responses"], step["rewards"], step["keys"], step["active"], strict=True)
    return Group(
        TASK,
        tuple(step["prompt"]),
        tuple(
            rollout(tokens, float(reward), mode, "stop" if active else "length")
            for tokens, reward, mode, active in columns
        ),
    )


def exemplars(rows: list[Row]) -> list[list[int]]:
    return [list(row.token_ids) for row in rows]


@pytest.mark.parametrize("name", IDS)
def test_gradients_and_parameters(name: str) -> None:
    method = build(IDS[name], adds=["mask_truncated"], max_completion_length=6)
    state, model = method.state(seed=0), Bigram()
    for step, expected in zip(VECTORS["steps"], VECTORS["result"][name], strict=True):
        groups = [group_of(step)]
        method.observe(groups, state)
        fresh = method.credit(groups, state)
        assert [row.advantage_T[0] for row in fresh if row.advantage_T is not None] == pytest.approx(
            expected["advantages"], abs=1e-12
        )
        total = gradient(model, fresh)
        extra = method.extra_rows(groups, state)
        if "replay" in method.options():
            assert {row.prompt_ids for row in extra} == {tuple(expected["replayed_prompt"])}
            assert exemplars(extra) == expected["exemplars"]
            assert state.state_dict()["replay"]["cursor"] == expected["cursor"]
            scores = [row.logp_T.mean().item() for row in row_logprobs(Scorer(model), extra, temperature=1.0)]
            assert scores == pytest.approx(expected["scores"], abs=1e-9)
            loss = -sum(score * row.weight_T.sum() for score, row in zip(scores, extra, strict=True))
            assert loss == pytest.approx(expected["weighted"], abs=1e-12)
            total += gradient(model, extra)
        else:
            assert extra == []
        np.testing.assert_allclose(total.numpy(), expected["gradient"], atol=1e-9)
        with torch.no_grad():
            model.logits -= LEARNING_RATE * total
        np.testing.assert_allclose(model.logits.detach().numpy(), expected["parameters"], atol=1e-9)


@pytest.mark.parametrize(("replaying", "plain"), [("re_dr", "drgrpo"), ("re_max", "maxrl")])
def test_the_matched_control_keeps_the_bank_and_has_the_gradient_of_the_plain_method(
    replaying: str, plain: str
) -> None:
    method = build(replaying, {"replay.control": "zero"}, ["mask_truncated"], max_completion_length=6)
    state, model = method.state(seed=0), Bigram()
    for step, expected in zip(VECTORS["steps"], VECTORS["result"][plain], strict=True):
        groups = [group_of(step)]
        method.observe(groups, state)
        fresh, extra = method.credit(groups, state), method.extra_rows(groups, state)
        assert exemplars(extra) == expected["exemplars"]
        assert not any(row.weight_T.any() for row in extra)
        both = gradient(model, fresh) + gradient(model, extra)
        assert torch.equal(both, gradient(model, fresh))
        with torch.no_grad():
            model.logits -= LEARNING_RATE * both
        np.testing.assert_allclose(model.logits.detach().numpy(), expected["parameters"], atol=1e-9)


def test_the_ledger_knows_what_was_eligible_only() -> None:
    """The truncated success, the success without a mode and the failures leave no trace."""
    method = build("re_dr", max_completion_length=6)
    state = method.state(seed=0)
    for step in VECTORS["steps"]:
        method.observe([group_of(step)], state)
    banks = {tuple(bank["prompt_ids"]): bank for bank in state.state_dict()["replay"]["banks"].values()}
    assert banks[1, 2]["counts"] == {"countdown:add(3,add(1,2))": 2, "countdown:mul(3,mul(1,2))": 1}
    assert banks[2, 1, 2]["counts"] == {"countdown:add(3,add(1,2))": 1}
    assert banks[1, 2]["exemplars"]["countdown:add(3,add(1,2))"] == [
        3,
        4,
        7,
    ]  # [3, 7] is shorter, not smaller
