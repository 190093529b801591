"""The results of training runs: the last evaluations, and the policy before them as the base of all arms."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import modebench as mb
from modebench.errors import UsageError
from modebench.results import BASE, load_results
from modebench.sampling.mock import MockEngine
from tests.conftest import Command

STEPS = 4


def evaluation(
    folder: Path, kind: str, arm: str, seed: int, step: int, samples: int = 8, limit: int = 4
) -> None:
    config = mb.EvalConfig(
        selection=mb.Selection(domains=("graph_coloring",), limit=limit),
        samples=samples,
        seed=seed,
        arm=arm,
        step=step,
    )
    mb.evaluate(MockEngine(kind), folder / f"eval/step-{step:06d}", config, model="tiny")


def trained(folder: Path, kind: str, arm: str, seed: int, status: str = "success", **base: int) -> None:
    """What a training run leaves behind, as far as it is looked at here."""
    evaluation(folder, "random", arm, seed, 0, **base)
    evaluation(folder, kind, arm, seed, STEPS)
    (folder / "config.yaml").write_text("method: x\n")
    (folder / "summary.json").write_text(json.dumps({"status": status, "step": STEPS, "steps": STEPS}))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    for seed in (0, 1, 2):
        trained(folder / f"graph_coloring/kept/seed-{seed}", "uniform", "kept", seed)
        trained(folder / f"graph_coloring/apart/seed-{seed}", "collapsed", "apart", seed)
    shutil.copytree(
        folder / "graph_coloring/kept/seed-0/eval/step-000000",
        folder / "graph_coloring/kept/seed-0/dev/step-000000",
    )
    return folder


def test_dev_is_found_only_where_it_is_asked_for(sweep: Path) -> None:
    run = sweep / "graph_coloring/kept/seed-0"
    assert len(mb.load_runs(sweep)) == 2 * 3 * 2
    assert [found.path.name for found in mb.load_runs(run)] == ["step-000000", "step-000004"]
    assert len(mb.load_runs(run / "dev")) == 1
    assert len(mb.load_runs(run / "dev/step-000000")) == 1


def test_base_stands_once_a_seed_beside_the_last_step_of_every_run(sweep: Path) -> None:
    runs, warnings = load_results(sweep)
    assert not warnings
    found = [(run.origin()["arm"], run.origin()["seed"], run.origin()["step"]) for run in runs]
    assert sorted(found) == sorted(
        [(BASE, seed, 0) for seed in range(3)]
        + [(arm, seed, STEPS) for arm in ("kept", "apart") for seed in range(3)]
    )
    arms = {run.origin()["arm"] for run in load_results(sweep, base=False)[0]}
    assert arms == {"kept", "apart"}


def test_what_does_not_belong_together(sweep: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(sweep / "graph_coloring", folder)
    trained(folder / "half/seed-0", "uniform", "half", 0, status="running")
    runs, [warning] = load_results(folder)
    assert warning.startswith(f"unfinished: {folder}/half/seed-0 stands at step 4 of 4")
    assert len(runs) == 9
    responses = folder / "kept/seed-1/eval/step-000000/run.json"
    manifest = json.loads(responses.read_text())
    manifest["graded"]["published"]["responses_sha256"] = "0" * 64
    responses.write_text(json.dumps(manifest))
    [_, warning] = sorted(load_results(folder)[1], reverse=True)
    assert warning.startswith(f"base: {folder}/apart/seed-1/eval/step-000000 and {folder}/kept/seed-1")
    trained(folder / "other/seed-0", "uniform", "other", 0, samples=4)
    with pytest.raises(UsageError, match="differ in samples: 8 and 4"):
        load_results(folder)
    shutil.rmtree(folder / "other")
    trained(folder / "other/seed-0", "uniform", "other", 0, limit=3)
    with pytest.raises(UsageError, match="differ in prompts"):
        load_results(folder)
    with pytest.raises(UsageError, match="no training run has finished; unfinished: "):
        load_results(folder / "half")
    shutil.rmtree(folder / "kept/seed-2/eval/step-000004")
    with pytest.raises(UsageError, match="kept/seed-2 has finished, but has no evaluation of step 4"):
        load_results(folder / "kept")
    evaluation(tmp_path / "plain", "random", "x", 0, 0)
    with pytest.raises(UsageError, match="is not an evaluation of a training run"):
        load_results(tmp_path / "plain")


def test_the_collapse_table_is_one_command(modebench: Command, sweep: Path) -> None:
    done = modebench("summarize", sweep, "--collapse")
    assert done.returncode == 0, done.stderr
    head, _, *rows = done.stdout.split("\n\n")[0].splitlines()
    assert head.split("  ")[0] == "domain"
    for title in ("seeds", "pass@8", "PCMD", "effective modes", "shuffled accuracy", "uniform", "constant"):
        assert title in head
    assert [row.split()[1:3] for row in rows] == [["base", "3"], ["apart", "3"], ["kept", "3"]]
    collapsed = rows[1].split("12×8")[1]
    assert collapsed.split()[:3] == ["1.000", "[0.439,", "1.000]"]
    assert "0.000 [0.000, 0.561]*" in collapsed
    assert "95% intervals: t over seeds" in done.stdout
    cells = json.loads(modebench("summarize", sweep, "--collapse", "--format", "json").stdout)["cells"]
    assert [(cell["arm"], cell["units"]) for cell in cells] == [("base", 3), ("apart", 3), ("kept", 3)]
    steps = modebench("summarize", sweep, "--by", "arm,domain,step", "--format", "csv")
    assert steps.returncode == 0, steps.stderr
    single = modebench("summarize", sweep / "graph_coloring/kept/seed-0", "--collapse")
    assert "Wilson on the effective sample size" in single.stdout
    assert "seeds" not in single.stdout


def test_arms_are_compared_at_their_last_step(modebench: Command, sweep: Path) -> None:
    sides = [sweep / "graph_coloring" / arm for arm in ("kept", "apart")]
    done = modebench("compare", *sides, "--last", "--metric", "pcmd", "--format", "csv")
    assert done.returncode == 0, done.stderr
    head, *rows = [line.split(",") for line in done.stdout.splitlines()]
    [row] = [dict(zip(head, row, strict=True)) for row in rows if "pcmd" in row]
    assert row["seeds"] == "3"
    assert float(row["value_b"]) == 0
    assert float(row["difference"]) < -0.5
