"""Prefixes: their file, what is asked with them, what a run records, resuming, replaying."""

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
from modebench.evaluation import create_run, evaluate, finish, samples_asked
from modebench.probing import Ask, Prefix, asks_of, read_prefixes
from modebench.prompts import build_messages
from modebench.runs import RunFolder
from modebench.sampling.base import GenerationSettings, Group, Sample
from modebench.sampling.mock import MockEngine
from modebench.sampling.recorded import RecordedEngine

TASKS = list(mb.load_tasks("countdown").head(3))
CELL = Prefix("coax", "Think of division.", None, "countdown", 1)
OWN = Prefix("own", "Use 7.", TASKS[1].id)
PROBED = EvalConfig(selection=Selection(domains=("countdown",), limit=3), samples=2, prefixes=(OWN, CELL))


class Coaxed(MockEngine):
    """Always the first mode; with a prefix always the second."""

    def __init__(self, die_after: int | None = None) -> None:
        super().__init__("collapsed")
        self.die_after, self.groups = die_after, list[Group]()

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        for index, group in enumerate(groups):
            if self.die_after is not None and len(self.groups) >= self.die_after:
                raise ConnectionError("gone")
            self.groups.append(group)
            answer = self._all_answers(group.task)[0 if group.prefix in ("none", "control") else 1]
            yield index, [Sample(answer, "stop") for _ in group.seeds]


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_both_kinds_of_lines_are_read(tmp_path: Path) -> None:
    file = write(
        tmp_path / "p.jsonl",
        {"task_id": TASKS[1].id, "name": "own", "prefix": "Use 7."},
        {"domain": "countdown", "level": 1, "name": "coax", "prefix": "Think of division."},
        {"domain": "graph", "level": 2, "name": "coax", "prefix": "x"},
    )
    assert read_prefixes(file) == (OWN, CELL, Prefix("coax", "x", None, "graph_coloring", 2))


GOOD = {"domain": "countdown", "level": 1, "name": "a", "prefix": "x"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([GOOD, {**GOOD, "prefix": "y"}], "p.jsonl:2: name: 'a' stands in line 1 already for the same tasks"),
        ([{**GOOD, "level": 9}], "p.jsonl:1: level: must be an integer of 1 to 5, not 9"),
        ([{**GOOD, "level": True}], "p.jsonl:1: level: must be an integer of 1 to 5, not True"),
        ([{**GOOD, "domain": "chess"}], "p.jsonl:1: domain: no domain is called 'chess'"),
        ([{**GOOD, "name": ""}], "p.jsonl:1: name: must be a non-empty text, not ''"),
        ([{**GOOD, "name": "none"}], "p.jsonl:1: name: 'none' stands for samples without a prefix"),
        ([{**GOOD, "name": "control"}], "p.jsonl:1: name: 'control' stands for samples without"),
        ([{**GOOD, "prefix": " "}], "p.jsonl:1: prefix: must be a non-empty text, not ' '"),
        ([{**GOOD, "extra": 1}], "p.jsonl:1: extra: is not one of the fields domain, level, name, prefix"),
        ([{**GOOD, "task_id": "t"}], "p.jsonl:1: domain: is not one of the fields task_id, name, prefix"),
        ([{"name": "a", "prefix": "x"}], "p.jsonl:1: domain: is missing; a line has task_id, or domain and"),
        ([{"task_id": "t", "name": "a"}], "p.jsonl:1: prefix: is missing"),
        ([[1]], "p.jsonl:1: record: must be a JSON object"),
    ],
)
def test_bad_lines_name_file_line_and_field(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_prefixes(write(tmp_path / "p.jsonl", *lines))
    assert message in str(caught.value)


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file of prefixes at"):
        read_prefixes(tmp_path / "p.jsonl")
    with pytest.raises(UsageError, match="holds no prefixes"):
        read_prefixes(write(tmp_path / "p.jsonl"))


def test_what_is_asked_and_how_samples_are_numbered() -> None:
    first, second = TASKS[:2]
    assert asks_of([first], 4, (), control=False) == [Ask(first, None, "", 0)]
    assert asks_of([first, second], 4, (OWN, CELL), control=True) == [
        Ask(first, "none", "", 0),
        Ask(first, "control", "", 4),
        Ask(first, "coax", CELL.text, 8),
        Ask(second, "none", "", 0),
        Ask(second, "control", "", 4),
        Ask(second, "own", OWN.text, 8),
        Ask(second, "coax", CELL.text, 12),
    ]
    assert asks_of([first, second], 4, (OWN,), control=True)[0] == Ask(first, "none", "", 0)
    assert len(asks_of([first, second], 4, (OWN,), control=True)) == 4  # no control where nothing is probed


def test_clashing_and_idle_prefixes_are_refused() -> None:
    with pytest.raises(UsageError, match=f"task {TASKS[1].id} has two prefixes of one name"):
        asks_of(TASKS, 4, (CELL, replace(OWN, name="coax")), control=False)
    with pytest.raises(UsageError, match="none of the prefixes is for a task of this run"):
        asks_of(TASKS[:1], 4, (OWN,), control=False)


def test_a_prefix_stands_before_the_problem() -> None:
    plain, prefixed = build_messages(TASKS[0]), build_messages(TASKS[0], prefix="Think of division.")
    assert prefixed[0] == plain[0]
    assert prefixed[1]["content"] == "Think of division.\n\n" + plain[1]["content"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prefixes": (), "prefix_control": True}, "--prefix-control goes with --prefixes"),
        ({"samples": 1}, "--prefixes needs at least 2 samples"),
    ],
)
def test_requests_that_tell_nothing_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(PROBED, **change).check()


