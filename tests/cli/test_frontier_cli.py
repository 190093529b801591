"""Several temperatures, prefixes and the report, from the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from modebench.runs import RunFolder
from modebench.tasks import load_tasks
from tests.conftest import Command

SMALL = ("-m", "mock/random", "--domain", "graph,countdown", "-n", 3, "-k", 4, "--no-progress")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_several_temperatures_are_one_command(modebench: Command, tmp_path: Path) -> None:
    done = modebench("eval", *SMALL, "--temperature", "0.4, 1.0,0.7,1.0", "-o", "sweep")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == ["T0.4", "T0.7", "T1.0"]
    for name in ("T0.4", "T0.7", "T1.0"):
        manifest = RunFolder.open(tmp_path / "sweep" / name).manifest
        assert manifest["settings"]["temperature"] == float(name[1:])
        assert manifest["status"] == "success"
    assert done.stdout.startswith("temperature")
    table = rows(modebench("summarize", "sweep", "--by", "temperature,domain", "--format", "csv").stdout)
    accuracy = [(row["temperature"], row["domain"]) for row in table if row["metric"] == "accuracy"]
    assert accuracy == [(t, d) for t in ("0.4", "0.7", "1.0") for d in ("graph_coloring", "countdown")]
    document = json.loads(modebench("eval", *SMALL, "--temperature", "0.5,1", "--json").stdout)
    assert [cell["temperature"] for cell in document["cells"]] == [0.5, 0.5, 1.0, 1.0]
    assert document["cells"][0]["chance"]["uniform"]["accuracy"]["value"] > 0


def test_one_temperature_of_a_sweep_is_the_run_alone(modebench: Command, tmp_path: Path) -> None:
    modebench("eval", *SMALL, "--temperature", "0.4,0.7", "-o", "sweep")
    modebench("eval", *SMALL, "--temperature", "0.7", "-o", "alone")
    for name in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
        assert (tmp_path / "sweep/T0.7" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_a_sweep_goes_on_where_it_stopped(modebench: Command, tmp_path: Path) -> None:
    modebench("eval", *SMALL, "--temperature", "0.4,0.7", "-o", "whole")
    modebench("eval", *SMALL, "--temperature", "0.4,0.7", "-o", "sweep")
    # As after a kill: the first run lacks its last responses, the second was only created.
    first, second = (RunFolder.open(tmp_path / "sweep" / name) for name in ("T0.4", "T0.7"))
    lines = first.responses_path.read_bytes().splitlines(keepends=True)
    first.responses_path.write_bytes(b"".join(lines[:8]))
    for path in second.path.glob("*"):
        if path.name != "run.json":
            path.unlink()
    for run in (first, second):
        run.manifest.pop("graded")
        run.update(status="running")
    done = modebench("eval", "--resume", "sweep", "--no-progress")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("temperature")
    for name in ("T0.4", "T0.7"):
        for file in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
            assert (tmp_path / "sweep" / name / file).read_bytes() == (
                tmp_path / "whole" / name / file
            ).read_bytes()


def test_generate_knows_several_temperatures_too(modebench: Command, tmp_path: Path) -> None:
    done = modebench("generate", *SMALL, "--temperature", "0.4,0.7", "-o", "sweep")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["sweep/T0.4", "sweep/T0.7"]
    assert not list(tmp_path.glob("sweep/*/verdicts*"))


def test_missing_samples_of_a_sweep_name_its_folder(modebench: Command) -> None:
    modebench("eval", *SMALL, "-o", "source")
    asked = ["-m", "recorded/source", *SMALL[2:6], "-k", 5, "--temperature", "0.4,0.7", "-o", "sweep"]
    done = modebench("eval", *asked, "--error-budget", 0.5, "--no-progress")
    assert done.returncode == 3
    assert "12 samples are missing; resume with: modebench eval --resume sweep" in done.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("0.4,warm", "'0.4,warm' is not a number or a list of numbers"),
        ("", "'' is not a number"),
        ("inf", "'inf' is not finite"),
        ("0,1", "--samples 4 with --temperature 0 would be one response 4 times"),
        ("1,-1", "--temperature must not be negative"),
    ],
)
def test_bad_temperatures_are_refused_before_anything_is_written(
    modebench: Command, tmp_path: Path, given: str, message: str
) -> None:
    done = modebench("eval", *SMALL, "--temperature", given, "-o", "sweep")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_prefixes_are_asked_and_reported(modebench: Command, tmp_path: Path) -> None:
    task = load_tasks("graph")[0].id
    lines = [
        {"domain": "countdown", "level": 1, "name": "divide", "prefix": "Think of division."},
        {"task_id": task, "name": "three", "prefix": "Start with color 3."},
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = modebench("eval", *SMALL, "--prefixes", "p.jsonl", "--prefix-control", "-o", "run")
    assert done.returncode == 0, done.stderr
    # 6 tasks without a prefix, 4 of them with one, and these 4 once more without.
    assert "4 samples × 14 prompts = 56 responses → run" in done.stderr
    assert "beyond chance" in done.stdout
    assert "does not prove it pruned" in " ".join(done.stdout.split())
    manifest = json.loads((tmp_path / "run/run.json").read_text())
    assert [entry["text"] for entry in manifest["prefixes"]] == [line["prefix"] for line in lines]
    (tmp_path / "p.jsonl").unlink()  # the run keeps what it needs to go on
    assert modebench("eval", "--resume", "run", "--no-progress").stdout == done.stdout
    mixed = modebench("summarize", "run", "--by", "domain")
    assert mixed.returncode == 2
    assert "add 'prefix' to `by`" in mixed.stderr
    table = rows(modebench("summarize", "run", "--by", "prefix,domain", "--format", "csv").stdout)
    assert {row["prefix"] for row in table} == {"none", "control", "divide", "three"}


def test_bad_prefixes_are_one_line_and_exit_code_2(modebench: Command, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"task_id": "t", "name": "a"}\n')
    done = modebench("eval", *SMALL, "--prefixes", "p.jsonl", "-o", "run")
    assert (done.returncode, done.stderr) == (2, "error: p.jsonl:1: prefix: is missing\n")
    (tmp_path / "p.jsonl").write_text('{"task_id": "t", "name": "a", "prefix": "x"}\n')
    done = modebench("eval", *SMALL, "--prefixes", "p.jsonl", "-o", "run")
    assert (done.returncode, done.stderr) == (
        2,
        "error: none of the prefixes is for a task of this run\n",
    )
    assert not (tmp_path / "run").exists()


def test_report_of_several_runs_and_of_a_file(modebench: Command, tmp_path: Path) -> None:
    modebench("eval", *SMALL, "-o", "a", "--arm", "first")
    modebench("eval", "-m", "mock/collapsed", *SMALL[2:], "-o", "b", "--arm", "second")
    done = modebench("report", "a", "b", "-o", "page.html", "--title", "Two <runs>")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("page.html: 0.")
    page = (tmp_path / "page.html").read_text()
    assert "<h1>Two &lt;runs&gt;</h1>" in page
    for title in ("pass@k", "modes@k", "Accuracy and diversity", "Modes of each prompt", "Paired differ"):
        assert f"<strong>{title}" in page
    assert "one-text" not in page  # three prompts are too few to say so
    assert modebench("report", "a").returncode == 0
    assert (tmp_path / "a/report.html").is_file()
    record = {
        "task_id": "t",
        "domain": "countdown",
        "level": 1,
        "sample": 0,
        "status": "correct",
        "mode": "m",
    }
    (tmp_path / "judged.jsonl").write_text(json.dumps(record) + "\n")
    assert modebench("report", "judged.jsonl", "-o", "file.html").returncode == 0
    assert "without settings" in (tmp_path / "file.html").read_text()


def test_bad_reports_are_refused(modebench: Command) -> None:
    modebench("eval", *SMALL, "-o", "a")
    for arguments, message in (
        (("a", "a"), "--output is missing"),
        (("a", "-o", "nowhere/page.html"), "there is no folder nowhere to write in"),
        (("missing", "-o", "page.html"), "no run folder and no file at missing"),
    ):
        done = modebench("report", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_run_that_is_not_finished_says_so_in_its_report(modebench: Command, tmp_path: Path) -> None:
    modebench("eval", *SMALL, "-o", "source")
    modebench("eval", "-m", "recorded/source", *SMALL[2:6], "-k", 5, "-o", "run", "--no-progress")
    assert modebench("report", "run").returncode == 0
    page = (tmp_path / "run/report.html").read_text()
    assert "unfinished: run has the status error" in page
    assert "missing-samples: run lacks 6 samples" in page
