"""Settings in layers: who wins, where a value came from, and what is refused with which words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import InputError, UsageError
from modebench.training.config import DataConfig, TrainConfig, values_of
from modebench.training.profiles import FILE, PROFILES, profile_layer
from modebench.training.settings import (
    from_assignments,
    from_values,
    nested,
    read_yaml,
    resolve,
    to_yaml,
)


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_a_later_layer_wins_and_says_where_it_is_from(tmp_path: Path) -> None:
    path = written(tmp_path, "steps: 7\noptimizer:\n  learning_rate: 1e-5\n  beta1: 0.8\n")
    resolved = resolve(
        [
            from_values({"optimizer.learning_rate": 3e-4, "eval.every": 25}, "profile tiny"),
            read_yaml(path, "mine.yaml"),
            from_assignments(["optimizer.beta1=0.7"]),
        ]
    )
    assert resolved.config.steps == 7
    assert resolved.config.optimizer.learning_rate == 1e-5
    assert resolved.config.optimizer.beta1 == 0.7
    assert resolved.config.eval.every == 25
    assert resolved.origins["optimizer.learning_rate"] == "mine.yaml, line 3"
    assert resolved.origins["optimizer.beta1"] == "command line"
    assert resolved.origins["eval.every"] == "profile tiny"
    assert resolved.origins["optimizer.eps"] == "default"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("optimizer.learning_rate=1e-6", "optimizer.learning_rate", 1e-6),
        ("optimizer.learning_rate=1", "optimizer.learning_rate", 1.0),
        ("data.domains=graph, countdown", "data.domains", ("graph", "countdown")),
        ("data.domains=[graph]", "data.domains", ("graph",)),
        ("data.levels=1,2", "data.levels", (1, 2)),
        ("data.levels=3", "data.levels", (3,)),
        ("data.limit=null", "data.limit", None),
        ("data.limit=4", "data.limit", 4),
        ("rollout.chat_template=false", "rollout.chat_template", False),
        ("optimizer.schedule=cosine", "optimizer.schedule", "cosine"),
    ],
)
def test_values_of_every_type(text: str, name: str, value: object) -> None:
    found = values_of(resolve([from_assignments([text])]).config)[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps=1.5", "steps (command line) is 1.5, expected a whole number"),
        ("steps=true", "expected a whole number"),
        ("rollout.chat_template=1", "expected true or false"),
        ("optimizer.learning_rate=.nan", "expected a finite number"),
        ("optimizer.learning_rate=fast", "expected a finite number"),
        ("optimizer.schedule=cosin", "expected one of constant, linear, cosine"),
        ("data.levels=1,x", "expected a whole number"),
        ("optimizer.learnig_rate=1", "did you mean optimizer.learning_rate?"),
        ("optimizer.lr=1", "there are learning_rate, schedule"),
        ("learning_rate=1", "did you mean optimizer.learning_rate?"),
        ("stepps=1", "did you mean steps?"),
        ("steps", "is not part.option=value"),
    ],
)
def test_refused_settings(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve([from_assignments([text])])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("steps: 3\nrun:\n  sed: 1\n", 3, "run.sed: is not a setting; did you mean run.seed?"),
        ("run:\n  seed: x\n", 2, "run.seed: is 'x', expected a whole number"),
        ("steps: 3\nsteps: 4\n", 2, "steps: stands in line 1 already"),
        ("steps: [1\n", 2, "is not YAML"),
        ("- steps\n", 1, "must be a mapping"),
        ("steps: 3\nrun: {}\n", 2, "run: is not a setting"),
        ("run: !!python/object:os.system {}\n", 1, "run: must be a mapping"),
        ("steps: !!python/name:os.system x\n", 1, "record: is not YAML"),
    ],
)
def test_a_bad_file_is_named_with_line_and_field(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        resolve([read_yaml(path, "file")])
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert words in str(caught.value)


def test_no_file() -> None:
    with pytest.raises(UsageError, match="no configuration file at nowhere"):
        read_yaml(Path("nowhere.yaml"), "file")


def test_names_of_no_section_are_left_to_the_method() -> None:
    resolved = resolve([from_assignments(["replay.coefficient=1e-1", "steps=2"])])
    assert {name: setting.value for name, setting in resolved.parts.items()} == {"replay.coefficient": 0.1}


valid: dict[str, Any] = {"method": "dr_grpo", "model": "hf/x", "data.domains": ("graph",)}


def config(**changes: Any) -> TrainConfig:
    return resolve([from_values(valid | changes, "test")]).config


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("method", "", "--method is missing"),
        ("model", "", "--model is missing"),
        ("data.domains", (), "--domain is missing"),
        ("rollout.group_size", 1, "rollout.group_size is 1, expected at least 2"),
        ("rollout.temperature", 0.0, "rollout.temperature is 0.0, expected more than 0"),
        ("rollout.profile", "rude", "profiles: direct, plain"),
        ("optimizer.beta2", 1.0, "expected at least 0 and below 1"),
        ("steps", 0, "steps is 0, expected at least 1"),
    ],
)
def test_ranges(name: str, value: object, words: str) -> None:
    config().check()
    with pytest.raises(UsageError) as caught:
        config(**{name: value}).check()
    assert words in str(caught.value)


finite = st.floats(min_value=1e-12, max_value=1e6)


@settings(deadline=None)
@given(
    rate=finite, temperature=finite, steps=st.integers(1, 10**6), limit=st.none() | st.integers(1, 9),
    domains=st.lists(st.sampled_from(["graph", "null", "1e3", "true", "a: b"]), min_size=1),
)  # fmt: skip
def test_a_saved_configuration_reads_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    rate: float,
    temperature: float,
    steps: int,
    limit: int | None,
    domains: list[str],
) -> None:
    start = TrainConfig()
    built = replace(
        start,
        steps=steps,
        data=replace(start.data, domains=tuple(domains), limit=limit),
        optimizer=replace(start.optimizer, learning_rate=rate),
        rollout=replace(start.rollout, temperature=temperature),
    )
    path = written(tmp_path_factory.getbasetemp(), to_yaml(values_of(built)))
    assert resolve([read_yaml(path, "saved")]).config == built


def test_nested() -> None:
    assert nested({"a": 1, "b.c": (2, 3), "b.d": None}) == {"a": 1, "b": {"c": [2, 3], "d": None}}


@pytest.mark.parametrize(
    ("parameters", "name"), [(1_000_000, "tiny"), (494_000_000, "0.5B"), (3_090_000_000, "3B")]
)
def test_a_model_gets_the_profile_of_its_size(parameters: int, name: str) -> None:
    layer = profile_layer("nowhere", parameters, DataConfig())
    assert {key: setting.value for key, setting in layer.items()} == PROFILES[name]
    assert {setting.origin for setting in layer.values()} == {f"profile {name}"}
    resolve([layer])


def test_a_models_own_profile_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("optimizer.learning_rate: 2e-3\n")
    layer = profile_layer(str(tmp_path), 10**9, DataConfig())
    assert resolve([layer]).config.optimizer.learning_rate == 2e-3
    assert layer["optimizer.learning_rate"].origin == f"profile {tmp_path / FILE}, line 1"
