"""The folder of a pretraining run.

Layout::

    pretraining.json   settings, versions, what the pools hold
    pretraining.pt     state of the run
    log.jsonl          a line a step: loss of a reply token by group, nats
    policy/            the policy: a transformers folder with its profile and model card
    card/              run folders behind the card
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from modebench.errors import UsageError
from modebench.pretraining.corpus import Frozen, Pool, make_pool
from modebench.pretraining.pretrain import PoolSize, PretrainConfig, Pretrainer, Shape, Share, Stage
from modebench.provenance import versions
from modebench.runs import json_line, read_json_object, refuse_in_use, write_atomically
from modebench.tiny import PROFILE_FILE

SETTINGS, LOG, POLICY, CARD = "pretraining.json", "log.jsonl", "policy", "card"

PROFILE = """\
# How the tiny policy is asked, and settings of a training run that fit it; docs/tiny.md has measurements.
rollout:
  profile: compact
  num_prompts: 16
  group_size: 16
  max_completion_length: 48
optimizer:
  learning_rate: 3.0e-4
replay:
  coefficient: 5.0
coaching:
  wrap: false
svs:
  form: menu
  max_solutions: 1
  problems: 8
  solutions: 8
  max_length: 128
  empty: train
synco:
  max_tokens: 128
eval:
  every: 25
  samples: 16
checkpoint:
  every: 25
run:
  device: cpu
  threads: 1
# The longest answers have 4, 8, 15, 8 and 7 tokens. The limit is also Dr. GRPO's divisor, beside which the
# coefficient of replay has its meaning. Cards have up to 46, 38, 52, 63 and 104. There are few level-1 graphs
# up to names: made tasks of the last steps only are remembered.
# SVS as published would make some 25 times the rollouts of GRPO here, and among 16 tasks the band is often
# empty. A menu is answered with what applies; a free text is seldom a task (README.md).
level1:
  graph_coloring:
    {rollout: {max_completion_length: 6}, svs: {window: 64}, synco: {max_tokens: 64, window: 16}}
  countdown: {rollout: {max_completion_length: 10}}
  python_factors: {rollout: {max_completion_length: 16}, synco: {max_tokens: 64}}
  mathir: {rollout: {max_completion_length: 10}}
  pantry_plan: {rollout: {max_completion_length: 8}}
"""
"""The profile that is written beside the weights."""


class PretrainingFolder:
    """A run on disk.

    Attributes:
        path: the folder.
        config: its settings.
        policy: where the policy is written.
    """

    def __init__(self, path: Path, config: PretrainConfig) -> None:
        self.path, self.config, self.policy = path, config, path / POLICY

    @classmethod
    def create(cls, path: Path, config: PretrainConfig) -> PretrainingFolder:
        """A new run in an empty or missing folder.

        Raises:
            UsageError: something stands there already.
        """
        refuse_in_use(path)
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path, config)
        folder._write({"config": asdict(config), **versions()})
        return folder

    @classmethod
    def open(cls, path: Path) -> PretrainingFolder:
        """A run that was started.

        Raises:
            UsageError: there is none.
        """
        if not (path / SETTINGS).is_file():
            raise UsageError(f"{path} is not a pretraining folder: it has no {SETTINGS}")
        saved = read_json_object(path / SETTINGS)["config"]
        stages = tuple(
            Stage(
                **stage
                | {
                    "shares": {domain: Share(**share) for domain, share in stage["shares"].items()},
                    "rates": tuple(stage["rates"]),
                }
            )
            for stage in saved["stages"]
        )
        pools = {domain: PoolSize(**size) for domain, size in saved["pools"].items()}
        typed = {"shape": Shape(**saved["shape"]), "stages": stages, "pools": pools}
        return cls(path, PretrainConfig(**saved | typed))

    def run(self, on_step: Callable[[int, int, dict[str, float]], None]) -> None:
        """Train to the end and write the policy; pools are drawn again on resuming, from the same seed."""
        if (self.policy / PROFILE_FILE).is_file():
            return
        torch.set_num_threads(1)  # more are no faster at this size, and sums would differ
        frozen = Frozen()
        pools = {
            domain: make_pool(domain, self.config.seed, size.tasks, size.variations, frozen)
            for domain, size in self.config.pools.items()
        }
        pretrainer = Pretrainer(self.config, pools, self.path)
        made = {
            "frozen": len(frozen.identities),
            "pools": _counts(pools),
            "parameters": sum(parameter.numel() for parameter in pretrainer.model.parameters()),
            "vocabulary": len(pretrainer.tokenizer),
        }
        self._write(self._settings() | made)
        self._cut_log(pretrainer.step)
        with (self.path / LOG).open("ab", buffering=0) as log:

            def note(step: int, losses: dict[str, float]) -> None:
                log.write(json_line({"step": step, **losses}))
                on_step(step, self.config.steps, losses)

            pretrainer.run(note)
        pretrainer.write_policy(self.policy)
        write_atomically(self.policy / PROFILE_FILE, PROFILE)

    def write_card(self) -> None:
        """Measure the policy and write README.md into its folder."""
        from modebench.pretraining.model_card import measure, render
        from modebench.sampling import EngineOptions, load_engine

        settings = self._settings()
        engine = load_engine(f"hf/{self.policy}", EngineOptions(device="cpu", threads=1))
        figures = measure(engine, f"hf/{self.policy}", self.path / CARD)
        facts = {
            **{name: settings[name] for name in ("parameters", "vocabulary", "pools", "frozen")},
            "seed": self.config.seed,
            "steps": self.config.steps,
            "versions": {name: settings["versions"][name] for name in ("modebench", "torch", "transformers")},
        }
        write_atomically(self.path / "card.json", json.dumps(figures, indent=2) + "\n")
        write_atomically(self.policy / "README.md", render(figures, facts))

    def _settings(self) -> dict[str, Any]:
        return read_json_object(self.path / SETTINGS)

    def _write(self, document: Mapping[str, Any]) -> None:
        write_atomically(self.path / SETTINGS, json.dumps(document, indent=2) + "\n")

    def _cut_log(self, step: int) -> None:
        """Drop the lines of steps that are done again."""
        path = self.path / LOG
        lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
        write_atomically(path, b"".join(lines[:step]).decode())


def _counts(pools: Mapping[str, Pool]) -> dict[str, dict[str, int]]:
    return {
        domain: {"tasks": len(pool.sources), "varied": len(pool.varied), "excluded": pool.excluded}
        for domain, pool in pools.items()
    }
