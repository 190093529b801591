"""A real model trains on the CPU: SmolLM2-135M-Instruct on graph colouring (93 MB are fetched once)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

ROOT = Path(__file__).parents[2]
SMALL = [
    "data.limit=64", "eval.limit=4", "eval.samples=4", "eval.dev_limit=0", "eval.every=0",
    "rollout.num_prompts=16", "rollout.max_completion_length=8", "rollout.profile=plain",
    "checkpoint.every=0", "optimizer.learning_rate=1e-6", "run.device=cpu",
]  # fmt: skip
STEPS = 4


@pytest.fixture(scope="module")
def smollm2() -> Path:
    fetched = subprocess.run(
        [sys.executable, ROOT / "scripts" / "fetch_smollm2.py"], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(fetched.stdout.strip())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dr_grpo", "re_dr"])
def test_a_few_updates(method: str, smollm2: Path, tmp_path: Path, modebench: Command) -> None:
    """It is right about once in two hundred tries here, which is enough for a gradient in some steps."""
    sets = [piece for text in SMALL for piece in ("--set", text)]
    asked = ["--method", method, "--model", f"hf/{smollm2}", "--domain", "graph", "--steps", str(STEPS)]
    done = modebench("train", *asked, *sets, "--output", method, timeout=3600)
    assert done.returncode == 0, done.stderr
    metrics = [json.loads(line) for line in (tmp_path / method / "metrics.jsonl").read_text().splitlines()]
    timing = [json.loads(line) for line in (tmp_path / method / "timing.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == list(range(1, STEPS + 1))
    assert any(line["reward"] > 0 for line in metrics)
    assert all((line["grad_norm"] > 0) == (line["mixed_groups"] > 0) for line in metrics[:1])
    assert metrics[-1]["total/rollouts"] == STEPS * 256
    for line in timing:
        print(method, line)
