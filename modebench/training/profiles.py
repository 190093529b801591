"""Model profiles: hyper-parameters that fit a size of model, between the defaults and the user's own.

A profile stands beside the model, as ``training_profile.yaml`` in its folder. A model without one gets the
built-in profile of its number of parameters. Settings under ``level1.DOMAIN`` hold for runs on level 1 of
that domain alone; options of parts hold for methods that have the part.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from modebench.domains import get_domain
from modebench.tiny import PROFILE_FILE as FILE
from modebench.training.config import DataConfig
from modebench.training.settings import Setting, from_values, read_yaml

PROFILES: dict[str, dict[str, Any]] = {
    # Measured here: a million parameters, 100 to 150 updates of 16 prompts x 16 rollouts collapse visibly.
    "tiny": {
        "rollout.num_prompts": 16,
        "rollout.max_completion_length": 64,
        "optimizer.learning_rate": 3e-4,
        "eval.every": 25,
        "checkpoint.every": 25,
        "run.threads": 1,
    },
    # The recipe of arXiv:2610.11064 for Qwen2.5-0.5B-Instruct: one group of 16 an update, constant rate.
    "0.5B": {"optimizer.learning_rate": 2e-7},
    # The same paper's recipe for 3B models.
    "3B": {
        "optimizer.learning_rate": 1e-7,
        "optimizer.schedule": "cosine",
        "optimizer.final_learning_rate": 1e-8,
    },
}
_LARGEST = {"tiny": 50e6, "0.5B": 1.5e9, "3B": float("inf")}
"""Parameters up to which a built-in profile applies."""


def profile_layer(model: str, parameters: int, data: DataConfig) -> dict[str, Setting]:
    """The profile of a model.

    Args:
        model: a folder, or a hub id.
        parameters: how many it has.
        data: what the run is trained on.

    Raises:
        InputError: the folder's own profile cannot be read.
    """
    own = Path(model).expanduser() / FILE
    if own.is_file():
        return _fitting(read_yaml(own, f"profile {own}"), data)
    name = next(name for name, largest in _LARGEST.items() if parameters <= largest)
    return from_values(PROFILES[name], f"profile {name}")


def _fitting(layer: dict[str, Setting], data: DataConfig) -> dict[str, Setting]:
    """The layer with what it says of level 1 of the run's one domain put over the rest."""
    own = {name: setting for name, setting in layer.items() if not name.startswith("level1.")}
    if len(data.domains) == 1 and data.levels == (1,) and data.file is None:
        prefix = f"level1.{get_domain(data.domains[0]).name}."
        own |= {n.removeprefix(prefix): setting for n, setting in layer.items() if n.startswith(prefix)}
    return own


def count_parameters(model: str) -> int:
    """Parameters of a model folder or hub id, from its configuration alone.

    Raises:
        EngineUnavailable: there is no such model; one line, with the cure.
    """
    import torch
    import transformers

    from modebench.sampling.base import EngineUnavailable

    try:
        config = transformers.AutoConfig.from_pretrained(model, trust_remote_code=False)
        with torch.device("meta"):
            skeleton = transformers.AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise EngineUnavailable(f"the model {model} cannot be loaded: {reason}") from error
    return sum(parameter.numel() for parameter in skeleton.parameters())
