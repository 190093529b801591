"""What a training run of a method that proposes tasks leaves behind, without training one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import modebench as mb
from modebench.runs import json_line
from tests.test_results import STEPS, trained


def proposal(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A line of tasks.jsonl: a valid variation of graph colouring, right in 1 of 4 rollouts."""
    task = mb.load_tasks("graph_coloring", 1, "train")[number]
    line = {
        "step": 1, "part": "svs", "form": "menu", "domain": "graph_coloring", "level": 1, "valid": True,
        "failure": None, "text": "A", "source_task": task.id, "operator": "add_edge",
        "reference": dict(task.reference), "size": 4, "correct": 1, "modes": 1, "reward": 1.0,
        "quality": None, "reliability": None, "teachability": None, "novelty": None, "difficulty": None,
    }  # fmt: skip
    return line | changes


def refused(failure: str, **changes: Any) -> dict[str, Any]:
    """A line of a task that was never asked."""
    none = dict.fromkeys(("reference", "size", "correct", "modes", "reward"))
    return proposal(valid=False, failure=failure, **none | changes)


def trained_run(
    folder: Path,
    kind: str,
    arm: str,
    seed: int,
    *,
    seconds: float = 1.0,
    proposals: Sequence[dict[str, Any]] = (),
    state: dict[str, Any] | None = None,
) -> Path:
    """A finished run of `STEPS` steps of 2 groups × 4 rollouts: evaluations, logs, checkpoint.

    Args:
        folder: where.
        kind: the mock engine that its last policy answers as; the first one answers at random.
        arm, seed: of the run.
        seconds: of each update; sampling takes as long again.
        proposals: its proposed tasks.
        state: of its method.
    """
    trained(folder, kind, arm, seed)
    metrics, timing = [], []
    for step in range(1, STEPS + 1):
        share = 1 - (step - 1) / STEPS
        shares = {"with_gradient": share, "mixed_groups": share, "accuracy": step / STEPS}
        metrics.append({"step": step, **shares, "total/rollouts": 8 * step, "total/tokens": 80 * step})
        timing.append({"step": step, "seconds/sampling": seconds, "seconds/update": seconds})
    written = {"metrics.jsonl": metrics, "timing.jsonl": timing, "tasks.jsonl": proposals}
    for name, lines in written.items():
        if lines:
            (folder / name).write_bytes(b"".join(map(json_line, lines)))
    totals = {"rollouts": 8 * STEPS, "tokens": 80 * STEPS, "discarded": 0, "updates": STEPS, "scored": 0}
    told = {"totals": totals, "last_checkpoint": "checkpoints/step-000004"}
    summary = json.loads((folder / "summary.json").read_text()) | told
    (folder / "summary.json").write_text(json.dumps(summary))
    checkpoint = folder / "checkpoints/step-000004"
    checkpoint.mkdir(parents=True)
    (checkpoint / "trainer.json").write_text(json.dumps({"step": STEPS, "method": state or {}}))
    (checkpoint / "agents").mkdir()
    (checkpoint / "agents/model.safetensors").write_bytes(b"weights")
    return folder


def copied(run: Path, to: Path, **manifest: Any) -> Path:
    """The same run under another name: what is given is changed in the manifests of its evaluations."""
    shutil.copytree(run, to)
    for path in to.glob("eval/*/run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | manifest))
    return to
