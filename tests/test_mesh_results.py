"""results/alarm.py and results/mei_calibration.py, on curves and policies that are known."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from modebench.cli.errors import exit_code
from tests.test_results import evaluation

RESULTS = Path(__file__).parents[1] / "results"
STEPS = (0, 2, 4)


def ran(folder: Path, arm: str, seed: int, kinds: tuple[str, str, str], **readings: list[float]) -> None:
    """A run of four steps, with evaluations of these policies at steps 0, 2 and 4."""
    for step, kind in zip(STEPS, kinds, strict=True):
        evaluation(folder, kind, arm, seed, step, limit=16)
    same = {"mei/ratio_of_sums", "mei/advantage", "mei/correct", "mei/largest_strategy", "pcmd"}
    lines = []
    for place in range(4):
        told = dict.fromkeys(same, 1.0 + 0.01 * place) | {"mei/G": 8.0}
        lines.append({"step": place + 1, **told, **{name: each[place] for name, each in readings.items()}})
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "config.yaml").write_text("method: x\n")
    (folder / "summary.json").write_text(json.dumps({"status": "success", "step": 4, "steps": 4}))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    still = {"mei/mean": [1.0, 1.1, 0.9, 1.0], "entropy": [0.8, 0.81, 0.79, 0.8]}
    for seed in (0, 1):
        ran(folder / f"graph_coloring/frozen/seed-{seed}", "frozen", seed, ("uniform",) * 3, **still)
    moving = {"mei/mean": [1.0, 1.0, 2.0, 2.0], "entropy": [0.8, 0.5, 0.4, 0.3]}
    kinds = ("uniform", "uniform", "collapsed")
    ran(folder / "graph_coloring/dr_grpo/seed-0", "dr_grpo", 0, kinds, **moving)
    return folder


def alarm(*arguments: Any) -> int:
    main = runpy.run_path(str(RESULTS / "alarm.py"))["main"]
    return exit_code(lambda: main([str(argument) for argument in arguments]))


def test_leads_of_a_sweep(sweep: Path, tmp_path: Path) -> None:
    """PCMD falls at 4; MEI sounds at 3, entropy at 2; nothing sounds in the frozen runs."""
    assert alarm(sweep, tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "leads.csv",
        "alarm.md",
        "figure.png",
        "manifest.json",
    }
    found = pd.read_csv(tmp_path / "leads.csv")
    moved = found[(found["arm"] == "dr_grpo") & (found["measure"] == "pcmd")].set_index("signal")
    assert moved["lead"][["mei/mean", "mei/mean, published", "entropy"]].tolist() == [1, 1, 2]
    assert moved["falls"].unique().tolist() == [4]
    frozen = found[(found["arm"] == "frozen") & ~found["signal"].str.contains("published")]
    assert frozen["sounds"].isna().all()
    assert frozen["falls"].isna().all()
    assert "| dr_grpo | entropy | 1 of 1 | 2 | 1 of 1 | 4 | 2 | +2 |" in (tmp_path / "alarm.md").read_text()


def test_what_gives_no_alarm_is_said(sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert alarm(tmp_path, tmp_path / "out") == 2
    assert "holds no runs of a sweep" in capsys.readouterr().err
    run = tmp_path / "graph_coloring/dr_grpo/seed-0"
    ran(run, "dr_grpo", 0, ("uniform",) * 3, entropy=[1.0] * 4)
    assert alarm(tmp_path, tmp_path / "out") == 2
    assert "did not log mei/mean" in capsys.readouterr().err
    (run / "summary.json").write_text('{"status": "error"}')
    assert alarm(tmp_path, tmp_path / "out") == 2
    assert "has not finished: error" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_calibration_knows_its_policies(tmp_path: Path) -> None:
    script = runpy.run_path(str(RESULTS / "mei_calibration.py"))
    script["main"]([str(tmp_path), "--model", "tiny", "--prompts", "2"])
    found = pd.read_csv(tmp_path / "calibration.csv").set_index(["policy", "G"])
    assert found.loc[("4 equal", 16), "effective_modes"] == pytest.approx(4)
    assert found.loc[("2 equal", 4), "entropy"] == pytest.approx(0.6931, abs=1e-4)
    assert found.loc[("4 equal", 16), "groups"] == 1600
    errors = found["sd"] / found["groups"] ** 0.5
    equal = found.index.get_level_values("policy").str.contains("equal")
    assert ((found["ratio_of_sums"] - 1).abs() < 4 * errors)[equal].all()
    # Near-determinism, not the number of modes, is what the mean of ratios sees, and it depends on G.
    assert found.loc[("one of 0.99", 16), "mean"] == pytest.approx(13.7, abs=0.5)
    assert found.loc[("one of 0.99", 4), "mean"] == pytest.approx(3.85, abs=0.15)
    assert found.loc[("tiny, graph_coloring", 64), "groups"] == 2
    assert 1 < found.loc[("tiny, graph_coloring", 64), "effective_modes"] < 18
    assert (tmp_path / "calibration.md").read_text().count("tiny, graph_coloring") == 4
