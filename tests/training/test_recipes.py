"""Every recipe, through the real planner; only the model is another one, which needs no download."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from modebench.training.settings import Setting, from_values, read_yaml
from modebench.training.setup import Plan, plan
from modebench.training.sweep import SweepRun, plan_sweep
from modebench.training.sweep_file import read_sweep
from tests.training.child import Place

RECIPES = Path(__file__).parents[2] / "recipes"
METHODS = ("grpo", "dr_grpo", "maxrl", "re_dr", "re_max")
ALL = sorted(path.relative_to(RECIPES).as_posix() for path in RECIPES.rglob("*.yaml"))
DOMAINS = ("graph_coloring", "countdown", "python_factors", "mathir", "pantry_plan")


def planned(recipe: str, place: Place, domain: str = "countdown") -> Plan:
    path = RECIPES / recipe
    given = read_yaml(path, path.name)
    assert given["model"].value == ("tiny" if recipe.startswith("tiny") else "hf/Qwen/Qwen2.5-0.5B-Instruct")
    other = {"model": f"hf/{place.model}", "data.domains": domain}
    return plan([given, from_values(other, "test")])


@cache
def runs_of(recipe: str, place: Place) -> list[SweepRun]:
    file = read_sweep(RECIPES / recipe)
    assert file.common["model"].value == "tiny"
    model = Setting(f"hf/{place.model}", "test")
    return plan_sweep(replace(file, common=file.common | {"model": model}))


@pytest.mark.parametrize("recipe", ALL)
def test_every_recipe_is_accepted(place: Place, recipe: str) -> None:
    if any(name.startswith("arms") for name in read_yaml(RECIPES / recipe, recipe)):
        assert runs_of(recipe, place)
    else:
        assert planned(recipe, place)


@pytest.mark.parametrize("method", METHODS)
def test_recipes_of_the_tiny_policy(place: Place, method: str) -> None:
    for domain in DOMAINS:
        config = planned(f"tiny/{method}.yaml", place, domain).config
        assert config.method == method
        assert config.steps * config.rollout.num_prompts * config.rollout.group_size == 25_600
        assert (config.eval.every, config.eval.samples) == (50, 32)


@pytest.mark.parametrize("method", METHODS)
def test_recipes_of_the_publication(place: Place, method: str) -> None:
    found = planned(f"paper/{method}.yaml", place)
    config = found.config
    assert config.method == method
    assert config.steps * config.rollout.num_prompts == 8 * 384
    assert (config.optimizer.learning_rate, config.optimizer.beta2, config.rollout.group_size) == (
        2e-7,
        0.95,
        16,
    )
    assert found.values["surrogate.loss_agg_mode"] == "seq-mean-token-sum-norm"
    if method.startswith("re_"):
        assert (found.values["replay.coefficient"], found.values["replay.capacity"]) == (0.1, 16)
    # A recipe must not change with the profile of the model.
    borrowed = {name for name, origin in found.origins.items() if origin.startswith("profile")}
    assert borrowed <= {"run.threads"}


def test_the_sweep_of_collapse(place: Place) -> None:
    runs = runs_of("tiny/sweep-collapse.yaml", place)
    assert len(runs) == 5 * 4 * 3
    assert {run.rollouts for run in runs} == {60 * 16 * 16}
    assert {run.arm for run in runs} == {"dr_grpo", "re_dr", "maxrl", "re_max"}
    for run in (run for run in runs if run.domain == "countdown" and run.seed == 0):
        # An arm is the recipe of its method, but for the steps and the evaluations.
        alone = planned(f"tiny/{run.arm}.yaml", place, run.domain).values
        own = {"run.arm": run.arm, "run.seed": run.seed, "steps": 60}
        own |= {"eval.every": 30, "eval.samples": 16, "checkpoint.every": 30}
        assert run.plan.values == alone | own


def test_the_ladder_of_replay(place: Place) -> None:
    runs = runs_of("tiny/sweep-replay-ladder.yaml", place)
    assert len(runs) == 5 * (1 + 2 * 5)
    assert {run.rollouts for run in runs} == {60 * 16 * 16}
    options = ("coefficient", "capacity", "weighting", "control")
    kinds = {run.arm: tuple(run.plan.values[f"replay.{name}"] for name in options) for run in runs}
    assert {run.plan.values["replay.normaliser"] for run in runs} == {"published"}
    assert kinds.pop("control")[-1] == "zero"
    assert kinds == {
        f"{kind}-coefficient={dose:g}": (dose, *own)
        for dose in (5.0, 0.1)
        for kind, own in {
            "one": (1, "uniform", "none"),
            "frequency": (16, "frequency", "none"),
            "uniform": (16, "uniform", "none"),
            "random": (16, "uniform", "random"),
            "noise": (16, "uniform", "noise"),
        }.items()
    }


PARTS = {  # sweep file: its arms; every one of 60 steps of 16 × 16 rollouts on one domain, with three seeds
    "sweep-divergences": 1 + 6 + 3,
    "sweep-updates": 5 * 2,
    "sweep-rarity": 8,
    "sweep-grpo-dropout": 1 + 9,
    "sweep-grpo-dropout-code": 7,
}


@pytest.mark.parametrize("name", PARTS)
def test_sweeps_of_parts_are_small_and_of_one_budget(place: Place, name: str) -> None:
    runs = runs_of(f"tiny/{name}.yaml", place)
    assert len(runs) == 3 * PARTS[name] <= 30
    assert {(run.domain, run.rollouts) for run in runs} == {("graph_coloring", 60 * 16 * 16)}
    assert {run.seed for run in runs} == {0, 1, 2}
    named = ("eval.every", "eval.samples", "eval.limit")
    assert {tuple(run.plan.values[each] for each in named) for run in runs} == {(60, 16, None)}


@pytest.mark.parametrize("name", PARTS)
def test_the_plan_contrasts_arms_that_there_are(place: Place, name: str) -> None:
    text = (RECIPES.parent / "results" / "PLAN.md").read_text()
    (command,) = re.findall(rf"results/make.py runs/{name} .*?```", text, flags=re.DOTALL)
    contrasts = re.findall(r"--primary ([^\s:]+):(\S+)", command)
    assert 3 <= len(contrasts) <= 4
    assert {arm for pair in contrasts for arm in pair} <= {
        run.arm for run in runs_of(f"tiny/{name}.yaml", place)
    }


def values_by_arm(recipe: str, place: Place) -> dict[str, dict[str, object]]:
    return {run.arm: run.plan.values for run in runs_of(recipe, place)}


def test_the_sweep_of_divergences(place: Place) -> None:
    values = values_by_arm("tiny/sweep-divergences.yaml", place)
    assert "divergence.kind" not in values.pop("grpo")
    found = {(each["divergence.kind"], each["divergence.beta"]) for each in values.values()}
    strong = {(kind, 0.3) for kind in ("exact_kl", "exact_js", "k1", "k2", "k3", "released_js")}
    assert found == strong | {(kind, 0.1) for kind in ("exact_kl", "k1", "k3")}


def test_the_sweep_of_updates(place: Place) -> None:
    values = values_by_arm("tiny/sweep-updates.yaml", place)
    for arm, each in values.items():
        own = arm.startswith("dr_grpo")
        assert each["surrogate.loss_agg_mode"] == (
            "seq-mean-token-sum-norm" if own else "seq-mean-token-mean"
        )
        assert each["update.mini_batches"] == int(arm[-1])


def test_the_sweep_of_rarity(place: Place) -> None:
    values = values_by_arm("tiny/sweep-rarity.yaml", place)
    own = {"run.arm", "run.seed", "add"}
    base = values["dr_grpo"]
    for arm, each in values.items():
        # An arm is Dr. GRPO and its parts, nothing else.
        assert {name: each[name] for name in base if name not in own} == {
            name: base[name] for name in base if name not in own
        }
        assert ("group_class" in each["add"]) == arm.endswith("-mixed")
        if arm.endswith("-mixed"):
            whole = values[arm.removesuffix("-mixed")]
            assert {name: each[name] for name in whole if name not in own} == {
                name: whole[name] for name in whole if name not in own
            }


def test_the_sweep_of_grpo_dropout(place: Place) -> None:
    values = values_by_arm("tiny/sweep-grpo-dropout.yaml", place)
    assert {each["surrogate.loss_agg_mode"] for each in values.values()} == {"token-mean"}
    for target in ("positive", "negative", "both"):
        for recentre in ("prob", "uniform", "none"):
            chosen = values[f"dropout-target={target}-recentre={recentre}"]
            assert (chosen["grpo_dropout.target"], chosen["grpo_dropout.recentre"]) == (target, recentre)


def test_the_sweep_of_text_and_code_of_grpo_dropout(place: Place) -> None:
    values = values_by_arm("tiny/sweep-grpo-dropout-code.yaml", place)
    assert {each["surrogate.loss_agg_mode"] for each in values.values()} == {"token-mean"}
    paper = values.pop("paper")
    assert paper == paper | {"grpo_dropout.target": "positive", "grpo_dropout.recentre": "prob"}
    changed = {
        arm: {
            name for name, value in each.items() if name.startswith("grpo_dropout") and value != paper[name]
        }
        for arm, each in values.items()
    }
    assert changed["random"] == changed["keep-scale"] == {"grpo_dropout.control"}
    assert changed["floor"] == {"grpo_dropout.floor"}
    assert changed["recomputed"] == {"grpo_dropout.advantages"}
    assert len(changed["released"]) == 5
    assert changed["grpo"] == set()
