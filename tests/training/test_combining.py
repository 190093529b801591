"""Parts together: every pair makes an update or is refused for a reason, and the page says which."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from click.testing import CliRunner

from modebench.cli.methods_command import command
from modebench.errors import UsageError
from modebench.training.batch import Group, Row
from modebench.training.combining import (
    BASELINE,
    FOREIGN_ROLLOUTS,
    GRADED_REWARDS,
    UNMIXED_CREDIT,
    pair_table,
    refusal,
)
from modebench.training.config import OptimizerConfig, TrainConfig
from modebench.training.likelihood import Scorer
from modebench.training.method import Method, MethodState
from modebench.training.methods import METHODS, PARTS, build
from modebench.training.part import Part, Stage
from modebench.training.recipe import run_updates
from modebench.training.update import Updater
from tests.training.groups import Bigram, moded, worth

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "combining.md"
LEARNING_RATE = OptimizerConfig(learning_rate=0.5)


@cache
def accelerator() -> Accelerator:
    return Accelerator(cpu=True)


def groups() -> list[Group]:
    """A mixed group and one that is all right, of several modes and likelihoods."""
    found = []
    for modes, prompt in (("aab-", (1, 2)), ("abbc", (2,))):
        group = moded(*(None if mode == "-" else mode for mode in modes), prompt=prompt)
        logps = [(-0.2 - 0.3 * place,) * 3 for place in range(group.size)]
        members = [replace(one, logp=logp) for one, logp in zip(group.rollouts, logps, strict=True)]
        found.append(replace(group, task=replace(group.task, modes=3), rollouts=tuple(members)))
    return found


def update(method: Method, state: MethodState, model: Bigram, step: int) -> dict[str, Any]:
    """One step of the trainer on the toy policy; what it logs."""
    updater = Updater(
        Scorer(model),
        torch.optim.SGD(model.parameters(), lr=1.0),
        accelerator(),
        TrainConfig(steps=4, optimizer=LEARNING_RATE),
        method.surrogate,
        Scorer(Bigram()) if method.needs_reference else None,
    )
    batch = groups()
    kept = method.filter(batch, state)
    method.observe(batch, state)
    report = run_updates(method, state, updater, kept, updater.config, step)
    return method.metrics(kept, report.extra, state, report.updated)


def makes_an_update(method: Method) -> tuple[Bigram, MethodState]:
    """The policy after an update, which is another one, and the state."""
    model, state = Bigram(), method.state(0)
    update(method, state, model, 1)
    assert torch.isfinite(model.logits).all()
    assert not torch.equal(model.logits, Bigram().logits)
    return model, state


def makes_updates(method: Method) -> None:
    """A second update is the same after the state went through JSON."""
    model, state = makes_an_update(method)
    again, restored = deepcopy(model), method.state(0)
    restored.load_state_dict(json.loads(json.dumps(state.state_dict())))
    logged = [update(method, each, policy, 2) for each, policy in ((state, model), (restored, again))]
    assert logged[0] == logged[1]
    assert torch.equal(model.logits, again.logits)
    assert torch.isfinite(model.logits).all()


def tried(name: str, adds: list[str]) -> None:
    """The method with these parts makes an update, or is refused in one line that names two parts."""
    parts = [*METHODS[name].parts, METHODS[name].surrogate, *(PARTS[added]() for added in adds)]
    reason = refusal(parts)
    if reason is None:
        makes_an_update(build(name, adds=adds, max_completion_length=8))
        return
    with pytest.raises(UsageError) as refused:
        build(name, adds=adds, max_completion_length=8)
    assert str(refused.value) == f"{name}: {reason}"
    assert sum(part.name in reason for part in parts) >= 1
    assert len(reason.partition(": ")[2]) > 20
    assert "\n" not in reason


@pytest.mark.parametrize("name", METHODS)
def test_every_method_with_every_part(name: str) -> None:
    own = {part.name for part in METHODS[name].parts}
    makes_updates(build(name, max_completion_length=8))
    for added in PARTS:
        if added in own:
            with pytest.raises(UsageError, match=f"{name} has the part '{added}' already"):
                build(name, adds=[added], max_completion_length=8)
        else:
            tried(name, [added])


@pytest.mark.parametrize("first", PARTS)
def test_every_two_parts(first: str) -> None:
    if refusal([*METHODS["dr_grpo"].parts, PARTS[first]()]) is None:
        makes_updates(build("dr_grpo", adds=[first], max_completion_length=8))
    for one, other in combinations(PARTS, 2):
        if one == first:
            tried("dr_grpo", [one, other])


def own_gradient(row: Row) -> bool:
    """Whether a row has a gradient, its regularisers apart."""
    return bool(np.any(row.weight_T if row.advantage_T is None else row.weight_T * row.advantage_T))


def acting(method: Method, group: Group) -> set[str]:
    """The terms of the loss that have a gradient on a group, after a step that left something to remember."""
    state = method.state(0)
    method.observe(groups(), state)
    method.observe([group], state)
    rows = method.credit([group], state) + method.extra_rows([group], state)
    further = {each.term for row in rows for each in row.regularisers if each.weight_T.any()}
    return {row.term for row in rows if own_gradient(row)} | further


def test_what_acts_where_all_rollouts_are_right() -> None:
    """Where modes are lost without a trace most methods do nothing."""
    mixed, right = groups()
    found = {name: acting(build(name, max_completion_length=8), right) for name in METHODS}
    assert {name for name, terms in found.items() if "fresh" in terms} == {
        "reinforce", "gapo", "setpo", "semantic_maxent",
    }  # fmt: skip
    assert {name for name, terms in found.items() if terms - {"fresh"}} == {
        "re_dr", "re_max", "grpo_kl", "grpo_js", "entropy_bonus",
    }  # fmt: skip
    assert all("fresh" in acting(build(name, max_completion_length=8), mixed) for name in METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_what_parts_declare_is_so(name: str) -> None:
    method = build(name, max_completion_length=3)  # what is shaped by length is shaped here
    declared = frozenset[str]().union(*(part.provides for part in method.parts))
    mixed, right = groups()
    assert (UNMIXED_CREDIT in declared) == ("fresh" in acting(method, right))
    assert (BASELINE in declared) == (min(worth(method, mixed)) < 0)
    state = method.state(0)
    method.observe([mixed], state)
    method.observe([mixed], state)
    credit = method._credit(mixed, state)
    assert (FOREIGN_ROLLOUTS in declared) == (credit.group.size > mixed.size)
    made = replace(mixed, source=next(iter(method.makers), mixed.source))
    paid_G = made.reward_G
    for part in method.parts:
        paid_G = part.reward(made, paid_G, state.parts.get(part.name))
    assert (GRADED_REWARDS in declared) == (not set(paid_G) <= {0.0, 1.0})


def test_parts_are_called_by_stage_whatever_their_order() -> None:
    adds = ["grpo_dropout", "mask_truncated", "setpo", "ucpo"]
    methods = [build("dr_grpo", adds=order, max_completion_length=8) for order in (adds, adds[::-1])]
    assert methods[0] == methods[1]
    assert [part.name for part in methods[0].parts] == [
        "advantage",
        "ucpo",
        "setpo",
        "mask_truncated",
        "grpo_dropout",
    ]
    assert [part.stage for part in methods[0].parts] == sorted(Stage)


def test_three_parts_keep_their_own_state() -> None:
    method = build("dr_grpo", adds=["replay", "grpo_dropout", "semantic_maxent"], max_completion_length=8)
    makes_updates(method)
    state = method.state(0)
    update(method, state, Bigram(), 1)
    assert set(state.state_dict()) == {"replay", "semantic_maxent"}


@pytest.mark.parametrize(
    ("name", "sets", "adds", "said"),
    [
        ("maxrl", {}, ["gapo"], "maxrl: advantage does not go with gapo"),
        ("reinforce", {}, ["grpo_dropout"], "grpo_dropout needs a baseline"),
        ("grpo_dropout", {}, ["rlep"], "their surprisal under the sampler is not known"),
        ("dr_grpo", {"group_class.keep": "all_right"}, ["group_class"], "no rollout is worth anything"),
        (
            "setpo",
            {"group_class.keep": "all_right"},
            ["group_class", "dynamic_sampling"],
            "they leave no group",
        ),
        ("re_dr", {"advantage.kind": "maxrl"}, ["rlep"], "the successes of the policy's own rollouts"),
    ],
)
def test_refusals(name: str, sets: dict[str, Any], adds: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(name, sets, adds, max_completion_length=8)


def test_what_an_option_makes_possible() -> None:
    built = build("maxrl", {"advantage.kind": "mean_centered"}, ["gapo"], max_completion_length=8)
    makes_updates(built)
    for adds in (["setpo"], ["gapo"], ["semantic_maxent"]):
        all_right = {"group_class.keep": "all_right"}
        makes_updates(build("dr_grpo", all_right, [*adds, "group_class"], max_completion_length=8))


def test_a_declaration_of_a_third_party_is_heard() -> None:
    class Alone(Part):
        name = "alone"

        @property
        def refuses(self) -> dict[str, str]:
            return {"a baseline": "it stands alone"}

    reason = refusal([*METHODS["dr_grpo"].parts, Alone()])
    assert reason == "alone does not go with advantage (a baseline): it stands alone"
    assert refusal([*METHODS["reinforce"].parts, Alone()]) is None


def test_the_page_has_the_table_of_all_pairs() -> None:
    table = pair_table(METHODS, PARTS)
    assert table in PAGE.read_text(), "put the output of `modebench methods --pairs` into the page"
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len(rows) == len(METHODS) + len(PARTS)


def test_the_command_prints_it() -> None:
    printed = CliRunner().invoke(command, ["--pairs"], standalone_mode=False)
    assert printed.output == pair_table(METHODS, PARTS) + "\n"
