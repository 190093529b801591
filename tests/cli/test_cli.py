"""The real command line, as a new user types it: right uses, wrong uses, killed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from modebench.cli import COMMANDS
from modebench.sampling.base import GenerationSettings
from modebench.tasks import load_tasks, write_tasks
from tests.conftest import Command


def published_record(responses: list[str]) -> dict[str, Any]:
    task = load_tasks("countdown")[0]
    return {
        "id": 7,
        "level": 1,
        "domain": "countdown",
        "answer": dict(task.reference),
        "responses": responses,
    }


def write_jsonl(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_eval_prints_a_table_and_writes_a_run(modebench: Command, tmp_path: Path) -> None:
    done = modebench(
        "eval", "-m", "mock/collapsed", "--domain", "graph,python", "-n", 4, "-k", 4, "-o", "run"
    )
    assert done.returncode == 0, done.stderr
    assert "4 samples × 8 tasks = 32 responses" in done.stderr
    assert "graph_coloring" in done.stdout
    assert "python_factors" in done.stdout
    assert "reading: published; profile: direct" in done.stdout
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "success"


def test_default_folder_is_named_after_time_and_model(modebench: Command, tmp_path: Path) -> None:
    done = modebench("eval", "-m", "mock/random", "--domain", "countdown", "-n", 1, "-k", 2)
    assert done.returncode == 0, done.stderr
    [folder] = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("Z_mock--random")


def test_three_stages_give_what_eval_gives(modebench: Command, tmp_path: Path) -> None:
    asked = ["-m", "mock/random", "--domain", "countdown,pantry", "-n", 3, "-k", 4]
    assert modebench("eval", *asked, "-o", "whole").returncode == 0
    assert modebench("generate", *asked, "-o", "staged").returncode == 0
    assert not (tmp_path / "staged" / "verdicts.published.jsonl").exists()
    early = modebench("summarize", "staged")
    assert early.returncode == 2
    assert "modebench grade staged" in early.stderr
    assert modebench("grade", "staged").returncode == 0
    for name in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
        assert (tmp_path / "staged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    tables = [modebench("summarize", name, "--format", "csv").stdout for name in ("whole", "staged")]
    assert tables[0] == tables[1] != ""


def test_json_output_is_json_alone(modebench: Command) -> None:
    done = modebench("eval", "-m", "mock/uniform", "--domain", "countdown", "-n", 2, "-k", 2, "--json")
    assert json.loads(done.stdout)["cells"][0]["pcmd"]["n"] == 2


def test_recorded_responses_replay(modebench: Command, tmp_path: Path) -> None:
    asked = ["--domain", "countdown", "-n", 3, "-k", 4]
    assert modebench("eval", "-m", "mock/uniform", *asked, "-o", "first").returncode == 0
    assert modebench("eval", "-m", "recorded/first/responses.jsonl", *asked, "-o", "second").returncode == 0
    verdicts = [(tmp_path / name / "verdicts.published.jsonl").read_bytes() for name in ("first", "second")]
    assert verdicts[0] == verdicts[1]
    more = modebench("eval", "-m", "recorded/first", "--domain", "countdown", "-n", 3, "-k", 5, "-o", "third")
    assert more.returncode == 1  # a fifth of the samples is missing: over the budget
    assert "3 samples are missing; resume with: modebench eval --resume third" in more.stderr
    allowed = modebench("eval", "-m", "recorded/first", *asked[:2], "-n", 3, "-k", 5, "--error-budget", 0.5)
    assert allowed.returncode == 3


def test_grade_reads_the_published_layout(modebench: Command, tmp_path: Path) -> None:
    right = next(iter(_solutions("countdown", 0)))
    file = write_jsonl(tmp_path / "in.jsonl", published_record([right, "\\boxed{1}", "no idea"]))
    done = modebench("grade", file, "-o", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 responses: 1 correct, 1 incorrect, 1 malformed\n"
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["correct", "incorrect", "malformed"]
    assert [(line["task_id"], line["sample"]) for line in lines] == [("7", 0), ("7", 1), ("7", 2)]
    assert list(lines[0]) == ["task_id", "domain", "level", "sample", "status", "mode", "detail"]
    assert modebench("summarize", "out.jsonl").returncode == 0


def test_grade_reads_foreign_lines_against_frozen_and_given_tasks(modebench: Command, tmp_path: Path) -> None:
    task = load_tasks("countdown")[0]
    right = next(iter(_solutions("countdown", 0)))
    rows = [{"task_id": task.id, "response": right}, {"task_id": task.id, "response": "x", "mine": 1}]
    write_jsonl(tmp_path / "in.jsonl", *rows)
    assert modebench("grade", "in.jsonl", "-o", "a.jsonl").returncode == 0
    write_tasks(tmp_path / "tasks.jsonl", [task])
    assert modebench("grade", "in.jsonl", "-o", "b.jsonl", "--tasks", "tasks.jsonl").returncode == 0
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_reasoning_is_kept_when_grading_files_unless_asked(modebench: Command, tmp_path: Path) -> None:
    right = next(iter(_solutions("countdown", 0)))
    file = write_jsonl(tmp_path / "in.jsonl", published_record([f"<think>{right}"]))
    modebench("grade", file, "-o", "as-is.jsonl")
    modebench("grade", file, "-o", "split.jsonl", "--strip-reasoning")
    statuses = [json.loads((tmp_path / f"{n}.jsonl").read_text())["status"] for n in ("as-is", "split")]
    assert statuses == ["correct", "malformed"]


def _solutions(domain: str, index: int) -> list[str]:
    from modebench.domains import get_domain

    task = load_tasks(domain)[index]
    return [solution.answer for solution in get_domain(domain).solutions(task.reference, 1)]


BAD_FILES = {
    "broken.jsonl": ('{"task_id": "a", "response": "b"\n', "broken.jsonl:1: record: is not JSON"),
    "list.jsonl": ("[1]\n", "list.jsonl:1: record: must be a JSON object"),
    "no-id.jsonl": ('{"response": "b"}\n', "no-id.jsonl:1: task_id: must be a non-empty text"),
    "no-text.jsonl": ('{"task_id": "a"}\n', "no-text.jsonl:1: response: is missing"),
    "number.jsonl": ('{"task_id": "a", "response": 3}\n', "number.jsonl:1: response: must be text, not 3"),
    "unknown.jsonl": (
        '{"task_id": "countdown/level1/eval/9999", "response": ""}\n',
        "unknown.jsonl:1: task_id: 'countdown/level1/eval/9999' is in no frozen split",
    ),
    "twice.jsonl": (
        '{"task_id": "a", "sample": 0, "response": ""}\n' * 2,
        "twice.jsonl:2: sample: 0 of a stands in line 1 already",
    ),
    "domain.jsonl": (
        '{"id": 1, "level": 1, "domain": "chess", "answer": {}, "responses": ["a"]}\n',
        "domain.jsonl:1: domain: unknown domain 'chess'",
    ),
    "level.jsonl": (
        '{"id": 1, "level": 9, "domain": "countdown", "answer": {}, "responses": ["a"]}\n',
        "level.jsonl:1: level: must be 1 to 5, not 9",
    ),
    "reference.jsonl": (
        '\n{"id": 1, "level": 1, "domain": "countdown", "answer": {"verifier": "countdown", "numbers": [1.0],'
        ' "target": 1}, "responses": ["a"]}\n',
        "reference.jsonl:2: reference.numbers[0]: must be an integer, not 1.0",
    ),
    "responses.jsonl": (
        '{"id": 1, "level": 1, "domain": "countdown", "answer": {}, "responses": [1]}\n',
        "responses.jsonl:1: responses[0]: must be text, not int",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_lines_are_one_line_errors_and_nothing_is_written(
    modebench: Command, tmp_path: Path, name: str
) -> None:
    content, message = BAD_FILES[name]
    if name == "twice.jsonl":
        content = content.replace('"a"', '"countdown/level1/eval/0000"')
        message = message.replace(" a ", " countdown/level1/eval/0000 ")
    (tmp_path / name).write_text(content)
    done = modebench("grade", name, "-o", "out.jsonl")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evl"], "did you mean 'eval'?"),
        (["eval"], "--model is missing"),
        (["eval", "-m", "mok/uniform"], "did you mean mock/uniform?"),
        (["eval", "-m", "mock/unifrom"], "no mock is called 'unifrom'"),
        (["eval", "-m", "mock"], "unknown model string 'mock'"),
        (["eval", "-m", "hf/./no/such/model"], "./no/such/model"),
        (["eval", "-m", "recorded/none.jsonl"], "no file of responses at none.jsonl"),
        (["eval", "-m", "mock/uniform", "--domain", "grph"], "did you mean 'graph'?"),
        (["eval", "-m", "mock/uniform", "--level", "6"], "'6' is not a list of levels 1 to 5"),
        (["eval", "-m", "mock/uniform", "--split", "test"], "no split"),
        (["eval", "-m", "mock/uniform", "--temperature", "0"], "--samples 8 with --temperature 0"),
        (["eval", "-m", "mock/uniform", "--samples", "x"], "'x' is not a valid integer"),
        (["eval", "-m", "mock/uniform", "--tasks", "none.jsonl"], "no file of tasks at none.jsonl"),
        (["eval", "-m", "mock/uniform", "-o", "occupied"], "output folder occupied is in use"),
        (["eval", "--resume", "occupied"], "occupied is not a run folder"),
        (["eval", "--nonsense"], "--nonsense"),
        (["grade", "none.jsonl", "-o", "out.jsonl"], "no file of responses at none.jsonl"),
        (["grade", "occupied/notes.txt"], "--output is missing"),
        (["grade", "occupied/notes.txt", "-o", "occupied/notes.txt"], "exists; choose another"),
        (["summarize", "none"], "no run folder and no file at none"),
        (["tasks", "show", "countdown/level1/eval/9999"], "is in no frozen split"),
        (["tasks", "ls", "countdown/level1/test"], "no split"),
        (["tasks", "ls", "chess"], "is not the name of a split"),
        (["tasks", "verify", "nothing", "x"], "is in no frozen split"),
    ],
)
def test_wrong_uses_are_one_line_and_exit_2(
    modebench: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "notes.txt").write_text("mine")
    done = modebench(*arguments)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2, done.stderr
    assert message in last
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["occupied"]
    assert (tmp_path / "occupied" / "notes.txt").read_text() == "mine"


def test_help_shows_the_defaults_of_the_configuration(modebench: Command) -> None:
    text = " ".join(modebench("eval", "--help").stdout.split())
    settings = GenerationSettings()
    for shown in (f"[default: {settings.max_tokens}]", f"[default: {settings.temperature}]", "all five"):
        assert shown in text
    top = modebench("--help").stdout
    assert all(name in top for name in COMMANDS)
    assert "Exit codes" in top


def test_importing_and_help_load_no_heavy_package() -> None:
    code = (
        "import sys, modebench; from modebench.cli import cli\n"
        "try: cli(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'pandas', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_tasks_can_be_listed_shown_and_tried(modebench: Command) -> None:
    listed = modebench("tasks", "ls").stdout
    assert "countdown/level1/eval" in listed
    assert "128 tasks" in listed
    task = load_tasks("countdown")[0]
    assert task.id in modebench("tasks", "ls", "countdown/level1/eval").stdout
    shown = modebench("tasks", "show", task.id).stdout
    assert task.problem in shown
    assert f"{task.modes} modes" in shown
    right = _solutions("countdown", 0)[0]
    for given in ({"stdin": None}, {"stdin": right}):
        arguments = [right] if given["stdin"] is None else []
        verdict = json.loads(modebench("tasks", "verify", task.id, *arguments, **given).stdout)
        assert verdict["status"] == "correct"


def test_dry_run_says_values_sources_and_the_first_prompt(modebench: Command, tmp_path: Path) -> None:
    done = modebench(
        "eval", "-m", "mock/uniform", "--temperature", "0.5", "--domain", "countdown", "--dry-run"
    )
    assert "temperature      0.5  (command line)" in done.stdout
    assert "top_p            1.0  (default)" in done.stdout
    assert load_tasks("countdown")[0].problem in done.stdout
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["responses.jsonl", "verdicts.published.jsonl", "summary.json"])
def test_a_run_killed_at_any_stage_resumes_to_the_same_bytes(
    modebench: Command, tmp_path: Path, name: str
) -> None:
    asked = ["-m", "mock/random", "--domain", "mathir,pantry", "-n", "24", "-k", "16"]
    assert modebench("eval", *asked, "-o", "whole").returncode == 0
    command = [sys.executable, "-m", "modebench", "eval", *asked, "-o", "killed"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    watched = tmp_path / "killed" / name
    deadline = time.monotonic() + 60
    while not (watched.exists() and watched.stat().st_size) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = modebench("eval", "--resume", "killed")
    assert done.returncode == 0, done.stderr
    for file in ("responses.jsonl", "verdicts.published.jsonl", "summary.json"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_interrupting_is_130_and_resumable(tmp_path: Path, modebench: Command) -> None:
    asked = ["-m", "mock/uniform", "--domain", "mathir", "-n", "100", "-k", "4", "-o", "run"]
    process = subprocess.Popen(
        [sys.executable, "-m", "modebench", "eval", *asked],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would everything that they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = tmp_path / "run" / "responses.jsonl"
    while not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume with: modebench eval --resume run" in stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "cancelled"
    assert modebench("eval", "--resume", "run").returncode == 0


def test_show_filters_responses(modebench: Command, tmp_path: Path) -> None:
    modebench("eval", "-m", "mock/random", "--domain", "graph", "-n", 8, "-k", 4, "-o", "run")
    verdicts = (tmp_path / "run" / "verdicts.published.jsonl").read_text().splitlines()
    right = [json.loads(line) for line in verdicts if '"status":"correct"' in line]
    shown = modebench("show", "run", "--status", "correct", "-n", 1000)
    assert shown.returncode == 0
    assert shown.stdout.count("── ") == len(right) > 0
    assert f"{len(right)} of {len(right)} matching" in shown.stderr
    one = modebench("show", "run", "--task", "*/0003", "--prompt", "-n", 2)
    assert one.stdout.count("── graph_coloring/level1/eval/0003 #") == 2
    assert load_tasks("graph")[3].problem in one.stdout
    of_mode = modebench("show", "run", "--mode", right[0]["mode"])
    assert right[0]["mode"] in of_mode.stdout
    (tmp_path / "run" / "verdicts.published.jsonl").write_text("\n".join(verdicts[1:]) + "\n")
    broken = modebench("show", "run")
    assert broken.returncode == 2
    assert "is not the verdict on response 1; grade again" in broken.stderr
