"""The packaged tiny policy, an ordinary transformers folder, and what a model folder says of itself.

A model folder may hold ``training_profile.yaml`` (see `modebench.training.profiles`). Its prompt profile and
response length are also how the model is asked in an evaluation, unless the user says otherwise.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from modebench.errors import InputError

TINY = "tiny"
"""Model string of the packaged policy; ``vllm/tiny`` loads it into vLLM."""
PROFILE_FILE = "training_profile.yaml"


def tiny_folder() -> Path:
    """The folder of the packaged policy."""
    return Path(str(files("modebench.data").joinpath("tiny")))


def model_defaults(folder: Path) -> dict[str, Any]:
    """How the model in a folder wants to be asked: options of an evaluation by name; empty if it doesn't say.

    Raises:
        InputError: its profile is no YAML mapping.
    """
    path = folder / PROFILE_FILE
    if not path.is_file():
        return {}
    import yaml

    try:
        profile = yaml.safe_load(path.read_text(encoding="utf-8"))
        rollout = (profile or {}).get("rollout", {})
        names = {"profile": "profile", "max_completion_length": "max_tokens"}
        return {option: rollout[name] for name, option in names.items() if name in rollout}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(path, 1, "record", f"is not a YAML mapping ({reason})") from None
