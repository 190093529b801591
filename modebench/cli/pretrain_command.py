"""``modebench pretrain``: make the tiny policy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from modebench.cli import options as shared
from modebench.cli.errors import INTERRUPTED, OK
from modebench.cli.train_command import require_extra
from modebench.errors import UsageError
from modebench.runs import refuse_in_use


@click.command("pretrain")
@click.option("--output", "-o", type=shared.PATH, help="Folder of the run, empty or new.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of tasks, texts and weights.")
@click.option("--card/--no-card", default=True, show_default=True, help="Measure the policy at the end.")
@click.option("--resume", type=shared.PATH, help="Continue this folder; its own settings apply.")
def command(output: Path | None, seed: int, card: bool, resume: Path | None) -> int:
    """Make the tiny policy that the package ships: about 40 minutes of one core.

    Draws tasks outside every frozen split, trains a small model on right answers uniform over their modes
    mixed with wrong ones, and measures it. Writes pretraining.json (settings), log.jsonl (losses),
    pretraining.pt (the state, from which --resume goes on), policy/ (a transformers folder with its model
    card) and card/ (the run folders behind the card).
    """
    require_extra()
    if resume is None:  # before the imports, which take seconds
        if output is None:
            raise UsageError("--output is missing, e.g. --output runs/tiny")
        refuse_in_use(output)
    from modebench.pretraining.folder import PretrainingFolder
    from modebench.pretraining.pretrain import PretrainConfig

    if resume is not None:
        folder = PretrainingFolder.open(resume)
    elif output is not None:
        folder = PretrainingFolder.create(output, PretrainConfig(seed=seed))
    try:
        folder.run(_show)
        if card:
            folder.write_card()
    except KeyboardInterrupt:
        click.echo(
            f"interrupted; resume with: modebench pretrain --resume {shlex.quote(str(folder.path))}", err=True
        )
        return INTERRUPTED
    click.echo(str(folder.policy))
    return OK


def _show(step: int, steps: int, losses: dict[str, Any]) -> None:
    if step % 50 == 0 or step == steps:
        solved = {group.split("/")[0]: loss for group, loss in losses.items() if group.endswith("/solve")}
        told = "  ".join(f"{domain} {loss:.2f}" for domain, loss in solved.items())
        click.echo(f"step {step}/{steps}  nats a token: {told}", err=True)
