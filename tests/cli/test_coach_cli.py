"""The same prefixes asked before and after training, from the command line's own commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click import Command
from click.testing import CliRunner

from modebench.cli.coach_command import command as coach
from modebench.cli.eval_command import command as evaluate
from modebench.cli.train_command import command as train
from modebench.samples import load_run
from modebench.strategies import STRATEGIES


def call(command: Command, *arguments: object) -> tuple[Any, str]:
    """Exit code and output of a command in this process."""
    texts = [str(argument) for argument in arguments]
    done = CliRunner().invoke(command, texts, standalone_mode=False, catch_exceptions=False)
    return done.return_value, done.output


def test_probing_before_and_after_training(tmp_path: Path) -> None:
    prefixes, run = tmp_path / "prefixes.jsonl", tmp_path / "run"
    asked = ("--domain", "graph", "-n", 2)
    assert call(coach, *asked, "--profile", "compact", "-o", prefixes)[0] == 0
    sets = [
        "rollout.num_prompts=2", "eval.limit=1", "eval.samples=2", "eval.dev_limit=0", "checkpoint.every=0",
        f"coaching.file={prefixes}",
    ]  # fmt: skip
    chosen = [text for setting in sets for text in ("--set", setting)]
    settings = ("--method", "mesh", "--model", "tiny", "--domain", "graph", "--steps", 1)
    assert call(train, *settings, *chosen, "-o", run)[0] in (0, None)
    for name, model in (("before", "tiny"), ("after", f"hf/{run}/checkpoints/step-000001")):
        folder = tmp_path / name
        options = ("--model", model, *asked, "--samples", 4, "--prefixes", prefixes, "-o", folder)
        assert call(evaluate, *options)[0] in (0, None)
        samples = load_run(folder).samples()
        counts = samples.groupby("prefix").size().to_dict()
        assert counts == dict.fromkeys(("none", *(each.name for each in STRATEGIES["graph_coloring"])), 8)
        code, told = call(coach, "--check", folder, "--margin", 1)
        assert code == 0
        assert "largest change of accuracy" in told
    [line] = (run / "metrics.jsonl").read_text().splitlines()
    assert {name for name in json.loads(line) if name.startswith("coaching/mass/")} == {
        f"coaching/mass/{each.name}" for each in STRATEGIES["graph_coloring"]
    }
