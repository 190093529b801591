"""results/make.py: from the folder of a sweep to table, differences, figure and manifest."""

from __future__ import annotations

import hashlib
import json
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

import modebench as mb
from modebench.cli.errors import exit_code
from modebench.provenance import versions
from tests.test_results import trained

ARMS = {"flat": "collapsed", "kept": "uniform"}
SCRIPT = Path(__file__).parents[1] / "results" / "make.py"
Make = Callable[..., int]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    runs = []
    for seed in (0, 1, 2):
        for arm, kind in ARMS.items():
            path = f"graph_coloring/{arm}/seed-{seed}"
            trained(folder / path, kind, arm, seed)
            told = {"method": arm, "model": "tiny", "seed": seed, "totals": {}, **versions()}
            summary = json.loads((folder / path / "summary.json").read_text())
            summary |= told | {"last_checkpoint": "checkpoints/step-000004"}
            (folder / path / "summary.json").write_text(json.dumps(summary))
            (folder / path / "checkpoints/step-000004").mkdir(parents=True)
            (folder / path / "checkpoints/step-000004/model.safetensors").write_bytes(b"weights")
            runs.append({"path": path})
    (folder / "sweep.json").write_text(json.dumps({"runs": runs}))
    return folder


@pytest.fixture(scope="module")
def make() -> Make:
    main = runpy.run_path(str(SCRIPT))["main"]
    return lambda *arguments: exit_code(lambda: main([str(argument) for argument in arguments]))


