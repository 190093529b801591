"""``compare``, ``power`` and the sources of ``summarize``, on the real command line."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

ASKED = ("--domain", "countdown,graph", "-n", 12, "-k", 4)
PLAIN = ("--domain", "countdown", "-n", 12, "-k", 4)


def evaluate(model: str, output: Path, *asked: object) -> None:
    command = [sys.executable, "-m", "modebench", "eval", "-m", model, *asked, "-o", output]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def made_sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sides")
    for side, model in (("A", "mock/uniform"), ("B", "mock/random")):
        for seed in (1, 2, 3):
            evaluate(model, path / side / f"s{seed}", *ASKED, "--seed", seed)
    return path


@pytest.fixture
def sides(made_sides: Path, tmp_path: Path) -> Path:
    """A/s1..s3 uniform, B/s1..s3 random answers, in `tmp_path`."""
    return shutil.copytree(made_sides, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def plain_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "a"
    evaluate("mock/uniform", path, *PLAIN)
    return path


def test_compare_in_every_format(modebench: Command, sides: Path) -> None:
    text = modebench("compare", "A/s1", "B/s1")
    assert text.returncode == 0, text.stderr
    assert "B − A" in text.stdout
    assert "learned (same)" in text.stdout
    assert modebench("compare", "A/s1", "B/s1", "--format", "table").stdout == text.stdout
    document = json.loads(modebench("compare", "A/s1", "B/s1", "--format", "json").stdout)
    cell = document["cells"][1]
    assert (cell["domain"], cell["prompts"]) == ("countdown", 12)
    assert cell["accuracy"]["difference"] < -0.5
    assert cell["pcmd"]["n"] <= 12
    summary = json.loads(modebench("summarize", "B/s1", "--by", "domain,level", "--format", "json").stdout)
    beside = summary["cells"][1]["chance"]["shuffled"]["accuracy"]["value"]
    assert cell["chance"]["b"]["shuffled"]["accuracy"] == beside
    rows = list(csv.DictReader(io.StringIO(modebench("compare", "A/s1", "B/s1", "--format", "csv").stdout)))
    [row] = [r for r in rows if r["domain"] == "countdown" and r["metric"] == "accuracy"]
    assert float(row["difference"]) == cell["accuracy"]["difference"]
    assert modebench("compare", "A/s1", "B/s1", "--format", "latex").stdout.count("\\toprule") == 3
    chosen = modebench("compare", "A/s1", "B/s1", "--metric", "chao1", "--by", "domain").stdout
    assert "chao1" in chosen
    assert "accuracy" not in chosen


def test_folders_of_runs_are_paired_by_seed(modebench: Command, sides: Path) -> None:
    done = modebench("compare", "A", "B", "--bootstrap", 50)
    assert done.returncode == 0, done.stderr
    assert "over seeds" in done.stdout
    assert "bootstrap over seed, then prompts" in done.stdout
    (sides / "B" / "s3").rename(sides / "elsewhere")
    refused = modebench("compare", "A", "B")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: A and B differ in seeds: [1, 2, 3] and [1, 2]; ")
    allowed = modebench("compare", "A", "B", "--allow-mismatch", "seeds")
    assert allowed.returncode == 0
    assert "warning: mismatch: A and B differ in seeds" in allowed.stdout


DIFFERENT = {
    "temperature": (("--temperature", 0.7), "1.0 and 0.7"),
    "top_p": (("--top-p", 0.9), "1.0 and 0.9"),
    "top_k": (("--top-k", 40), "0 and 40"),
    "max_tokens": (("--max-tokens", 64), "192 and 64"),
    "samples": (("-k", 5), "4 and 5"),
    "reading": (("--reading", "clean"), "'published' and 'clean'"),
    "profile": (("--profile", "plain"), "'direct' and 'plain'"),
    "tasks": (("-n", 11), "countdown/level1/eval"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_refusals_name_both_values(modebench: Command, plain_run: Path, tmp_path: Path, name: str) -> None:
    options, values = DIFFERENT[name]
    shutil.copytree(plain_run, tmp_path / "a")
    evaluate("mock/uniform", tmp_path / "b", *PLAIN, *options)
    refused = modebench("compare", "a", "b")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.count("\n") == 1
    assert f"A and B differ in {name}: " in refused.stderr
    assert values in refused.stderr
    assert f"--allow-mismatch {name}" in refused.stderr
    allowed = modebench("compare", "a", "b", "--allow-mismatch", name)
    assert allowed.returncode == 0, allowed.stderr
    assert f"warning: mismatch: A and B differ in {name}" in allowed.stdout


def test_wrong_uses(modebench: Command, sides: Path) -> None:
    for arguments, problem in (
        (("compare", "A/s1"), "Missing argument 'B'"),
        (("compare", "A/s1", "none"), "no run folder and no file at none"),
        (("compare", "A/s1", "B/s1", "--metric", "beauty"), "no metric is called 'beauty'"),
        (("compare", "A/s1", "B/s1", "--by", "mood"), "lacks the columns ['mood']"),
        (("compare", "A/s1", "B/s1", "--allow-mismatch", "mood"), "no setting is called 'mood'"),
        (("summarize", "A", "--upper-level", "step"), "tells the runs apart"),
        (("summarize", "A", "--by", "seed", "--upper-level", "seed"), "is a column of `by`"),
        (("summarize", "A", "--collapse"), "is not an evaluation of a training run"),
        (("compare", "A", "B", "--last"), "is not an evaluation of a training run"),
        (("summarize", "A/s1", "--bootstrap", 9, "--upper-level", "mood"), "lacks the columns ['mood']"),
        (("power", "--delta", 0.1), "a pilot is needed"),
        (("power", "--delta", 0, "--pilot", "A/s1"), "other than 0"),
        (("power", "--delta", 0.1, "--pilot", "A/s1", "--samples", "8,x"), "'8,x' is not a list of counts"),
    ):
        done = modebench(*arguments)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)
        assert problem in done.stderr, (arguments, done.stderr)
        assert done.stderr.count("\n") == 1, (arguments, done.stderr)


def test_bare_files_are_compared_too(modebench: Command, tmp_path: Path) -> None:
    for name, status in (("a", "incorrect"), ("b", "correct")):
        records = [
            {"task_id": f"t{task}", "domain": "mine", "level": 1, "sample": sample, "status": status,
             "mode": f"m{sample}" if status == "correct" else None}
            for task in range(30) for sample in range(4)
        ]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    [cell] = json.loads(modebench("compare", "a.jsonl", "b.jsonl", "--format", "json").stdout)["cells"]
    assert cell["accuracy"]["difference"] == 1
    assert cell["outcomes"]["prompts"]["learned"] == 30
    assert cell["outcomes"]["modes"]["gained"] == 120


def test_summarize_takes_folders_and_an_upper_level(modebench: Command, sides: Path) -> None:
    by = "seed,step,arm,domain,level"
    rows = csv.DictReader(io.StringIO(modebench("summarize", "A", "--by", by, "--format", "csv").stdout))
    assert {row["seed"] for row in rows} == {"1", "2", "3"}
    assert "95% intervals: t over seeds" in modebench("summarize", "A", "--by", "domain").stdout
    done = modebench("summarize", "A", "--bootstrap", 50, "--upper-level", "seed", "--format", "table")
    assert done.returncode == 0, done.stderr
    assert "36×4" in done.stdout
    assert "bootstrap over seed, then prompts" in done.stdout


def test_power_from_a_pilot_and_from_given_variances(modebench: Command, sides: Path) -> None:
    given = ("--between-variance", 0.1, "--sampling-variance", 0.2, "--metric", "accuracy")
    document = json.loads(modebench("power", "--delta", 0.05, *given, "--format", "json").stdout)
    assert [(row["samples"], row["prompts"]) for row in document["rows"]] == [
        (8, 473),
        (16, 395),
        (32, 356),
        (64, 336),
    ]
    text = modebench("power", "--delta", 0.1, "--pilot", "A/s1", "--samples", "4,8").stdout
    assert [line.split()[:3] for line in text.splitlines()[2:6]] == [
        [domain, "1", k] for domain in ("graph_coloring", "countdown") for k in ("4", "8")
    ]
    assert "correlation 0.5" in text
    for layout in ("markdown", "latex", "csv", "table"):
        assert modebench("power", "--delta", 0.1, *given, "--format", layout).returncode == 0
