"""A domain in one file outside the package gets the ordinary command, splits and table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which coins.py is installed under the entry point that a wheel would give it."""
    site = tmp_path / "site"
    metadata = site / "coins_domain-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("coins.py"), site / "coins_domain.py")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: coins-domain\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[modebench.domains]\ncoins = coins_domain\n")
    return {**os.environ, "PYTHONPATH": str(site)}


def run(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "modebench", *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_third_party_domain_is_evaluated_by_the_ordinary_command(
    installed: dict[str, str], tmp_path: Path
) -> None:
    asked = ("--domain", "coins,countdown", "-n", "6", "-k", "4")
    done = run(installed, tmp_path, "eval", "-m", "mock/uniform", *asked, "-o", "run")
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    cells = {cell["domain"]: cell for cell in summary["cells"]}
    assert list(cells) == ["countdown", "coins"]
    assert cells["coins"]["accuracy"]["value"] == 1
    assert cells["coins"]["pcmd"]["value"] > 0.5
    beside = cells["coins"]["chance"]
    assert beside["shuffled"]["accuracy"]["n"] == 6
    assert "not enumerated" in beside["uniform"]["accuracy"]["reason"]
    assert beside["best_constant"]["accuracy"]["value"] == 1 / 6
    assert beside["best_constant"]["bound"] == "lower"
    chance = run(installed, tmp_path, "eval", "-m", "mock/random", *asked, "-o", "chance", "--json")
    assert json.loads(chance.stdout)["cells"][1]["accuracy"]["value"] < 1
    assert run(installed, tmp_path, "eval", "--resume", "run").returncode == 0
    shown = run(installed, tmp_path, "tasks", "show", "coins/level1/eval/0000")
    assert shown.returncode == 0, shown.stderr
    assert "coins of [1, 2, 5]" in shown.stdout
    verdict = run(installed, tmp_path, "tasks", "verify", "coins/level1/eval/0000", "none")
    assert json.loads(verdict.stdout)["status"] == "malformed"


def test_without_it_the_name_is_unknown(tmp_path: Path) -> None:
    done = run(dict(os.environ), tmp_path, "eval", "-m", "mock/uniform", "--domain", "coins")
    assert done.returncode == 2
    assert "no domain is called 'coins'" in done.stderr