def test_results_of_a_sweep(sweep: Path, make: Make, tmp_path: Path) -> None:
    out = tmp_path / "results"
    assert make(sweep, out, "--primary", "kept:flat", "--draws", 50) == 0
    names = {"table.csv", "table.md", "differences.csv", "primary.md", "figure.png", "manifest.json"}
    assert {path.name for path in out.iterdir()} == names
    rows = [line.split(" | ")[1] for line in (out / "table.md").read_text().splitlines() if "12×8" in line]
    assert rows == ["base", "flat", "kept"]
    found = pd.read_csv(out / "differences.csv")
    assert sorted(set(zip(found["a"], found["b"], strict=True))) == [
        ("base", "flat"), ("base", "kept"), ("kept", "flat"),
    ]  # fmt: skip
    [row] = found[(found["a"] == "kept") & (found["metric"] == "pcmd")].to_dict("records")
    assert row["value_b"] == 0
    assert row["difference"] == pytest.approx(-row["value_a"])
    assert row["low"] <= row["difference"] <= row["high"]
    # The test over seeds is that of the three means, and the only primary test of its metric.
    samples = mb.load_results(sweep)[0].samples(texts=False)
    by_seed = mb.summarize(samples[samples["arm"] == "kept"], ["seed"])
    means = by_seed.loc[by_seed["metric"] == "pcmd", "value"]
    assert row["seed_p"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert row["seed_p_holm"] == row["seed_p"]
    assert found.loc[~found["primary"], "seed_p_holm"].isna().all()
    assert "flat − kept" in (out / "primary.md").read_text()
    assert str(tmp_path) not in (out / "manifest.json").read_text()  # nor where the folders lay
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["runs"][0]["weights_sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert [run["path"] for run in manifest["runs"]] == sorted(r["path"] for r in manifest["sweep"]["runs"])


def test_runs_beside_a_sweep(sweep: Path, make: Make, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    for seed in (0, 1, 2):
        run = beside / f"graph_coloring/seed-{seed}"
        shutil.copytree(sweep / f"graph_coloring/kept/seed-{seed}", run)
        for manifest in run.glob("eval/*/run.json"):
            told = json.loads(manifest.read_text())
            manifest.write_text(json.dumps(told | {"arm": "further"}))
    out = tmp_path / "results"
    assert make(sweep, out, "--runs", beside, "--primary", "further:kept", "--draws", 20) == 0
    found = pd.read_csv(out / "differences.csv")
    [row] = found[(found["a"] == "further") & (found["metric"] == "pcmd")].to_dict("records")
    assert (row["b"], row["difference"], row["seeds"]) == ("kept", 0, 3)
    text = (out / "manifest.json").read_text()
    assert str(tmp_path) not in text
    paths = [run["path"] for run in json.loads(text)["runs"]]
    assert [path for path in paths if path.startswith("beside/")] == [
        f"beside/graph_coloring/seed-{seed}" for seed in (0, 1, 2)
    ]


def test_without_a_primary_contrast_there_is_no_table_of_them(
    sweep: Path, make: Make, tmp_path: Path
) -> None:
    assert make(sweep, tmp_path, "--draws", 1) == 0
    assert (tmp_path / "differences.csv").is_file()
    assert not (tmp_path / "primary.md").exists()


def test_runs_of_different_lengths_have_no_curves_of_their_own() -> None:
    has_curves = runpy.run_path(str(SCRIPT))["has_curves"]
    ends = pd.DataFrame(
        [("d", "a", 0, 0), ("d", "a", 0, 40), ("d", "b", 0, 0), ("d", "b", 0, 24), ("d", "b", 1, 0)],
        columns=["domain", "arm", "seed", "step"],
    )
    assert not has_curves(ends)
    assert has_curves(pd.concat([ends, ends.iloc[:1].assign(step=20)]))


def test_what_was_logged_in_three_parts_of_the_runs() -> None:
    logged = runpy.run_path(str(SCRIPT))["logged"]
    steps = pd.DataFrame(
        [
            {"domain": "d", "arm": "a", "seed": seed, "step": step, "x": 10.0 * seed + step, "y": None}
            for seed in (0, 1)
            for step in range(1, 7)
        ]
    ).assign(y=lambda table: table["x"].where(table["step"] == 6))
    found = logged(steps, ["x", "y"]).set_index(["name", "from_step", "to_step"]).sort_index()
    assert list(found.loc["x"].index) == [(1, 2), (2, 6), (3, 4), (5, 6)]
    # Means of the steps, 1.5, 4, 3.5 and 5.5, and 5 more for the mean of the two runs.
    assert list(found.loc["x"]["mean"]) == [6.5, 9.0, 8.5, 10.5]
    assert list(found.loc["y"].index) == [(2, 6), (5, 6)]  # the only parts that have any
    assert list(found.loc["y"]["median"]) == [11.0, 11.0]
    with pytest.raises(mb.UsageError, match="no run has logged z"):
        logged(steps, ["z"])


def test_tests_of_several_primary_contrasts_are_adjusted_together(
    sweep: Path, make: Make, tmp_path: Path
) -> None:
    assert make(sweep, tmp_path, "--primary", "base:flat", "--primary", "base:kept", "--draws", 20) == 0
    found = pd.read_csv(tmp_path / "differences.csv")
    p = found[found["primary"] & (found["metric"] == "accuracy")].sort_values("seed_p")
    assert list(p["seed_p_holm"]) == pytest.approx(
        [min(2 * p["seed_p"].iloc[0], 1), p["seed_p_holm"].iloc[1]]
    )
    assert p["seed_p_holm"].iloc[1] == max(p["seed_p"].iloc[1], p["seed_p_holm"].iloc[0])


def test_results_need_the_whole_sweep(
    sweep: Path, make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: object) -> str:
        assert make(*arguments) == 2
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    assert "--primary kept:x is not A:B of two arms" in refused(
        sweep, tmp_path / "out", "--primary", "kept:x"
    )
    assert "has no sweep.json" in refused(sweep / "graph_coloring", tmp_path / "out")
    part = tmp_path / "part"
    shutil.copytree(sweep, part)
    trained(part / "graph_coloring/late/seed-0", "uniform", "late", 0)
    assert "late/seed-0 is not of this sweep (1 such runs)" in refused(part, tmp_path / "out")
    shutil.rmtree(part / "graph_coloring/late")
    shutil.rmtree(part / "graph_coloring/kept/seed-2")
    assert "graph_coloring/kept/seed-2 has not finished (1 such runs)" in refused(part, tmp_path / "out")
