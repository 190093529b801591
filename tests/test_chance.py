"""What chance does on a run's tasks: own answers on other prompts, counted answers, the best constant."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import modebench as mb
from modebench.analysis.chance import NO_CHANCE, uniform_statistics
from modebench.chance import answer_space, best_constant, chance_path, chance_table, reassigned
from modebench.domains import DOMAINS
from modebench.evaluation import grade, summarize_run
from modebench.runs import RunFolder
from modebench.sampling.base import GenerationSettings, Group, Sample
from modebench.tasks import Task, load_tasks
from modebench.verifiers import verify
from tests.conftest import Command


class Always:
    """An engine that gives the same answer to everything."""

    groups_per_batch = 16

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def describe(self) -> dict[str, Any]:
        return {"engine": "always"}

    def generate(
        self, groups: Sequence[Group], settings: GenerationSettings
    ) -> Iterator[tuple[int, list[Sample]]]:
        for index, group in enumerate(groups):
            yield index, [Sample(self.answer, "stop") for _ in group.seeds]


def evaluated(path: Path, model: Any, domain: str, limit: int = 20, **config: Any) -> RunFolder:
    engine = mb.load_engine(model) if isinstance(model, str) else model
    selection = mb.Selection(domains=(domain,), limit=limit)
    mb.evaluate(engine, path, mb.EvalConfig(selection=selection, samples=4, **config))
    return RunFolder.open(path)


@pytest.mark.parametrize("size", [2, 3, 17])
def test_no_prompt_keeps_its_answers(size: int) -> None:
    tasks = list(load_tasks("countdown"))[:size]
    targets = reassigned(tasks, random.Random(4))
    assert sorted(target.id for target in targets.values()) == sorted(targets) == [t.id for t in tasks]
    assert all(source != target.id for source, target in targets.items())
    assert targets == reassigned(tasks, random.Random(4))


def test_a_single_prompt_has_no_other() -> None:
    assert reassigned([load_tasks("countdown")[0]], random.Random(0)) == {}


@pytest.mark.parametrize("reading", ["published", "clean"])
@pytest.mark.parametrize("domain", ["graph_coloring", "pantry_plan"])
def test_answers_are_judged_on_the_prompt_that_the_file_names(
    tmp_path: Path, domain: str, reading: Any
) -> None:
    run = evaluated(tmp_path / "run", "mock/uniform", domain, reading=reading)
    tasks = {task.id: task for task in load_tasks(domain)}
    texts: dict[str, list[str]] = {}
    for record in run.responses():
        texts.setdefault(record["task_id"], []).append(record["response"])
    lines = [json.loads(line) for line in chance_path(run, reading).read_text().splitlines()]
    assert len(lines) == 20
    assert {line["shuffled_from"] for line in lines} == {line["task_id"] for line in lines}
    for line in lines:
        verdicts = [verify(tasks[line["task_id"]], text, reading) for text in texts[line["shuffled_from"]]]
        assert line["shuffled_graded"] == len(verdicts) == 4
        modes = Counter(verdict.mode for verdict in verdicts if verdict.mode is not None)
        assert line["shuffled_counts"] == sorted(modes.values())


def test_a_model_that_ignores_the_prompt_is_not_above_chance(tmp_path: Path) -> None:
    """The answer that is right most often without reading: accuracy, shuffled and best constant agree."""
    tasks = list(load_tasks("graph_coloring"))
    answer = best_constant(tasks)[0]["constant_answer"]
    run = evaluated(tmp_path / "run", Always(answer), "graph_coloring", limit=128)
    document = json.loads(run.summary_path.read_text())
    (cell,) = document["cells"]
    right = sum(verify(task, answer).status == "correct" for task in tasks) / 128
    for row in (cell, cell["chance"]["shuffled"], cell["chance"]["best_constant"]):
        assert row["accuracy"]["value"] == pytest.approx(right)
        assert row["pcmd"]["value"] == 0
    assert cell["chance"]["best_constant"]["answer"] == answer
    assert cell["chance"]["best_constant"]["bound"] == "exact"
    codes = [text.split(":")[0] for text in document["warnings"]]
    assert "not-above-chance" in codes
    assert set(cell["chance"]) == {"shuffled", "uniform", "best_constant"}
    honest = evaluated(tmp_path / "honest", "mock/uniform", "graph_coloring")
    assert "not-above-chance" not in honest.summary_path.read_text()


def test_the_uniform_row_is_the_mean_over_tasks(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", "mock/oracle", "graph_coloring")
    (cell,) = json.loads(run.summary_path.read_text())["cells"]
    tasks = list(load_tasks("graph_coloring"))[:20]
    rates = [(task.modes or 0) / 27 for task in tasks]
    uniform = cell["chance"]["uniform"]
    assert uniform["accuracy"]["value"] == pytest.approx(sum(rates) / 20)
    assert uniform["pass@8"]["value"] == pytest.approx(sum(1 - (1 - rate) ** 8 for rate in rates) / 20)
    # every right fill is a mode of its own
    modes = sum((task.modes or 0) * (1 - (26 / 27) ** 8) for task in tasks) / 20
    assert uniform["modes@8"]["value"] == pytest.approx(modes)
    assert uniform["pcmd"]["value"] == pytest.approx(sum(1 - 1 / (task.modes or 1) for task in tasks) / 20)
    assert uniform["accuracy"]["n"] == 20


def test_the_best_constant_is_the_best_of_all_answers() -> None:
    tasks = list(load_tasks("pantry_plan"))
    hits = {
        f"{mask:06b}": sum(verify(task, f"{mask:06b}").status == "correct" for task in tasks)
        for mask in range(64)
    }
    found = best_constant(tasks)
    assert sum(entry["constant_right"] for entry in found) == max(hits.values())
    assert hits[found[0]["constant_answer"]] == max(hits.values())
    assert all(entry["constant_exact"] for entry in found)


def test_one_function_solves_every_python_task() -> None:
    tasks = list(load_tasks("python_factors"))
    found = best_constant(tasks)
    assert all(entry["constant_right"] and entry["constant_exact"] for entry in found)
    assert all(verify(task, found[0]["constant_answer"]).status == "correct" for task in tasks)


def test_a_constant_over_listed_solutions_alone_is_a_lower_bound() -> None:
    tasks = list(load_tasks("pantry_plan", 2))[:30]
    found = best_constant(tasks)
    right = [verify(task, found[0]["constant_answer"]).status == "correct" for task in tasks]
    assert not found[0]["constant_exact"]
    assert 1 <= sum(entry["constant_right"] for entry in found) <= sum(right)


def test_clean_countdown_counts_clean_modes() -> None:
    """18 from 3, 6, 9: a sum with 3 trees, and 6 * 9 / 3 with 5; the clean reading joins each."""
    reference = {"verifier": "countdown", "numbers": [3, 6, 9], "target": 18}
    task = Task("t", "countdown", 1, "eval", "", reference, 8)
    assert answer_space(task, "published") == (108, {1: 8})
    assert answer_space(task, "clean") == (108, {3: 1, 5: 1})


def test_tasks_that_cannot_be_counted_have_no_row() -> None:
    task = load_tasks("graph_coloring")[0]
    unknown = Task("t", task.domain, 1, "eval", "", task.reference, None)
    assert answer_space(unknown, "published") is None
    assert best_constant([unknown]) == [
        {"constant_right": None, "constant_answer": None, "constant_exact": None}
    ]
    negative = Task(
        "t", "countdown", 1, "eval", "", {"verifier": "countdown", "numbers": [-1], "target": 1}, 1
    )
    assert answer_space(negative, "published") is None
    assert best_constant([negative])[0]["constant_right"] is None


def test_chance_follows_the_responses(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", "mock/random", "graph_coloring")
    assert not isinstance(chance_table(run, "published"), str)
    missing = chance_table(run, "clean")
    assert isinstance(missing, str)
    assert f"modebench grade {run.path}" in missing
    chance_path(run, "published").unlink()
    (cell,) = summarize_run(run)["cells"]
    assert cell["chance"]["uniform"]["accuracy"]["value"] is None
    assert "modebench grade" in cell["chance"]["uniform"]["accuracy"]["reason"]
    before = run.manifest["graded"]["published"]
    grade(run)
    assert run.manifest["chance"]["published"] == before
    assert summarize_run(run)["cells"][0]["chance"]["uniform"]["accuracy"]["value"] > 0


def test_summaries_on_the_command_line(modebench: Command, tmp_path: Path) -> None:
    asked = ("eval", "-m", "mock/random", "--domain", "graph,countdown", "-n", "8", "-k", "4", "-o", "run")
    assert modebench(*asked).returncode == 0
    shown = modebench("summarize", "run").stdout
    assert shown.count("own answers shuffled") == 2
    assert "own answers" not in modebench("summarize", "run", "--no-chance").stdout
    graded = modebench("grade", "run/responses.jsonl", "-o", "verdicts.jsonl")
    assert graded.returncode == 0, graded.stderr
    document = json.loads(modebench("summarize", "verdicts.jsonl", "--format", "json").stdout)
    for row in document["cells"][0]["chance"].values():
        assert row["accuracy"]["value"] is None
        assert row["accuracy"]["reason"] == NO_CHANCE


def test_the_documented_chance_of_the_frozen_splits() -> None:
    """The table of docs/metrics.md, a line a domain: uniform accuracy, pass@8, modes@8, best constant."""
    text = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.count("|") == 6]
    documented = {row[0]: row[1:] for row in rows if row[0] in DOMAINS}
    assert list(documented) == list(DOMAINS)
    for domain, stated in documented.items():
        tasks = list(load_tasks(domain))
        spaces = [answer_space(task, "published") for task in tasks]
        known = [space for space in spaces if space is not None]
        columns = uniform_statistics([s.size for s in known], [s.right for s in known], ks=(8,))
        means = [columns[name].mean() for name in ("accuracy", "pass@8", "modes@8")]
        constant = sum(entry["constant_right"] for entry in best_constant(tasks)) / len(tasks)
        assert [f"{value:.3f}" for value in (*means, constant)] == stated
