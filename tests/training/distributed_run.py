"""One training run as torchrun starts it in every process; leaves what the tests compare.

Arguments: folder, number of processes that there must be, steps, prompts a step, ``resume`` or ``new``, and
settings, those of the method among them, which win over the ones here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from modebench.training.batch import Group
from modebench.training.folder import TrainingFolder
from modebench.training.part import Part
from modebench.training.settings import from_assignments
from modebench.training.setup import open_trainer, plan, recorded


@dataclass(frozen=True)
class Recorder(Part):
    """Writes down the first groups that the method is shown."""

    name = "recorder"
    path: str = ""

    def observe(self, groups: Sequence[Group], state: Any) -> None:
        if not Path(self.path).exists():
            shown = [[group.task.id, *(r.token_ids for r in group.rollouts)] for group in groups]
            Path(self.path).write_text(json.dumps(shown))


def main(folder: Path, processes: int, steps: int, prompts: int, start: str, chosen: Sequence[str]) -> None:
    model = folder.parent / "model"
    if start == "resume":
        planned = recorded(TrainingFolder.open(folder))
    else:
        planned = plan([from_assignments([
            f"model=hf/{model}", f"steps={steps}", f"rollout.num_prompts={prompts}",
            "data.domains=letters", "data.limit=6", "rollout.group_size=6", "rollout.max_completion_length=8",
            "eval.limit=2", "eval.samples=2", "eval.dev_limit=0", "checkpoint.every=2", "checkpoint.keep=0",
            "optimizer.max_grad_norm=0", "run.device=cpu", "run.threads=1", *chosen,
        ])])  # fmt: skip
    trainer = open_trainer(planned, folder, resume=start == "resume")
    found = trainer.accelerator.num_processes
    assert found == processes, f"{found} processes, expected {processes}"
    rank = trainer.accelerator.process_index
    recorder = Recorder(path=f"{folder}-groups-{rank}.json")
    trainer.method = replace(trainer.method, parts=(*trainer.method.parts, recorder))
    gradients: list[torch.Tensor] = []

    def note(optimizer: torch.optim.Optimizer, *arguments: Any) -> None:
        parts = [p.grad for group in optimizer.param_groups for p in group["params"]]
        gradients.append(torch.cat([part.flatten() for part in parts]))

    trainer.optimizer.register_step_pre_hook(note)
    assert trainer.run()
    torch.save(gradients, f"{folder}-gradients-{rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]), start=sys.argv[5], chosen=sys.argv[6:])
