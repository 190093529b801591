"""The table of methods, and how one is built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modebench.cli.methods_command import page_of
from modebench.errors import UsageError
from modebench.training.methods import METHODS, build
from modebench.training.part import Asked
from modebench.training.update import Score
from tests.training.groups import TASK, moded, rewarded

DOCS = Path(__file__).parents[2] / "docs" / "methods"


def test_options_are_read_as_their_type() -> None:
    built = build(
        "re_max",
        {
            "replay.coefficient": "1",
            "replay.capacity": "4",
            "surrogate.epsilon_high": "none",
            "surrogate.epsilon": 0,
            "advantage.ddof": "0",
            "advantage.kind": "group_std",
        },
        max_completion_length=8,
    )
    options = built.options()
    assert options["replay"]["coefficient"] == 1.0
    assert isinstance(options["replay"]["coefficient"], float)
    assert options["replay"]["capacity"] == 4
    assert options["surrogate"] == {
        "loss_agg_mode": "seq-mean-token-sum-norm",
        "epsilon": 0.0,
        "epsilon_high": None,
        "clip": True,
        "importance_sampling_level": "token",
    }
    assert options["advantage"]["kind"] == "group_std"
    assert built.surrogate.clip_range == (0, 0)
    wide = build("grpo", {"surrogate.epsilon_high": 0.28}, max_completion_length=8)
    assert wide.surrogate.clip_range == (0.2, 0.28)
    # The table is as it was.
    assert METHODS["re_max"].options()["replay"]["capacity"] == 16


@pytest.mark.parametrize("name", METHODS)
def test_resolved_options_rebuild_the_method(name: str) -> None:
    built = build(name, {"surrogate.epsilon": 0.3}, ["mask_truncated"], max_completion_length=8)
    options = json.loads(json.dumps(built.options()))
    sets = {f"{part}.{option}": value for part, each in options.items() for option, value in each.items()}
    assert build(name, sets, ["mask_truncated"], max_completion_length=8) == built


@pytest.mark.parametrize(
    ("name", "sets", "adds", "said"),
    [
        ("dr_gpro", {}, [], "no method is called 'dr_gpro'; did you mean 'dr_grpo'?"),
        ("remax", {}, [], "did you mean 're_max'?"),
        ("grpo", {"replay.capacity": 1}, [], "grpo has no part 'replay' (in 'replay.capacity')"),
        (
            "grpo",
            {"capacity": 1},
            [],
            "grpo has no part 'capacity' (in 'capacity'); there are: advantage, surrogate",
        ),
        ("grpo", {"advantage": 1}, [], "'advantage' must be PART.OPTION; see: modebench methods grpo"),
        ("dr_grpo", {"advantage.eps": 1}, [], "advantage.eps and advantage.ddof are of group_std"),
        (
            "re_dr",
            {"replay.control": "random", "replay.weighting": "frequency"},
            [],
            "draws by frequency already",
        ),
        ("grpo", {"advantage.std": 1}, [], "advantage has no option 'std'; there are: kind, eps, ddof"),
        ("grpo", {"advantage.eps": "nan"}, [], "advantage.eps must be a finite number, not 'nan'"),
        ("grpo", {"advantage.eps": True}, [], "advantage.eps must be a finite number, not True"),
        ("grpo", {"advantage.ddof": 1.0}, [], "advantage.ddof must be a whole number, not 1.0"),
        ("grpo", {"surrogate.epsilon_high": "x"}, [], "must be a finite number or none, not 'x'"),
        ("grpo", {"surrogate.epsilon": 2}, [], "surrogate.epsilon must be in [0, 1], not 2.0"),
        ("grpo", {"surrogate.epsilon_high": -1}, [], "surrogate.epsilon_high must not be negative"),
        ("grpo", {}, ["reply"], "no part is called 'reply'; did you mean 'replay'?"),
        ("re_dr", {}, ["replay"], "re_dr has the part 'replay' already"),
        ("grpo", {"mask_truncated.on": 1}, ["mask_truncated"], "has no option 'on'; there are: none"),
    ],
)
def test_refusals(name: str, sets: dict[str, Any], adds: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        build(name, sets, adds, max_completion_length=8)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_length_of_the_run_is_needed() -> None:
    with pytest.raises(UsageError, match="max_completion_length must be at least 1, not 0"):
        build("dr_grpo", max_completion_length=0)
    state = METHODS["dr_grpo"].state(0)
    with pytest.raises(UsageError, match="which is not set"):
        METHODS["dr_grpo"].credit([rewarded(0, 1)], state)


def test_replay_is_added_to_any_method() -> None:
    added = build("dr_grpo", adds=["replay"], max_completion_length=8)
    built_in = build("re_dr", max_completion_length=8)
    group = moded("a", "b", None)
    rows = []
    for method in (added, built_in):
        state = method.state(0)
        method.observe([group], state)
        rows.append([*method.credit([group], state), *method.extra_rows([group], state)])
    for one, other in zip(*rows, strict=True):
        assert (one.term, one.token_ids) == (other.term, other.token_ids)
        assert np.array_equal(one.weight_T, other.weight_T)


def test_fresh_rows_say_where_they_are_from() -> None:
    method = build("grpo", max_completion_length=8)
    rows = method.credit([rewarded(0, 1), rewarded(1, 0, prompt=(5,))], method.state(0))
    assert [(row.group, row.term, row.kind) for row in rows] == [
        (0, "fresh", "surrogate"),
        (0, "fresh", "surrogate"),
        (1, "fresh", "surrogate"),
        (1, "fresh", "surrogate"),
    ]
    assert rows[0].logp_old_T is None
    assert rows[0].sampler_logp_T is not None
    assert rows[0].sampler_logp_T.tolist() == [-1, -1, -1]


def test_the_hooks_of_a_method_without_them_are_identities() -> None:
    method = build("dr_grpo", max_completion_length=8)
    state = method.state(0)
    assert method.plan([TASK, TASK], 4, state) == [(TASK, 4), (TASK, 4)]
    assert not method.needs_statistics
    rows = method.credit([rewarded(0, 1)], state)
    assert method.phrase([(TASK, 4)], state) == [Asked(TASK, 4)]
    seen = method.seen(rows, [Score(np.full(3, -1.0), np.ones(3))] * 2)
    assert method.reweigh(rows, seen, state) is rows
    assert method.further_rows([rewarded(0, 1)], [rewarded(0, 1)], rows, seen, state) == []
    assert method.gram_metrics([rewarded(0, 1)], rows, {}) == {}
    assert method.extra_rows([rewarded(0, 1)], state) == []
    none = {"spread/mixed": 0.0, "spread/all_right": None}
    assert method.metrics([rewarded(0, 1), rewarded(0, 0)], [], state) == none
    assert state.state_dict() == {}


def test_how_far_right_rollouts_are_told_apart() -> None:
    mixed, all_right = moded("a", "a", "a", "b", None), moded("a", "a", "b", prompt=(3,))

    def spread(*adds: str, **options: Any) -> dict[str, float | None]:
        method = build("dr_grpo", options, adds, max_completion_length=8)
        return {
            name: value
            for name, value in method.metrics([mixed, all_right], [], method.state(0)).items()
            if name.startswith("spread/")
        }

    assert spread() == pytest.approx({"spread/mixed": 0, "spread/all_right": 0})
    # Shares of the modes are 3/4 and 1/4, so a's three rollouts are 1/8 below their mean and b is 3/8 above.
    gapo = spread("gapo", **{"gapo.support": 4})
    assert gapo == pytest.approx(
        {"spread/mixed": (3 / 8 + 3 / 8) / 4, "spread/all_right": (2 / 9 + 2 / 9) / 3}
    )
    # A+ = 1/5 times tau; 1/q is 4/3 and 4, their shares of four rollouts 2/3 and 2.
    ucpo = spread("ucpo", **{"ucpo.rarity": "mode", "ucpo.tau": 0.5})
    assert ucpo == pytest.approx({"spread/mixed": 0.1 * (3 / 3 + 1) / 4, "spread/all_right": 0})
    # What a selection takes out of the loss is not counted.
    mixed_only = spread("gapo", "group_class", **{"gapo.support": 4})
    assert mixed_only == pytest.approx({"spread/mixed": 3 / 16, "spread/all_right": None})


def test_a_state_of_another_method_is_refused() -> None:
    saved = build("re_dr", max_completion_length=8).state(0).state_dict()
    with pytest.raises(UsageError, match="the saved state is of a method with replay, this one has none"):
        build("dr_grpo", max_completion_length=8).state(0).load_state_dict(saved)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_with_its_present_defaults(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text()
    assert f"```\n{page_of(METHODS[name])}\n```" in text
    assert len(text.splitlines()) < (120 if METHODS[name].makers else 95)
    assert "## On ModeBench\n\n[" in text or "## On ModeBench\n\nIn [" in text  # with its source
    assert "## Known criticism" in text


def test_the_table_needs_no_torch() -> None:
    code = "import sys, modebench.training.methods; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
