"""A method in one file outside the package is listed, built and credited like the others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.child import Place, install_letters, save_policy

ROOT = Path(__file__).parents[2]
CREDIT = """
from modebench.training.methods import build
from tests.training.groups import moded

method = build("rare_first", {"rare_first.bonus": "1"}, ["replay"], max_completion_length=8)
group, state = moded("a", "a", "b", None), method.state(seed=0)
method.observe([group], state)
print([float(row.advantage_T[0]) for row in method.credit([group], state)])
print(len(method.extra_rows([group], state)))
added = build("grpo", adds=["rare_first"], max_completion_length=8)
print(list(added.options()))
"""


def install(tmp_path: Path, entries: str) -> dict[str, str]:
    """An environment in which rare_first.py is installed under these entry points."""
    site = tmp_path / "site"
    metadata = site / "rare_first-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("rare_first.py"), site)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rare-first\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[modebench.methods]\n{entries}\n")
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300
    )


def test_a_third_party_method_is_listed_and_built(tmp_path: Path) -> None:
    environment = install(tmp_path, "rare_first = rare_first:METHOD\npart = rare_first:RareFirst")
    listed = python(environment, "-m", "modebench", "methods")
    assert "Rare first: A_i = r_i - mean(r) + bonus / n(mode_i)" in listed.stdout
    assert ", rare_first; options" in listed.stdout
    shown = python(environment, "-m", "modebench", "methods", "rare_first", "--json")
    assert json.loads(shown.stdout)["defaults"]["rare_first"] == {"bonus": 0.5}
    built = python(environment, "-c", CREDIT)
    assert built.stdout.splitlines() == [
        "[0.75, 0.75, 1.25, -0.75]",
        "2",
        "['advantage', 'rare_first', 'surrogate']",
    ], built.stderr


@pytest.mark.slow
def test_it_trains_by_the_ordinary_command(tmp_path: Path) -> None:
    environment = install(tmp_path, "rare_first = rare_first:METHOD")
    install_letters(tmp_path / "site")
    asked = Place(save_policy(tmp_path / "model"), tmp_path / "site").asked("rare_first", 2)
    run = tmp_path / "run"
    done = python(environment, "-m", "modebench", "train", *asked, "--add", "replay", "-o", str(run))
    assert done.returncode == 0, done.stderr
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [1, 2]
    assert "replay/banks" in steps[0]
    assert "bonus: 0.5" in (run / "config.yaml").read_text()
    runs = [str(run / "eval" / f"step-{step:06d}") for step in (0, 2)]
    table = python(environment, "-m", "modebench", "summarize", *runs, "--by", "arm,step", "--format", "json")
    assert table.returncode == 0, table.stderr
    cells = json.loads(table.stdout)["cells"]
    assert [(cell["arm"], cell["step"]) for cell in cells] == [("rare_first", 0), ("rare_first", 2)]


def test_the_page_shows_this_very_file() -> None:
    page = (ROOT / "docs" / "methods" / "README.md").read_text()
    assert f"```python\n{Path(__file__).with_name('rare_first.py').read_text()}```" in page


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("gone:METHOD", "the method 'broken' (gone:METHOD) cannot be loaded: ModuleNotFoundError"),
        ("rare_first:METHOD", "the entry point 'broken' (rare_first:METHOD) is the method 'rare_first'"),
        ("json:dumps", "the entry point 'broken' (json:dumps) is neither a Method nor a Part"),
    ],
)
def test_a_broken_one_is_one_line(tmp_path: Path, entry: str, said: str) -> None:
    environment = install(tmp_path, f"broken = {entry}")
    for arguments in (("methods",), ("methods", "broken")):
        done = python(environment, "-m", "modebench", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {said}")
        assert done.stderr.count("\n") == 1
    assert python(environment, "-m", "modebench", "methods", "grpo").returncode == 0