def test_configuration_round_trips_and_ordinary_runs_say_nothing_of_prefixes() -> None:
    config = replace(PROBED, prefix_control=True)
    assert config_of(json.loads(json.dumps(record_of(config)))) == config
    plain = record_of(replace(PROBED, prefixes=()))
    assert not any("prefix" in name for name in plain)


def test_a_run_records_prefixes_and_reports_what_they_bring_back(tmp_path: Path) -> None:
    engine = Coaxed()
    run = evaluate(engine, tmp_path / "run", replace(PROBED, prefix_control=True), model="coaxed")
    assert samples_asked(run.folder) == (3 * 3 + 1) * 2
    samples = run.samples()
    assert samples.groupby(["task_id", "prefix"]).size().eq(2).all()
    assert set(samples.loc[samples["task_id"] == TASKS[1].id, "prefix"]) == {"none", "control", "own", "coax"}
    document = run.summary()
    assert {cell["prefix"] for cell in document["cells"]} == {"none", "control", "own", "coax"}
    rows = {row["prefix"]: row for row in document["probing"]["rows"]}
    assert rows["coax"]["tasks"] == 3
    assert rows["own"]["tasks"] == 1
    assert [rows["coax"][name]["value"] for name in ("gained", "lost", "chance")] == [1.0, 1.0, 0.0]
    [cell] = document["probing"]["cells"]
    assert (cell["found_without"], cell["only_with_prefix"]) == (3, 3)
    assert document["cells"][0]["chance"]["uniform"]["accuracy"]["reason"] == (
        "chance is counted for runs without prefixes"
    )
    assert json.loads(run.folder.summary_path.read_text())["probing"] == document["probing"]


def test_samples_without_a_prefix_are_those_of_an_ordinary_run(tmp_path: Path) -> None:
    plain = evaluate(MockEngine("random"), tmp_path / "plain", replace(PROBED, prefixes=())).folder
    probed = evaluate(MockEngine("random"), tmp_path / "probed", PROBED).folder
    expected = [json.loads(line) for line in plain.responses_path.read_text().splitlines()]
    assert all("prefix" not in record for record in expected)
    found = [json.loads(line) for line in probed.responses_path.read_text().splitlines()]
    unprefixed = [record for record in found if record.pop("prefix") == "none"]
    assert unprefixed == expected
    assert len({record["seed"] for record in found}) == len(found)
    assert len({(record["task_id"], record["sample"]) for record in found}) == len(found)


@pytest.mark.parametrize("die_after", [1, 4, 6])
def test_a_killed_run_goes_on_with_its_own_prefixes(tmp_path: Path, die_after: int) -> None:
    evaluate(Coaxed(), tmp_path / "whole", PROBED, model="coaxed")
    with pytest.raises(ConnectionError):
        evaluate(Coaxed(die_after), tmp_path / "run", PROBED, model="coaxed")
    assert finish(RunFolder.open(tmp_path / "run"), Coaxed()) == 0
    for name in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_recorded_run_replays_prefix_by_prefix_and_never_under_another_name(tmp_path: Path) -> None:
    run = evaluate(Coaxed(), tmp_path / "run", PROBED, model="coaxed").folder
    replay = RecordedEngine(run.responses_path)
    again = evaluate(replay, tmp_path / "again", PROBED).folder
    assert again.verdicts_path("published").read_bytes() == run.verdicts_path("published").read_bytes()
    # With a control every later sample has another number: those are missing, not taken from a neighbour.
    shifted = create_run(tmp_path / "shifted", replay, "recorded", replace(PROBED, prefix_control=True))
    assert finish(shifted, replay) == 14
    errors = [line["error"] for line in shifted.responses() if line["error"]]
    assert f"no recorded response number 2 of {TASKS[0].id} with prefix 'control'" in errors


def test_prefixes_are_not_mixed_unnoticed(tmp_path: Path) -> None:
    run = evaluate(Coaxed(), tmp_path / "run", PROBED, model="coaxed")
    with pytest.raises(ValueError, match="different prefixes would be mixed: add 'prefix' to `by`"):
        mb.summarize(run.samples())
    assert set(mb.summarize(run.samples(), by=["prefix"])["prefix"]) == {"none", "own", "coax"}
    assert len(run.prompts()) == 3 + 3 + 1
