"""Sweeps: the runs and their processes, and what they have spent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from modebench.analysis.grid import render_grid
from modebench.cli import cli
from modebench.cli.errors import exit_code
from modebench.cli.train_command import _layers
from modebench.cli.train_command import command as train_command
from modebench.errors import InputError, UsageError
from modebench.training.folder import TrainingFolder
from modebench.training.setup import plan
from modebench.training.sweep import SweepRun, plan_sweep, state_of, write_manifest
from modebench.training.sweep_budget import budget_grid
from modebench.training.sweep_runs import Job, carry_out
from tests.training.child import Place
from tests.training.test_sweep_file import read, written


def small(place: Place, *more: str) -> str:
    """A sweep file of two arms and two seeds over a model of nothing."""
    lines = [
        f"model: hf/{place.model}", "domains: [graph, countdown]", "seeds: [0, 7]",
        "rollout: {num_prompts: 2, group_size: 4, max_completion_length: 8}",
        "eval: {limit: 3, samples: 2, every: 0, dev_limit: 0}", "data.limit: 6", "run.device: cpu", *more,
    ]  # fmt: skip
    return "\n".join([*lines, ""])


ARMS = "arms: {dr: {method: dr_grpo}, re: {method: re_dr, set: {replay.coefficient: 5, run.trackers: []}}}"


def test_runs_are_those_of_modebench_train(place: Place, tmp_path: Path) -> None:
    file = read(tmp_path, small(place, "steps: 3", ARMS))
    runs = plan_sweep(file)
    assert [run.name for run in runs] == [
        f"{domain}/{arm}/seed-{seed}"
        for domain in ("graph_coloring", "countdown")
        for seed in (0, 7)
        for arm in ("dr", "re")
    ]
    assert {run.rollouts for run in runs} == {3 * 2 * 4}
    for run in runs:
        # What the command line makes of the arguments is the same plan, to the byte of its config.yaml.
        arguments = run.arguments(tmp_path / "there")
        context = train_command.make_context("train", arguments[1:])
        again = plan(_layers(context.params))
        assert again.to_yaml() == run.plan.to_yaml()
        assert context.params["output"] == tmp_path / "there"
    settings = runs[3].plan.values
    assert (settings["run.seed"], settings["run.arm"], settings["replay.coefficient"]) == (7, "re", 5.0)
    assert settings["data.domains"] == ("graph_coloring",)


def test_an_arm_wins_over_its_domain_and_this_over_what_is_common(place: Place, tmp_path: Path) -> None:
    text = small(
        place, "steps: 3", "arms: {x: {method: dr_grpo, set: {data.limit: 5}}, y: {method: dr_grpo}}"
    )
    text = text.replace("[graph, countdown]", "{graph: {data.limit: 4, eval.limit: 2}, countdown: {}}")
    limits = {
        (run.domain, run.arm): (run.plan.config.data.limit, run.plan.config.eval.limit)
        for run in plan_sweep(read(tmp_path, text))
    }
    assert limits == {
        ("graph_coloring", "x"): (5, 2),
        ("graph_coloring", "y"): (4, 2),
        ("countdown", "x"): (5, 3),
        ("countdown", "y"): (6, 3),
    }


def test_arms_have_equal_budgets_in_rollouts(place: Place, tmp_path: Path) -> None:
    wide = "arms: {x: {method: dr_grpo}, wide: {method: dr_grpo, set: {rollout.group_size: 8}}}"
    with pytest.raises(
        UsageError, match=r"arms of graph_coloring plan other .*: x 24, wide 48; .* `budget: N`"
    ):
        plan_sweep(read(tmp_path, small(place, "steps: 3", wide)))
    runs = plan_sweep(read(tmp_path, small(place, "budget: 48", wide)))
    assert {(run.arm, run.plan.config.steps, run.rollouts) for run in runs} == {("x", 6, 48), ("wide", 3, 48)}
    with pytest.raises(
        InputError, match=r"budget: is 24, not a multiple of the 16 rollouts .* countdown/wide"
    ) as e:
        plan_sweep(read(tmp_path, small(place, "budget: 24", wide).replace("graph, ", "")))
    assert e.value.line == 8
    with pytest.raises(InputError, match="steps: stands beside budget"):
        plan_sweep(read(tmp_path, small(place, "budget: 48", "steps: 3", wide)))


def test_settings_are_checked_by_the_planner(place: Place, tmp_path: Path) -> None:
    bad = "arms: {x: {method: re_dr, set: {replay.capcity: 1}}}"
    with pytest.raises(InputError, match=r"sweep.yaml:8: replay.capcity: is not a setting; did you mean"):
        plan_sweep(read(tmp_path, small(place, bad)))
    with pytest.raises(UsageError, match="did you mean 'dr_grpo'"):
        plan_sweep(read(tmp_path, small(place, "arms: [dr_grop]")))


def test_how_a_run_stands_in_its_folder(place: Place, tmp_path: Path) -> None:
    file = read(tmp_path, small(place, "steps: 3", ARMS))
    run = plan_sweep(file)[0]
    path = tmp_path / "out" / run.name
    assert state_of(run, path) == "new"
    folder = TrainingFolder.create(path, run.plan.to_yaml())
    assert state_of(run, path) == "interrupted"
    folder.update_summary(status="error")
    assert state_of(run, path) == "interrupted"
    folder.update_summary(status="success")
    assert state_of(run, path) == "finished"
    other = plan_sweep(read(tmp_path, small(place, "steps: 4", ARMS)))[0]
    with pytest.raises(UsageError, match="was made with steps 3, now 4 is asked"):
        state_of(other, path)
    with pytest.raises(UsageError, match="holds no sweep"):
        write_manifest(tmp_path / "out", file, [run])
    write_manifest(tmp_path / "fresh", file, [run])
    manifest = json.loads((tmp_path / "fresh/sweep.json").read_text())
    assert manifest["arms"]["re"]["replay.coefficient"] == 5
    assert manifest["runs"][0]["command"][:2] == ["modebench", "train"]
    assert manifest["versions"]["modebench"]
    write_manifest(tmp_path / "fresh", file, [run])


@dataclass
class Fake(Job):
    """A job whose process is a line of Python."""

    code: str = "pass"
    seen: list[int] = field(default_factory=list)

    def start(self) -> subprocess.Popen[bytes]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            command = [sys.executable, "-S", "-c", self.code]
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self.seen.append(process.pid)
        return process


@dataclass
class Ask:
    """A stop that is asked for when a file is there."""

    file: Path
    error: bool = False

    @property
    def made(self) -> bool:
        if self.file.exists() and self.error:
            raise KeyboardInterrupt
        return self.file.exists()


@pytest.fixture
def fakes(place: Place, tmp_path: Path) -> Any:
    runs = plan_sweep(read(tmp_path, small(place, "steps: 3", ARMS)))
    return lambda *codes: [
        Fake(run, tmp_path / run.name, "new", code=code) for run, code in zip(runs, codes, strict=False)
    ]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_one_that_fails_leaves_the_rest_alone(fakes: Any, tmp_path: Path) -> None:
    said: list[str] = []
    jobs = fakes("pass", "import sys; sys.exit('error: no\\n')", "import os; os.kill(os.getpid(), 9)", "pass")
    carry_out(jobs, 1, Ask(tmp_path / "never"), said.append)
    assert [job.outcome for job in jobs] == ["finished", "failed", "failed", "finished"]
    assert [job.problem for job in jobs] == ["", "error: no", "ended by signal 9", ""]
    assert said[0] == "graph_coloring/dr/seed-0: begins, step 0/3"
    assert said[-1].startswith("4 of 4 runs ended")
    # One at a time: a run begins when the one before it has ended.
    verbs = [line.split(": ")[1].split()[0] for line in said if ": " in line]
    assert verbs == ["begins,", "finished", "begins,", "failed", "begins,", "failed", "begins,", "finished"]


def test_several_run_at_a_time(fakes: Any, tmp_path: Path) -> None:
    # Each of two waits for the other: one at a time would never end.
    meet = (
        "import time, pathlib; me, you = {0!r}, {1!r}\n"
        "pathlib.Path(me).touch()\nwhile not pathlib.Path(you).exists(): time.sleep(.01)"
    )
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    jobs = fakes(meet.format(a, b), meet.format(b, a))
    carry_out(jobs, 2, Ask(tmp_path / "never"), lambda _: None)
    assert [job.outcome for job in jobs] == ["finished", "finished"]


def test_a_stop_is_passed_on_and_nothing_new_begins(fakes: Any, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    waits = (
        "import pathlib, signal, sys, time\nsignal.signal(15, lambda *_: sys.exit(130))\n"
        f"pathlib.Path({str(stop)!r}).touch()\nwhile True: time.sleep(.01)"
    )
    jobs = fakes(waits, "pass")
    carry_out(jobs, 1, Ask(stop), lambda _: None)
    assert [job.outcome for job in jobs] == ["interrupted", None]
    assert not jobs[1].seen


def test_no_process_outlives_the_sweep(fakes: Any, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    deaf = (
        "import pathlib, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
        f"pathlib.Path({str(stop)!r}).touch()\nwhile True: time.sleep(.01)"
    )
    jobs = fakes(deaf)
    with pytest.raises(KeyboardInterrupt):
        carry_out(jobs, 1, Ask(stop, error=True), lambda _: None)
    assert not alive(jobs[0].seen[0])


def spent(run: SweepRun, output: Path, rollouts: int) -> None:
    folder = TrainingFolder.create(output / run.name, run.plan.to_yaml())
    folder.update_summary(status="success", totals={"rollouts": rollouts, "tokens": 10, "updates": 3})


def test_what_was_spent_stands_beside_what_was_planned(place: Place, tmp_path: Path) -> None:
    runs = plan_sweep(read(tmp_path, small(place, "steps: 3", ARMS)))
    for run in runs[:3]:
        spent(run, tmp_path, 24)
    text = render_grid(budget_grid(runs, tmp_path))
    rows = [line.split() for line in text.splitlines()[2:6]]
    assert rows == [
        ["graph_coloring", "dr", "2/2", "24", "24", "10", "3"],
        ["graph_coloring", "re", "1/2", "24", "24", "10", "3"],
        ["countdown", "dr", "0/2", "24", "–", "–", "–"],
        ["countdown", "re", "0/2", "24", "–", "–", "–"],
    ]
    assert "warning" not in text
    spent(runs[3], tmp_path, 30)
    text = render_grid(budget_grid(runs, tmp_path))
    assert "the arms of graph_coloring generated other numbers of rollouts: dr 24, re 24–30" in text


def test_a_dry_run_writes_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, small(place, "steps: 3", ARMS))
    assert exit_code(lambda: cli(["sweep", "sweep.yaml", "--dry-run"], standalone_mode=False)) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 8
    assert shown[0].startswith("graph_coloring/dr/seed-0  new, 24 rollouts  modebench train --model ")
    assert shown[0].endswith("--output runs/sweep/graph_coloring/dr/seed-0")
    assert not (tmp_path / "runs").exists()
    for arguments in (["none.yaml"], ["sweep.yaml", "--jobs", "0"], []):
        assert exit_code(lambda: cli(["sweep", *arguments], standalone_mode=False)) == 2  # noqa: B023
        assert capsys.readouterr().err.count("\n") == 1


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_step(log: Path, process: subprocess.Popen[str]) -> None:
    while not (log.is_file() and log.stat().st_size):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_a_sweep_that_is_killed_and_resumed_is_what_modebench_train_makes(
    place: Place, tmp_path: Path
) -> None:
    text = small(place, "steps: 6", "checkpoint.every: 2", "eval.dev_limit: 2", ARMS)
    text = text.replace(
        "eval: {limit: 3, samples: 2, every: 0, dev_limit: 0}", "eval: {limit: 3, samples: 2}"
    )
    written(tmp_path, text.replace("[graph, countdown]", "[letters]").replace("2, group", "3, group"))
    command = [sys.executable, "-m", "modebench", "sweep", "sweep.yaml", "-o", "out"]

    def start() -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(place.site)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes)  # type: ignore[call-overload,no-any-return]

    sweep = start()
    wait_for_step(tmp_path / "out/letters/dr/seed-0/metrics.jsonl", sweep)
    os.kill(children(sweep.pid)[0], signal.SIGKILL)
    wait_for_step(tmp_path / "out/letters/re/seed-0/metrics.jsonl", sweep)
    sweep.send_signal(signal.SIGINT)
    _, err = sweep.communicate(timeout=300)
    assert sweep.returncode == 130, err
    assert "letters/dr/seed-0: failed at step" in err
    assert "ended by signal 9" in err
    assert err.splitlines()[-1] == "interrupted; resume with: modebench sweep sweep.yaml --output out"
    assert json.loads((tmp_path / "out/letters/re/seed-0/summary.json").read_text())["status"] == "cancelled"
    sweep = start()
    out, err = sweep.communicate(timeout=600)
    assert sweep.returncode == 0, err
    assert "4 runs, 0 finished before" in err
    assert [line.split()[1:5] for line in out.splitlines()[2:4]] == [
        ["dr", "2/2", "72", "72"],
        ["re", "2/2", "72", "72"],
    ]
    manifest = json.loads((tmp_path / "out/sweep.json").read_text())
    for run in manifest["runs"]:
        direct = place.train(tmp_path, *run["command"][2:-1], "direct/" + run["path"])
        assert direct.wait() == 0, direct.text
        made, again = tmp_path / "out" / run["path"], tmp_path / "direct" / run["path"]
        last = Path("checkpoints/step-000006")
        names = [
            last / "model.safetensors",
            last / "trainer.json",
            Path("metrics.jsonl"),
            Path("config.yaml"),
        ]
        names += [path.relative_to(again) for path in sorted(again.glob("*/step-*/responses.jsonl"))]
        assert len(names) == 4 + 4
        for name in names:
            assert (made / name).read_bytes() == (again / name).read_bytes(), name
    again = start()
    _, err = again.communicate(timeout=300)
    assert again.returncode == 0
    assert "4 runs, 4 finished before" in err
    assert "begins" not in err
