"""The real command line: training, evaluation and the table over it; and every way in which it refuses."""

from __future__ import annotations

import json
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from modebench.samples import load_runs
from modebench.verifiers.registry import installed_domains
from tests.conftest import Command
from tests.training.child import Place


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_two_methods_on_graph_coloring_end_in_one_table(
    place: Place, tmp_path: Path, modebench: Command
) -> None:
    small = [
        "eval.limit=2", "eval.samples=4", "eval.dev_limit=2", "eval.dev_samples=2", "rollout.group_size=4",
        "rollout.num_prompts=2", "rollout.max_completion_length=12", "eval.every=2", "run.device=cpu",
    ]  # fmt: skip
    sets = [piece for text in small for piece in ("--set", text)]
    for method in ("dr_grpo", "re_max"):
        asked = ["--method", method, "--model", f"hf/{place.model}", "--domain", "graph", "--steps", "3"]
        done = modebench("train", *asked, *sets, "--output", method, "--seed", "1")
        assert done.returncode == 0, done.stderr
        folder = tmp_path / method
        assert [line["step"] for line in lines(folder / "metrics.jsonl")] == [1, 2, 3]
        assert sorted(path.name for path in (folder / "eval").iterdir()) == [
            "step-000000", "step-000002", "step-000003",
        ]  # fmt: skip
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["status"] == "success"
        assert summary["last_checkpoint"] == "checkpoints/step-000003"
        assert summary["best_on_dev"] == {
            "step": 0, "accuracy": 0.0, "checkpoint": "checkpoints/step-000000",
        }  # fmt: skip
    runs = [f"{method}/eval/step-{step:06d}" for method in ("dr_grpo", "re_max") for step in (0, 2, 3)]
    table = modebench("summarize", *runs, "--by", "arm,step", "--format", "json")
    assert table.returncode == 0, table.stderr
    cells = json.loads(table.stdout)["cells"]
    assert [(cell["arm"], cell["step"]) for cell in cells] == [
        (method, step) for method in ("dr_grpo", "re_max") for step in (0, 2, 3)
    ]
    # The checkpoint is an ordinary model, and what it answers is what the evaluation at its step recorded.
    again = modebench(
        "eval", "-m", f"hf/{tmp_path / 'dr_grpo/checkpoints/step-000003'}", "--domain", "graph", "-n", "2",
        "-k", "4", "--max-tokens", "12", "--seed", "1", "-o", "again",
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "success" in (tmp_path / "again/run.json").read_text()


@pytest.fixture
def letters(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The third-party domain in this process, which looks installed ones up only once."""
    monkeypatch.syspath_prepend(place.site)
    installed_domains.cache_clear()
    yield
    installed_domains.cache_clear()


@pytest.mark.usefixtures("letters")
def test_what_a_run_writes(place: Place, tmp_path: Path) -> None:
    child = place.train(tmp_path, *place.asked("re_max", 4), "--seed", "3", "-o", "run")
    assert child.wait() == 0, child.text
    run = tmp_path / "run"
    steps = lines(run / "metrics.jsonl")
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    for step in steps:
        assert step["clip_fraction"] == 0
        assert step["log_ratio_abs_max"] == 0
        assert step["sampler_gap_max"] < 1e-4
        assert step["total/rollouts"] == step["step"] * 8
        groups = step["all_right"] + step["all_wrong"] + step["mixed_groups"]
        assert groups == 1
        assert step["with_gradient"] == step["mixed_groups"]
    assert any(step["mixed_groups"] for step in steps)
    assert any(step["grad_norm/extra"] for step in steps)
    assert not any(name.startswith("seconds") for step in steps for name in step)
    assert [set(line) for line in lines(run / "timing.jsonl")] == [
        {"step", "seconds/sampling", "seconds/update"}
    ] * 4
    samples = load_runs([run / "eval/step-000000", run / "eval/step-000004"]).samples(texts=False)
    assert sorted(samples["step"].unique()) == [0, 4]
    assert set(samples["arm"]) == {"re_max"}
    assert set(samples["seed"]) == {3}
    assert samples["sample_seed"].nunique() == len(samples) == 2 * 3 * 2
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert written["method"] == "re_max"
    assert written["run"]["seed"] == 3
    assert written["replay"]["capacity"] == 16
    summary = json.loads((run / "summary.json").read_text())
    assert summary["processes"] == 1
    assert summary["totals"] == {
        "rollouts": 32, "tokens": steps[-1]["total/tokens"], "discarded": 0, "updates": 4, "scored": 0,
    }  # fmt: skip
    # One update a batch: every ratio is 1, and clipping never binds.
    assert summary["inert"] == ["surrogate.ratio", "surrogate.clip"]
    assert summary["effects"]["replay"] == sum(step["effect/replay"] for step in steps) > 0
    assert "without effect in this run (counted 0 times): surrogate.ratio, surrogate.clip" in child.text


def test_best_on_dev_is_kept_and_named_beside_the_last(place: Place, tmp_path: Path) -> None:
    asked = place.asked("dr_grpo", 4, "checkpoint.keep=1", "eval.every=1", "eval.dev_limit=4")
    child = place.train(tmp_path, *asked, "-o", "run")
    assert child.wait() == 0, child.text
    dev = {
        step: json.loads((tmp_path / f"run/dev/step-{step:06d}/summary.json").read_text())["cells"]
        for step in range(5)
    }
    accuracy = {step: cells[0]["accuracy"]["value"] for step, cells in dev.items()}
    best = max(accuracy, key=lambda step: accuracy[step])
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["best_on_dev"]["step"] == best
    assert summary["last_checkpoint"] == "checkpoints/step-000004"
    kept = {path.name for path in (tmp_path / "run/checkpoints").iterdir()}
    assert kept == {f"step-{best:06d}", "step-000004"}


def test_the_matched_control_is_bit_equal_to_the_fresh_method(place: Place, tmp_path: Path) -> None:
    for name, method, sets in (("fresh", "dr_grpo", ()), ("control", "re_dr", ("replay.control=zero",))):
        child = place.train(tmp_path, *place.asked(method, 4, *sets), "-o", name)
        assert child.wait() == 0, child.text
    weights = [
        (tmp_path / name / "checkpoints/step-000004/model.safetensors").read_bytes()
        for name in ("fresh", "control")
    ]
    assert weights[0] == weights[1]
    assert any(line["mixed_groups"] for line in lines(tmp_path / "fresh/metrics.jsonl"))


def test_a_dry_run_shows_every_setting_with_its_origin_and_writes_nothing(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("optimizer:\n  beta1: 0.8\nreplay:\n  capacity: 4\n")
    asked = [*place.asked("re_max", 4), "--config", "mine.yaml", "--dry-run", "-o", "run"]
    child = place.train(tmp_path, *asked)
    assert child.wait() == 0, child.text
    shown = {line.split()[0]: line for line in child.text.splitlines() if line.strip()}
    assert shown["optimizer.beta1"].split(None, 1)[1] == "0.8  (mine.yaml, line 2)"
    assert shown["replay.capacity"].split(None, 1)[1] == "4  (mine.yaml, line 4)"
    assert shown["optimizer.learning_rate"].split(None, 1)[1] == "0.0003  (profile tiny)"
    assert shown["rollout.group_size"].split(None, 1)[1] == "4  (command line)"
    assert shown["optimizer.eps"].split(None, 1)[1] == "1e-08  (default)"
    assert "Say one of" in child.text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["optimizer.learnig_rate=1"], "did you mean optimizer.learning_rate?"),
        (["replay.capcity=1"], "did you mean replay.capacity?"),
        (["replay.capacity=many"], "replay.capacity (command line) must be a whole number, not 'many'"),
        (["data.domains=grap"], "graph"),
        (["data.levels=9"], "data.levels is 9, expected levels 1 to 5"),
        (["eval.split=evall"], "evall"),
        (["method=dr_grop"], "did you mean 'dr_grpo'?"),
        (["model=mock/oracle"], "mock/oracle cannot be trained"),
        (["model=hf/nowhere/at/all"], "nowhere/at/all"),
        (["run.trackers=tensorbord"], "no tracker is called 'tensorbord'"),
        (["rollout.group_size=1"], "rollout.group_size is 1, expected at least 2"),
    ],
)
def test_bad_settings_are_one_line_and_write_nothing(
    place: Place, tmp_path: Path, sets: list[str], words: str
) -> None:
    child = place.train(tmp_path, *place.asked("re_max", 4, *sets), "-o", "run")
    assert child.wait() == 2, child.text
    assert words in child.text
    assert child.text.startswith("error: ")
    assert len(child.text.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_folders_in_use_unwritable_and_not_of_training(place: Place, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("x")
    for arguments, words in (
        ([*place.asked("dr_grpo", 2), "-o", "full"], "output folder full is in use"),
        ([*place.asked("dr_grpo", 2), "-o", "file/run"], "cannot write to the output folder file/run"),
        (place.asked("dr_grpo", 2), "--output is missing"),
        (["--resume", "full"], "full is not a training folder"),
        (["--resume", "full", "--steps", "9"], "leave out --steps"),
    ):
        child = place.train(tmp_path, *arguments)
        assert child.wait() == 2, child.text
        assert words in child.text.splitlines()[-1]
    assert (tmp_path / "full/notes.txt").read_text() == "x"


def test_all_wrong_from_the_start_says_what_to_do(place: Place, tmp_path: Path) -> None:
    never = ["data.domains=countdown", "update.all_wrong_patience=2"]
    child = place.train(tmp_path, *place.asked("dr_grpo", 4, *never), "-o", "run")
    assert child.wait() == 1
    last = child.text.splitlines()[-1]
    assert last.startswith("error: no rollout of the first 2 steps was right")
    assert "modebench eval --model" in last
    assert "--set update.all_wrong_patience=0" in last
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["status"] == "error"
    assert summary["error"] in last


def test_a_loss_that_is_not_finite_stops_the_run_before_it_reaches_the_weights(
    place: Place, tmp_path: Path
) -> None:
    wild = ["optimizer.learning_rate=1e30", "update.num_iterations=2", "rollout.num_prompts=6"]
    child = place.train(tmp_path, *place.asked("dr_grpo", 4, *wild), "-o", "run")
    assert child.wait() == 1
    last = child.text.splitlines()[-1]
    assert "error: the loss is not finite" in last
    assert "lower optimizer.learning_rate" in last
    assert "is intact; go on with: modebench train --resume run" in last
    assert (tmp_path / "run/checkpoints/step-000000/model.safetensors").exists()


def without_yaml(_: None) -> None:
    """As in an installation without the extra `train`."""
    import sys

    sys.modules["yaml"] = None  # type: ignore[assignment]


def test_a_missing_extra_is_one_line(place: Place, tmp_path: Path) -> None:
    child = place.train(tmp_path, *place.asked("dr_grpo", 2), "-o", "run", fault=without_yaml)
    assert child.wait() == 2
    assert child.text == 'error: training needs yaml: pip install "modebench-toolkit[train]"\n'


def small_disk(size: int) -> None:
    """No file may grow beyond `size` bytes: writing fails as on a full disk, in the middle of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_at_a_checkpoint_leaves_the_last_one(place: Place, tmp_path: Path) -> None:
    asked = place.asked("re_max", 4, "eval.dev_limit=0")
    assert place.train(tmp_path, *asked, "-o", "whole").wait() == 0
    shutil.copytree(tmp_path / "whole", tmp_path / "run")
    for name in ("checkpoints/step-000004", "eval/step-000004"):
        shutil.rmtree(tmp_path / "run" / name)
    weights = (tmp_path / "run/checkpoints/step-000002/model.safetensors").read_bytes()
    child = place.train(tmp_path, "--resume", "run", fault=small_disk, given=len(weights) // 2)
    assert child.wait() == 1, child.text
    last = child.text.splitlines()[-1]
    assert last.startswith("error: checkpoint step-000004 could not be written")
    assert "run/checkpoints/step-000002, is intact; go on with: modebench train --resume run" in last
    assert (tmp_path / "run/checkpoints/step-000002/model.safetensors").read_bytes() == weights
    assert not list((tmp_path / "run/checkpoints").glob("step-000004*"))
    assert place.train(tmp_path, "--resume", "run").wait() == 0
    ends = [tmp_path / name / "checkpoints/step-000004/model.safetensors" for name in ("whole", "run")]
    assert ends[0].read_bytes() == ends[1].read_bytes()


def test_two_processes_do_not_write_to_one_folder(place: Place, tmp_path: Path) -> None:
    import fcntl

    assert place.train(tmp_path, *place.asked("dr_grpo", 2), "-o", "run").wait() == 0
    with (tmp_path / "run/metrics.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        child = place.train(tmp_path, "--resume", "run")
    assert child.wait() == 2
    assert "another process trains in run" in child.text.splitlines()[-1]


def test_trackers_are_of_accelerate_by_name(place: Place, tmp_path: Path) -> None:
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers

    missing = sorted(set(map(str, LOGGER_TYPE_TO_CLASS)) - set(map(str, get_available_trackers())))
    assert missing, "every tracker is installed here"
    child = place.train(tmp_path, *place.asked("dr_grpo", 2, f"run.trackers={missing[0]}"), "-o", "run")
    assert child.wait() == 2
    assert f"{missing[0]} is not installed: pip install" in child.text
    assert not os.path.exists(tmp_path / "run")
