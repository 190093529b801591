"""Checkpoints: a loadable transformers folder with the trainer's state beside the weights.

Layout of ``step-000100/``::

    config.json, model.safetensors, tokenizer.json, …   as transformers writes them
    agents/NAME/    the same of every policy that was trained beside the first
    trainer.json    step, data cursor, totals, state of the method
    trainer.pt      optimizers and random generators of torch

A checkpoint is written beside its place under a draft name, flushed to the disk and renamed, so that a
folder with a checkpoint's name is always whole, whenever the process dies or the disk fills up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import torch

from modebench.errors import InputError, TrainingError
from modebench.runs import read_json_object

STATE, TENSORS, AGENTS = "trainer.json", "trainer.pt", "agents"
_NAME = re.compile(r"step-(\d{6,})")


class Saveable(Protocol):
    """What writes itself as a transformers folder: a policy."""

    def save(self, folder: Path) -> None: ...


@dataclass
class TrainerState:
    """Where a run stands, weights and optimizer apart.

    Attributes:
        step: updates done.
        cursor: tasks taken from the endless sequence of epochs.
        spent: the budget of rollouts had no room for all that the last step asked.
        ever_correct: some rollout was right already.
        totals: rollouts, tokens, optimizer steps and scored responses so far.
        effects: what each part changed so far, as `modebench.training.method.Method.effects` counts.
        reference: provenance of the policy that divergences are measured from; None without any.
        method: state of the method, JSON-ready.
    """

    step: int = 0
    cursor: int = 0
    spent: bool = False
    ever_correct: bool = False
    totals: dict[str, int] = field(default_factory=dict)
    effects: dict[str, int] = field(default_factory=dict)
    reference: dict[str, Any] | None = None
    method: dict[str, Any] = field(default_factory=dict)


def step_name(step: int) -> str:
    """Folder name of a step, sorting as numbers do up to a million."""
    return f"step-{step:06d}"


def checkpoints_in(folder: Path) -> dict[int, Path]:
    """Step to path of the whole checkpoints in a folder, ascending."""
    found = {int(match[1]): path for path in folder.glob("step-*") if (match := _NAME.fullmatch(path.name))}
    return dict(sorted(found.items()))


class Learner(Protocol):
    """A policy with its optimizer: an agent."""

    @property
    def policy(self) -> Saveable: ...

    @property
    def optimizer(self) -> torch.optim.Optimizer: ...


def save(
    folder: Path,
    state: TrainerState,
    policy: Saveable,
    optimizer: torch.optim.Optimizer,
    others: Mapping[str, Learner] = MappingProxyType({}),
) -> Path:
    """Write a checkpoint; one that exists already is left as it is.

    Args:
        folder: of the checkpoints.
        state: where the run stands.
        policy, optimizer: what is trained.
        others: what is trained beside it, by name.

    Raises:
        TrainingError: it could not be written (a full disk); those before it are untouched.
    """
    path = folder / step_name(state.step)
    if path.exists():
        return path
    draft = folder / f"{path.name}.{os.getpid()}.part"
    try:
        draft.mkdir(parents=True)
        policy.save(draft)
        for name, other in others.items():
            other.policy.save(draft / AGENTS / name)
        tensors = {"optimizer": optimizer.state_dict(), "rng": _rng_state()}
        tensors[AGENTS] = {name: other.optimizer.state_dict() for name, other in others.items()}
        torch.save(tensors, draft / TENSORS)
        (draft / STATE).write_text(json.dumps(asdict(state), ensure_ascii=False, allow_nan=False) + "\n")
        _flush(draft)
        draft.rename(path)
        _flush_entry(folder)
    except Exception as error:  # torch and safetensors wrap a full disk in classes of their own
        raise TrainingError(_not_written(folder, path.name, error)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return path


def load(
    path: Path, optimizer: torch.optim.Optimizer, others: Mapping[str, Learner] = MappingProxyType({})
) -> TrainerState:
    """Restore optimizers and random generators; returns the rest. The weights load as any model folder.

    Raises:
        InputError: the trainer's state is not what `save` writes.
    """
    record = read_json_object(path / STATE)
    try:
        state = TrainerState(**record)
    except TypeError as error:
        raise InputError(path / STATE, 1, "record", f"is not a trainer's state ({error})") from None
    tensors = torch.load(path / TENSORS, map_location="cpu", weights_only=True)
    optimizer.load_state_dict(tensors["optimizer"])
    for name, other in others.items():
        other.optimizer.load_state_dict(tensors[AGENTS][name])
    torch.set_rng_state(tensors["rng"]["cpu"])
    if torch.cuda.is_available() and tensors["rng"]["cuda"]:
        torch.cuda.set_rng_state_all(tensors["rng"]["cuda"])
    return state


def prune(folder: Path, keep: int, always: Collection[int] = ()) -> None:
    """Delete all but the latest `keep` checkpoints (0: none is deleted) and those of the steps `always`."""
    for step, path in list(checkpoints_in(folder).items())[:-keep] if keep else []:
        if step not in always:
            # Renamed first, so that a checkpoint which is half deleted does not look like one.
            doomed = path.rename(path.with_name(f"{path.name}.{os.getpid()}.part"))
            shutil.rmtree(doomed)


def remove_drafts(folder: Path) -> None:
    """Delete what a killed process left half-written or half-deleted."""
    for draft in folder.glob("step-*.part"):
        shutil.rmtree(draft)


def _rng_state() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def _flush(folder: Path) -> None:
    """Bring a folder with everything in it to the disk."""
    for path in folder.rglob("*"):
        _flush_entry(path)
    _flush_entry(folder)


def _flush_entry(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _not_written(folder: Path, name: str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    return f"checkpoint {name} could not be written ({reason}; {free / 1e9:.2f} GB free)"
