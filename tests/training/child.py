"""`modebench train` in processes of their own, forked from a server that has loaded everything already.

A real process can be killed; the imports, which take seconds, are paid once for all of them.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import string
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.sampling.tiny_models import END, EOS, tiny_model, tiny_tokenizer

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "modebench.training.trainer",
        "modebench.cli.train_command",
        "modebench.analysis.summary",
        "transformers.models.llama.modeling_llama",
        "transformers.models.auto.tokenization_auto",
        "transformers.generation",
    ]
)

Fault = Callable[..., None]
"""Called in the child before the command, with the child's arguments for it."""


def save_policy(folder: Path) -> Path:
    """A random model of a few thousand parameters with room for the longest prompt.

    Capital letters end its responses too, so that many come to an end within some tokens.
    """
    tokenizer = tiny_tokenizer()
    model = tiny_model("llama", len(tokenizer))
    model.config.max_position_embeddings = 2048
    ends = tokenizer.convert_tokens_to_ids(list(string.ascii_uppercase))
    model.generation_config.eos_token_id = [EOS, END, *ends]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def install_letters(site: Path) -> Path:
    """A folder in which the domain of tests/plugins/letters.py is installed."""
    metadata = site / "letters_domain-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[1] / "plugins" / "letters.py", site / "letters_domain.py")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: letters-domain\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[modebench.domains]\nletters = letters_domain\n")
    return site


@dataclass
class Child:
    """One process that runs the command."""

    process: ForkServerProcess
    log: Path

    def wait(self) -> int:
        """Exit code, minus the number of the signal that ended it."""
        self.process.join(300)
        code = self.process.exitcode
        assert code is not None, f"still running: {self.log.read_text()}"
        return code

    def kill(self) -> None:
        """SIGKILL; of no effect where it has ended."""
        self.process.kill()

    def terminate(self) -> None:
        """SIGTERM, likewise."""
        self.process.terminate()

    @property
    def text(self) -> str:
        """What it wrote to stdout and stderr."""
        return self.log.read_text()


@dataclass(frozen=True)
class Place:
    """Where the tests train: a model, and a domain that it sometimes solves."""

    model: Path
    site: Path

    def start(self, folder: Path, *arguments: object, fault: Fault | None = None, given: Any = None) -> Child:
        """Run ``modebench train`` with these arguments in `folder`."""
        log = folder / f"log-{len(list(folder.glob('log-*')))}"
        texts = [str(argument) for argument in arguments]
        process = _SERVER.Process(target=_run, args=(self.site, folder, texts, log, fault, given))
        process.start()
        return Child(process, log)

    def train(self, folder: Path, *arguments: object, **options: Any) -> Child:
        """The same, awaited."""
        child = self.start(folder, *arguments, **options)
        child.wait()
        return child

    def asked(self, method: str, steps: int, *sets: str) -> list[str]:
        """Arguments of a small run, whose groups are often mixed."""
        small = [
            "eval.limit=3", "eval.samples=2", "eval.dev_limit=2", "eval.dev_samples=2", "eval.every=4",
            "checkpoint.every=2", "checkpoint.keep=0", "rollout.num_prompts=2", "rollout.group_size=4",
            "rollout.max_completion_length=8", "run.device=cpu", "data.limit=6", *sets,
        ]  # fmt: skip
        named = [
            "--method",
            method,
            "--model",
            f"hf/{self.model}",
            "--domain",
            "letters",
            "--steps",
            str(steps),
        ]
        return [*named, *(piece for text in small for piece in ("--set", text))]


def _run(site: Path, folder: Path, arguments: list[str], log: Path, fault: Fault | None, given: Any) -> None:
    with log.open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    sys.path.insert(0, str(site))
    os.chdir(folder)
    from modebench.cli import main

    if fault is not None:
        fault(given)
    sys.argv = ["modebench", "train", *arguments]
    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
