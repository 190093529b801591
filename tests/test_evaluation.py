"""The harness: seeds, groups, resuming, failures, and what the run folder holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import modebench as mb
from modebench.config import EvalConfig, Selection, config_of, record_of
from modebench.errors import InputError, UsageError
from modebench.evaluation import create_run, evaluate, finish, generate, sample_seed
from modebench.runs import RunFolder
from modebench.sampling.base import GenerationSettings, Group, Sample
from modebench.sampling.mock import MockEngine

SMALL = EvalConfig(selection=Selection(domains=("countdown", "graph"), limit=5), samples=4)


class Stub:
    """An engine that counts what it is asked and can fail or die."""

    groups_per_batch = 2

    def __init__(self, answer: str = "\\boxed{1}", fail: Sequence[int] = (), die_after: int | None = None):
        self.answer, self.fail, self.die_after = answer, set(fail), die_after
        self.asked: list[str] = []
        self.batches: list[tuple[str, ...]] = []
        self.seeds: list[int] = []

    def describe(self) -> dict[str, Any]:
        return {"engine": "stub"}

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        self.batches.append(tuple(group.task.id for group in groups))
        for index, group in enumerate(groups):
            if self.die_after is not None and len(self.asked) >= self.die_after:
                raise ConnectionError("gone")
            self.asked.append(group.task.id)
            self.seeds += group.seeds
            yield (
                index,
                [
                    Sample("", "error", error="refused")
                    if place in self.fail
                    else Sample(f"{self.answer} {seed}")
                    for place, seed in enumerate(group.seeds)
                ],
            )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_seed_is_63_bits_of_a_hash_and_depends_on_everything() -> None:
    # SHA-256("0|0|countdown/level1/eval/0000|0") by another program starts with these 64 bits.
    import hashlib

    expected = int(hashlib.sha256(b"0|0|countdown/level1/eval/0000|0").hexdigest()[:16], 16) // 2
    assert sample_seed(0, 0, "countdown/level1/eval/0000", 0) == expected < 2**63
    seeds = {
        sample_seed(run, step, task, sample)
        for run in range(3)
        for step in range(3)
        for task in ("a", "b", "1|a")
        for sample in range(5)
    }
    assert len(seeds) == 3 * 3 * 3 * 5


def test_run_folder_has_the_contracted_files_and_fields(tmp_path: Path) -> None:
    run = evaluate(MockEngine("uniform"), tmp_path / "run", SMALL, model="mock/uniform")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "chance.published.jsonl",
        "responses.jsonl",
        "run.json",
        "summary.json",
        "verdicts.published.jsonl",
    ]
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["schema"] == "modebench-run-v1"
    assert manifest["status"] == "success"
    assert manifest["reading"] == "published"
    assert [entry["count"] for entry in manifest["task_sets"]] == [5, 5]
    assert all(len(entry["sha256"]) == 64 for entry in manifest["task_sets"])
    responses = lines(run.folder.responses_path)
    assert len(responses) == 2 * 5 * 4
    place = ["task_id", "domain", "level", "split", "sample", "group", "seed"]
    tokens = ["input_tokens", "output_tokens", "logprob", "entropy"]
    assert list(responses[0]) == [*place, "response", "finish_reason", *tokens, "reasoning", "error"]
    assert len({record["seed"] for record in responses}) == len(responses)
    verdicts = lines(run.folder.verdicts_path("published"))
    assert [list(verdict) for verdict in verdicts] == [["task_id", "sample", "status", "mode", "detail"]] * 40
    assert {verdict["status"] for verdict in verdicts} == {"correct"}
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {cell["domain"] for cell in summary["cells"]} == {"countdown", "graph_coloring"}
    assert set(summary["cells"][0]["pcmd"]) >= {"value", "low", "high", "n"}


def test_mock_policies_are_what_they_say(tmp_path: Path) -> None:
    config = replace(SMALL, selection=Selection(limit=6), samples=6)
    tables = {
        policy: evaluate(MockEngine(policy), tmp_path / policy, config).samples()
        for policy in ("oracle", "uniform", "collapsed", "random")
    }
    for policy in ("oracle", "uniform", "collapsed"):
        assert (tables[policy].status == "correct").all(), policy
    modes = {name: table.groupby("task_id")["mode"].nunique() for name, table in tables.items()}
    assert (modes["collapsed"] == 1).all()
    existing = tables["oracle"].groupby("task_id")["modes"].first()
    assert (modes["oracle"] == existing.clip(upper=6)).all()
    assert (modes["uniform"] <= modes["oracle"]).all()
    assert modes["uniform"].sum() > len(modes["uniform"])
    assert (tables["random"].status != "malformed").all()
    assert (tables["random"].status == "correct").mean() < 0.5


def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        evaluate(MockEngine("random"), tmp_path / name, replace(SMALL, seed=seed))
    read = {name: (tmp_path / name / "responses.jsonl").read_bytes() for name in "abc"}
    assert read["a"] == read["b"] != read["c"]


def test_resume_repeats_no_recorded_group_and_meets_the_same_batches(tmp_path: Path) -> None:
    whole = Stub()
    evaluate(whole, tmp_path / "whole", SMALL, model="stub")
    dying = Stub(die_after=5)
    with pytest.raises(ConnectionError):
        evaluate(dying, tmp_path / "run", SMALL, model="stub")
    run = RunFolder.open(tmp_path / "run")
    assert run.manifest["status"] == "error"
    again = Stub()
    assert finish(run, again) == 0
    assert again.batches == whole.batches[2:]
    for name in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("cut", [1, 40, 200, 700])
def test_a_line_cut_by_a_crash_is_written_again(tmp_path: Path, cut: int) -> None:
    evaluate(Stub(), tmp_path / "whole", SMALL, model="stub")
    with pytest.raises(ConnectionError):
        evaluate(Stub(die_after=7), tmp_path / "run", SMALL, model="stub")
    log = tmp_path / "run" / "responses.jsonl"
    with log.open("rb+") as file:
        file.truncate(log.stat().st_size - cut)
    finish(RunFolder.open(tmp_path / "run"), Stub())
    assert log.read_bytes() == (tmp_path / "whole" / "responses.jsonl").read_bytes()


def test_failed_samples_are_missing_never_wrong_and_are_drawn_again(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", Stub(), "stub", SMALL)
    assert finish(run, Stub(fail=[1])) == 10
    assert run.manifest["status"] == "error"  # a quarter failed: over the budget
    counts = mb.load_run(tmp_path / "run").samples().status.value_counts()
    assert counts["error"] == 10
    assert counts.sum() == 40
    cell = json.loads(run.summary_path.read_text())["cells"][0]
    assert cell["counts"]["error"] == 5
    assert cell["error_rate"]["value"] == pytest.approx(0.25)
    healthy = Stub()
    assert finish(RunFolder.open(tmp_path / "run"), healthy) == 0
    table = mb.load_run(tmp_path / "run").samples()
    assert len(table) == 40
    assert not (table.status == "error").any()
    assert not table.duplicated(["task_id", "sample"]).any()


def test_an_engine_that_returns_too_few_samples_is_refused(tmp_path: Path) -> None:
    class Short(Stub):
        def generate(
            self, groups: Sequence[Group], settings: GenerationSettings
        ) -> Iterator[tuple[int, list[Sample]]]:
            for index, samples in super().generate(groups, settings):
                yield index, samples[:-1]

    with pytest.raises(UsageError, match=r"returned 3 samples of .* asked were 4"):
        evaluate(Short(), tmp_path / "run", SMALL)


def test_two_writers_cannot_share_a_run(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", Stub(), "stub", SMALL)
    with run.append(), pytest.raises(UsageError, match="another process is writing"):
        generate(RunFolder.open(tmp_path / "run"), Stub())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": 0}, "--samples"),
        ({"settings": GenerationSettings(temperature=0.0)}, "--samples 4 with --temperature 0"),
        ({"settings": GenerationSettings(temperature=-1.0)}, "--temperature"),
        ({"settings": GenerationSettings(top_p=0.0)}, "--top-p"),
        ({"settings": GenerationSettings(top_k=-1)}, "--top-k"),
        ({"settings": GenerationSettings(max_tokens=0)}, "--max-tokens"),
        ({"selection": Selection(domains=("nothing",))}, "no domain is called 'nothing'"),
        ({"selection": Selection(limit=0)}, "--limit"),
        ({"selection": Selection(file="/nowhere/tasks.jsonl")}, "no file of tasks"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(Stub(), tmp_path / "run", replace(SMALL, **change))
    assert not (tmp_path / "run").exists()


def test_an_occupied_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="in use"):
        evaluate(Stub(), tmp_path / "run", SMALL)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]


def test_a_bad_reference_in_a_task_file_names_line_and_field(tmp_path: Path) -> None:
    tasks = list(mb.load_tasks("countdown").head(2))
    file = tmp_path / "tasks.jsonl"
    mb.write_tasks(file, [tasks[0], replace(tasks[1], reference={**tasks[1].reference, "target": "18"})])
    with pytest.raises(InputError, match=r"tasks.jsonl:2: reference.target: must be an integer, not '18'"):
        evaluate(Stub(), tmp_path / "run", replace(SMALL, selection=Selection(file=str(file))))


def test_configuration_round_trips_through_a_manifest() -> None:
    config = replace(
        SMALL,
        settings=GenerationSettings(temperature=0.7, stop=("a", "b")),
        arm="base",
        step=3,
        system="",
        error_budget=0.5,
    )
    assert config_of(json.loads(json.dumps(record_of(config)))) == config


def test_reasoning_is_taken_off_before_judging(tmp_path: Path) -> None:
    class Thinker(Stub):
        def generate(
            self, groups: Sequence[Group], settings: GenerationSettings
        ) -> Iterator[tuple[int, list[Sample]]]:
            for index, group in enumerate(groups):
                right = next(iter(MockEngine("oracle").generate([group], settings)))[1][0].response
                yield (
                    index,
                    [
                        Sample(f"<think>\\boxed{{decoy}}</think>{right}"),
                        Sample(f"\\boxed{{decoy}} opened by the template</think>{right}"),
                        Sample(f"<think>it may be {right}", "length"),
                        Sample(right, reasoning="in a field of its own \\boxed{decoy}"),
                    ],
                )

    table = evaluate(Thinker(), tmp_path / "run", SMALL).samples()
    by_sample = table.groupby("sample").status.unique().map(list).to_dict()
    assert by_sample == {0: ["correct"], 1: ["correct"], 2: ["malformed"], 3: ["correct"]}
    raw = evaluate(Thinker(), tmp_path / "raw", replace(SMALL, strip_reasoning=False)).samples()
    assert (raw[raw["sample"] == 2].status == "correct").all()


def test_changed_responses_make_verdicts_stale(tmp_path: Path) -> None:
    run = evaluate(Stub(), tmp_path / "run", SMALL)
    text = run.folder.responses_path.read_text().replace("boxed{1}", "boxed{2}", 1)
    run.folder.responses_path.write_text(text)
    with pytest.raises(UsageError, match="not graded as published; run: modebench grade"):
        run.samples()


def test_what_a_killed_process_was_writing_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json.123.part").write_text("{")
    evaluate(Stub(), tmp_path / "run", SMALL)
    (tmp_path / "run" / "summary.json.9.part").write_text("{")
    finish(RunFolder.open(tmp_path / "run"), Stub())
    assert not list((tmp_path / "run").glob("*.part"))


def test_the_clean_reading_counts_clean_modes(tmp_path: Path) -> None:
    from modebench.verifiers.clean.countdown import clean_modes

    config = replace(SMALL, selection=Selection(domains=("countdown",), limit=5), samples=8, reading="clean")
    run = evaluate(MockEngine("oracle"), tmp_path / "run", config)
    table = run.samples()
    assert (table.status == "correct").all()
    for task in mb.load_tasks("countdown").head(5):
        rows = table[table.task_id == task.id]
        assert set(rows["modes"]) == {len(clean_modes(task.reference, 1))}
        assert set(rows["mode"]) <= clean_modes(task.reference, 1)
    cell = run.summary()["cells"][0]
    assert cell["certified_coverage"]["uncertified_modes"] == 0
