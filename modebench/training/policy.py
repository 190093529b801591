"""The policy: a causal language model with its tokenizer, loaded for training and written as it came.

Weights are float32 whatever they are stored as: AdamW's steps at the learning rates in use are smaller than
the rounding of half precision (Micikevicius et al. 2018, arXiv:1710.03740, section 3.1). Dropout is zero,
so that sampling, scoring and the gradient are of one distribution.
"""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from modebench.probing import Prefix
from modebench.prompts import build_messages
from modebench.sampling.chat import ChatFormat
from modebench.sampling.transformers import load_engine
from modebench.tasks import Task
from modebench.tiny import PROFILE_FILE
from modebench.training.likelihood import Scorer

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Policy:
    """A model that is trained.

    Attributes:
        model: causal language model of transformers, float32, in training mode, without dropout.
        tokenizer: its tokenizer.
        scorer: gives log-probabilities of responses under the model as it is at that moment.
        name: what it was loaded from.
        origin: provenance of the weights that it started from.
        profile: prompt profile; see `modebench.prompts`.
        chat_template: ask in the tokenizer's chat template where it has one.
    """

    model: Any
    tokenizer: Any
    scorer: Scorer
    name: str
    origin: dict[str, Any]
    profile: str = "direct"
    chat_template: bool = True

    def prompt_ids(self, task: Task, prefix: Prefix | None = None) -> tuple[int, ...]:
        """Token ids of a task's prompt, the same ones as in an evaluation."""
        chat = ChatFormat(self.tokenizer, use_template=self.chat_template)
        text = "" if prefix is None else prefix.text
        return tuple(chat.prompt_ids(build_messages(task, self.profile, prefix=text)))

    def response_ids(self, text: str) -> tuple[int, ...]:
        """Token ids of a response given as text, closed as the model closes its turn."""
        end = ChatFormat(self.tokenizer, use_template=self.chat_template).end_of_turn_id()
        end = self.tokenizer.eos_token_id if end is None else end
        ids = [int(token) for token in self.tokenizer(text, add_special_tokens=False)["input_ids"]]
        return tuple(ids if end is None else [*ids, int(end)])

    def save(self, folder: Path) -> None:
        """Write an ordinary transformers folder, with the profile that the policy came with, if any."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        profile = Path(self.name).expanduser() / PROFILE_FILE
        if profile.is_file():
            shutil.copyfile(profile, folder / PROFILE_FILE)


def load(name: str, *, device: str = "auto", profile: str = "direct", chat_template: bool = True) -> Policy:
    """Load a model folder or a hub id for training.

    Args:
        name: a local folder, or a hub id such as ``Qwen/Qwen2.5-0.5B-Instruct``.
        device: as in `modebench.sampling.transformers.load_engine`.
        profile: prompt profile.
        chat_template: False asks the model in plain text even where it has a template.

    Raises:
        EngineUnavailable: the model cannot be loaded; one line, with the cure.
        RuntimeError: the model is still random after every dropout rate found in it was set to zero.
    """
    engine = load_engine(name, dtype="float32", device=device, chat_template=chat_template)
    model = engine.model
    found = remove_dropout(model)
    if found:
        _log.info("dropout of %s set to zero: %s", name, ", ".join(found))
    model.train()
    _assert_deterministic(model)
    told = engine.describe()
    origin: dict[str, Any] = {key: told[key] for key in ("fingerprint", "revision") if key in told}
    return Policy(model, engine.tokenizer, Scorer(model), name, origin, profile, chat_template)


def remove_dropout(model: Any) -> list[str]:
    """Set every dropout rate of a model to zero; returns the names of those that were not.

    Rates stand in dropout modules, in plain attributes of other modules (attention called as a function) and
    in the configuration.
    """
    found = set()
    for module in [*model.modules(), model.config, model.config.get_text_config()]:
        for name, value in list(vars(module).items()):
            is_rate = "drop" in name or (
                name == "p" and isinstance(module, torch.nn.modules.dropout._DropoutNd)
            )
            if is_rate and isinstance(value, float) and value > 0:
                setattr(module, name, 0.0)
                found.add(f"{type(module).__name__}.{name}")
    return sorted(found)


def _assert_deterministic(model: Any) -> None:
    """Two forward passes in training mode must agree."""
    ids_1S = torch.arange(8, device=model.device)[None] % model.config.get_text_config().vocab_size
    with torch.no_grad():
        first, second = (model(input_ids=ids_1S, use_cache=False).logits for _ in range(2))
    if not torch.equal(first, second):
        raise RuntimeError(f"two forward passes of {type(model).__name__} differ: something in it is random")
