"""Shards: dealt evenly, recorded, and merged into the run that was never sharded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.config import EvalConfig, Selection
from modebench.errors import InputError, UsageError
from modebench.evaluation import create_run, evaluate, finish, generate, grade
from modebench.merging import merge
from modebench.runs import RunFolder
from modebench.sampling.mock import MockEngine
from tests.conftest import Command

SMALL = EvalConfig(selection=Selection(domains=("countdown", "graph", "mathir"), limit=5), samples=4)
FILES = ("responses.jsonl", "verdicts.published.jsonl", "summary.json")


def part(config: EvalConfig, shard: int, shards: int) -> EvalConfig:
    return replace(config, selection=replace(config.selection, shard=(shard, shards)))


def sharded(folder: Path, shards: int, config: EvalConfig = SMALL, policy: str = "random") -> list[Path]:
    """The runs of all shards."""
    paths = [folder / f"shard-{shard}" for shard in range(1, shards + 1)]
    for shard, path in enumerate(paths, 1):
        evaluate(MockEngine(policy), path, part(config, shard, shards), model="mock/random")
    return paths


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 9))
def test_every_task_is_dealt_once_and_shards_differ_by_one_at_most(sizes: list[int], shards: int) -> None:
    domains = ("countdown", "graph", "mathir", "pantry")[: len(sizes)]
    whole = Selection(domains=domains, limit=max(sizes))
    ids = [task.id for tasks in whole.load() for task in tasks]
    dealt = []
    for shard in range(1, shards + 1):
        selection = replace(whole, shard=(shard, shards))
        if shard > len(ids):
            with pytest.raises(UsageError, match="has no tasks"):
                selection.load()
            continue
        sets = selection.load()
        assert all(len(tasks) for tasks in sets)
        dealt.append([task.id for tasks in sets for task in tasks])
    assert [dealt[place % shards][place // shards] for place in range(len(ids))] == ids
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("policy", ["random", "oracle"])
def test_the_merged_run_equals_the_whole_one_byte_for_byte(tmp_path: Path, shards: int, policy: str) -> None:
    evaluate(MockEngine(policy), tmp_path / "whole", SMALL, model="mock/random")
    paths = sharded(tmp_path, shards, policy=policy)
    run = merge(paths[::-1], tmp_path / "merged")
    for name in FILES:
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    merged = json.loads((run.path / "run.json").read_text())
    whole = json.loads((tmp_path / "whole" / "run.json").read_text())
    for name in ("status", "missing", "selection", "task_sets", "prompts_sha256", "first_prompt", "settings"):
        assert merged[name] == whole[name], name
    assert sorted(entry["shard"] for entry in merged["merged_from"]) == [
        [i, shards] for i in range(1, shards + 1)
    ]
    assert RunFolder.open(paths[0]).manifest["selection"]["shard"] == [1, shards]


def test_shards_that_were_only_generated_are_merged_and_graded_later(tmp_path: Path) -> None:
    for shard in (1, 2):
        config = part(SMALL, shard, 2)
        run = create_run(tmp_path / str(shard), MockEngine("random"), "mock/random", config)
        generate(run, MockEngine("random"))
    merged = merge([tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    assert sorted(path.name for path in merged.path.iterdir()) == ["responses.jsonl", "run.json"]
    whole = create_run(tmp_path / "whole", MockEngine("random"), "mock/random", SMALL)
    generate(whole, MockEngine("random"))
    assert merged.responses_path.read_bytes() == whole.responses_path.read_bytes()
    grade(merged)
    grade(whole)
    assert merged.verdicts_path("published").read_bytes() == whole.verdicts_path("published").read_bytes()


def test_what_a_shard_lacks_is_missing_in_the_merged_run_which_can_be_resumed(tmp_path: Path) -> None:
    evaluate(MockEngine("random"), tmp_path / "whole", SMALL, model="mock/random")
    paths = sharded(tmp_path, 3)
    log = paths[1] / "responses.jsonl"
    kept = log.read_bytes().splitlines(keepends=True)[:-6]
    log.write_bytes(b"".join(kept))
    grade(RunFolder.open(paths[1]))
    run = merge(paths, tmp_path / "merged")
    assert run.manifest["missing"] == 6
    assert run.manifest["status"] == "error"  # a tenth is over the budget
    assert finish(RunFolder.open(run.path), MockEngine("random")) == 0
    ours, whole = (
        sorted((tmp_path / name / "responses.jsonl").read_text().splitlines()) for name in ("merged", "whole")
    )
    assert ours == whole


def other_seed(folder: Path) -> list[Path]:
    paths = sharded(folder, 2)
    evaluate(MockEngine("random"), folder / "x", part(replace(SMALL, seed=1), 2, 2), model="mock/random")
    return [paths[0], folder / "x"]


def other_engine(folder: Path) -> list[Path]:
    paths = sharded(folder, 2)
    evaluate(MockEngine("uniform"), folder / "x", part(SMALL, 2, 2), model="mock/random")
    return [paths[0], folder / "x"]


def whole_run(folder: Path) -> list[Path]:
    evaluate(MockEngine("random"), folder / "x", SMALL)
    return [folder / "x"]


BAD: dict[str, tuple[Callable[[Path], list[Path]], str]] = {
    "one missing": (lambda folder: sharded(folder, 3)[:1], r"missing shards: 2/3, 3/3"),
    "given twice": (lambda folder: [sharded(folder, 2)[0]] * 2, r"are both shard 1/2"),
    "two dealings": (
        lambda folder: [sharded(folder / "a", 2)[0], sharded(folder / "b", 3)[1]],
        r"shards of different dealings: 1/2, 2/3",
    ),
    "no shard": (whole_run, r"x is not a shard: it was made without --shard"),
    "other seed": (other_seed, r"not shards of one run: seed is 0 and 1"),
    "other engine": (other_engine, r"not shards of one run: engine.policy is 'random' and 'uniform'"),
    "no run": (lambda folder: [folder / "none"], r"is not a run folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_the_shards_of_one_run_is_refused_and_nothing_is_written(
    tmp_path: Path, name: str
) -> None:
    make, message = BAD[name]
    paths = make(tmp_path)
    with pytest.raises(UsageError, match=message):
        merge(paths, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_response_to_a_task_of_no_shard_is_refused(tmp_path: Path) -> None:
    paths = sharded(tmp_path, 2)
    log = paths[1] / "responses.jsonl"
    log.write_text(log.read_text().replace("countdown/level1/eval/0001", "countdown/level1/eval/0100"))
    with pytest.raises(InputError, match=r"task_id: 'countdown/level1/eval/0100' is not a task of this run"):
        merge(paths, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_shards_and_merge_on_the_command_line(modebench: Command, tmp_path: Path) -> None:
    asked: list[Any] = ["-m", "mock/random", "--domain", "countdown,pantry", "-n", 5, "-k", 4]
    assert modebench("eval", *asked, "-o", "whole").returncode == 0
    for shard in ("1/2", "2/2"):
        done = modebench("eval", *asked, "--shard", shard, "-o", f"part-{shard[0]}")
        assert done.returncode == 0, done.stderr
        assert "× 5 tasks" in done.stderr
    incomplete = modebench("merge", "part-1", "-o", "run")
    assert incomplete.returncode == 2
    assert incomplete.stderr == "error: missing shards: 2/2\n"
    merged = modebench("merge", "part-2", "part-1", "-o", "run")
    assert (merged.returncode, merged.stdout) == (0, "run\n"), merged.stderr
    for name in FILES:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    for wrong in ("0/2", "3/2", "1/0", "a/b", "1", "-1/2", "11/12"):
        bad = modebench("eval", *asked, "--shard", wrong)
        assert bad.returncode == 2, wrong
        assert "--shard" in bad.stderr.splitlines()[-1]
        assert "Traceback" not in bad.stderr
    assert modebench("merge", "part-1", "part-2", "-o", "whole").returncode == 2
