"""What a sweep file asks for, and what is refused with file, line and field."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modebench.errors import InputError, UsageError
from modebench.training.settings import from_assignments
from modebench.training.sweep import assignment
from modebench.training.sweep_file import SweepFile, read_sweep

HEAD = "domains: [graph]\nseeds: [0]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> SweepFile:
    return read_sweep(written(folder, text))


def values(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: setting.value for name, setting in settings.items()}


def test_a_file_in_its_long_and_its_short_form(tmp_path: Path) -> None:
    long = read(
        tmp_path,
        "model: hf/x\nrollout: {num_prompts: 2}\neval.every: 50\n"
        "domains:\n  graph: {}\n  mathir: {rollout.max_completion_length: 8, data: {limit: 3}}\n"
        "seeds: [3, 4]\n"
        "arms:\n  one: {method: dr_grpo}\n"
        "  two: {method: re_dr, add: [mask_truncated], set: {replay: {capacity: 1}, steps: 9}}\n",
    )
    assert values(long.common) == {"model": "hf/x", "rollout.num_prompts": 2, "eval.every": 50}
    assert {name: values(own) for name, own in long.domains.items()} == {
        "graph_coloring": {},
        "mathir": {"rollout.max_completion_length": 8, "data.limit": 3},
    }
    assert long.seeds == (3, 4)
    assert {name: values(own) for name, own in long.arms.items()} == {
        "one": {"method": "dr_grpo"},
        "two": {"method": "re_dr", "add": ["mask_truncated"], "replay.capacity": 1, "steps": 9},
    }
    assert long.budget is None
    short = read(tmp_path, "domains: [pantry, graph]\nseeds: [1]\nbudget: 64\narms: [dr_grpo, re_max]\n")
    assert list(short.domains) == ["pantry_plan", "graph_coloring"]
    assert {name: values(own) for name, own in short.arms.items()} == {
        "dr_grpo": {"method": "dr_grpo"},
        "re_max": {"method": "re_max"},
    }
    assert short.budget is not None
    assert short.budget.value == 64


def test_a_grid_makes_an_arm_of_every_combination(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        HEAD + "grid: {optimizer.learning_rate: [1e-4, 3e-4]}\n"
        "arms:\n  dr: {method: dr_grpo}\n"
        "  re: {method: re_dr, grid: {replay.coefficient: [0.1, 5], data.levels: [[1, 2]]}}\n",
    )
    assert list(file.arms) == [
        "dr-learning_rate=0.0001",
        "dr-learning_rate=0.0003",
        "re-learning_rate=0.0001-coefficient=0.1-levels=1+2",
        "re-learning_rate=0.0001-coefficient=5-levels=1+2",
        "re-learning_rate=0.0003-coefficient=0.1-levels=1+2",
        "re-learning_rate=0.0003-coefficient=5-levels=1+2",
    ]
    assert values(file.arms["re-learning_rate=0.0003-coefficient=5-levels=1+2"]) == {
        "method": "re_dr",
        "optimizer.learning_rate": 3e-4,
        "replay.coefficient": 5,
        "data.levels": [1, 2],
    }


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            HEAD + "arms: {x: {methods: dr_grpo}}\n",
            3,
            "arms.x.methods: is not a field of an arm; did you mean",
        ),
        (
            HEAD + "arms:\n  x:\n",
            4,
            "arms.x: is not a field of an arm; expected a mapping of method, add, set",
        ),
        (HEAD + "arms:\n  x: {}\n", 4, "expected a mapping of method, add, set, grid"),
        (HEAD + "arms:\n  x: {set: {steps: 3}}\n", 4, "arms.x: has no method"),
        (HEAD + "arms: {x: {method: dr_grpo, set: 3}}\n", 3, "arms.x.set: must be a mapping of settings"),
        (HEAD + "arms: {x: {method: {a: 1}}}\n", 3, "arms.x.method: must not be a mapping"),
        (HEAD + "arms: {base: {method: dr_grpo}}\n", 3, "arms.base: cannot be the name of an arm"),
        (HEAD + "arms: {a/b: {method: dr_grpo}}\n", 3, "arms.a/b: cannot be the name of an arm"),
        (HEAD + "arms: {x: {method: dr_grpo, set: {run.seed: 1}}}\n", 3, "run.seed: is decided by seeds"),
        (
            HEAD + "arms: {x: {method: a, set: {steps: 1}, grid: {steps: [1]}}}\n",
            3,
            "steps: stands in a grid",
        ),
        (HEAD + "arms: {x: {method: dr_grpo, grid: {steps: 1}}}\n", 3, "steps: is 1, expected a list"),
        (HEAD + "arms: {x: {method: dr_grpo, grid: {steps: []}}}\n", 3, "steps: is [], expected a list"),
        (
            HEAD + "arms: {x: {method: dr_grpo, grid: {model: [a/b]}}}\n",
            3,
            "model: 'a/b' cannot be a part of",
        ),
        (HEAD + "arms: [dr_grpo, dr_grpo]\n", 3, "arms: names 'dr_grpo' twice"),
        (HEAD + "arms: [dr_grpo]\nmethod: re_dr\n", 4, "method: is decided by arms in a sweep"),
        (HEAD + "arms: [dr_grpo]\ndata: {domains: [graph]}\n", 4, "data.domains: is decided by domains"),
        (HEAD + "arms: [dr_grpo]\nbudget: many\n", 4, "budget: is 'many', expected a number of rollouts"),
        (HEAD + "arms: [dr_grpo]\ngrid: {run.arm: [a]}\n", 4, "run.arm: is decided by arms"),
        ("seeds: [0]\narms: [dr_grpo]\ndomains: [grap]\n", 3, "domains: no domain is called 'grap'"),
        ("seeds: [0]\narms: [dr_grpo]\ndomains: {graph: 3}\n", 3, "domains.graph: is 3, expected a mapping"),
        ("seeds: 5\narms: [dr_grpo]\ndomains: [graph]\n", 1, "seeds: is 5, expected a list"),
        ("seeds: [x]\narms: [dr_grpo]\ndomains: [graph]\n", 1, "seeds: is ['x'], expected whole numbers"),
        ("seeds: {a: 1}\narms: [dr_grpo]\ndomains: [graph]\n", 1, "seeds: must not be a mapping"),
    ],
)
def test_what_is_refused_with_file_line_and_field(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/sweep.yaml:{line}: ")
    assert words in str(caught.value)


def test_a_sweep_has_domains_seeds_and_arms(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no arms; a sweep has domains, seeds and arms"):
        read(tmp_path, HEAD)
    with pytest.raises(UsageError, match="no configuration file"):
        read_sweep(tmp_path / "none.yaml")


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
anything = plain | st.text(st.characters(exclude_categories=["C", "Z"]))


@given(anything | st.lists(anything, max_size=3))
def test_an_assignment_is_read_back_as_the_same_value(value: Any) -> None:
    read_back = from_assignments([assignment("a.b", value)])["a.b"].value
    assert read_back == value
    assert type(read_back) is type(value)
